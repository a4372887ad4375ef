//! What blocks that share the keys of their queries leave behind for the kernel that joins it.

use super::online_softmax::OnlineSoftmax;
use super::sequences::Sequence;
use tile::prelude::*;

/// Of each query and head, and of each share of the keys: the weighted sum of values, not yet divided, and maximum and sum of
/// the softmax. Shares of a row lie one behind the other.
pub struct Scratch {
    /// `[query, head, share, column]`
    outputs: Slice<f32>,
    /// `[query, head, share, 2]`
    statistics: Slice<f32>,
    pub splits: U32,
    /// None: the grid's y is the heads.
    heads: Option<U32>,
}

impl Scratch {
    #[track_caller]
    pub fn parameter() -> Scratch {
        let [outputs, statistics] = ["part_outputs", "part_statistics"].map(Slice::parameter);
        Scratch { outputs, statistics, splits: parameter("splits"), heads: None }
    }

    /// Where no dimension of the grid is the heads.
    pub fn of_heads(self, heads: U32) -> Scratch {
        Scratch { heads: Some(heads), ..self }
    }

    /// What the shares of one row have left, or will leave.
    #[track_caller]
    pub fn row(&self, sequence: &Sequence, query: U32, head: U32, columns: u32) -> Parts {
        let heads = self.heads.unwrap_or_else(|| grid_size(1));
        let row = (sequence.first_query() + query.to_u64()) * heads.to_u64() + head.to_u64();
        let first = row * self.splits.to_u64();
        let outputs = self.outputs.skip(first * u64::from(columns));
        Parts { outputs, statistics: self.statistics.skip(first * 2), columns }
    }
}

/// The shares of one row.
pub struct Parts {
    outputs: Slice<f32>,
    statistics: Slice<f32>,
    columns: u32,
}

impl Parts {
    /// Two neighbours of the output of one share.
    #[track_caller]
    pub fn output(&self, share: U32, column: U32) -> [F32; 2] {
        self.outputs.load_pair(share * self.columns + column)
    }

    /// Maximum and sum of one share.
    #[track_caller]
    pub fn statistics(&self, share: U32) -> [F32; 2] {
        self.statistics.load_pair(share * 2)
    }

    /// The lane's `row`-th row of one share.
    pub fn store(&self, share: U32, row: usize, output: &Fragment, softmax: &OnlineSoftmax) {
        self.store_output(share, row, output);
        self.store_statistics(share, row, softmax);
    }

    /// Products have columns in sixteens, and lanes in pairs; those that the output does not have are left out.
    pub fn store_output(&self, share: U32, row: usize, output: &Fragment) {
        let outputs = self.outputs.skip(share.widening_mul(self.columns));
        for (cell, pair) in output.pairs_of_row(row) {
            when(cell.is_before(self.columns), || outputs.store_pair(cell.column(), pair));
        }
    }

    /// Of the lanes that hold a row, the first writes its statistics.
    pub fn store_statistics(&self, share: U32, row: usize, softmax: &OnlineSoftmax) {
        let of_row = |rows: Rows| rows.iter().nth(row).unwrap_or(0.0.into());
        let pair = [softmax.max(), softmax.sum()].map(of_row);
        when(softmax.max().share().is_first_lane(), || {
            self.statistics.store_pair(Coordinate::from(0) + share * 2, pair)
        });
    }
}
