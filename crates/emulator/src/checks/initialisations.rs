//! Who has initialised an mbarrier since it was last invalid. A second initialisation is a finding of `mbarrier`, once
//! somebody uses the object: Triton initialises some twice that nobody ever uses, which does no harm.

use super::{mbarrier, words};
use crate::async_engines::Spot;
use crate::exec::At;
use crate::finding::Report;
use crate::machine::Cluster;

/// One lane's `mbarrier.init`.
#[derive(Clone, Copy, Debug)]
pub struct Initialisation {
    at: At,
    count: u32,
}

/// Those of one object.
#[derive(Clone, Debug, Default)]
pub struct Initialisations {
    /// The first of each statement: which statement came first may be luck, so each is compared with all others.
    by: Vec<Initialisation>,
    last: Option<Initialisation>,
    /// A pair of each two statements that is not reported yet, and how many there were.
    twice: Vec<([Initialisation; 2], u64)>,
    used: bool,
}

/// A lane initialises an object.
pub fn watch(cluster: &mut Cluster, at: At, spot: Spot, count: u32) {
    let bytes = &cluster.blocks[spot.0].shared.bytes;
    if (0..mbarrier::BYTES).any(|byte| bytes.is_written(spot.1 + byte, 1)) {
        // The object has become data meanwhile.
        cluster.initialisations.remove(&spot);
    }
    let known = cluster.initialisations.entry(spot).or_default();
    let new = Initialisation { at, count };
    for old in &known.by {
        let pair = [*old, new];
        let statements = |pair: &[Initialisation; 2]| pair.map(|one| one.at.statement);
        match known.twice.iter_mut().find(|(waiting, _)| statements(waiting) == statements(&pair)) {
            Some((_, count)) => *count += 1,
            None => known.twice.push((pair, 1)),
        }
    }
    known.last = Some(new);
    if known.by.iter().all(|old| old.at.statement != at.statement) {
        known.by.push(new);
    }
    if known.used {
        report_twice(cluster, spot);
    }
}

/// Somebody uses an object.
pub fn watch_use(cluster: &mut Cluster, spot: Spot) {
    if let Some(known) = cluster.initialisations.get_mut(&spot) {
        known.used = true;
        report_twice(cluster, spot);
    }
}

/// `line 30 initialises it with 129`.
pub fn sentence(cluster: &Cluster, spot: Spot) -> Option<String> {
    let Initialisation { at, count } = cluster.initialisations.get(&spot)?.last?;
    Some(format!("line {} initialises it with {count}", cluster.findings.line(at.statement)))
}

fn report_twice(cluster: &mut Cluster, spot: Spot) {
    let pairs = cluster.initialisations.get_mut(&spot).map(|known| std::mem::take(&mut known.twice));
    for (mut pair, count) in pairs.unwrap_or_default() {
        pair.sort_by_key(|one| (one.at.statement, one.at.warp, one.at.mask));
        let report = report(cluster, spot, pair.map(|one| one.at));
        cluster.findings.add(report.count(count));
    }
}

fn report(cluster: &Cluster, spot: Spot, [first, second]: [At; 2]) -> Report {
    let place = cluster.shared_place(spot.0, spot.1 as u64);
    let alone = (first.warp, first.mask) == (second.warp, second.mask);
    let twice = match (first.statement == second.statement, alone) {
        (false, _) => {
            let [one, two] = [first, second].map(|at| cluster.findings.line(at.statement));
            format!("at line {one} and at line {two}, without `mbarrier.inval` between")
        }
        (true, true) => "again, without `mbarrier.inval` before".into(),
        (true, false) => "by several threads".into(),
    };
    let help = match alone {
        true => "initialise it once, or execute `mbarrier.inval` before it is initialised again",
        false => "let one thread initialise it, once; or execute `mbarrier.inval` before it is initialised again",
    };
    let actor = |at: At, number: u32, also: &str| {
        cluster.actor(at, &format!("({number}) {} initialises it{also}", words::who(cluster, at.warp, at.mask)))
    };
    let also = if alone { " again" } else { " too" };
    Report::new(&mbarrier::CHECK, format!("the barrier at {place} is initialised {twice}"), actor(second, 2, also))
        .first(actor(first, 1, ""))
        .help(help)
}
