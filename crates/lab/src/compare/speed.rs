//! Speeds of both packs, problem by problem and peer by peer.
//!
//! Two packs were measured apart, so that nothing of them is paired but the ratio over the same peer: that is compared, and times
//! are shown. Where something else than the kernel differs, nothing can be told.

use super::Verdict;
use crate::bench::{CANDIDATES, Point};
use crate::guard::Guard;
use crate::measure::{self, Interval, MARGIN};
use crate::outcome::State;
use crate::stages::Record;
use crate::stages::bench::Report;

/// One problem against one peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    pub problem: String,
    pub peer: String,
    /// None where the pack has not measured it.
    pub left: Option<Duel>,
    pub right: Option<Duel>,
    pub verdict: Verdict,
    /// What the verdict follows from.
    pub why: String,
}

/// The candidate against a peer, as one pack has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Duel {
    /// The candidate's speed over the peer's.
    pub ratio: Interval,
    pub verdict: measure::Verdict,
    /// The candidate's median, in seconds.
    pub seconds: f64,
    /// The peer's versions.
    pub identity: String,
    /// Why it is not to be believed.
    pub doubt: Option<String>,
}

/// Nothing unless both packs have measured; a stage that one of them did not run is judged as a stage.
pub fn speeds(left: &Record<Report>, right: &Record<Report>) -> Vec<Speed> {
    let (Record::Ran(left), Record::Ran(right)) = (left, right) else { return vec![] };
    let mut speeds = Vec::new();
    for (key, peer) in keys(left, right) {
        let [old, new] = [left, right].map(|report| point(report, &key).and_then(|point| duel(point, &peer)));
        let (verdict, why) = judge(left, right, old.as_ref(), new.as_ref());
        speeds.push(Speed { problem: key.0, peer, left: old, right: new, verdict, why });
    }
    speeds
}

/// A problem, and what is timed of it: times of different contracts are never compared.
type Key = (String, crate::gpu::Contract, bool);

fn key(point: &Point) -> Key {
    (point.problem.clone(), point.plan.contract, point.plan.is_cold())
}

fn point<'a>(report: &'a Report, wanted: &Key) -> Option<&'a Point> {
    report.points.iter().find(|point| key(point) == *wanted)
}

/// Everything that either has, in the order of the first.
fn keys(left: &Report, right: &Report) -> Vec<(Key, String)> {
    let mut keys = Vec::new();
    for point in left.points.iter().chain(&right.points) {
        let peers = point.contenders.iter().skip(CANDIDATES).map(|peer| &peer.name);
        for peer in peers.chain(point.missing.iter().map(|peer| &peer.name)) {
            let one = (key(point), peer.clone());
            if !keys.contains(&one) {
                keys.push(one);
            }
        }
    }
    keys
}

fn duel(point: &Point, peer: &str) -> Option<Duel> {
    let (place, contender) =
        point.contenders.iter().enumerate().skip(CANDIDATES).find(|(_, contender)| contender.name == peer)?;
    let versus = point.rounds.versus(place)?;
    // That an interval has both sides of the margin is no reason against the interval.
    let doubt = point.rounds.doubts(place).into_iter().find(|(guard, _)| *guard != Guard::Decided);
    let broken = match point.judge() {
        State::Fail { why } => Some(why),
        _ => contender.offence.clone(),
    };
    Some(Duel {
        ratio: versus.time,
        verdict: versus.verdict,
        seconds: point.percentile(0, 0.5)?,
        identity: contender.identity.clone(),
        doubt: broken.or(doubt.map(|(_, why)| why)),
    })
}

fn judge(left: &Report, right: &Report, old: Option<&Duel>, new: Option<&Duel>) -> (Verdict, String) {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (None, Some(_)) => return (Verdict::Changed, "the first pack has no such time".into()),
        _ => return (Verdict::Undecided, "the second pack has no such time".into()),
    };
    if old == new && left.gpu == right.gpu {
        return (Verdict::Same, "the same samples".into());
    }
    let gpus = [left, right].map(|report| model(&report.gpu));
    let other = |what: &str, [old, new]: [&str; 2]| (old != new).then(|| format!("another {what}: {old}, now {new}"));
    let doubt =
        |which: &str, duel: &Duel| duel.doubt.as_ref().map(|why| format!("the {which} cannot be believed: {why}"));
    let reasons = [
        other("GPU", gpus),
        other("version of the peer", [&old.identity, &new.identity]),
        doubt("first", old),
        doubt("second", new),
    ];
    match reasons.into_iter().flatten().next() {
        Some(why) => (Verdict::Undecided, why),
        None => change(&old.ratio, &new.ratio),
    }
}

/// What a GPU says of itself, but for which of them it is.
fn model(gpu: &str) -> &str {
    gpu.rsplit_once(", GPU-").map_or(gpu, |(model, _)| model)
}

/// From one interval to another that was measured apart from it.
fn change(old: &Interval, new: &Interval) -> (Verdict, String) {
    let least = new.low.value() / old.high.value();
    let most = new.high.value() / old.low.value();
    let percent = |factor: f64| format!("{:+.1} %", (factor - 1.0) * 100.0);
    let range = format!("{} to {}", percent(least), percent(most));
    match () {
        () if least >= 1.0 / (1.0 + MARGIN) && most <= 1.0 + MARGIN => (Verdict::Same, range),
        () if most < 1.0 => (Verdict::Worse, range),
        () if least > 1.0 => (Verdict::Better, range),
        () => (Verdict::Undecided, format!("the intervals overlap: {range}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::test_point;

    /// A pack in which the candidate takes 10 µs against a peer with this time, and with that much noise.
    fn report(peer: f64, noise: f64) -> Report {
        let mut point = test_point(&[10.0, 10.0, peer]);
        point.contenders[2].name = "fa2".into();
        for (number, round) in point.rounds.0.iter_mut().enumerate() {
            let sign = if number % 2 == 0 { 1.0 } else { -1.0 };
            round.readings[2] = round.readings[2].taking(peer * 1e-6 * (1.0 + sign * noise));
        }
        Report { gpu: "NVIDIA H200, sm_90, GPU-1".into(), peers: vec![], points: vec![point], failed: vec![] }
    }

    fn compared(left: Report, right: Report) -> (Verdict, String) {
        let speeds = speeds(&Record::Ran(left), &Record::Ran(right));
        assert_eq!((speeds.len(), speeds[0].peer.as_str()), (1, "fa2"));
        (speeds[0].verdict, speeds[0].why.clone())
    }

    #[test]
    fn an_interval_below_the_old_one_is_worse_and_one_above_better() {
        let (old, new) = (report(12.0, 0.01), report(11.5, 0.01));
        assert_eq!(compared(old.clone(), new.clone()), (Verdict::Worse, "-5.1 % to -3.2 %".into()));
        assert_eq!(compared(new, old).0, Verdict::Better);
    }

    #[test]
    fn intervals_that_overlap_tell_nothing_unless_they_are_narrow() {
        let (verdict, why) = compared(report(12.0, 0.05), report(11.9, 0.05));
        assert_eq!(verdict, Verdict::Undecided);
        assert!(why.starts_with("the intervals overlap: -5."), "{why}");
        assert_eq!(
            compared(report(12.0, 0.001), report(11.95, 0.001)).0,
            Verdict::Same,
            "sure, and too small to matter"
        );
        assert_eq!(compared(report(12.0, 0.05), report(12.0, 0.05)), (Verdict::Same, "the same samples".into()));
    }

    #[test]
    fn under_other_circumstances_nothing_is_told() {
        let (old, mut new) = (report(12.0, 0.01), report(8.0, 0.01));
        new.gpu = "NVIDIA H200, sm_90, GPU-2".into();
        assert_eq!(compared(old.clone(), new.clone()).0, Verdict::Worse, "another card of the same kind");
        new.points[0].contenders[2].identity = "torch 3".into();
        assert!(
            compared(old.clone(), new.clone()).1.starts_with("another version of the peer: machine code, now torch 3")
        );
        new.gpu = "NVIDIA A100, sm_80, GPU-2".into();
        let (verdict, why) = compared(old, new);
        assert_eq!(
            (verdict, why.as_str()),
            (Verdict::Undecided, "another GPU: NVIDIA H200, sm_90, now NVIDIA A100, sm_80")
        );
    }

    #[test]
    fn what_one_of_them_lacks_or_nobody_can_believe_is_told() {
        let (old, new) = (report(12.0, 0.01), report(8.0, 0.01));
        let mut wrong = new.clone();
        wrong.points[0].contenders[2].offence = Some("its results are wrong".into());
        assert_eq!(compared(old.clone(), wrong).1, "the second cannot be believed: its results are wrong");
        let mut without = new.clone();
        without.points[0].contenders.truncate(CANDIDATES);
        assert_eq!(
            compared(old.clone(), without.clone()),
            (Verdict::Undecided, "the second pack has no such time".into())
        );
        assert_eq!(compared(without, old.clone()), (Verdict::Changed, "the first pack has no such time".into()));
        let mut warm = new;
        warm.points[0].plan.sets = 1;
        assert_eq!(speeds(&Record::Ran(old), &Record::Ran(warm)).len(), 2, "times of other contracts are not compared");
    }
}
