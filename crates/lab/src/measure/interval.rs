//! A ratio of speeds, and how sure it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::student;
use crate::figures::Figure;

/// The candidate's speed over a peer's: above one, the candidate is faster. Made from times alone, so that its direction cannot be
/// mistaken.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Ratio(Figure);

impl Ratio {
    /// `seconds` of the candidate, and of its peer.
    pub fn of_times(candidate: f64, peer: f64) -> Ratio {
        Ratio::from_log((peer / candidate).ln())
    }

    fn from_log(log: f64) -> Ratio {
        Ratio(Figure::new(log.exp()))
    }

    pub fn value(self) -> f64 {
        self.0.value()
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:.3}", self.value())
    }
}

/// The geometric mean over rounds, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    pub ratio: Ratio,
    pub low: Ratio,
    pub high: Ratio,
    pub rounds: usize,
}

impl Interval {
    /// From pairs of times of the same rounds: the candidate's, and its peer's. Nothing of no rounds; one round knows nothing of
    /// its noise.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Interval> {
        let logs: Vec<f64> = pairs.iter().map(|(candidate, peer)| (peer / candidate).ln()).collect();
        let count = logs.len();
        if count == 0 || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / count as f64;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let half = match count {
            1 => f64::INFINITY,
            _ => {
                let error = (squares / (count - 1) as f64 / count as f64).sqrt();
                student::percentile_97_5(count - 1) * error
            }
        };
        let [ratio, low, high] = [mean, mean - half, mean + half].map(Ratio::from_log);
        Some(Interval { ratio, low, high, rounds: count })
    }

    /// The same ratio with an interval that is so many times as wide.
    pub fn widened(&self, factor: f64) -> Interval {
        let log = |ratio: Ratio| ratio.value().ln();
        let end = |end: Ratio| Ratio::from_log(log(self.ratio) + factor * (log(end) - log(self.ratio)));
        Interval { low: end(self.low), high: end(self.high), ..*self }
    }

    /// Whether it excludes one by more than the margin.
    pub fn excludes_one_by(&self, margin: f64) -> bool {
        self.low.value() > 1.0 + margin || self.high.value() < 1.0 / (1.0 + margin)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} [{}, {}]", self.ratio, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_with_half_the_time_has_twice_the_speed() {
        assert_eq!(Ratio::of_times(1.0, 2.0).to_string(), "2.000");
        let interval = Interval::of_pairs(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]).unwrap();
        assert_eq!(interval.to_string(), "2.000 [2.000, 2.000]");
    }

    #[test]
    fn a_widened_interval_has_the_same_ratio() {
        let interval = Interval::of_pairs(&[(1.0, 1.01), (1.0, 1.03), (1.0, 1.02)]).unwrap();
        let [width, wide] = [interval, interval.widened(2.0)].map(|one| one.high.value().ln() - one.low.value().ln());
        assert!((wide / width - 2.0).abs() < 1e-3 && interval.widened(2.0).ratio == interval.ratio);
    }

    #[test]
    fn the_interval_is_students() {
        // Logs of 0.01, 0.02 and 0.03: mean 0.02, standard error 0.01/√3, t of 2 degrees 4.303.
        let pairs = [0.01_f64, 0.02, 0.03].map(|log| (1.0, log.exp()));
        let interval = Interval::of_pairs(&pairs).unwrap();
        let half = (interval.high.value().ln() - interval.low.value().ln()) / 2.0;
        assert!((half - 4.3027 * 0.01 / 3f64.sqrt()).abs() < 1e-5, "{half}");
    }

    #[test]
    fn what_cannot_be_a_time_gives_no_interval() {
        assert!(Interval::of_pairs(&[]).is_none());
        assert!(Interval::of_pairs(&[(0.0, 1.0)]).is_none());
        assert!(Interval::of_pairs(&[(f64::NAN, 1.0), (1.0, 1.0)]).is_none());
        let one = Interval::of_pairs(&[(1.0, 3.0)]).unwrap();
        assert!(one.low.value() == 0.0 && one.high.value().is_infinite() && !one.excludes_one_by(0.0));
    }
}
