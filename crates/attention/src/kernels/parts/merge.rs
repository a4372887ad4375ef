//! Joins the results of warps that saw different keys of the same queries.

use super::online_softmax::OnlineSoftmax;
use tile::prelude::*;

/// Which of the block's work a warp does: some rows of the tile, and its share of each key tile. Warps that only copy are
/// numbered behind the last key group.
pub struct WarpPlace {
    pub row_groups: u32,
    pub key_groups: u32,
    pub row_group: U32,
    pub key_group: U32,
}

impl WarpPlace {
    pub fn new(row_groups: u32, key_groups: u32) -> WarpPlace {
        let warp = warp_index();
        WarpPlace { row_groups, key_groups, row_group: warp % row_groups, key_group: warp / row_groups }
    }
}

const LANES: u32 = 32;

/// Shared memory through which warps of key groups 1, 2, … hand their part to group 0.
pub struct Merge {
    outputs: SharedVector<f32>,
    statistics: SharedVector<f32>,
    /// Elements of one warp's output.
    per_warp: u32,
    /// Rows that a thread has: it leaves maximum and sum of each.
    rows_per_thread: u32,
}

impl Merge {
    /// With memory of its own, for outputs of `rows` × `columns` of each warp.
    pub fn new(place: &WarpPlace, rows: u32, columns: u32) -> Merge {
        Merge::with(place, rows, columns, |lengths| lengths.map(SharedVector::new))
    }

    /// With that of a ring whose tiles are done with.
    pub fn over<E: Element>(ring: CopyRing<E>, place: &WarpPlace, rows: u32, columns: u32) -> Merge {
        Merge::with(place, rows, columns, |lengths| ring.retire(lengths))
    }

    fn with(
        place: &WarpPlace,
        rows: u32,
        columns: u32,
        allocate: impl FnOnce([u32; 2]) -> [SharedVector<f32>; 2],
    ) -> Merge {
        let warps = (place.key_groups - 1) * place.row_groups;
        let (per_warp, rows_per_thread) = (rows * columns, rows / 8);
        let [outputs, statistics] = allocate([warps * per_warp, warps * LANES * 2 * rows_per_thread]);
        Merge { outputs, statistics, per_warp, rows_per_thread }
    }

    /// After it, the warps of group 0 hold the joint output and softmax of all that are `computing`.
    pub fn join(&self, computing: Warps, place: &WarpPlace, softmax: &mut OnlineSoftmax, output: &mut Accumulator) {
        if place.key_groups == 1 {
            return;
        }
        computing.run(|| {
            when(place.key_group.ne(0), || self.write(slot(place, place.key_group), softmax, output));
        });
        barrier();
        when(place.key_group.eq(0), || {
            for group in 1..place.key_groups {
                self.read(slot(place, group.into()), softmax, output);
            }
        });
    }

    fn write(&self, slot: U32, softmax: &OnlineSoftmax, output: &Accumulator) {
        for (index, value) in (0..).zip(softmax.max().iter().chain(softmax.sum().iter())) {
            self.statistics.store(self.statistics_of(slot), index * LANES, value);
        }
        for (index, value) in (0..).zip(output.elements()) {
            self.outputs.store(self.output_of(slot), index * LANES, value);
        }
    }

    fn read(&self, slot: U32, softmax: &mut OnlineSoftmax, output: &mut Accumulator) {
        let row = |index: u32| self.statistics.load(self.statistics_of(slot), index * LANES);
        let rows = self.rows_per_thread;
        let [max, sum] = [0..rows, rows..2 * rows].map(|indices| Rows::new(output.share(), indices.map(row)));
        let [mine, other] = softmax.join(max, sum);
        let mut index = (0..).map(|register| register * LANES);
        output.update(|cell, sum| {
            let theirs = self.outputs.load(self.output_of(slot), index.next().unwrap_or_default());
            sum.mul_add(mine.of(cell), theirs * other.of(cell))
        });
    }

    /// Lanes are neighbours, so that no two of them meet in a bank.
    fn output_of(&self, slot: U32) -> U32 {
        slot * self.per_warp + lane_index()
    }

    fn statistics_of(&self, slot: U32) -> U32 {
        slot * (LANES * 2 * self.rows_per_thread) + lane_index()
    }
}

/// The writing warps are numbered from zero.
fn slot(place: &WarpPlace, key_group: U32) -> U32 {
    (key_group - 1) * place.row_groups + place.row_group
}
