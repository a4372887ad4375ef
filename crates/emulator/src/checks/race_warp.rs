//! # race-warp
//!
//! Two lanes of one warp access the same bytes, at least one writes, and nothing orders them. Lanes of a warp are not
//! ordered by running in lockstep: since sm_70 they have control flow of their own.
//!
//! ```ptx
//! st.shared.u32 [%mine], %value;
//! ld.shared.u32 %other, [%neighbours];   // another lane's store may not have happened
//! ```
//!
//! Fix: `bar.warp.sync` between the two, with a mask that names both lanes. Shuffles and votes do not order memory. Lanes of
//! one store that write equal values to one place do not race: one of them is written, whichever.
//! PTX ISA, "bar.warp.sync"; "Memory Consistency Model".

use super::{Check, order};
use crate::finding::Report;
use crate::machine::Cluster;
use happens_before::Fault;

pub const CHECK: Check = Check::error("race-warp", include_str!("race_warp.rs"));

pub fn report(cluster: &Cluster, fault: &Fault) -> Report {
    let [first, second] = order::sides(fault);
    let (warp, lanes) = (first.warp, 1u32 << first.lane | 1 << second.lane);
    let place = order::place(cluster, fault);
    let (one, two) = (order::verb(first), order::verb(second));
    let message = if first.site == second.site && first.write && second.write {
        format!("lanes {} and {} of warp {warp} both write {place} in one instruction", first.lane, second.lane)
    } else if let Some((copy, other)) = order::unseen_copy(fault) {
        let beside = order::beside_a_copy(fault, copy, &format!("lane {}", copy.lane), "`bar.warp.sync`");
        format!("lane {} of warp {warp} {} {place} {beside}", other.lane, order::verb(other))
    } else {
        let lanes = format!("lane {} of warp {warp} {one} and lane {} {two}", first.lane, second.lane);
        format!("{lanes} {place} without `bar.warp.sync` between them")
    };
    let report = order::report(cluster, fault, &CHECK, message);
    if first.site == second.site {
        return report.help("let one lane write, or give each lane bytes of its own");
    }
    let [one, two] = [first, second].map(|party| party.site.0);
    // What the text has in the other order happened in two turns of a loop.
    let turns = (fault.first.site > fault.second.site).then(|| cluster.findings.loop_around(one, two)).flatten();
    let between = match turns {
        Some(back) => format!("after (2), before line {} goes back to (1)", cluster.findings.line(back)),
        None => "between (1) and (2)".into(),
    };
    report.missing(format!("`bar.warp.sync` with a mask that contains {lanes:#x} {between}")).help(format!(
        "emit `bar.warp.sync 0xffffffff` {between}, where all lanes pass; shuffles and votes do not order memory"
    ))
}
