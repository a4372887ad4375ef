//! # deadlock
//!
//! Nobody can go on: every thread that has not exited waits for one that will not come. Also a kernel that does not
//! end within the instruction budget (`--budget`).
//!
//! ```ptx
//! @%first_warp bar.sync 1, 64;   // two warps are needed, and only one ever comes
//! ```
//!
//! Fix: make the counts of waiters and arrivers agree, on every path; give every loop an end that it reaches.
//! PTX ISA, "bar, barrier".

use super::{Check, initialisations, registers, words};
use crate::async_engines::Spot;
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Cluster, State};

pub const CHECK: Check = Check::error("deadlock", include_str!("deadlock.rs"));

/// Reports the waiting lanes whose instruction comes first in the text, and what they wait for; whoever waits
/// elsewhere is the other side. Those at an mbarrier where nobody has arrived come last: what they lack is most often
/// held up by the others. Behind a barrier that was used wrongly, or a copy into a block that need not have started,
/// it is no news that nobody can go on.
pub fn report(cluster: &mut Cluster) {
    if cluster.misused_barrier || cluster.detector.was_too_early() {
        return;
    }
    let mut waiting = waiting(cluster);
    let untouched = |state: State| match state {
        State::Phase(spot) => cluster.mbarriers.get(&spot).is_some_and(|barrier| barrier.arrived() == 0),
        _ => false,
    };
    waiting.sort_by_key(|(at, state)| (untouched(*state), at.statement, at.warp, at.mask));
    if registers::report_starved(cluster, &waiting) {
        return;
    }
    let Some((at, state)) = waiting.first().copied() else { return };
    let message = match state {
        State::Barrier(id) => format!("nobody can go on: {}", barrier_sentence(cluster, cluster.rank(at.warp), id)),
        State::Cluster => format!("nobody can go on: {}", cluster_sentence(cluster)),
        State::Gathering(members) => {
            let absent = cluster.warps[at.warp].live & members & !at.mask;
            format!(
                "nobody can go on: {} {} not come",
                words::who(cluster, at.warp, absent),
                words::verb(absent.count_ones(), "does", "do")
            )
        }
        State::Phase(spot) => format!("nobody can go on: {}", phase_sentence(cluster, spot)),
        State::Products => {
            let who = words::who(cluster, at.warp, at.mask);
            format!("nobody can go on: another warp of the warpgroup of {who} does not commit its products")
        }
        State::Ready | State::Joining | State::Registers(_) => return,
    };
    let other = waiting.iter().find(|(other, _)| other.statement != at.statement);
    let label = |at: At| {
        format!(
            "{} {} here for ever",
            words::who(cluster, at.warp, at.mask),
            words::verb(at.mask.count_ones(), "waits", "wait")
        )
    };
    let other = other.map(|(other, _)| cluster.actor(*other, &label(*other)));
    let help = match state {
        State::Phase(spot) => phase_advice(cluster, spot),
        _ => "let as many threads come as the instruction expects, on every path".into(),
    };
    let report = Report::new(&CHECK, message, cluster.actor(at, &label(at))).first(other).help(help);
    cluster.findings.add(report);
}

fn waiting(cluster: &Cluster) -> Vec<(At, State)> {
    let of_warp = |warp: usize| {
        cluster
            .whereabouts(warp)
            .map(move |(mask, statement, state)| (At { warp, fragment: 0, mask, statement }, state))
    };
    let all = (0..cluster.warps.len()).flat_map(of_warp);
    all.filter(|(_, state)| !matches!(state, State::Ready | State::Joining)).collect()
}

/// Who has come to a barrier, and where the others are.
fn barrier_sentence(cluster: &Cluster, rank: usize, id: u32) -> String {
    let barrier = &cluster.blocks[rank].barriers[id as usize];
    let size = cluster.shape.block.iter().product::<u32>();
    let expected = barrier.expected.unwrap_or(size);
    let came = |warp: &usize| barrier.came(cluster.warp_in_block(*warp)) != 0;
    let (come, absent): (Vec<usize>, Vec<usize>) = cluster.warps_of(rank).partition(came);
    let gone: Vec<usize> = absent.iter().copied().filter(|warp| cluster.warps[*warp].live == 0).collect();
    let stuck = absent.iter().filter(|warp| cluster.warps[**warp].live != 0).filter_map(|warp| {
        let (_, statement, _) = cluster.whereabouts(*warp).next()?;
        Some(format!("; warp {warp} waits at line {}", cluster.findings.line(statement)))
    });
    let have = |warps: &[usize]| words::verb(warps.len() as u32, "has", "have");
    let exited =
        if gone.is_empty() { String::new() } else { format!("; {} {} exited", words::warps(&gone), have(&gone)) };
    let verb = have(&come);
    let stuck: String = stuck.collect();
    format!("barrier {id} needs {expected} threads, and only {} {verb} come{exited}{stuck}", words::warps(&come))
}

/// Who has not come to the barrier of the cluster.
fn cluster_sentence(cluster: &Cluster) -> String {
    let come = |warp: usize| cluster.cluster_barrier.arrived.get(&warp).copied().unwrap_or(0);
    let late = (0..cluster.warps.len()).find(|warp| cluster.warps[*warp].live & !come(*warp) != 0);
    match late {
        Some(warp) => {
            let absent = cluster.warps[warp].live & !come(warp);
            format!("{} did not arrive at the barrier of the cluster", words::who(cluster, warp, absent))
        }
        None => "the barrier of the cluster does not open".into(),
    }
}

/// What the open phase of an mbarrier still needs.
fn phase_sentence(cluster: &Cluster, spot: Spot) -> String {
    let place = cluster.shared_place(spot.0, spot.1 as u64);
    let Some(barrier) = cluster.mbarriers.get(&spot) else { return format!("no barrier is initialised at {place}") };
    let arrivals = words::counted(barrier.pending().into(), "arrival");
    let phase = format!("phase {} of the barrier at {place}", barrier.phase());
    let needs = match (barrier.pending(), barrier.bytes()) {
        (0, less @ ..0) => {
            return format!("{phase} got {} more than were announced", words::bytes(less.unsigned_abs()));
        }
        (_, 0) => arrivals,
        (0, some @ 1..) => words::bytes(some as u64),
        (_, some @ 1..) => format!("{arrivals} and {}", words::bytes(some as u64)),
        (_, less) => format!("{arrivals}, and {} came that nobody announced", words::bytes(less.unsigned_abs())),
    };
    format!("{phase} still needs {needs}")
}

/// How its arrivals and its bytes could come.
fn phase_advice(cluster: &Cluster, spot: Spot) -> String {
    let (pending, bytes) = cluster.mbarriers.get(&spot).map_or((0, 0), |one| (one.pending(), one.bytes()));
    let init = initialisations::sentence(cluster, spot).unwrap_or_else(|| "initialise the barrier".into());
    let arrivals = format!(
        "{init}: let each phase get as many arrivals, no fewer and no more, and wait for the phase that they complete"
    );
    let copies = "announce with `expect_tx` as many bytes as the copies bring that complete at this barrier";
    match (pending, bytes) {
        (_, 0) => arrivals,
        (0, _) => copies.into(),
        _ => format!("{arrivals}; {copies}"),
    }
}

/// `range`: the first and the last statement that a warp executed of late.
pub fn report_budget(cluster: &mut Cluster, budget: u64, warp: usize, (first, last): (u32, u32)) {
    let mask = cluster.warps[warp].live;
    let back = cluster.findings.loop_around(first, last);
    let statement = back.unwrap_or(first);
    let who = words::who(cluster, warp, mask);
    let (done, blocks) = cluster.progress();
    // Where earlier blocks have ended, the launch is long; where the first does not, a loop is endless.
    let (label, message, help) = match (back, done) {
        (Some(_), 0) => (
            format!("{who} {} back for ever", words::verb(mask.count_ones(), "goes", "go")),
            format!("the kernel does not end within {budget} instructions"),
            "let the loop reach its end, or raise the limit with `--budget`",
        ),
        _ => (
            format!("{who} still {} here", words::verb(mask.count_ones(), "runs", "run")),
            format!("the launch does not end within {budget} instructions: {done} of {blocks} blocks are done"),
            "raise the limit with `--budget`, or check a smaller problem",
        ),
    };
    let second = cluster.actor(At { warp, fragment: 0, mask, statement }, &label);
    cluster.findings.add(Report::new(&CHECK, message, second).help(help));
    cluster.stopped = true;
}
