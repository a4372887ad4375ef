//! Softmax of rows whose scores come tile by tile (FlashAttention, algorithm 1).

use std::f32::consts::LN_2;
use tile::prelude::*;

/// Running maximum and sum of each row that this thread holds.
pub struct OnlineSoftmax {
    /// Of `scale · score`, rounded: where it stays the same, earlier sums shrink by exactly one. Rounded once per tile instead,
    /// the same error would come back with every tile, and grow with the number of keys.
    pub(super) max: RowVars,
    /// Of the columns that this thread has seen, until `gather`.
    pub(super) sum: RowVars,
    /// Scale of the scores · log₂ e, positive: powers are taken to base two.
    pub(super) scale: F32,
}

impl OnlineSoftmax {
    /// Of the rows of a warp.
    pub fn new(rows: Share, scale: F32) -> OnlineSoftmax {
        OnlineSoftmax { max: RowVars::new("max", rows, f32::NEG_INFINITY), sum: RowVars::new("sum", rows, 0.0), scale }
    }

    /// Replaces scores by weights `2^(scale · (score - max))`; returns by what earlier sums and outputs shrink.
    pub fn update(&mut self, scores: &mut Fragment) -> Rows {
        let old = self.max.get();
        let max = old.max(scores.row_max().map(|max| max * self.scale));
        let below = -max.map(base);
        let shrink = (old + below).exp2();
        check(|| all(old, max, |old, max| max.ge(old)), "the maximum of a row never decreases");
        scores.update(|cell, score| score.mul_add(self.scale, below.of(cell)).exp2());
        let earlier = self.sum.get() * shrink;
        self.sum.set(earlier + scores.row_sum_of_lane());
        check(
            || all(earlier, self.sum(), |earlier, sum| sum.ge(earlier) & sum.is_finite()),
            "the sum of a row is finite and never shrinks",
        );
        self.max.set(max);
        shrink
    }

    /// Completes the sums, after the last tile.
    pub fn gather(&mut self) {
        self.sum.set(self.sum.get().sum_over_lanes());
        check(
            || all(self.max(), self.sum(), |max, sum| sum.ge(select(max.eq(f32::NEG_INFINITY), 0.0, HALF_A_KEY))),
            "a row that saw a key has its weight in the sum",
        );
    }

    pub fn max(&self) -> Rows {
        self.max.get()
    }

    pub fn sum(&self) -> Rows {
        self.sum.get()
    }

    /// Takes in another part of the same rows; returns by what this part's and the other's outputs shrink.
    pub fn join(&mut self, max: Rows, sum: Rows) -> [Rows; 2] {
        let joint = self.max().max(max);
        let below = -joint.map(base);
        let [mine, other] = [self.max(), max].map(|max| (max + below).exp2());
        self.sum.set(self.sum() * mine + sum * other);
        self.max.set(joint);
        [mine, other]
    }

    /// `1 / sum`, and zero for a row that saw no key.
    pub fn inverse_sum(&self) -> Rows {
        self.sum().map(inverse)
    }

    /// `ln Σ exp(scale · score)`; −∞ for a row that saw no key.
    pub fn log_sum_exp(&self) -> Rows {
        (self.max().map(base) + self.sum().log2()) * LN_2
    }
}

/// The key of the maximum has weight one but for the rounding of its exponent, which grows with the scores.
const HALF_A_KEY: f32 = 0.5;

/// Whether something holds for each row's pair of numbers.
fn all(left: Rows, right: Rows, holds: impl Fn(F32, F32) -> Pred) -> Pred {
    left.iter().zip(right.iter()).fold(true.into(), |all, (left, right)| all & holds(left, right))
}

/// Zero for a sum of nothing.
pub(in crate::kernels) fn inverse(sum: F32) -> F32 {
    select(sum.eq(0.0), 0.0, sum.recip())
}

/// The exponent's origin. A row without any key yet has maximum −∞, and −∞ − −∞ must not appear.
pub(in crate::kernels) fn base(max: F32) -> F32 {
    select(max.eq(f32::NEG_INFINITY), 0.0, max)
}
