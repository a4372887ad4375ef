//! What becomes of scores before the softmax.

use super::simd::{LANES, Simd};
use crate::kernels::parts::scores::{OnHost, Score, TANH, TANH_SMALL_SQUARE};
use crate::scoring::{At, ScoreKind, Scoring};
use crate::visibility::Lengths;
use std::f32::consts::LOG2_E;

/// A built-in score, or one of the user's own.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    Kind(ScoreKind),
    Own(&'a dyn Score),
}

/// Whose scores they are: those of one key and sixteen queries.
#[derive(Clone, Copy)]
pub struct Scored {
    pub head: usize,
    /// What the score reads for the head.
    pub number: f32,
    pub key: usize,
    /// The query of each lane.
    pub queries: [u32; LANES],
    pub of: Lengths,
}

impl Change<'_> {
    /// Whether scores stay as they are.
    pub fn is_plain(self) -> bool {
        match self {
            Change::Kind(kind) => kind.is_plain(),
            Change::Own(score) => score.is_plain(),
        }
    }

    /// Whether there is a number for each head.
    pub fn reads_numbers(self) -> bool {
        match self {
            Change::Kind(kind) => kind == ScoreKind::Alibi,
            Change::Own(score) => score.numbers().is_some(),
        }
    }

    /// Of scores that are scaled already.
    #[inline(always)]
    pub fn apply<S: Simd>(self, s: S, scaled: S::Vector, at: &Scored) -> S::Vector {
        match self {
            Change::Kind(ScoreKind::Plain) => scaled,
            Change::Kind(ScoreKind::SoftCap { cap }) => soft_cap(s, scaled, cap),
            Change::Kind(ScoreKind::Alibi) => {
                let mut distances = [0.0; LANES];
                let place = at.of.keys as i32 - at.of.queries as i32 - at.key as i32;
                for (distance, query) in distances.iter_mut().zip(at.queries) {
                    *distance = (query as i32 + place).abs() as f32;
                }
                s.mul_add(s.load(&distances), s.splat(-at.number), scaled)
            }
            Change::Own(score) => {
                let mut scores = [0.0; LANES];
                s.store(&mut scores, scaled);
                at.own(score, &mut scores);
                s.load(&scores)
            }
        }
    }

    /// Of one score that is scaled already.
    pub fn one(self, scaled: f32, head: usize, number: f32, query: usize, key: usize, of: Lengths) -> f32 {
        let at = At { head: head as u32, number, query: query as u32, key: key as u32, of };
        match self {
            Change::Kind(kind) => kind.change(scaled.into(), at) as f32,
            Change::Own(score) => OnHost(score).change(scaled.into(), at) as f32,
        }
    }
}

impl Scored {
    fn own(&self, score: &dyn Score, scores: &mut [f32; LANES]) {
        let Scored { head, number, key, queries, of } = *self;
        for (score_of, query) in scores.iter_mut().zip(queries) {
            let at = At { head: head as u32, number, query, key: key as u32, of };
            *score_of = OnHost(score).change((*score_of).into(), at) as f32;
        }
    }
}

/// `cap · tanh(scaled / cap)`, of magnitudes, with as few roundings as can be: f32 outputs would show them.
#[inline(always)]
fn soft_cap<S: Simd>(s: S, scaled: S::Vector, cap: f32) -> S::Vector {
    let (zero, cap) = (s.splat(0.0), s.splat(cap));
    let negative = s.sub(zero, scaled);
    let magnitude = s.max(scaled, negative);
    let x = s.div(magnitude, cap);
    let square = s.mul(x, x);
    let mut polynomial = s.splat(TANH[0]);
    for coefficient in &TANH[1..] {
        polynomial = s.mul_add(polynomial, square, s.splat(*coefficient));
    }
    let small = s.mul_add(s.mul(polynomial, square), magnitude, magnitude);
    // tanh(x) = 1 − 2 / (exp(2x) + 1). Beyond 43 it is 1, and the power would not be finite.
    let exponent = s.mul(x, s.splat(2.0 * LOG2_E));
    let exponent = s.if_below(s.splat(126.0), exponent, s.splat(126.0), exponent);
    let below_one = s.div(s.splat(2.0), s.add(s.exp2(exponent), s.splat(1.0)));
    let large = s.mul_add(s.sub(zero, cap), below_one, cap);
    let capped = s.if_below(square, s.splat(TANH_SMALL_SQUARE), small, large);
    s.if_below(scaled, zero, s.sub(zero, capped), capped)
}
