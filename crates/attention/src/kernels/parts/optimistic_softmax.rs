//! Online softmax that hopes that no later tile has much larger scores: the maximum of a row is looked for only until the row has seen a key.
//!
//! Later tiles take powers above that maximum as they come. The sums that are needed anyway tell whether any weight has grown too large for
//! 16 bits; then, and only then, the row moves to a new maximum.

use super::online_softmax::OnlineSoftmax;
use tile::prelude::*;

/// The most that a thread's weights of one row and tile may sum to: each of them is at most this, and f16 ends at 2¹⁶.
const LIMIT: f32 = 8192.0;
/// Weights below it can be scaled back; beyond it, and where they are no numbers, the scores are needed once more.
const FINITE: f32 = 1.0e30;

pub struct OptimisticSoftmax {
    /// The maximum of a row without a key is zero.
    rows: OnlineSoftmax,
    /// Whether it is −∞ once such a row is [finished](OptimisticSoftmax::finish), for those who join it with others.
    joins: bool,
    /// A bit for each row of the lane that has seen no key yet.
    unseen: Var<u32>,
    /// Whether a tile moved rows to a new maximum, and by what earlier sums and outputs then shrink.
    moved: Var<u32>,
    shrink: RowVars,
}

impl OptimisticSoftmax {
    /// `joins`: whether finished rows are joined with others.
    pub fn new(share: Share, scale: F32, joins: bool) -> OptimisticSoftmax {
        let mut rows = OnlineSoftmax::new(share, scale);
        rows.max.set(every(share, 0.0));
        OptimisticSoftmax {
            rows,
            joins,
            unseen: Var::new("unseen", all_rows(share)),
            moved: Var::new("moved", 0).reaching(Reach::Warp),
            shrink: RowVars::new("shrink", share, 1.0),
        }
    }

    /// Replaces scores by weights. Where they were too large, `again` computes the scores once more.
    pub fn update(&mut self, scores: &mut Accumulator, again: impl FnOnce(&mut Accumulator)) {
        when(!self.unseen.get().eq(0).of_all_lanes(), || self.look_for_maxima(scores));
        self.moved.set(0);
        let mut sums = RowVars::new("tile_sum", scores.share(), 0.0);
        sums.set(self.weigh(scores));
        let largest = sums.get().iter().fold(F32::from(0.0), F32::max);
        when_seldom(!largest.le(LIMIT).of_all_lanes(), || {
            self.moved.set(1);
            let finite = sums.get().iter().fold(Pred::from(true), |all, sum| all & sum.lt(FINITE)).of_all_lanes();
            when(finite, || self.move_by_weights(scores, &mut sums));
            when(!finite, || {
                again(scores);
                self.move_by_scores(scores);
                sums.set(self.weigh(scores));
            });
        });
        self.rows.sum.set(self.rows.sum.get() + sums.get());
        check(
            || self.rows.sum().iter().fold(true.into(), |all, sum| all & sum.is_finite()),
            "the sum of a row is finite",
        );
    }

    /// Scores become weights; the sum of what the thread has of each row.
    fn weigh(&self, scores: &mut Accumulator) -> Rows {
        let below = -self.rows.max();
        scores.update(|cell, score| score.mul_add(self.rows.scale, below.of(cell)).exp2());
        scores.row_sum_of_lane()
    }

    /// For rows that have seen no key before this tile.
    fn look_for_maxima(&mut self, scores: &Accumulator) {
        let (unseen, mut left, mut maxima) = (self.unseen.get(), U32::from(0), vec![]);
        let found = scores.row_max().map(|max| max * self.rows.scale);
        for (row, (old, found)) in self.rows.max().iter().zip(found.iter()).enumerate() {
            let (bit, is_nothing) = (unseen & (1 << row), found.eq(f32::NEG_INFINITY));
            maxima.push(select(bit.ne(0), select(is_nothing, 0.0, found), old));
            left = left | select(is_nothing, bit, 0);
        }
        self.rows.max.set(Rows::new(found.share(), maxima));
        self.unseen.set(left);
    }

    /// All weights are finite: they shrink by a power of two, which rounds nothing.
    fn move_by_weights(&mut self, weights: &mut Accumulator, sums: &mut RowVars) {
        let exponents = weights.row_max().map(|largest| largest.max(1.0).exponent());
        let shrink = exponents.map(|exponent| (-exponent).exp2());
        weights.scale_rows(shrink);
        sums.set(sums.get() * shrink);
        self.rows.max.set(self.rows.max() + exponents);
        self.shrink_by(shrink);
    }

    /// Rows move to the maximum of these scores, if it is larger.
    fn move_by_scores(&mut self, scores: &Accumulator) {
        let old = self.rows.max();
        let max = old.max(scores.row_max().map(|max| max * self.rows.scale));
        self.rows.max.set(max);
        self.shrink_by((old + -max).exp2());
    }

    fn shrink_by(&mut self, shrink: Rows) {
        self.rows.sum.set(self.rows.sum.get() * shrink);
        self.shrink.set(shrink);
    }

    /// Shrinks what was summed with the weights of earlier tiles, where rows have moved.
    pub fn shrink(&self, output: &mut Accumulator) {
        when(self.moved.get().ne(0), || output.scale_rows(self.shrink.get()));
    }

    /// For rows like these.
    pub fn new_online(&self) -> OnlineSoftmax {
        OnlineSoftmax::new(self.rows.max().share(), self.rows.scale)
    }

    /// Leaves what it has seen to `finished`, and starts anew.
    pub fn finish(&mut self, finished: &mut OnlineSoftmax) {
        let share = self.rows.max().share();
        finished.max.set(if self.joins { self.max_of_seen() } else { self.rows.max() });
        finished.sum.set(self.rows.sum());
        self.rows.max.set(every(share, 0.0));
        self.rows.sum.set(every(share, 0.0));
        self.unseen.set(all_rows(share));
    }

    fn max_of_seen(&self) -> Rows {
        let (unseen, max) = (self.unseen.get(), self.rows.max());
        let of_row = |(row, max): (usize, F32)| select((unseen & (1 << row)).ne(0), f32::NEG_INFINITY, max);
        let maxima: Vec<F32> = max.iter().enumerate().map(of_row).collect();
        Rows::new(max.share(), maxima)
    }
}

/// A bit for each row that a lane has.
fn all_rows(share: Share) -> u32 {
    (1 << share.rows_per_lane()) - 1
}

fn every(share: Share, number: f32) -> Rows {
    Rows::new(share, std::iter::repeat(number.into()))
}
