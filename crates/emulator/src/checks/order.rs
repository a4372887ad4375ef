//! From a fault of the race detector to a finding: which check it belongs to, and the words they share.

use super::{early_release, missing_wait, race_shared, race_warp, uninitialised_memory};
use crate::exec::At;
use crate::finding::{Actor, Report};
use crate::happens_before::{Agent, Class, Fault, Party, Space};
use crate::machine::Block;

/// At the end of a block: its races, and the reads of unwritten bytes that are not races.
pub fn report_faults(block: &mut Block) {
    let faults = block.detector.take_faults();
    for fault in &faults {
        let report = match fault.class {
            Class::RaceWarp => race_warp::report(block, fault),
            Class::RaceShared => race_shared::report(block, fault),
            Class::MissingWait => missing_wait::report(block, fault),
            Class::EarlyRelease => early_release::report(block, fault),
        };
        block.findings.add(report);
    }
    let racing: Vec<u32> = faults.iter().flat_map(|fault| [fault.first.site.0, fault.second.site.0]).collect();
    uninitialised_memory::settle(block, &racing);
}

/// The party as one side of a finding.
pub fn actor(block: &Block, party: &Party, label: &str) -> Actor {
    let at = At { warp: party.warp as usize, fragment: 0, mask: 1 << party.lane, statement: party.site.0 };
    block.actor(at, label)
}

/// `4 bytes of `stage`+16`.
pub fn place(block: &Block, fault: &Fault) -> String {
    let place = match fault.space {
        Space::Shared => block.shared.place_of(fault.address),
        Space::Global => block.global.place(fault.address),
    };
    format!("{} bytes of {place}", fault.bytes)
}

/// `(1) warp 3, lane 5 wrote them`.
pub fn label(number: u32, party: &Party) -> String {
    let verb = match (party.agent, party.write) {
        (Agent::Thread, true) => "writes them",
        (Agent::Thread, false) => "reads them",
        (Agent::Copy(_), true) => "copies into them",
        (Agent::Copy(_), false) => "copies from them",
    };
    format!("({number}) warp {}, lane {} {verb}", party.warp, party.lane)
}

/// A report about both parties.
pub fn report(
    block: &Block,
    fault: &Fault,
    check: &'static super::Check,
    message: String,
    missing: Option<String>,
    help: String,
) -> Report {
    let first = Some(actor(block, &fault.first, &label(1, &fault.first)));
    let second = actor(block, &fault.second, &label(2, &fault.second));
    Report { check, message, first, second, missing, help: Some(help), count: fault.count }
}
