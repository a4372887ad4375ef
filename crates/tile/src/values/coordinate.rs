//! Where an element of a fragment is.

use super::{F32, Pred, Share, U32};
use std::ops::{Add, Range};

/// An element of a [`super::Fragment`], as this thread holds it.
#[derive(Clone, Copy)]
pub struct Cell {
    pub(super) share: Share,
    /// How many neighbours of a row each of its lanes has.
    pub(super) run: u32,
    /// Which of the thread's rows.
    pub(super) row: usize,
    /// The constant part of its column; the lane adds its own.
    pub(super) column: u32,
}

impl Cell {
    /// The row in the warp's rows.
    #[track_caller]
    pub fn row(self) -> Coordinate {
        self.share.row(self.row)
    }

    #[track_caller]
    pub fn column(self) -> Coordinate {
        Coordinate { base: self.share.lane_of_row() * self.run, constant: self.column }
    }

    /// Whether its column is one of so many: known while generating, unless lanes differ.
    #[track_caller]
    pub fn is_before(self, columns: u32) -> Pred {
        let of_lanes = self.columns_of_lanes();
        if of_lanes.contains(&columns) {
            return self.column().lt(columns.into());
        }
        (of_lanes.start < columns).into()
    }

    /// The columns that the lanes of a row have in this register and its neighbours.
    pub fn columns_of_lanes(self) -> Range<u32> {
        let at_once = self.share.columns_at_once(self.run);
        let first = self.column / at_once * at_once;
        first..first + at_once
    }
}

/// `base + constant`, below 2³¹. Cells of one fragment differ in the constant, which comparisons put into the
/// instruction: a hundred cells need one register, not a hundred.
#[derive(Clone, Copy)]
pub struct Coordinate {
    pub(crate) base: U32,
    pub(crate) constant: u32,
}

impl Coordinate {
    #[track_caller]
    pub fn value(self) -> U32 {
        self.base + self.constant
    }

    /// `limit` is at most 2³¹ - 1.
    #[track_caller]
    pub fn lt(self, limit: U32) -> Pred {
        (limit.signed() - self.base.signed()).gt(self.constant.cast_signed())
    }

    /// How far it is behind `other`, exact up to 2²⁴. Cells of one fragment differ in what is added last.
    #[track_caller]
    pub fn minus(self, other: Coordinate) -> F32 {
        (self.base.signed() - other.base.signed()).to_f32() + (self.constant as f32 - other.constant as f32)
    }
}

/// A coordinate that is known while generating, for asking on the host.
impl From<u32> for Coordinate {
    fn from(value: u32) -> Coordinate {
        Coordinate { base: value.into(), constant: 0 }
    }
}

/// Counted from `first` instead of zero.
impl Add<U32> for Coordinate {
    type Output = Coordinate;
    #[track_caller]
    fn add(self, first: U32) -> Coordinate {
        Coordinate { base: first + self.base, ..self }
    }
}
