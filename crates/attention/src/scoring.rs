//! What becomes of a score: the seam between the oracle and the modifications of scores.
//!
//! The oracle asks nothing but [`Scoring::change`], one query and one key at a time; it knows no modification by name. A
//! modification that is compiled into kernels answers here by evaluating the same definition on constants.

use crate::visibility::Lengths;

/// Whose score it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    pub head: u32,
    /// What the inputs hold for the head, where the modification reads such numbers: ALiBi its slope.
    pub number: f32,
    pub query: u32,
    pub key: u32,
    pub of: Lengths,
}

/// Says what becomes of a score that is scaled already. Any closure of the same shape is one.
pub trait Scoring: Sync {
    fn change(&self, scaled: f64, at: At) -> f64;

    /// Whether scores stay as they are.
    fn is_plain(&self) -> bool {
        false
    }
}

impl<F: Fn(f64, At) -> f64 + Sync> Scoring for F {
    fn change(&self, scaled: f64, at: At) -> f64 {
        self(scaled, at)
    }
}

/// The built-in kinds, as a problem names them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ScoreKind {
    /// Scores stay as they are.
    #[default]
    Plain,
    /// `cap · tanh(score / cap)`: no score is beyond the cap.
    SoftCap { cap: f32 },
    /// `score − slope · |query + keys − queries − key|`, with a slope for each head: the last query stands at the last key
    /// (as FlashAttention has it).
    Alibi,
}

impl Scoring for ScoreKind {
    fn change(&self, scaled: f64, at: At) -> f64 {
        match self {
            ScoreKind::Plain => scaled,
            ScoreKind::SoftCap { cap } => f64::from(*cap) * (scaled / f64::from(*cap)).tanh(),
            ScoreKind::Alibi => {
                let [query, key, queries, keys] = [at.query, at.key, at.of.queries, at.of.keys].map(i64::from);
                scaled - f64::from(at.number) * (query + keys - queries - key).abs() as f64
            }
        }
    }

    fn is_plain(&self) -> bool {
        *self == ScoreKind::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alibi_is_zero_on_the_diagonal_of_the_last_corner() {
        let bias = |query, key| {
            let of = Lengths { queries: 2, keys: 4 };
            ScoreKind::Alibi.change(0.0, At { head: 0, number: 0.5, query, key, of })
        };
        assert_eq!([0, 1, 2, 3].map(|key| bias(1, key)), [-1.5, -1.0, -0.5, 0.0]);
        assert_eq!([0, 1, 2, 3].map(|key| bias(0, key)), [-1.0, -0.5, 0.0, -0.5]);
    }

    #[test]
    fn a_soft_cap_bends_large_scores_and_leaves_small_ones() {
        let at = At { head: 0, number: 0.0, query: 0, key: 0, of: Lengths { queries: 1, keys: 1 } };
        let capped = |score| ScoreKind::SoftCap { cap: 2.0 }.change(score, at);
        assert!((capped(1e-3) - 1e-3).abs() < 1e-9);
        assert_eq!((capped(1e3), capped(-1e3)), (2.0, -2.0));
    }
}
