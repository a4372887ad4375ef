//! # race-shared
//!
//! Two warps of a block access the same bytes, of shared or global memory, or two warps of a cluster the same bytes of
//! shared memory, at least one writes, and no barrier orders them. The result depends on which warp is faster. Two writes
//! of equal values race too. A copy counts from its start: a stage that is refilled while another warp may still read it
//! is a race.
//!
//! ```ptx
//! st.shared.f32 [%mine], %value;
//! ld.shared.f32 %other, [%neighbours];   // no bar.sync in between
//! ```
//!
//! Fix: `bar.sync` between the two accesses, executed by both warps; in a loop also between the last read of a stage
//! and the write that fills it again. Data that `cp.async` brought needs both: each thread waits for its own copies,
//! then a barrier tells the others. PTX ISA, "bar, barrier"; "cp.async.wait_group".

use super::{Check, missing_wait, order, race_global, words};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::{Agent, Batch, Class, Fault, Means, Party, Published, Reach, Release, Space};

pub const CHECK: Check = Check::error("race-shared", include_str!("race_shared.rs"));

pub fn report(cluster: &Cluster, fault: &Fault) -> Report {
    let global = fault.space == Space::Global && in_two_blocks(cluster, fault);
    let check = if global { &race_global::CHECK } else { &CHECK };
    let report = order::report(cluster, fault, check, message(cluster, fault));
    report.missing(missing(cluster, fault)).help(help(cluster, fault))
}

fn message(cluster: &Cluster, fault: &Fault) -> String {
    let place = order::place(cluster, fault);
    if let Some((copy, other)) = order::unseen_copy(fault) {
        let actor = match other.agent {
            Agent::Thread => warp(cluster, other),
            _ => format!("a copy by {}", warp(cluster, other)),
        };
        let means = if matches!(copy.agent, Agent::Load { .. }) { "mbarrier" } else { "barrier" };
        let beside = order::beside_a_copy(fault, copy, &warp(cluster, copy), means);
        return format!("{actor} {} {place} {beside}", order::verb(other));
    }
    let [first, second] = order::sides(fault);
    if let Some(wait) = wait_line(cluster, fault) {
        let (copy, other) = (&fault.first, &fault.second);
        let way = if copy.write { "into" } else { "from" };
        let them = words::them(fault.bytes.into());
        let what = format!("{} {} {place}", warp(cluster, other), order::verb(other));
        let who = warp(cluster, copy);
        return format!("{what} without a barrier after {who} waited at line {wait} for its copy {way} {them}");
    }
    let without = match fault.class {
        Class::Reach => ", and what should order them does not reach",
        _ => " without a barrier between them",
    };
    if first.write && second.write {
        return format!("{} both write {place}{without}", both(cluster, fault));
    }
    let (one, two) = (order::verb(first), order::verb(second));
    format!("{} {one} and {} {two} {place}{without}", warp(cluster, first), warp(cluster, second))
}

/// `warp 3`; in a cluster `warp 3 of block 1`.
fn warp(cluster: &Cluster, party: &Party) -> String {
    let warp = party.warp as usize;
    match cluster.blocks.len() {
        1 => format!("warp {warp}"),
        _ => format!("warp {} of block {}", cluster.warp_in_block(warp), cluster.rank(warp)),
    }
}

fn in_two_blocks(cluster: &Cluster, fault: &Fault) -> bool {
    cluster.rank(fault.first.warp as usize) != cluster.rank(fault.second.warp as usize)
}

/// The line of the wait that covers the copy, if the first party is a copy that was waited for.
fn wait_line(cluster: &Cluster, fault: &Fault) -> Option<u32> {
    match fault.first.agent {
        Agent::Copy(Batch::Waited { site: Some(site) }) => Some(cluster.findings.line(site.0)),
        _ => None,
    }
}

/// What should have told the second party of the first access. What stands before a
/// colon depends on the schedule only where flags are involved.
fn missing(cluster: &Cluster, fault: &Fault) -> String {
    if let Some((copy, other)) = order::unseen_copy(fault) {
        return match copy.agent {
            Agent::Load { phase, .. } => {
                let (one, two) = (warp(cluster, other), warp(cluster, copy));
                let arrival = format!("an arrival of {one} after it, for which {two} waits");
                format!("a wait for phase {phase} before the access, or {arrival} before it starts the copy")
            }
            _ if copies_first(cluster, fault) => {
                format!(
                    "a barrier at which {} wait, behind the wait for the copy (1) and before (2)",
                    both(cluster, fault)
                )
            }
            _ => {
                format!("a barrier at which {} wait between the access and the start of the copy", both(cluster, fault))
            }
        };
    }
    let line = cluster.findings.line(fault.first.site.0);
    match (fault.published, wait_line(cluster, fault)) {
        (Published::By(release), _) => carried(cluster, fault, &release),
        (_, Some(wait)) => format!("a barrier: nothing after the wait at line {wait} releases the copy"),
        _ if is_started_by_several(cluster, fault) => {
            format!("an order: nothing comes between the copies that {} start at line {line}", both(cluster, fault))
        }
        _ if fault.first.site < fault.second.site => {
            let who = warp(cluster, &fault.first);
            format!("{}: nothing after line {line} releases what {who} did there", barrier(cluster, fault))
        }
        _ => barrier(cluster, fault),
    }
}

/// The barrier that would order the two, and where.
fn barrier(cluster: &Cluster, fault: &Fault) -> String {
    let which = if in_two_blocks(cluster, fault) { "a cluster barrier" } else { "a barrier" };
    let [first, second] = order::sides(fault).map(|party| party.site.0);
    let back = cluster.findings.loop_around(first, second).filter(|_| cluster.findings.barrier_between(first, second));
    let place = match back.map(|back| cluster.findings.line(back)) {
        Some(line) => format!("after (2), before line {line} goes back to (1)"),
        None => "between (1) and (2)".into(),
    };
    format!("{which} at which {} wait {place}", both(cluster, fault))
}

fn both(cluster: &Cluster, fault: &Fault) -> String {
    let mut sides = [&fault.first, &fault.second];
    sides.sort_by_key(|party| party.warp);
    match cluster.blocks.len() {
        1 => words::warps(&sides.map(|party| party.warp as usize)),
        _ => sides.map(|party| warp(cluster, party)).join(" and "),
    }
}

/// Why the release that carries the first access did not reach the second.
fn carried(cluster: &Cluster, fault: &Fault, release: &Release) -> String {
    let [first, second] = [&fault.first, &fault.second].map(|party| warp(cluster, party));
    let what = format!("`{}` at line {}", cluster.findings.text(release.site.0), cluster.findings.line(release.site.0));
    if let Some((why, _)) = unheard(cluster, release) {
        return format!("a wait for the mbarrier at which {what} releases what {first} did: {why}");
    }
    let why = match release.reach {
        Reach::NotJoined if release.means == Means::Fence => {
            return format!("an acquire: {what} releases what {first} did, and {second} does not take it");
        }
        Reach::Loose => return loose(cluster, fault, release.site.0, &what),
        Reach::NotJoined if in_two_blocks(cluster, fault) && matches!(release.means, Means::Barrier { .. }) => {
            format!("{what} tells no other block of what {first} did")
        }
        Reach::NotJoined => {
            let [one, two] = numbers(fault);
            format!("after ({one}) {first} comes to {what}, and {second} had not come to it before ({two})")
        }
        Reach::ArrivedOnly => format!("{second} only arrives where {what} releases what {first} did"),
        Reach::FirstAbsent => format!("lane {} of {first} does not take part in {what}", fault.first.lane),
        Reach::TooLate => format!("{what} releases what {first} did, too late for {second}"),
    };
    format!("{}: {why}", barrier(cluster, fault))
}

/// The numbers of the access that ran first and of the other one.
fn numbers(fault: &Fault) -> [u32; 2] {
    if std::ptr::eq(order::sides(fault)[0], &fault.first) { [1, 2] } else { [2, 1] }
}

/// A release of which the second party hears without being told: one of the two sides is too weak.
fn loose(cluster: &Cluster, fault: &Fault, release: u32, what: &str) -> String {
    let [first, second] = [&fault.first, &fault.second].map(|party| warp(cluster, party));
    let text = cluster.findings.text(release);
    if text.contains(".relaxed") {
        format!("a release: {what} is relaxed, and publishes nothing of what {first} did")
    } else if in_two_blocks(cluster, fault) && ![".cluster", ".gpu", ".sys"].iter().any(|one| text.contains(one)) {
        format!("a wider scope: {what} does not reach other blocks")
    } else {
        format!("an acquire: {second} hears of {what} through an access that is relaxed, or whose scope is too narrow")
    }
}

/// The copy is (1), and no loop goes back from (2) to it: what is read is meant to be what it brings.
fn copies_first(cluster: &Cluster, fault: &Fault) -> bool {
    let sides = order::sides(fault);
    let [first, second] = sides.map(|party| party.site.0);
    matches!(sides[0].agent, Agent::Copy(_)) && cluster.findings.loop_around(first, second).is_none()
}

/// The mbarrier carries the first access, and the result of a wait for it is lost.
fn unheard(cluster: &Cluster, release: &Release) -> Option<(String, String)> {
    match release.means {
        Means::Mbarrier { barrier, .. } => missing_wait::unheard(cluster, barrier),
        _ => None,
    }
}

fn one_instruction_writes(fault: &Fault) -> bool {
    fault.first.site == fault.second.site && fault.first.write && fault.second.write
}

/// One execution of an instruction starts copies into the same bytes; in a loop they may be of different rounds.
fn is_started_by_several(cluster: &Cluster, fault: &Fault) -> bool {
    let copies = [&fault.first, &fault.second].into_iter().all(|party| party.agent != Agent::Thread);
    let site = fault.first.site.0;
    one_instruction_writes(fault) && copies && cluster.findings.loop_around(site, site).is_none()
}

/// Where a barrier of the block is not what is wanted.
fn apart(cluster: &Cluster, fault: &Fault) -> Option<&'static str> {
    let threads = [&fault.first, &fault.second].into_iter().all(|party| party.agent == Agent::Thread);
    let flag = matches!(fault.published, Published::By(Release { means: Means::Fence, reach: Reach::NotJoined, .. }));
    if fault.class == Class::Reach {
        Some("release and acquire with a scope that includes both, and not `.relaxed`")
    } else if in_two_blocks(cluster, fault) && threads {
        Some(
            "let all threads of the cluster execute `barrier.cluster.arrive` and `barrier.cluster.wait` between (1) and (2)",
        )
    } else if one_instruction_writes(fault) && threads {
        Some("let one warp write, or give each warp bytes of its own")
    } else if is_started_by_several(cluster, fault) {
        Some("let one thread start the copy, or give each copy bytes of its own")
    } else if flag {
        Some("read the flag with `ld.acquire.cta`, or emit `fence.acq_rel.cta` behind the read, in the threads of (2)")
    } else {
        None
    }
}

fn help(cluster: &Cluster, fault: &Fault) -> String {
    if let Published::By(release) = fault.published
        && let Some((_, help)) = unheard(cluster, &release)
    {
        return help;
    }
    if let Some(help) = apart(cluster, fault) {
        return help.into();
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
    if let Some(wait) = wait_line(cluster, fault) {
        return format!("emit `bar.sync 0` in every warp after the wait at line {wait} and before (2)");
    }
    match repeats {
        Some(back) if between => {
            let line = cluster.findings.line(back);
            format!("emit `bar.sync 0` in every warp after (2), before line {line} goes back to (1)")
        }
        _ if between => "let both warps wait at one and the same barrier between (1) and (2)".into(),
        _ if copies_first(cluster, fault) => {
            "emit `bar.sync 0` in every warp after the wait for the copy (1) and before (2)".into()
        }
        _ => "emit `bar.sync 0` between (1) and (2), where every warp of the block passes".into(),
    }
}
