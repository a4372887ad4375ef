//! Scores: what becomes of the product of one query and one key. A score is a value; no kernel asks which one it is.
//!
//! As with masks, kernels ask with registers and the host with constants: [`OnHost`] lets the oracle ask the very
//! modification that a kernel was built with.

mod alibi;
mod plain;
mod soft_cap;

pub use alibi::Alibi;
pub use plain::Plain;
pub use soft_cap::SoftCap;
pub(crate) use soft_cap::{TANH, TANH_SMALL_SQUARE};

use super::Lengths;
use super::row_order::{OfHeads, RowOrder, RowsFrom};
use crate::scoring::{At, ScoreKind, Scoring};
use std::f32::consts::LOG2_E;
use tile::prelude::*;

pub trait Score: Sync {
    /// What becomes of a score that is scaled already.
    fn apply(&self, score: F32, query: Coordinate, key: Coordinate, head: Head) -> F32;
    /// A parameter that points to one f32 for each head, of which [`Head::number`] is the head's.
    fn numbers(&self) -> Option<&'static str> {
        None
    }
    /// Whether scores stay as they are, so that the scale may wait for the exponent.
    fn is_plain(&self) -> bool {
        false
    }
}

/// What a score may depend on besides query and key.
#[derive(Clone, Copy)]
pub struct Head {
    pub of: Lengths,
    /// Zero without [`Score::numbers`].
    pub number: F32,
}

impl ScoreKind {
    /// The score that kernels are built with.
    pub fn score(self) -> Box<dyn Score> {
        match self {
            ScoreKind::Plain => Box::new(Plain),
            ScoreKind::SoftCap { cap } => Box::new(SoftCap { cap }),
            ScoreKind::Alibi => Box::new(Alibi),
        }
    }
}

/// A score in a kernel, as the launch passes it: where products are scaled, and by what.
#[derive(Clone, Copy)]
pub struct Scores<'a> {
    score: &'a dyn Score,
    scale: F32,
    /// One for each head.
    numbers: Option<Slice<f32>>,
}

impl<'a> Scores<'a> {
    /// Parameters [`scale_parameter`] and [`Score::numbers`].
    #[track_caller]
    pub fn parameter(score: &'a dyn Score) -> Scores<'a> {
        let scale = parameter(scale_parameter(score));
        Scores { score, scale, numbers: score.numbers().map(Slice::parameter) }
    }

    /// Whether products are scores.
    pub fn are_plain(&self) -> bool {
        self.score.is_plain()
    }

    /// What the softmax multiplies with before it takes powers of two.
    pub fn exponent_scale(&self) -> F32 {
        if self.score.is_plain() { self.scale } else { LOG2_E.into() }
    }

    /// The head's number, if heads have any.
    #[track_caller]
    pub fn number(&self, head: U32) -> Option<F32> {
        self.numbers.map(|numbers| numbers.load(head).reaching(Reach::Block))
    }

    /// The numbers of the heads of such rows.
    #[track_caller]
    pub fn numbers_of(&self, rows: &RowsFrom, share: Share) -> Option<OfHeads> {
        self.numbers.map(|numbers| rows.of_heads(share, |head| numbers.load(head)))
    }

    /// Of a head with such a number.
    pub fn of(&self, of: Lengths, number: Option<F32>) -> Scored<'a> {
        self.ordered(of, RowOrder::OneHead, number.map(OfHeads::Same))
    }

    /// Of rows in such an order, whose heads have such numbers.
    pub fn ordered(&self, of: Lengths, order: RowOrder, numbers: Option<OfHeads>) -> Scored<'a> {
        let numbers = numbers.unwrap_or(OfHeads::Same(0.0.into()));
        Scored { score: self.score, scale: self.scale, of, order, numbers }
    }
}

/// The score of some rows.
pub struct Scored<'a> {
    score: &'a dyn Score,
    scale: F32,
    of: Lengths,
    order: RowOrder,
    numbers: OfHeads,
}

impl Scored<'_> {
    /// Makes scores of products; `row` and `key` are those of the fragment's first row and column.
    pub fn apply(&self, products: &mut Fragment, row: U32, key: U32) {
        if self.score.is_plain() {
            return;
        }
        products.update(|cell, product| {
            let head = Head { of: self.of, number: self.numbers.of(cell) };
            let query = self.order.query(cell.row() + row);
            self.score.apply(product * self.scale, query, cell.column() + key, head)
        });
    }
}

/// The parameter that carries the scale. A plain score leaves it to the softmax, which is given scale · log₂ e at once;
/// others see scaled scores, so that the two factors come one after the other.
pub fn scale_parameter(score: &dyn Score) -> &'static str {
    if score.is_plain() { "scale_log2" } else { "scale" }
}

/// A kernel's score, asked on the host.
pub struct OnHost<'a>(pub &'a dyn Score);

impl Scoring for OnHost<'_> {
    /// NaN where the answer is not known from constants.
    fn change(&self, scaled: f64, at: At) -> f64 {
        let head = Head { of: at.of.into(), number: at.number.into() };
        let score = self.0.apply((scaled as f32).into(), at.query.into(), at.key.into(), head);
        score.known().map_or(f64::NAN, f64::from)
    }

    fn is_plain(&self) -> bool {
        self.0.is_plain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visibility;
    use proptest::prelude::*;

    const KINDS: [ScoreKind; 4] =
        [ScoreKind::Plain, ScoreKind::SoftCap { cap: 30.0 }, ScoreKind::SoftCap { cap: 0.5 }, ScoreKind::Alibi];

    proptest! {
        /// The score of a kernel and the definition by which the oracle judges say the same.
        #[test]
        fn kernels_and_oracle_score_the_same(
            scaled in -100f32..100.0, number in -1f32..1.0, (query, key) in (0u32..999, 0u32..999), (queries, keys) in (999u32..2000, 999u32..2000),
        ) {
            let at = At { head: 0, number, query, key, of: visibility::Lengths { queries, keys } };
            for kind in KINDS {
                let (kernel, oracle) = (OnHost(&*kind.score()).change(scaled.into(), at), kind.change(scaled.into(), at));
                prop_assert!((kernel - oracle).abs() <= 1e-6 * oracle.abs().max(1e-3), "{:?}: {} and {}", kind, kernel, oracle);
            }
        }
    }
}
