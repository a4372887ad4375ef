//! What verdicts are worth on this GPU: a kernel against itself must not be called different, and against itself slowed down by
//! 2 % it must be.

use std::collections::BTreeMap;
use std::time::Instant;

use cuda::Neighbour;
use serde::Serialize;

use super::run::{Bencher, drawn, stir};
use crate::case::Case;
use crate::gpu::{Candidate, Contract, Plan};
use crate::measure::{self, Reading, Stopwatch, Verdict};

/// The slowdown that is injected.
pub const SLOWDOWN: f64 = 0.02;
/// Of a hundred verdicts, the most that may call two of the same different, and the least that must see the slowdown.
const MOST_WRONG: f64 = 0.01;
const LEAST_SEEN: f64 = 0.95;

/// How often each verdict was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calibration {
    pub of_the_same: BTreeMap<String, usize>,
    pub of_slower: BTreeMap<String, usize>,
}

impl Calibration {
    fn share(verdicts: &BTreeMap<String, usize>, of: impl Fn(&str) -> bool) -> f64 {
        let count: usize = verdicts.iter().filter(|(verdict, _)| of(verdict)).map(|(_, count)| count).sum();
        count as f64 / verdicts.values().sum::<usize>().max(1) as f64
    }

    /// Two of the same are told apart in one of a hundred at most, and the slowdown is seen in ninety-five at least.
    pub fn holds(&self) -> bool {
        let [faster, slower] = [Verdict::Faster, Verdict::Slower].map(|verdict| verdict.to_string());
        Calibration::share(&self.of_the_same, |verdict| verdict == faster || verdict == slower) <= MOST_WRONG
            && Calibration::share(&self.of_slower, |verdict| verdict == slower) >= LEAST_SEEN
    }
}

impl Bencher {
    /// So many verdicts of each kind; `step` is called after each.
    pub fn calibrate(&mut self, case: &Case, verdicts: usize, step: &dyn Fn()) -> Result<Calibration, String> {
        let plan = Plan::of(&case.problem, self.device(), Contract::Graph, true, self.patience.warm_up);
        let memories = drawn(case, self.seed, plan.sets)?;
        let candidate = || Candidate::new(self.cuda(), case, plan, &memories).map_err(|why| why.to_string());
        let mut contenders = [candidate()?, candidate()?, candidate()?];
        let mut calibration = Calibration::default();
        for slowed in [false, true] {
            if slowed {
                let [first, second, _] = &mut contenders;
                let seconds = first.sample()?.seconds.value();
                first.slow_down(seconds * SLOWDOWN)?;
                second.slow_down(seconds * SLOWDOWN)?;
            }
            let counts = if slowed { &mut calibration.of_slower } else { &mut calibration.of_the_same };
            for number in 0..verdicts {
                let (until, neighbour) = (Instant::now() + self.patience.time, self.neighbour.as_ref());
                let mut watch = Watch { contenders: &mut contenders, until, neighbour };
                let rounds = measure::contest(&mut watch, 3, self.patience.limits, number as u64)?;
                if let Some((_, why)) = rounds.disagreement(Contract::Graph) {
                    return Err(why);
                }
                let verdict = rounds.versus(2).map_or("none".into(), |versus| versus.verdict.to_string());
                *counts.entry(verdict).or_default() += 1;
                step();
            }
        }
        Ok(calibration)
    }
}

struct Watch<'a> {
    contenders: &'a mut [Candidate; 3],
    until: Instant,
    neighbour: Option<&'a Neighbour>,
}

impl Stopwatch for Watch<'_> {
    fn sample(&mut self, contender: usize) -> Result<Reading, String> {
        stir(self.neighbour);
        self.contenders[contender].sample()
    }

    fn is_sound(&mut self, reading: &Reading) -> bool {
        reading.disagreement(Contract::Graph).is_none()
    }

    fn has_time(&mut self) -> bool {
        Instant::now() < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(same: &[(&str, usize)], slower: &[(&str, usize)]) -> Calibration {
        let map = |counts: &[(&str, usize)]| counts.iter().map(|(word, count)| (word.to_string(), *count)).collect();
        Calibration { of_the_same: map(same), of_slower: map(slower) }
    }

    #[test]
    fn one_of_a_hundred_may_be_wrong_and_five_unseen() {
        assert!(calibration(&[("EQUAL", 99), ("FASTER", 1)], &[("SLOWER", 95), ("AMBIGUOUS", 5)]).holds());
        assert!(!calibration(&[("EQUAL", 98), ("FASTER", 1), ("SLOWER", 1)], &[("SLOWER", 100)]).holds());
        assert!(!calibration(&[("EQUAL", 100)], &[("SLOWER", 94), ("AMBIGUOUS", 6)]).holds());
        assert!(!calibration(&[], &[]).holds(), "nothing was shown");
    }
}
