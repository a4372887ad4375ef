//! Rows that a warp computes on plain cores: every lane has some columns of each.

use super::{Fragment, Share, SharedVector, U32, Var};
use crate::builder::here;
use crate::error::BuildError;
use crate::instructions::{SharedPointer, bar_warp_sync};
use std::ops::{Deref, DerefMut};

const LANES: u32 = 32;

/// Rows × columns of f32 per warp: what [`super::dot`] and [`super::weigh_add`] add to.
pub struct WarpRows {
    sums: Fragment,
    registers_per_row: usize,
}

impl WarpRows {
    /// Lane `l` has columns `l`, `l + 32`, … Without values yet: for `dot`, which sets them.
    #[track_caller]
    pub fn new(name: &str, rows: u32, columns: u32) -> WarpRows {
        let at = here();
        if !columns.is_multiple_of(LANES) {
            let message = format!("`{name}` has {columns} columns: expected as many for each of {LANES} lanes");
            BuildError::new(message, at).raise()
        }
        WarpRows::in_runs(name, rows, columns, 1)
    }

    /// Zeros. Lane `l` has columns `2l` and `2l + 1`, and the same of every 64; those beyond `columns` stay zero.
    #[track_caller]
    pub fn zero_in_pairs(name: &str, rows: u32, columns: u32) -> WarpRows {
        let mut sums = WarpRows::in_runs(name, rows, columns, 2);
        sums.clear();
        sums
    }

    #[track_caller]
    fn in_runs(name: &str, rows: u32, columns: u32, run: u32) -> WarpRows {
        let at_once = LANES * run;
        let registers_per_row = (columns.div_ceil(at_once) * run) as usize;
        let place = |index: usize| {
            let of_row = (index % registers_per_row) as u32;
            (index / registers_per_row, of_row / run * at_once + of_row % run)
        };
        let places = (0..rows as usize * registers_per_row).map(place).collect();
        WarpRows { sums: Fragment::new(name, Share::whole(rows), run, places), registers_per_row }
    }

    /// Those that lanes have registers for.
    pub fn columns(&self) -> u32 {
        self.registers_per_row as u32 * LANES
    }

    /// A lane's registers of one row.
    pub(super) fn row_mut(&mut self, row: u32) -> &mut [Var<f32>] {
        let first = row as usize * self.registers_per_row;
        &mut self.sums.registers_mut()[first..first + self.registers_per_row]
    }
}

impl Deref for WarpRows {
    type Target = Fragment;
    fn deref(&self) -> &Fragment {
        &self.sums
    }
}

impl DerefMut for WarpRows {
    fn deref_mut(&mut self) -> &mut Fragment {
        &mut self.sums
    }
}

/// Shared memory of each warp for itself, through which its lanes hand each other what they have of [`WarpRows`].
pub struct HandedRows {
    numbers: SharedVector<f32>,
    /// The warp's own.
    first: U32,
    pub rows: u32,
    pub columns: u32,
}

impl HandedRows {
    /// `rows` × `columns` for each of the first `warps` of the block; `warp` is this one's number.
    #[track_caller]
    pub fn new(warps: u32, warp: U32, rows: u32, columns: u32) -> HandedRows {
        HandedRows { numbers: SharedVector::new(warps * rows * columns), first: warp * (rows * columns), rows, columns }
    }

    /// All lanes see `rows` behind it. Between the last read of what was there and this stands a barrier of the block,
    /// as rings have one for every tile.
    #[track_caller]
    pub fn set(&self, rows: &WarpRows) {
        let at = here();
        if [self.rows, self.columns] != [rows.rows(), rows.columns()] {
            let [own, given] = [[self.rows, self.columns], [rows.rows(), rows.columns()]];
            let message = format!("shapes do not fit: {}×{} = {}×{}", own[0], own[1], given[0], given[1]);
            BuildError::new(message, at).raise()
        }
        for (cell, number) in rows.cells() {
            let column = cell.column();
            let row = cell.row().constant * self.columns;
            self.numbers.store(self.first + column.base, row + column.constant, number);
        }
        bar_warp_sync();
    }

    /// Where the first row has the number of `column`. Rows lie one behind the other.
    #[track_caller]
    pub(super) fn at(&self, column: U32) -> SharedPointer {
        self.numbers.at(self.first + column, 0)
    }
}
