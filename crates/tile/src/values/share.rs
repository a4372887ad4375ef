//! How the lanes of a warp share the rows of a fragment.

use super::{Coordinate, Pred, U32};
use crate::instructions::lane_index;

const LANES: u32 = 32;

/// Rows of a warp, and among how many lanes each of them is spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    rows: u32,
    lanes: u32,
}

impl Share {
    /// As products on tensor cores place them: of every eight rows, lane `l` has a part of row `l / 4`. PTX ISA,
    /// "Matrix fragments for mma.m16n8k16".
    pub fn of_product(rows: u32) -> Share {
        Share { rows, lanes: 4 }
    }

    /// Each row is spread over the whole warp.
    pub fn whole(rows: u32) -> Share {
        Share { rows, lanes: LANES }
    }

    /// Rows of the warp.
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// How many rows each lane has a part of.
    pub fn rows_per_lane(self) -> usize {
        (self.rows * self.lanes / LANES) as usize
    }

    /// The row, of the warp's, of which a lane has its `row`-th part.
    #[track_caller]
    pub fn row(self, row: usize) -> Coordinate {
        let base = if self.lanes == LANES { 0.into() } else { lane_index() / self.lanes };
        Coordinate { base, constant: row as u32 * (LANES / self.lanes) }
    }

    /// Which of the lanes that share its rows this one is.
    #[track_caller]
    pub fn lane_of_row(self) -> U32 {
        if self.lanes == LANES { lane_index() } else { lane_index() % self.lanes }
    }

    /// The one of the lanes that share a row which writes what all of them know.
    #[track_caller]
    pub fn is_first_lane(self) -> Pred {
        self.lane_of_row().eq(0)
    }

    /// Columns that the lanes of a row have at once, where each of them has `run` neighbours.
    pub(super) fn columns_at_once(self, run: u32) -> u32 {
        self.lanes * run
    }

    /// Bits in which the lanes of a row differ.
    pub(super) fn lane_masks(self) -> impl Iterator<Item = u32> {
        (0..self.lanes.ilog2()).map(|bit| 1 << bit)
    }
}
