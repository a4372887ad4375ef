//! # deadlock
//!
//! Nobody can go on: every thread that has not exited waits for one that will not come. Also a kernel that does not
//! end within the instruction budget (`--budget`).
//!
//! ```ptx
//! @%first_warp bar.sync 1, 64;   // two warps are needed, and only one ever comes
//! ```
//!
//! Fix: make the counts of waiters and arrivers agree, on every path. PTX ISA, "bar, barrier".

use super::Check;
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Block, Program, State, describe_lanes};

pub const CHECK: Check = Check::error("deadlock", include_str!("deadlock.rs"));

/// Reports the first waiting fragment of the block, and says what it waits for.
pub fn report(block: &mut Block, _: &Program) {
    let waits = |warp: usize| block.whereabouts(warp).find(|(_, _, state)| *state != State::Joining);
    let Some((warp, (mask, statement, state))) = (0..block.warps.len()).find_map(|warp| Some((warp, waits(warp)?)))
    else {
        return;
    };
    let message = match state {
        State::Barrier(id) => format!("nobody can go on: {}", barrier_sentence(block, id)),
        State::Gathering(members) => {
            let missing = block.warps[warp].live & members & !mask;
            format!("nobody can go on: {} of warp {warp} do not come", describe_lanes(missing))
        }
        State::Ready | State::Joining => "nobody can go on".into(),
    };
    let second = block.actor(At { warp, fragment: 0, mask, statement }, "waits here for ever");
    let help = Some("let as many threads arrive as the barrier expects, on every path".into());
    block.findings.add(Report { check: &CHECK, message, first: None, second, missing: None, help, count: 1 });
}

fn barrier_sentence(block: &Block, id: u32) -> String {
    let barrier = block.barriers.get(&id);
    let come: Vec<usize> = barrier.map(|barrier| barrier.arrived.keys().copied().collect()).unwrap_or_default();
    let expected = barrier.and_then(|barrier| barrier.expected).unwrap_or(block.dimensions.iter().product());
    let list = come.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let exited = block.warps.iter().filter(|warp| warp.live == 0).count();
    let others = if exited > 0 { format!("; {exited} warps have exited") } else { String::new() };
    format!("barrier {id} needs {expected} threads, and only warps {list} have come{others}")
}

pub fn report_budget(block: &mut Block, budget: u64) {
    let Some((warp, (mask, statement, _))) =
        (0..block.warps.len()).find_map(|warp| Some((warp, block.whereabouts(warp).next()?)))
    else {
        return;
    };
    let message = format!("the kernel did not end within {budget} instructions");
    let second = block.actor(At { warp, fragment: 0, mask, statement }, "still running here");
    let help = Some("find the loop that does not end, or raise the limit with `--budget`".into());
    block.findings.add(Report { check: &CHECK, message, first: None, second, missing: None, help, count: 1 });
    block.stopped = true;
}
