//! One problem, measured: everything that its verdicts follow from.

use serde::{Deserialize, Serialize};

use crate::figures::{Figure, Subject};
use crate::gpu::Plan;
use crate::guard::{Guard, Objection, Objections};
use crate::measure::{Floor, Interval, Peaks, Rounds, Versus, percentile};
use crate::outcome::State;

/// The candidate is timed twice, as the first two contenders.
pub const CANDIDATES: usize = 2;
/// By how much launches that do nothing may differ from process to process. The two levels that were seen are a third apart.
const LAUNCHES_DIFFER: f64 = 0.05;

/// A problem, who computed it, and how long they took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    pub subject: Subject,
    pub problem: String,
    pub plan: Plan,
    pub peaks: Peaks,
    pub floor: Floor,
    /// The candidate, the candidate again, and its peers.
    pub contenders: Vec<Contender>,
    /// Peers without a time.
    pub missing: Vec<Missing>,
    pub rounds: Rounds,
}

/// Who was timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    pub name: String,
    /// The hash of the machine code that ran, or the versions of a peer.
    pub identity: String,
    /// The largest error, before anything was timed and after the last sample, in units of what is allowed.
    pub error: Figure,
    /// What was wrong with what a sample left.
    pub offence: Option<String>,
    /// Cycles of a launch that does nothing, in its process: before the first sample, and after the last. Packs that are older than the question
    /// have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<[Option<Figure>; 2]>,
}

/// A peer that could not be timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    pub name: String,
    pub why: String,
}

impl Point {
    /// The candidate against each of its peers.
    pub fn duels(&self) -> impl Iterator<Item = (&Contender, Versus)> {
        let peers = self.contenders.iter().enumerate().skip(CANDIDATES);
        peers.filter_map(|(number, contender)| Some((contender, self.rounds.versus(number)?)))
    }

    /// The candidate against itself.
    pub fn same(&self) -> Option<Interval> {
        self.rounds.same()
    }

    /// The time in seconds that so large a share of a contender's samples stays below.
    pub fn percentile(&self, contender: usize, share: f64) -> Option<f64> {
        percentile(self.rounds.seconds(contender), share)
    }

    /// Operations per second, in units of 10^12, at the median.
    pub fn teraflops(&self, contender: usize) -> Option<f64> {
        Some(self.floor.operations.value() / self.percentile(contender, 0.5)? * 1e-12)
    }

    /// The share of the roofline that the median reaches.
    pub fn roofline(&self, contender: usize) -> Option<f64> {
        Some(self.floor.share(&self.peaks, self.percentile(contender, 0.5)?))
    }

    /// What the point shows. A slower candidate is no failure; one whose times cannot be believed is.
    pub fn judge(&self) -> State {
        self.objections().judge()
    }

    /// What speaks against the point: its times cannot be believed, or decide nothing.
    pub fn objections(&self) -> Objections {
        let told = |why: String| format!("{}: {why}", self.problem);
        let faults = (0..self.contenders.len()).flat_map(|number| self.faults(number)).chain(self.other_code());
        let faults = faults.map(|(guard, why)| Objection::fail(guard, told(why)));
        let of_clocks = (0..self.contenders.len()).filter_map(|number| self.clocks(number));
        let (lies, unclear): (Vec<_>, Vec<_>) = of_clocks.partition(|one| matches!(one.state, State::Fail { .. }));
        let unnamed = self.unnamed_code().map(|why| Objection::not_run(Guard::LoadedCode, told(why)));
        let doubts = self.absent().into_iter().chain(self.boundless()).chain(self.launches()).chain(self.undecided());
        let doubts = doubts.chain(self.unseen_calls().map(|why| (Guard::AfterTiming, why.into())));
        let doubts = doubts.map(|(guard, why)| Objection::ambiguous(guard, told(why)));
        Objections::of(faults.chain(lies).chain(unnamed).chain(unclear).chain(doubts))
    }

    /// Whether what a contender left was right, its clocks agree, and its times are such as a GPU can have.
    pub fn is_believed(&self, number: usize) -> bool {
        self.contenders[number].offence.is_none() && self.clocks(number).is_none() && self.impossible(number).is_none()
    }

    /// Why the times of a contender cannot be believed. What a peer computes is the peer's affair.
    fn faults(&self, number: usize) -> Vec<(Guard, String)> {
        let contender = &self.contenders[number];
        let own = number < CANDIDATES;
        let offence = contender.offence.clone().filter(|_| own).map(|offence| (Guard::AfterTiming, offence));
        let wrong = (own && contender.error.value() > 1.0).then(|| {
            let why = format!("{} is wrong: its error is {} times what is allowed", contender.name, contender.error);
            (contender.error.guard(), why)
        });
        let impossible = self.impossible(number).map(|why| (Guard::Floors, why));
        [offence, wrong, impossible].into_iter().flatten().collect()
    }

    /// The candidate was loaded twice: by the driver's hash, the same machine code.
    fn other_code(&self) -> Option<(Guard, String)> {
        let [first, second] = [self.contenders.first()?, self.contenders.get(1)?].map(|one| one.identity.as_str());
        let why = format!("the candidate's two loads are of different machine code: {first} and {second}");
        (first != second).then_some((Guard::LoadedCode, why))
    }

    /// Machine code without a hash may be any: the driver gives none of a text that only its loader takes.
    fn unnamed_code(&self) -> Option<String> {
        let unnamed = self.contenders.iter().take(CANDIDATES).find(|one| one.identity.is_empty())?;
        let cure = "install ptxas (`pip install nvidia-cuda-nvcc`), whose code is then loaded";
        Some(format!("which machine code {} ran is not known, since the driver gave none: {cure}", unnamed.name))
    }

    /// Peers that would have been needed.
    fn absent(&self) -> Vec<(Guard, String)> {
        let missing =
            self.missing.iter().map(|one| (Guard::Peers, format!("{} was not measured: {}", one.name, one.why)));
        let peers = self.contenders.iter().skip(CANDIDATES);
        let unfit = peers.filter_map(|peer| {
            let offence = peer.offence.as_ref()?;
            Some((Guard::PeerResults, format!("{} cannot be believed: {offence}", peer.name)))
        });
        let alone = self.contenders.len() == CANDIDATES;
        let alone = alone.then(|| (Guard::Peers, "there is no peer".to_string()));
        missing.chain(unfit).chain(alone).collect()
    }

    /// One call of a sample may have done the work of all.
    pub fn unseen_calls(&self) -> Option<&'static str> {
        let why = "single calls were not checked: they share buffers, which show that one of them did the work";
        (!self.plan.shows_every_call()).then_some(why)
    }

    /// On a GPU that we do not know no time is impossible.
    fn boundless(&self) -> Option<(Guard, String)> {
        let why = "the most that this GPU computes is not known, so that no time is impossible";
        (!self.peaks.operations.value().is_finite()).then(|| (Guard::Floors, why.into()))
    }

    /// Whether anybody was asked what a launch costs it.
    pub fn asks_for_launches(&self) -> bool {
        self.contenders.iter().any(|one| one.launches.is_some())
    }

    /// What a launch costs is the process's luck, and not the kernel's.
    fn launches(&self) -> Option<(Guard, String)> {
        let told = |why: String| Some((Guard::Launches, why));
        if !self.asks_for_launches() {
            return None;
        }
        let mut all = Vec::new();
        for one in &self.contenders {
            for cycles in one.launches.unwrap_or_default() {
                let Some(cycles) = cycles else {
                    return told(format!("what a launch costs {} is not known", one.name));
                };
                all.push((cycles.value(), &one.name));
            }
        }
        let (cheapest, cheap) = all.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let (dearest, dear) = all.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let why = format!("a launch that does nothing costs {dear} {dearest:.0} cycles, and {cheap} {cheapest:.0}");
        if *dearest <= cheapest * (1.0 + LAUNCHES_DIFFER) { None } else { told(why) }
    }

    /// Duels that have no winner.
    fn undecided(&self) -> Vec<(Guard, String)> {
        let peers = self.contenders.iter().enumerate().skip(CANDIDATES);
        let doubts = peers.flat_map(|(number, peer)| {
            let against = |(guard, why): (Guard, String)| (guard, format!("against {}: {why}", peer.name));
            self.rounds.doubts(number).into_iter().map(against)
        });
        let complete = self.duels().count() + CANDIDATES == self.contenders.len();
        let incomplete = (!complete).then(|| (Guard::Decided, "no round has a time of every contender".to_string()));
        doubts.chain(incomplete).collect()
    }

    /// A sample that is faster than the GPU can be.
    fn impossible(&self, contender: usize) -> Option<String> {
        let least = self.floor.seconds(&self.peaks);
        let fastest = self.percentile(contender, 0.0).filter(|fastest| *fastest < least)?;
        let name = &self.contenders[contender].name;
        Some(format!("impossible: {name} took {:.2} µs, and the GPU needs {:.2}", fastest * 1e6, least * 1e6))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::gpu::Contract;
    use crate::measure::{Clocks, Reading, Round};

    /// Twenty rounds in which each contender takes that many microseconds.
    pub fn point(microseconds: &[f64]) -> Point {
        let plan = Plan { contract: Contract::Graph, calls: 10, sets: 10, warm_ups: 2, warm_up_sets: 1 };
        let reading = |time: &f64| {
            let all = time * 1e-6 * plan.calls as f64;
            let clocks = Some(Clocks::new(all, all, all));
            Reading { seconds: Figure::new(time * 1e-6), megahertz: Some(Figure::new(1980.0)), clocks }
        };
        let readings = || microseconds.iter().map(reading).collect();
        let round = |_| Round { order: vec![], readings: readings(), refused: Some(vec![]), condition: None };
        let contender = |number: usize| Contender {
            name: format!("contender {number}"),
            identity: "machine code".into(),
            error: Figure::new(0.5),
            offence: None,
            launches: Some([Some(Figure::new(993.0)); 2]),
        };
        Point {
            subject: Subject { kernel: "k".into(), module: "m".into(), recipe: "r".into() },
            problem: "B1 H1 S64 D64".into(),
            plan,
            peaks: Peaks { operations: Figure::new(1e15), bytes: Figure::new(1e12) },
            floor: Floor { operations: Figure::new(1e9), bytes: None },
            contenders: (0..microseconds.len()).map(contender).collect(),
            missing: vec![],
            rounds: Rounds((0..20).map(round).collect()),
        }
    }

    #[test]
    fn a_decided_point_passes_whoever_won() {
        assert_eq!(point(&[10.0, 10.0, 12.0]).judge(), State::Pass);
        assert_eq!(point(&[10.0, 10.0, 8.0]).judge(), State::Pass);
        let duels: Vec<String> =
            point(&[10.0, 10.0, 12.0]).duels().map(|(_, versus)| versus.verdict.to_string()).collect();
        assert_eq!(duels, ["FASTER"]);
    }

    #[test]
    fn what_no_gpu_can_do_is_no_record() {
        let why = point(&[0.5, 0.5, 8.0]).judge();
        assert!(matches!(&why, State::Fail { why } if why.contains("impossible: contender 0 took 0.50 µs")), "{why:?}");
        assert!(matches!(point(&[5.0, 5.0, 0.1]).judge(), State::Fail { .. }), "peers cannot, either");
    }

    #[test]
    fn a_candidate_that_did_not_do_the_work_fails() {
        let mut point = point(&[10.0, 10.0, 12.0]);
        point.contenders[1].offence = Some("did not do the work".into());
        assert!(matches!(point.judge(), State::Fail { .. }));
    }

    #[test]
    fn a_peer_that_left_wrong_results_decides_nothing() {
        let mut point = point(&[10.0, 10.0, 12.0]);
        point.contenders[2].offence = Some("its results are wrong".into());
        assert!(matches!(&point.judge(), State::Ambiguous { why } if why.contains("contender 2 cannot be believed")));
    }

    #[test]
    fn without_a_hash_or_a_clock_nothing_is_shown() {
        let mut unnamed = point(&[10.0, 10.0, 12.0]);
        unnamed.contenders[1].identity.clear();
        unnamed.contenders[0].identity.clear();
        assert!(matches!(unnamed.judge(), State::NotRun { why } if why.contains("which machine code")));
        let mut unclocked = point(&[10.0, 10.0, 12.0]);
        unclocked.rounds.0[3].readings[2].megahertz = None;
        assert!(matches!(unclocked.judge(), State::Ambiguous { why } if why.contains("nobody read the clock")));
    }

    #[test]
    fn launches_that_cost_one_process_more_decide_nothing() {
        let mut dear = point(&[10.0, 10.0, 12.0]);
        dear.contenders[2].launches = Some([1348.0, 993.0].map(|cycles| Some(Figure::new(cycles))));
        let why = "B1 H1 S64 D64: a launch that does nothing costs contender 2 1348 cycles, and contender 0 993";
        assert_eq!(dear.judge(), State::Ambiguous { why: why.into() });
        let mut silent = point(&[10.0, 10.0, 12.0]);
        silent.contenders[1].launches = None;
        assert!(
            matches!(silent.judge(), State::Ambiguous { why } if why.contains("what a launch costs contender 1 is not known"))
        );
    }

    #[test]
    fn on_a_gpu_that_nobody_knows_nothing_is_decided() {
        let mut unknown = point(&[10.0, 10.0, 12.0]);
        unknown.peaks.operations = Figure::new(f64::INFINITY);
        assert!(matches!(unknown.judge(), State::Ambiguous { why } if why.contains("no time is impossible")));
    }

    #[test]
    fn calls_that_share_buffers_are_not_said_to_be_right() {
        let mut warm = point(&[10.0, 10.0, 12.0]);
        warm.plan.sets = 1;
        assert!(matches!(&warm.judge(), State::Ambiguous { why } if why.contains("single calls were not checked")));
        warm.contenders[0].offence = Some("did not do the work".into());
        assert!(matches!(warm.judge(), State::Fail { .. }), "what is known is said first");
        let mut alone = point(&[10.0, 10.0, 12.0]);
        (alone.plan.sets, alone.plan.calls) = (1, 1);
        for reading in alone.rounds.0.iter_mut().flat_map(|round| &mut round.readings) {
            let all = reading.seconds.value();
            reading.clocks = Some(Clocks::new(all, all, all));
        }
        assert_eq!(alone.judge(), State::Pass, "a call alone has its buffers for itself");
    }

    #[test]
    fn without_a_peer_nothing_is_decided() {
        assert!(matches!(point(&[10.0, 10.0]).judge(), State::Ambiguous { .. }));
        let mut point = point(&[10.0, 10.0, 12.0]);
        point.missing.push(Missing { name: "fa4".into(), why: "its process ended".into() });
        assert!(
            matches!(&point.judge(), State::Ambiguous { why } if why.contains("fa4 was not measured: its process ended"))
        );
    }
}
