//! What an interval says.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::interval::Interval;
use crate::guard::Guard;

/// Differences below 1 % are none.
pub const MARGIN: f64 = 0.01;

/// The most that two of the same may seem to differ.
const NOISE: f64 = 0.005;

/// Whether the candidate is faster than a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Verdict {
    /// All of the interval lies above one by more than the margin.
    Faster,
    /// All of it lies below.
    Slower,
    /// All of it lies within the margin.
    Equal,
    Ambiguous {
        why: String,
    },
}

impl Verdict {
    pub fn is_decided(&self) -> bool {
        !matches!(self, Verdict::Ambiguous { .. })
    }

    fn of(interval: &Interval) -> Verdict {
        let (low, high) = (interval.low.value(), interval.high.value());
        if interval.excludes_one_by(MARGIN) {
            return if low > 1.0 { Verdict::Faster } else { Verdict::Slower };
        }
        if low >= 1.0 / (1.0 + MARGIN) && high <= 1.0 + MARGIN {
            return Verdict::Equal;
        }
        Verdict::Ambiguous { why: format!("the interval [{:.3}, {:.3}] has both sides of the margin", low, high) }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Verdict::Faster => "FASTER",
            Verdict::Slower => "SLOWER",
            Verdict::Equal => "EQUAL",
            Verdict::Ambiguous { .. } => "AMBIGUOUS",
        })
    }
}

/// The candidate against one peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versus {
    pub time: Interval,
    /// In cycles of the clock, where it was read.
    pub cycles: Option<Interval>,
    pub verdict: Verdict,
}

impl Versus {
    /// `same` is the candidate against itself.
    pub fn new(time: Interval, cycles: Option<Interval>, same: Option<&Interval>) -> Versus {
        let doubt = doubts(&time, cycles.as_ref(), same).into_iter().next();
        let verdict = doubt.map_or_else(|| Verdict::of(&time), |(_, why)| Verdict::Ambiguous { why });
        Versus { time, cycles, verdict }
    }
}

/// What is wrong with rounds in which the candidate, timed twice, is not the same.
pub fn differs_from_itself(same: &Interval) -> Option<String> {
    same.excludes_one_by(NOISE).then(|| format!("the candidate differs from itself: {same}"))
}

/// Why nothing is decided, and which check says so, the first first.
pub(super) fn doubts(
    time: &Interval,
    cycles: Option<&Interval>,
    same: Option<&Interval>,
) -> impl IntoIterator<Item = (Guard, String)> {
    let of_itself = match same {
        None => Some("the candidate was not timed against itself".into()),
        Some(same) => differs_from_itself(same),
    };
    let in_time = Verdict::of(time);
    let of_clock = match cycles.map(Verdict::of) {
        _ if !in_time.is_decided() => None,
        None => Some(format!("{in_time} in time, and nobody read the clock")),
        Some(in_cycles) => (in_cycles != in_time)
            .then(|| format!("{in_time} in time and {in_cycles} in cycles: the clock is part of the difference")),
    };
    let undecided = match in_time {
        Verdict::Ambiguous { why } => Some(why),
        _ => None,
    };
    let guards = [Guard::SameItself, Guard::Cycles, Guard::Decided].into_iter();
    guards.zip([of_itself, of_clock, undecided]).filter_map(|(guard, why)| Some((guard, why?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval from `low` to `high`, out of two rounds of which one is at each end of the standard error.
    fn between(low: f64, high: f64) -> Interval {
        let (mean, half) = ((low.ln() + high.ln()) / 2.0, (high.ln() - low.ln()) / 2.0);
        let off = half / 12.706;
        let pairs = [mean - off, mean + off].map(|log| (1.0, log.exp()));
        Interval::of_pairs(&pairs).unwrap()
    }

    fn verdict(low: f64, high: f64) -> String {
        let interval = between(low, high);
        Versus::new(interval, Some(interval), Some(&between(0.999, 1.001))).verdict.to_string()
    }

    #[test]
    fn the_margin_decides() {
        assert_eq!(verdict(1.011, 1.03), "FASTER");
        assert_eq!(verdict(0.97, 0.989), "SLOWER");
        assert_eq!(verdict(0.995, 1.005), "EQUAL");
        assert_eq!(verdict(1.002, 1.008), "EQUAL", "sure, and too small to matter");
        assert_eq!(verdict(1.005, 1.03), "AMBIGUOUS");
        assert_eq!(verdict(0.95, 1.05), "AMBIGUOUS");
    }

    #[test]
    fn a_difference_that_is_only_the_clocks_is_none() {
        let (same, faster, equal) = (between(0.999, 1.001), between(1.03, 1.04), between(0.995, 1.004));
        assert_eq!(Versus::new(faster, Some(faster), Some(&same)).verdict, Verdict::Faster);
        let unread = Versus::new(faster, None, Some(&same)).verdict;
        assert!(matches!(&unread, Verdict::Ambiguous { why } if why.contains("nobody read the clock")));
        let only_time = Versus::new(faster, Some(equal), Some(&same)).verdict;
        assert!(matches!(&only_time, Verdict::Ambiguous { why } if why.contains("FASTER in time and EQUAL in cycles")));
    }

    #[test]
    fn noise_that_shows_in_the_candidate_itself_decides_nothing() {
        let faster = between(1.03, 1.04);
        let verdict = |same: Option<&Interval>| Versus::new(faster, Some(faster), same).verdict;
        assert!(!verdict(Some(&between(1.006, 1.012))).is_decided());
        assert!(!verdict(None).is_decided());
        assert!(verdict(Some(&between(1.001, 1.012))).is_decided());
    }
}
