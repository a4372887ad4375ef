//! Products on plain cores: every lane multiplies and adds for the columns that it has.

use super::product::check_shapes;
use super::shared::{CHUNK_BYTES, PANEL_CHUNKS, SWIZZLE_BYTES};
use super::{Element, F32, HandedRows, Packed, U32, View, WarpRows};
use crate::control::for_each;
use crate::instructions::{fma_rn_f32_into, lane_index, ld_shared, ld_shared_v4};

const LANES: u32 = 32;

/// `sums = left · rightᵀ`: each row of `left` from `first` on, times each row of `right`. Lanes split the rows of
/// `right`, and go through both by eight columns at a time.
#[track_caller]
pub fn dot<E: Element>(sums: &mut WarpRows, left: View<E>, first: U32, right: View<E>) {
    check_shapes([sums.rows(), sums.columns()], [sums.rows(), left.columns], [right.columns, right.rows]);
    let own = right.row(lane_index());
    let shared: Vec<_> = (0..sums.rows()).map(|row| left.row(first + row)).collect();
    sums.clear();
    let chunks = left.columns / 8;
    for panel in 0..chunks.div_ceil(PANEL_CHUNKS) {
        let in_panel = (chunks - panel * PANEL_CHUNKS).min(PANEL_CHUNKS);
        for_each(U32::from(0)..in_panel.into(), |chunk| {
            let within = chunk * CHUNK_BYTES;
            let mut columns = vec![];
            for step in 0..right.rows / LANES {
                columns.push(own.eight(within, right.further(step * LANES, panel)));
            }
            for (row, shared) in (0..).zip(&shared) {
                let numbers = shared.eight(within, left.further(0, panel));
                for (sum, column) in sums.row_mut(row).iter_mut().zip(&columns) {
                    for (a, b) in numbers.iter().zip(column) {
                        fma_rn_f32_into(sum, *a, *b);
                    }
                }
            }
        });
    }
}

/// Rows of the right side between two loads of weights: as many as one load has.
const WEIGHTS: u32 = 4;

/// `sums += weights · right`: lanes split the columns of `right`, and go through its rows by eight at a time.
#[track_caller]
pub fn weigh_add<E: Element>(sums: &mut WarpRows, weights: &HandedRows, right: View<E>) {
    let panels = right.columns.div_ceil(2 * LANES);
    let sizes = [sums.rows(), sums.columns()];
    check_shapes(sizes, [weights.rows, weights.columns], [right.rows, panels * 2 * LANES]);
    let lanes = right.lanes_of_pairs();
    for_each(U32::from(0)..(right.rows / 8).into(), |eight| {
        let lanes = lanes + eight * SWIZZLE_BYTES;
        let start = weights.at(eight * 8);
        for first in (0..8).step_by(WEIGHTS as usize) {
            let mut values = vec![];
            for down in first..first + WEIGHTS {
                let mut row = vec![];
                for panel in 0..panels {
                    row.extend(ld_shared::<Packed<E>>(right.pair(lanes, down, panel)).unpack());
                }
                values.push(row);
            }
            for row in 0..sums.rows() {
                let four: [F32; 4] = ld_shared_v4(start.plus((row * weights.columns + first) * 4));
                for (weight, values) in four.into_iter().zip(&values) {
                    for (sum, value) in sums.row_mut(row).iter_mut().zip(values) {
                        fma_rn_f32_into(sum, weight, *value);
                    }
                }
            }
        }
    });
}
