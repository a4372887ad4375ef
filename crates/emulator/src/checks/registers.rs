//! # registers
//!
//! Warpgroups hand registers to each other with `setmaxnreg`, and the counts do not add up: one asks for more than the
//! block has and waits for ever, one releases up or takes down or keeps fewer than it uses, one warp of a warpgroup goes
//! another way than the rest, or the assembler cannot tell how many registers there are at the entry and ignores the
//! instruction.
//!
//! ```ptx
//! .entry k() .maxntid 384, 1, 1 .minnctapersm 1    // 168 registers for each of 384 threads
//! setmaxnreg.dec.sync.aligned.u32 40;              // one warpgroup
//! setmaxnreg.inc.sync.aligned.u32 240;             // two warpgroups: 40 + 2 * 240 is more than 3 * 168
//! ```
//!
//! Fix: choose counts whose sum over the warpgroups is at most that of the entry, and let whole warpgroups execute the
//! same instructions. PTX ISA, "setmaxnreg", ".maxnreg", ".minnctapersm".

use super::{Check, words};
use crate::exec::{At, Resize};
use crate::finding::Report;
use crate::machine::{Cluster, State};
use ::launch::finding::Severity;

pub const CHECK: Check = Check::error("registers", include_str!("registers.rs"));

/// Warps of a warpgroup.
const WARPGROUP: usize = 4;

/// A warp is about to change how many registers it has. False if it does not: the count is on the wrong side.
pub fn watch(cluster: &mut Cluster, at: At, resize: Resize) -> bool {
    let (pool, warp) = (&cluster.home(at.warp).registers, cluster.warp_in_block(at.warp));
    let (now, count) = (pool.counts[warp], resize.count);
    let label = format!("executed by {}", words::who(cluster, at.warp, at.mask));
    let (message, help) = match (pool.entry, resize.grows) {
        (None, _) => {
            let message = "`setmaxnreg` is ignored: the entry does not say how many registers it begins with";
            let help = "add `.maxnreg`, or `.minnctapersm` beside `.maxntid` or `.reqntid`";
            let report = Report::new(&CHECK, message.into(), cluster.actor(at, &label)).help(help);
            cluster.findings.add(report.severity(Severity::Warning));
            return true;
        }
        (_, true) if count < now => (
            format!("`setmaxnreg.inc` to {count} registers, and the warp has {now}"),
            "release registers with `setmaxnreg.dec`",
        ),
        (_, false) if count > now => (
            format!("`setmaxnreg.dec` to {count} registers, and the warp has {now}"),
            "take registers with `setmaxnreg.inc`",
        ),
        _ => {
            watch_use(cluster, at, resize);
            return true;
        }
    };
    cluster.findings.add(Report::new(&CHECK, message, cluster.actor(at, &label)).help(help));
    false
}

/// Fewer registers than the warp needs for values that it cannot compute again. ptxas 13 spills what does
/// not fit (104 bytes for `release_below_use.ptx`), so that the results are right, and slow.
fn watch_use(cluster: &mut Cluster, at: At, resize: Resize) {
    let Some(in_use) = resize.in_use.filter(|in_use| in_use.registers > resize.count) else { return };
    let there = At { statement: in_use.statement, ..at };
    let (count, needed) = (resize.count, in_use.registers);
    let message = format!("{count} registers are left, and {needed} are in use: the assembler must spill the others");
    let label = format!("{} keeps {} for each thread", words::who(cluster, at.warp, at.mask), resize.count);
    let used = cluster.actor(there, &format!("values in {} registers are needed from here on", in_use.registers));
    let help = format!("keep {} or more, or store values before", in_use.registers.next_multiple_of(8));
    let report = Report::new(&CHECK, message, cluster.actor(at, &label)).first(used).help(help);
    cluster.findings.add(report.severity(Severity::Warning));
}

/// Nobody can go on, and somebody waits for registers. `waiting`: in the order of the text.
pub fn report_starved(cluster: &mut Cluster, waiting: &[(At, State)]) -> bool {
    let wanted = |state: State| if let State::Registers(count) = state { Some(count) } else { None };
    let Some((at, count)) = waiting.iter().find_map(|(at, state)| Some((*at, wanted(*state)?))) else { return false };
    let rank = cluster.rank(at.warp);
    let pool = &cluster.blocks[rank].registers;
    let asked = waiting.iter().filter(|(other, _)| cluster.rank(other.warp) == rank).filter_map(|(other, state)| {
        Some(wanted(*state)?.saturating_sub(pool.counts[cluster.warp_in_block(other.warp)]) * 32)
    });
    let (needed, whole) = (pool.owned() + asked.sum::<u32>(), pool.whole());
    let message = format!("nobody can go on: the warps of the block want {needed} registers, and it has {whole}");
    let label = format!("{} waits here for {count} registers per thread", words::who(cluster, at.warp, at.mask));
    let entry = pool.entry.unwrap_or(0);
    let help = format!("choose counts that are at most {entry} on average over the warps of the block");
    let report = Report::new(&CHECK, message, cluster.actor(at, &label)).help(help);
    cluster.findings.add(report);
    true
}

/// At the end of a cluster: have all warps of each warpgroup changed their counts at the same places?
pub fn report_strays(cluster: &mut Cluster) {
    for rank in 0..cluster.blocks.len() {
        let (first, all) = (cluster.warps_of(rank).start, cluster.blocks[rank].registers.changes.clone());
        for (group, number) in all.chunks(WARPGROUP).zip(0..) {
            let longest = group.iter().map(Vec::len).max().unwrap_or(0);
            let stray = (0..longest).find(|turn| group.iter().any(|changes| changes.get(*turn) != group[0].get(*turn)));
            let warps = first + number * WARPGROUP;
            // Whoever waits for ever may still come.
            let over = cluster.warps[warps..warps + group.len()].iter().all(|warp| warp.live == 0);
            if let Some(turn) = stray.filter(|_| over) {
                report_stray(cluster, warps, group, turn);
            }
        }
    }
}

fn report_stray(cluster: &mut Cluster, first: usize, group: &[Vec<u32>], turn: usize) {
    let Some(place) = group.iter().filter_map(|changes| changes.get(turn)).min().copied() else { return };
    let (here, away): (Vec<usize>, Vec<usize>) =
        (0..group.len()).partition(|warp| group[*warp].get(turn) == Some(&place));
    let number =
        |warps: &[usize]| -> Vec<usize> { warps.iter().map(|warp| cluster.warp_in_block(first + warp)).collect() };
    let (does, do_not) = (number(&here), number(&away));
    let message = format!(
        "{} of the warpgroup {} this, and {} {} not",
        words::warps(&does),
        words::verb(does.len() as u32, "executes", "execute"),
        words::warps(&do_not),
        words::verb(do_not.len() as u32, "does", "do"),
    );
    let at = At { warp: first + here[0], fragment: 0, mask: u32::MAX, statement: place };
    let label = format!("executed by {}", words::who(cluster, at.warp, at.mask));
    let help =
        "let all four warps of the warpgroup execute the same `setmaxnreg`: decide by the warpgroup, not by the warp";
    cluster.findings.add(Report::new(&CHECK, message, cluster.actor(at, &label)).help(help));
}
