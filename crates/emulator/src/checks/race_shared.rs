//! # race-shared
//!
//! Two warps of a block access the same bytes, of shared or global memory, at least one writes, and no barrier orders
//! them. The result depends on which warp is faster. Two writes of equal values race too. A copy counts from its start:
//! a stage that is refilled while another warp may still read it is a race.
//!
//! ```ptx
//! st.shared.f32 [%mine], %value;
//! ld.shared.f32 %other, [%neighbours];   // no bar.sync in between
//! ```
//!
//! Fix: `bar.sync` between the two accesses, executed by both warps; in a loop also between the last read of a stage
//! and the write that fills it again. Data that `cp.async` brought needs both: each thread waits for its own copies,
//! then a barrier tells the others. PTX ISA, "bar, barrier"; "cp.async.wait_group".

use super::{Check, missing_wait, order, words};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::{Agent, Batch, Fault, Means, Party, Published, Reach, Release};

pub const CHECK: Check = Check::error("race-shared", include_str!("race_shared.rs"));

pub fn report(cluster: &Cluster, fault: &Fault) -> Report {
    let report = order::report(cluster, fault, &CHECK, message(cluster, fault));
    report.missing(missing(cluster, fault)).help(help(cluster, fault))
}

fn message(cluster: &Cluster, fault: &Fault) -> String {
    let place = order::place(cluster, fault);
    if let Some((copy, other)) = order::unseen_copy(fault) {
        let actor = match other.agent {
            Agent::Thread => format!("warp {}", other.warp),
            _ => format!("a copy by warp {}", other.warp),
        };
        let means = if matches!(copy.agent, Agent::Load { .. }) { "mbarrier" } else { "barrier" };
        let beside = order::beside_a_copy(fault, copy, &format!("warp {}", copy.warp), means);
        return format!("{actor} {} {place} {beside}", order::verb(other));
    }
    let [first, second] = order::sides(fault);
    if let Some(wait) = wait_line(cluster, fault) {
        let (copy, other) = (&fault.first, &fault.second);
        let way = if copy.write { "into" } else { "from" };
        let them = words::them(fault.bytes.into());
        let what = format!("warp {} {} {place}", other.warp, order::verb(other));
        return format!(
            "{what} without a barrier after warp {} waited at line {wait} for its copy {way} {them}",
            copy.warp
        );
    }
    if first.write && second.write {
        return format!("warps {} and {} both write {place} without a barrier between them", first.warp, second.warp);
    }
    let (one, two) = (order::verb(first), order::verb(second));
    format!("warp {} {one} and warp {} {two} {place} without a barrier between them", first.warp, second.warp)
}

/// The line of the wait that covers the copy, if the first party is a copy that was waited for.
fn wait_line(cluster: &Cluster, fault: &Fault) -> Option<u32> {
    match fault.first.agent {
        Agent::Copy(Batch::Waited { site: Some(site) }) => Some(cluster.findings.line(site.0)),
        _ => None,
    }
}

/// What should have told the second party of the first access.
fn missing(cluster: &Cluster, fault: &Fault) -> String {
    if let Some((copy, other)) = order::unseen_copy(fault) {
        return match copy.agent {
            Agent::Load { phase, .. } => {
                let arrival = format!("an arrival of warp {} after it, for which warp {} waits", other.warp, copy.warp);
                format!("a wait for phase {phase} before the access, or {arrival} before it starts the copy")
            }
            _ => format!("a barrier at which {} wait between the access and the start of the copy", both(fault)),
        };
    }
    let [first, second] = order::sides(fault).map(|party| cluster.findings.line(party.site.0));
    match (fault.published, wait_line(cluster, fault)) {
        (Published::By(release), _) => carried(cluster, fault, &release),
        (_, Some(wait)) => format!("a barrier: nothing after the wait at line {wait} releases the copy"),
        _ if fault.first.site < fault.second.site => {
            format!("a barrier: nothing after line {first} releases what warp {} did there", fault.first.warp)
        }
        _ => format!("a barrier at which {} wait between line {first} and line {second}", both(fault)),
    }
}

fn both(fault: &Fault) -> String {
    let mut numbers = [fault.first.warp as usize, fault.second.warp as usize];
    numbers.sort_unstable();
    words::warps(&numbers)
}

/// Why the release that carries the first access did not reach the second.
fn carried(cluster: &Cluster, fault: &Fault, release: &Release) -> String {
    let (first, second) = (fault.first.warp, fault.second.warp);
    let what = format!("`{}` at line {}", cluster.findings.text(release.site.0), cluster.findings.line(release.site.0));
    if let Some((why, _)) = unheard(cluster, release) {
        return format!("a wait for the mbarrier at which {what} releases what warp {first} did: {why}");
    }
    match release.reach {
        Reach::NotJoined => {
            format!("a barrier for both: {what} releases what warp {first} did, and warp {second} had not joined it")
        }
        Reach::ArrivedOnly => {
            format!(
                "a barrier that warp {second} waits at: it only arrives where {what} releases what warp {first} did"
            )
        }
        Reach::FirstAbsent => {
            format!("a barrier for both: lane {} of warp {first} does not take part in {what}", fault.first.lane)
        }
        Reach::TooLate => {
            format!("a barrier in time: {what} releases what warp {first} did, too late for warp {second}")
        }
    }
}

/// The mbarrier carries the first access, and the result of a wait for it is lost.
fn unheard(cluster: &Cluster, release: &Release) -> Option<(String, String)> {
    match release.means {
        Means::Mbarrier { barrier, .. } => missing_wait::unheard(cluster, barrier),
        _ => None,
    }
}

fn help(cluster: &Cluster, fault: &Fault) -> String {
    if let Published::By(release) = fault.published
        && let Some((_, help)) = unheard(cluster, &release)
    {
        return help;
    }
    let [first, second] = order::sides(fault).map(|party| party.site.0);
    let between = cluster.findings.barrier_between(first, second);
    let repeats = cluster.findings.loop_around(first, second);
    if let Some((Party { agent: Agent::Load { .. }, warp: issuer, .. }, other)) = order::unseen_copy(fault) {
        let number = if std::ptr::eq(order::sides(fault)[0], other) { 1 } else { 2 };
        return format!(
            "wait for the copy before ({number}) if that is to read what it brings; else arrive after ({number}) at an mbarrier, for which warp {issuer} waits before the copy"
        );
    }
    let copies_first = matches!(order::sides(fault)[0].agent, Agent::Copy(_));
    if let Some(wait) = wait_line(cluster, fault) {
        return format!("emit `bar.sync 0` in every warp after the wait at line {wait} and before (2)");
    }
    match repeats {
        Some(back) if between => {
            let line = cluster.findings.line(back);
            format!("emit `bar.sync 0` in every warp after (2), before line {line} goes back to (1)")
        }
        _ if between => "let both warps wait at one and the same barrier between (1) and (2)".into(),
        _ if copies_first => "emit `bar.sync 0` in every warp after the wait for the copy (1) and before (2)".into(),
        _ => "emit `bar.sync 0` in every warp between (1) and (2)".into(),
    }
}
