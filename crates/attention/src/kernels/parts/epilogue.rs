//! Writes a warp's rows of the output and their log-sum-exp.

use super::row_order::RowsFrom;
use super::sequences::LogSumExp;
use tile::prelude::*;

/// Products have columns in sixteens, and lanes in pairs; those that the output does not have are left out.
pub fn store_output<E: Element>(output: &Fragment, to: &Matrix<E>, first_row: U32) {
    for row in 0..output.share().rows_per_lane() {
        let place = output.share().row(row) + first_row;
        when(place.lt(to.rows), || {
            for (cell, [left, right]) in output.pairs_of_row(row) {
                when(to.has_column_of(cell), || {
                    to.store_pair(place.value(), cell.column(), left.pack(right));
                });
            }
        });
    }
}

/// One number per row; of the lanes that hold a row, the first writes.
pub fn store_log_sum_exp(values: Rows, to: &LogSumExp, rows: &RowsFrom) {
    for (row, value) in values.iter().enumerate() {
        let at = values.share().row(row);
        let of_head = to.row(rows.sequence, rows.head(at));
        when(values.share().is_first_lane() & rows.has(at), || of_head.store(rows.query(at), value));
    }
}
