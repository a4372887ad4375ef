//! Where an element of a fragment is.

use super::rows::ROWS_OF_GROUP;
use super::{F32, Pred, U32};
use crate::instructions::lane_index;
use std::ops::Add;

/// An element of an [`super::Accumulator`], as this thread holds it.
#[derive(Clone, Copy)]
pub struct Cell {
    /// Which of the thread's rows, of which it has two in every 16.
    pub(super) row: usize,
    /// The constant part of its column; the lane adds `2 * (lane % 4)`.
    pub(super) column: u32,
}

impl Cell {
    /// The element in register `index` of a group of 16 rows. PTX ISA, "Matrix fragments for mma.m16n8k16": accumulator layout.
    pub(super) fn of_register(group: usize, index: usize) -> Cell {
        Cell { row: group * ROWS_OF_GROUP + index / 2 % 2, column: (index / 4 * 8 + index % 2) as u32 }
    }

    /// The row in the warp's rows.
    #[track_caller]
    pub fn row(self) -> Coordinate {
        Coordinate { base: lane_index() / 4, constant: self.row as u32 * 8 }
    }

    /// The first of the eight columns among which it lies.
    pub fn first_of_eight(self) -> u32 {
        self.column / 8 * 8
    }

    #[track_caller]
    pub fn column(self) -> Coordinate {
        Coordinate { base: lane_index() % 4 * 2, constant: self.column }
    }
}

/// The row, of the warp's, that this thread holds as its `row`-th.
#[track_caller]
pub fn row_of_lane(row: usize) -> Coordinate {
    Cell { row, column: 0 }.row()
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
