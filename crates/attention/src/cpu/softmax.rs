//! The online softmax of sixteen queries: running maxima, sums of weights, and what they do to the output.

use super::simd::{Lanes, Product, Simd};
use std::ops::Range;

/// Scores may exceed the running maximum by so many powers of two before the output is rescaled.
pub const SLACK: f32 = 8.0;

/// Less than every score, and finite, so that differences are numbers.
pub const NOTHING_SEEN: f32 = f32::MIN;

/// Of one tile. Maxima are those of scores that are not scaled yet: a difference is exact where it is small, and only then
/// becomes a power of two.
pub struct Running<'a> {
    pub maxima: &'a mut Lanes,
    pub sums: &'a mut Lanes,
}

impl Running<'_> {
    /// Raises the maxima where scores outgrew them, and scales sums and output to match. `top` has the largest scores of the
    /// block.
    #[inline(always)]
    pub fn raise<S: Simd>(&mut self, s: S, top: S::Vector, scale: f32, output: &mut [Lanes]) {
        let (old, scale) = (s.load(&self.maxima.0), s.splat(scale));
        if !s.any_above(s.mul(s.sub(top, old), scale), s.splat(SLACK)) {
            return;
        }
        let new = s.max(top, old);
        let factor = s.exp2(s.mul(s.sub(old, new), scale));
        s.store(&mut self.maxima.0, new);
        let sums = s.mul(factor, s.load(&self.sums.0));
        s.store(&mut self.sums.0, sums);
        for row in output {
            let scaled = s.mul(factor, s.load(&row.0));
            s.store(&mut row.0, scaled);
        }
    }

    /// Weights in place of the scores of the keys in `rows`, as words that meet V.
    #[inline(always)]
    pub fn weigh<S: Simd, P: Product<S>>(&mut self, s: S, p: P, scores: &mut [Lanes], rows: Range<usize>, scale: f32) {
        let (scale, maxima) = (s.splat(scale), s.load(&self.maxima.0));
        // The sum of a block begins with zero: additions of f32 stay few in a row.
        let mut sum = s.splat(0.0);
        if P::NUMBERS == 1 {
            for score in &mut scores[rows] {
                let first = weight(s, score, maxima, scale);
                sum = s.add(sum, first);
                s.store(&mut score.0, first);
            }
        } else {
            // Words take half the room: they go to the front of what is read.
            let mut at = rows.start;
            for _ in 0..rows.len() / 2 {
                let first = weight(s, &scores[at], maxima, scale);
                let second = weight(s, &scores[at + 1], maxima, scale);
                sum = s.add(s.add(sum, first), second);
                s.store(&mut scores[at / 2].0, p.pair(s, first, second));
                at += 2;
            }
            if at < rows.end {
                let last = weight(s, &scores[at], maxima, scale);
                sum = s.add(sum, last);
                s.store(&mut scores[at / 2].0, p.pair(s, last, s.splat(0.0)));
            }
        }
        let sum = s.add(sum, s.load(&self.sums.0));
        s.store(&mut self.sums.0, sum);
    }
}

/// A function, since closures do not take on the features of the function around them.
#[inline(always)]
fn weight<S: Simd>(s: S, score: &Lanes, maxima: S::Vector, scale: S::Vector) -> S::Vector {
    s.exp2(s.mul(s.sub(s.load(&score.0), maxima), scale))
}

/// What the output is multiplied with at the end, and the log-sum-exp. `maximum` is scaled.
pub fn finish(maximum: f32, sum: f32, sink: Option<f32>) -> (f32, f32) {
    match sink {
        _ if sum == 0.0 => (0.0, sink.unwrap_or(f32::NEG_INFINITY)),
        None => (1.0 / sum, maximum + sum.ln()),
        // As one more key with a value of zeros.
        Some(sink) => {
            let top = maximum.max(sink);
            let factor = (maximum - top).exp();
            let total = sum * factor + (sink - top).exp();
            (factor / total, top + total.ln())
        }
    }
}
