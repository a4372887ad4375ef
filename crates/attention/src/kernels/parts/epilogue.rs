//! Writes a warp's rows of the output and their log-sum-exp.

use tile::prelude::*;

/// Products have columns in sixteens; those that the output does not have are left out.
pub fn store_output<E: Element>(output: &Accumulator, to: &Matrix<E>, first_row: U32) {
    for row in 0..output.rows_per_thread() {
        let place = row_of_lane(row) + first_row;
        when(place.lt(to.rows), || {
            let exists = |cell: &Cell| cell.first_of_eight() < to.columns;
            for (cell, [left, right]) in output.pairs_of_row(row).filter(|(cell, _)| exists(cell)) {
                to.store_pair(place.value(), cell.column(), left.pack(right));
            }
        });
    }
}

/// One number per query of a head; of the four lanes that hold a row, the first writes.
pub fn store_log_sum_exp(values: Rows, to: &Slice<f32>, first_row: U32, queries: U32) {
    for (row, value) in values.iter().enumerate() {
        let query = row_of_lane(row) + first_row;
        when((lane_index() % 4).eq(0) & query.lt(queries), || to.store(query.value(), value));
    }
}
