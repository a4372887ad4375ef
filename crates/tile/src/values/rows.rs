//! One number per row that a thread holds of a fragment.

use super::{Cell, F32, Share, Var};
use crate::builder::here;
use crate::error::BuildError;
use std::ops::{Add, Mul, Neg};

/// Of one warp: 64 rows of products. More would not leave registers for anything else.
const MAX_GROUPS: usize = 4;
/// One thread holds two of every 16 such rows: `lane / 4` and eight further.
const MAX_ROWS_PER_LANE: usize = 2 * MAX_GROUPS;

/// How many times 16 rows these are.
#[track_caller]
pub(super) fn row_groups(name: &str, rows: u32) -> usize {
    let at = here();
    if rows == 0 || !rows.is_multiple_of(16) || rows as usize > 16 * MAX_GROUPS {
        BuildError::new(format!("`{name}` has {rows} rows in one warp: expected 16, 32, 48 or 64"), at).raise()
    }
    rows as usize / 16
}

#[track_caller]
fn must_be(right: bool, otherwise: &str) {
    if !right {
        BuildError::new(format!("rows do not fit: {otherwise}"), here()).raise()
    }
}

#[derive(Clone, Copy)]
pub struct Rows {
    numbers: [F32; MAX_ROWS_PER_LANE],
    share: Share,
}

impl Rows {
    /// A number for each row that a lane has.
    #[track_caller]
    pub fn new(share: Share, numbers: impl IntoIterator<Item = F32>) -> Rows {
        must_be(share.rows_per_lane() <= MAX_ROWS_PER_LANE, "more rows than a thread can have");
        let mut rows = Rows { numbers: [F32::from(0.0); MAX_ROWS_PER_LANE], share };
        rows.numbers.iter_mut().zip(numbers).for_each(|(row, number)| *row = number);
        rows
    }

    pub fn share(&self) -> Share {
        self.share
    }

    /// The number of the row that `cell` is in.
    #[track_caller]
    pub fn of(self, cell: Cell) -> F32 {
        must_be(cell.row < self.share.rows_per_lane(), "a cell of more rows than these");
        self.numbers[cell.row]
    }

    pub fn iter(&self) -> impl Iterator<Item = F32> {
        self.numbers.into_iter().take(self.share.rows_per_lane())
    }

    #[track_caller]
    pub fn map(self, change: impl Fn(F32) -> F32) -> Rows {
        here();
        Rows::new(self.share, self.iter().map(change))
    }

    #[track_caller]
    pub fn zip(self, other: Rows, join: impl Fn(F32, F32) -> F32) -> Rows {
        here();
        must_be(self.share == other.share, "two fragments of different heights");
        Rows::new(self.share, self.iter().zip(other.iter()).map(|(left, right)| join(left, right)))
    }

    #[track_caller]
    pub fn max(self, other: Rows) -> Rows {
        self.zip(other, F32::max)
    }

    #[track_caller]
    pub fn exp2(self) -> Rows {
        self.map(F32::exp2)
    }

    #[track_caller]
    pub fn log2(self) -> Rows {
        self.map(F32::log2)
    }

    /// The sum over the lanes that share a row.
    #[track_caller]
    pub fn sum_over_lanes(self) -> Rows {
        self.join_lanes(|a, b| a + b)
    }

    /// The largest over the lanes that share a row.
    #[track_caller]
    pub fn max_over_lanes(self) -> Rows {
        self.join_lanes(F32::max)
    }

    #[track_caller]
    fn join_lanes(self, join: impl Fn(F32, F32) -> F32) -> Rows {
        let mut joined = self;
        for mask in self.share.lane_masks() {
            joined = joined.zip(joined.map(|x| x.shuffle_xor(mask)), &join);
        }
        joined
    }
}

impl Add for Rows {
    type Output = Rows;
    #[track_caller]
    fn add(self, other: Rows) -> Rows {
        self.zip(other, |a, b| a + b)
    }
}

impl Mul for Rows {
    type Output = Rows;
    #[track_caller]
    fn mul(self, other: Rows) -> Rows {
        self.zip(other, |a, b| a * b)
    }
}

impl Mul<f32> for Rows {
    type Output = Rows;
    #[track_caller]
    fn mul(self, factor: f32) -> Rows {
        self.map(|x| x * factor)
    }
}

impl Neg for Rows {
    type Output = Rows;
    #[track_caller]
    fn neg(self) -> Rows {
        self.map(|x| -x)
    }
}

/// Rows that may change.
pub struct RowVars {
    numbers: Vec<Var<f32>>,
    share: Share,
}

impl RowVars {
    /// One number for each row that a lane has.
    #[track_caller]
    pub fn new(name: &str, share: Share, value: f32) -> RowVars {
        let number = |row| Var::new(format!("{name}_{row}"), value);
        RowVars { numbers: (0..share.rows_per_lane()).map(number).collect(), share }
    }

    #[track_caller]
    pub fn get(&self) -> Rows {
        here();
        Rows::new(self.share, self.numbers.iter().map(Var::get))
    }

    #[track_caller]
    pub fn set(&mut self, rows: Rows) {
        must_be(self.share == rows.share, "two fragments of different heights");
        for (var, value) in self.numbers.iter_mut().zip(rows.iter()) {
            var.set(value);
        }
    }
}
