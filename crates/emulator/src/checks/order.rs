//! From a fault of the race detector to a finding: which check it belongs to, and the words they share.

use super::uninitialised_memory::Suspect;
use super::{early_release, missing_wait, proxy_fence, race_shared, race_warp, uninitialised_memory, words};
use crate::exec::{At, shared_byte};
use crate::finding::{Actor, Report};
use crate::machine::Cluster;
use happens_before::{Agent, Batch, Class, Fault, Party, Space};

/// At the end of a cluster: its races, and the reads of unwritten bytes that are not races. Returns those of which the
/// other clusters decide.
pub fn report_faults(cluster: &mut Cluster) -> Vec<Suspect> {
    let mut faults = cluster.detector.take_faults();
    // What became of a copy into a block that need not have started is luck; that is a finding of its own.
    let too_early = |party: &Party| party.agent != Agent::Thread && cluster.detector.is_too_early(party.site);
    faults.retain(|fault| !too_early(&fault.first) && !too_early(&fault.second));
    for fault in &faults {
        let report = match fault.class {
            Class::RaceWarp => race_warp::report(cluster, fault),
            Class::RaceShared | Class::Reach => race_shared::report(cluster, fault),
            Class::Proxy => proxy_fence::report(cluster, fault),
            Class::MissingWait => missing_wait::report(cluster, fault),
            Class::EarlyRelease => early_release::report(cluster, fault),
        };
        cluster.findings.add(report);
    }
    let racing: Vec<u32> = faults.iter().flat_map(|fault| [fault.first.site.0, fault.second.site.0]).collect();
    uninitialised_memory::settle(cluster, &racing)
}

/// The parties as (1) and (2). Which of two unordered accesses ran first is luck, so they are told in the order of the
/// text; a copy that was known to have been started comes first.
pub fn sides(fault: &Fault) -> [&Party; 2] {
    let mut sides = [&fault.first, &fault.second];
    if matches!(fault.class, Class::RaceShared | Class::RaceWarp) {
        sides.sort_by_key(|party| (party.site, party.warp, party.lane));
    }
    sides
}

/// `4 bytes of `stage`+16`.
pub fn place(cluster: &Cluster, fault: &Fault) -> String {
    let place = match fault.space {
        Space::Shared => {
            let (rank, offset) = shared_byte(fault.address);
            cluster.shared_place(rank, offset)
        }
        Space::Global => cluster.global.place(fault.address),
    };
    format!("{} of {place}", words::bytes(fault.bytes.into()))
}

/// `reads`, `writes`.
pub fn verb(party: &Party) -> &'static str {
    if party.write { "writes" } else { "reads" }
}

/// The copy that the other party knows nothing of, and that other party.
pub fn unseen_copy(fault: &Fault) -> Option<(&Party, &Party)> {
    let unseen = |party: &Party| matches!(party.agent, Agent::Copy(Batch::Unseen) | Agent::Load { rushed: true, .. });
    match (unseen(&fault.first), unseen(&fault.second)) {
        (true, _) => Some((&fault.first, &fault.second)),
        (false, true) => Some((&fault.second, &fault.first)),
        _ => None,
    }
}

/// `while a copy by warp 0 fills them: no barrier orders them`.
pub fn beside_a_copy(fault: &Fault, copy: &Party, by: &str, means: &str) -> String {
    let them = words::them(fault.bytes.into());
    let verb = if copy.write { "fills" } else { "reads" };
    format!("while a copy by {by} {verb} {them}: no {means} orders the two")
}

/// A report about both parties.
pub fn report(cluster: &Cluster, fault: &Fault, check: &'static super::Check, message: String) -> Report {
    let [first, second] = sides(fault);
    let first = actor(cluster, fault, first, 1);
    Report::new(check, message, actor(cluster, fault, second, 2)).first(first).count(fault.count)
}

/// `(1) lane 5 of warp 3 in block (0,0,0) writes them`.
fn actor(cluster: &Cluster, fault: &Fault, party: &Party, number: u32) -> Actor {
    let at = At { warp: party.warp as usize, fragment: 0, mask: 1 << party.lane, statement: party.site.0 };
    let who = words::who(cluster, at.warp, at.mask);
    let them = words::them(fault.bytes.into());
    let does = match (party.agent, party.write) {
        (Agent::Thread, _) => format!("{} {them}", verb(party)),
        (Agent::Product(_), _) => format!("starts a product of {them}"),
        (_, true) => format!("starts a copy into {them}"),
        (_, false) => format!("starts a copy from {them}"),
    };
    cluster.actor(at, &format!("({number}) {who} {does}"))
}
