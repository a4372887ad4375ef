//! Rounds of samples, and which of them count.

use serde::{Deserialize, Serialize};

use super::clocks::Clocks;
use super::interval::Interval;
use super::verdict::{Versus, doubts};
use crate::figures::Figure;
use crate::gpu::Contract;
use crate::guard::Guard;

/// A round outside of this share of the median clock is dropped.
const CLOCK_TOLERANCE: f64 = 0.02;
/// At its power limit a GPU never has the same clock twice: of an H200's samples a third were off by more than 2 % then. What is usual for a
/// contender is noise, which the interval knows; so many standard deviations are not usual.
const UNUSUAL: f64 = 4.0;
/// The standard deviation of normal noise, in units of its median deviation.
const DEVIATION: f64 = 1.4826;

/// What a stopwatch shows for one contender in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Of one call.
    pub seconds: Figure,
    /// The clock meanwhile, where it was read.
    pub megahertz: Option<Figure>,
    /// What three clocks said of all calls. Packs that are older than the question have nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
}

impl Reading {
    /// Why the clocks do not agree on it.
    pub fn disagreement(&self, contract: Contract) -> Option<String> {
        self.clocks?.disagreement(contract)
    }

    /// The same if a call had taken so many seconds, by all clocks.
    pub(crate) fn taking(self, seconds: f64) -> Reading {
        let factor = seconds / self.seconds.value();
        let scaled = |figure: Figure| figure.value() * factor;
        let clocks = self.clocks.map(|all| Clocks::new(scaled(all.events), scaled(all.timer), scaled(all.host)));
        Reading { seconds: Figure::new(seconds), clocks, ..self }
    }
}

/// A sample that was taken again, since its clocks did not agree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub contender: usize,
    pub reading: Reading,
}

/// One reading of each contender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The contenders in the order in which they were timed.
    pub order: Vec<usize>,
    /// By contender.
    pub readings: Vec<Reading>,
    /// In the order in which they were taken. Packs that are older than the question have nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Vec<Refused>>,
    /// Of the GPU when the round ended, where it says so.
    pub condition: Option<Condition>,
}

/// What a GPU says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub watts: Option<Figure>,
    pub celsius: Option<u32>,
    /// What holds its clock back.
    pub held_back: Vec<String>,
}

impl Round {
    /// The mean clock of the round, where all were read.
    fn megahertz(&self) -> Option<f64> {
        let clocks: Option<Vec<f64>> =
            self.readings.iter().map(|reading| reading.megahertz.map(Figure::value)).collect();
        let clocks = clocks.filter(|clocks| !clocks.is_empty())?;
        Some(clocks.iter().sum::<f64>() / clocks.len() as f64)
    }
}

/// All rounds of one point. The candidate is the contender 0, and the contender 1 once more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rounds(pub Vec<Round>);

impl Rounds {
    /// The rounds that count, for all contenders alike: those whose mean clock is near the median, and in which every contender had its own
    /// usual clock.
    pub fn kept(&self) -> Vec<&Round> {
        let of_round = Usual::of(self.0.iter().filter_map(Round::megahertz).collect(), 0.0);
        let own = self.usual();
        let is_usual = |round: &&Round| {
            of_round.has(round.megahertz())
                && own.iter().zip(&round.readings).all(|(usual, one)| usual.has(one.megahertz.map(Figure::value)))
        };
        self.0.iter().filter(is_usual).collect()
    }

    /// By contender. Packs that are older than the question what was taken again do not ask this, either.
    fn usual(&self) -> Vec<Usual> {
        let contenders = self.0.iter().map(|round| round.readings.len()).max().unwrap_or(0);
        let clocks = |contender: usize| {
            let readings = self.0.iter().filter_map(move |round| round.readings.get(contender));
            readings.filter_map(|reading| Some(reading.megahertz?.value())).collect()
        };
        let is_older = self.0.iter().all(|round| round.refused.is_none());
        let asked = if is_older { 0..0 } else { 0..contenders };
        asked.map(|contender| Usual::of(clocks(contender), UNUSUAL * DEVIATION)).collect()
    }

    pub fn dropped(&self) -> usize {
        self.0.len() - self.kept().len()
    }

    /// Every sample that was taken again, with the number of its round.
    pub fn refused(&self) -> impl Iterator<Item = (usize, &Refused)> {
        let rounds = self.0.iter().enumerate();
        rounds.flat_map(|(number, round)| round.refused.iter().flatten().map(move |one| (number, one)))
    }

    /// The first sample that was kept although its clocks do not agree, in a round that counts or not: whose, and what they say.
    pub fn disagreement(&self, contract: Contract) -> Option<(usize, String)> {
        let all = self.0.iter().flat_map(|round| round.readings.iter().enumerate());
        all.into_iter().find_map(|(contender, reading)| Some((contender, reading.disagreement(contract)?)))
    }

    /// Times of a contender in the rounds that count, in seconds.
    pub fn seconds(&self, contender: usize) -> Vec<f64> {
        self.kept().iter().filter_map(|round| Some(round.readings.get(contender)?.seconds.value())).collect()
    }

    /// The candidate against another contender.
    pub fn versus(&self, peer: usize) -> Option<Versus> {
        let (time, cycles) = (self.time(peer)?, self.cycles(peer));
        Some(Versus::new(time, cycles, self.same().as_ref()))
    }

    /// Why nothing is decided against another contender, and which check says so.
    pub(crate) fn doubts(&self, peer: usize) -> Vec<(Guard, String)> {
        let Some(time) = self.time(peer) else { return vec![] };
        doubts(&time, self.cycles(peer).as_ref(), self.same().as_ref()).into_iter().collect()
    }

    fn time(&self, peer: usize) -> Option<Interval> {
        self.interval(peer, |reading| Some(reading.seconds.value()))
    }

    fn cycles(&self, peer: usize) -> Option<Interval> {
        self.interval(peer, |reading| Some(reading.seconds.value() * reading.megahertz?.value()))
    }

    /// The candidate against itself.
    pub fn same(&self) -> Option<Interval> {
        self.time(1)
    }

    /// Nothing unless every round that counts has both.
    fn interval(&self, peer: usize, of: impl Fn(&Reading) -> Option<f64>) -> Option<Interval> {
        let pair = |round: &&Round| Some((of(round.readings.first()?)?, of(round.readings.get(peer)?)?));
        let pairs: Option<Vec<_>> = self.kept().iter().map(pair).collect();
        Interval::of_pairs(&pairs?)
    }
}

/// A clock, and how far from it is still near.
struct Usual {
    median: f64,
    /// As a share of it.
    tolerance: f64,
}

impl Usual {
    /// What is near is 2 %, or so many median deviations where they are more. Of no clocks none is unusual.
    fn of(clocks: Vec<f64>, deviations: f64) -> Usual {
        let median = percentile(clocks.clone(), 0.5).unwrap_or(f64::NAN);
        let off = clocks.iter().map(|clock| (clock / median - 1.0).abs()).collect();
        let usual = percentile(off, 0.5).unwrap_or(0.0);
        Usual { median, tolerance: CLOCK_TOLERANCE.max(deviations * usual) }
    }

    /// A clock that was not read is not unusual: without it nothing is said of cycles.
    fn has(&self, clock: Option<f64>) -> bool {
        clock.is_none_or(|clock| (clock / self.median - 1.0).abs() <= self.tolerance)
    }
}

/// The value below which this share of the values lies; the values are sorted here.
pub fn percentile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    values.get((share * last as f64).round() as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(times: &[f64], megahertz: f64) -> Round {
        let reading =
            |&time| Reading { seconds: Figure::new(time), megahertz: Some(Figure::new(megahertz)), clocks: None };
        let readings = times.iter().map(reading).collect();
        Round { order: (0..times.len()).collect(), readings, refused: Some(vec![]), condition: None }
    }

    #[test]
    fn a_round_at_another_clock_counts_for_nobody() {
        let mut rounds = Rounds((0..9).map(|_| round(&[1.0, 1.0, 1.02], 1980.0)).collect());
        rounds.0.push(round(&[1.3, 1.3, 0.1], 1500.0));
        assert_eq!(rounds.dropped(), 1);
        assert_eq!(rounds.seconds(2), [1.02; 9]);
        assert_eq!(rounds.versus(2).unwrap().time.to_string(), "1.020 [1.020, 1.020]");
    }

    /// Six contenders, each with a clock of its own: two percent of their mean are twelve of one.
    fn six(strays: impl Fn(usize, usize) -> f64) -> Rounds {
        let mut rounds = Rounds((0..20).map(|_| round(&[1.0; 6], 0.0)).collect());
        for (number, round) in rounds.0.iter_mut().enumerate() {
            for (contender, reading) in round.readings.iter_mut().enumerate() {
                let clock = (1980.0 - 60.0 * contender as f64) * (1.0 + strays(number, contender));
                reading.megahertz = Some(Figure::new(clock));
            }
        }
        rounds
    }

    #[test]
    fn a_round_in_which_one_contender_had_another_clock_than_its_own_counts_for_nobody() {
        assert_eq!(six(|_, _| 0.0).dropped(), 0, "contenders may differ from each other");
        let rounds = six(|number, contender| if (number, contender) == (7, 4) { -0.03 } else { 0.0 });
        assert_eq!(rounds.dropped(), 1);
        assert!(!rounds.kept().iter().any(|round| std::ptr::eq(*round, &rounds.0[7])));
        assert_eq!(six(|number, _| if number == 7 { 0.019 } else { 0.0 }).dropped(), 0);
    }

    #[test]
    fn a_clock_that_strays_as_it_always_does_is_noise_and_one_that_leaps_is_not() {
        let noise = |number: usize, contender: usize| 0.01 * ((number * 7 + contender * 3) % 9) as f64 - 0.04;
        assert_eq!(six(|number, contender| if contender == 2 { noise(number, 2) } else { 0.0 }).dropped(), 0);
        let leap = |number, contender| if (number, contender) == (3, 2) { -0.2 } else { 0.0 };
        let both =
            six(|number, contender| if contender == 2 { noise(number, 2) } else { 0.0 } + leap(number, contender));
        assert_eq!(both.dropped(), 1);
    }

    #[test]
    fn packs_that_are_older_look_at_the_mean_alone() {
        let mut rounds = six(|number, contender| if (number, contender) == (7, 4) { -0.03 } else { 0.0 });
        rounds.0.iter_mut().for_each(|round| round.refused = None);
        assert_eq!(rounds.dropped(), 0);
    }

    #[test]
    fn without_clocks_all_rounds_count_and_nothing_is_said_of_cycles() {
        let mut rounds = Rounds((0..4).map(|_| round(&[1.0, 1.0, 2.0], 1980.0)).collect());
        for reading in rounds.0.iter_mut().flat_map(|round| &mut round.readings) {
            reading.megahertz = None;
        }
        assert_eq!(rounds.kept().len(), 4);
        assert!(rounds.versus(2).unwrap().cycles.is_none());
    }

    #[test]
    fn percentiles() {
        assert_eq!(percentile(vec![3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(percentile(vec![3.0, 1.0, 2.0], 0.99), Some(3.0));
        assert_eq!(percentile(vec![], 0.5), None);
    }
}
