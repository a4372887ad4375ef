//! What three clocks said of every sample: times follow from them, and a sample was taken again only where they did not agree.

use super::point::{CANDIDATES, Point};
use crate::guard::{Guard, Objection};
use crate::measure::{ATTEMPTS, Reading, Refused};

/// Figures have six digits: two of them, divided by each other, differ from what they were made of by less.
const ROUNDING: f64 = 2e-5;

impl Point {
    /// By round, whether it says what was taken again.
    pub(crate) fn tell_refused(&self) -> impl Iterator<Item = bool> {
        self.rounds.0.iter().map(|round| round.refused.is_some())
    }

    /// How many samples were taken again.
    pub fn retaken(&self) -> usize {
        self.rounds.refused().count()
    }

    /// What speaks against the samples of a contender, or against how they were chosen.
    pub(super) fn clocks(&self, number: usize) -> Option<Objection> {
        if !self.tell_refused().any(|tells| tells) {
            return None;
        }
        let name = &self.contenders[number].name;
        let told = |round: usize, why: String| format!("{}: round {round}: {why}", self.problem);
        if let Some((round, why)) = self.chosen(number) {
            return Some(Objection::fail(Guard::Clocks, told(round, format!("{name}: {why}"))));
        }
        let readings = self.rounds.0.iter().map(|round| round.readings.get(number));
        let (round, why) = readings.enumerate().find_map(|(round, reading)| Some((round, self.doubted(reading?)?)))?;
        let why = told(round, format!("{name}: {why}"));
        // What a peer's clocks say is the peer's affair.
        Some(if number < CANDIDATES {
            Objection::fail(Guard::Clocks, why)
        } else {
            Objection::ambiguous(Guard::Clocks, why)
        })
    }

    /// Why a sample that counts shows no time.
    fn doubted(&self, reading: &Reading) -> Option<String> {
        let contract = self.plan.contract;
        let Some(clocks) = reading.clocks else { return Some("what clocks said of its time is not known".into()) };
        let near = |expected: f64| (reading.seconds.value() - expected).abs() <= ROUNDING * expected;
        let follows = clocks.seconds(contract, self.plan.calls).filter(|expected| !near(*expected)).map(|expected| {
            let [own, expected] = [reading.seconds.value(), expected].map(|seconds| seconds * 1e6);
            format!("{own:.2} µs for a call do not follow from its clocks, by which it took {expected:.2}")
        });
        clocks.disagreement(contract).or(follows)
    }

    /// Where somebody chose among samples: one was taken again for nothing, or too often.
    fn chosen(&self, number: usize) -> Option<(usize, String)> {
        let own = |(_, one): &(usize, &Refused)| one.contender == number;
        let agrees = |one: &Refused| one.reading.disagreement(self.plan.contract).is_none();
        if let Some((round, _)) = self.rounds.refused().filter(own).find(|(_, one)| agrees(one)) {
            return Some((round, "a sample was taken again although its clocks agree".into()));
        }
        let count = |round: usize| self.rounds.refused().filter(own).filter(|(other, _)| *other == round).count();
        let most = ATTEMPTS - 1;
        let (round, times) =
            (0..self.rounds.0.len()).map(|round| (round, count(round))).find(|(_, times)| *times > most)?;
        Some((round, format!("a sample was taken again {times} times: expected {most} at most")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::point::tests::point;
    use crate::figures::Figure;
    use crate::measure::{Clocks, Refused};
    use crate::outcome::State;

    fn why(state: State) -> String {
        state.why().unwrap_or_default().to_string()
    }

    /// Clocks that do not agree, of a sample of ten calls of 10 µs.
    fn lie() -> Clocks {
        Clocks::new(1e-3, 1e-4, 1e-4)
    }

    #[test]
    fn samples_without_clocks_that_agree_fail_of_the_candidate_and_decide_nothing_of_a_peer() {
        let mut point = point(&[10.0, 10.0, 12.0]);
        assert_eq!(point.judge(), State::Pass);
        let lie = Some(Clocks { host: Figure::new(1e-2), ..point.rounds.0[0].readings[2].clocks.unwrap() });
        point.rounds.0[7].readings[2].clocks = lie;
        let state = point.judge();
        assert!(matches!(state, State::Ambiguous { .. }), "{state:?}");
        assert!(why(state).contains("round 7: contender 2: clocks disagree"));
        point.rounds.0[7].readings[1].clocks = lie;
        assert!(matches!(point.judge(), State::Fail { why } if why.contains("contender 1: clocks disagree")));
        point.rounds.0[7].readings[1].clocks = None;
        assert!(why(point.judge()).contains("is not known"));
    }

    #[test]
    fn a_time_follows_from_its_clocks() {
        let mut point = point(&[10.0, 10.0, 12.0]);
        point.rounds.0[3].readings[0].seconds = Figure::new(9.9e-6);
        assert!(
            why(point.judge()).contains("9.90 µs for a call do not follow from its clocks, by which it took 10.00")
        );
    }

    #[test]
    fn nobody_chooses_among_samples() {
        let point = || point(&[10.0, 10.0, 12.0]);
        let with = |times: usize, clocks: Option<Clocks>| {
            let mut point = point();
            let reading = point.rounds.0[4].readings[2];
            let one = Refused { contender: 2, reading: crate::measure::Reading { clocks, ..reading } };
            point.rounds.0[4].refused = Some(vec![one; times]);
            point
        };
        let disturbed = with(2, Some(lie()));
        assert_eq!((disturbed.judge(), disturbed.retaken()), (State::Pass, 2));
        let honest = point().rounds.0[4].readings[2].clocks;
        for clocks in [honest, None] {
            let state = with(1, clocks).judge();
            assert!(matches!(&state, State::Fail { why } if why.contains("taken again although")), "{state:?}");
        }
        assert!(why(with(3, Some(lie())).judge()).contains("taken again 3 times: expected 2 at most"));
    }

    #[test]
    fn packs_that_are_older_have_no_clocks() {
        let mut older = point(&[10.0, 10.0, 12.0]);
        for round in &mut older.rounds.0 {
            round.refused = None;
            round.readings.iter_mut().for_each(|reading| reading.clocks = None);
        }
        assert_eq!(older.judge(), State::Pass);
    }
}
