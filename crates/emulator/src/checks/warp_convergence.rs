//! # warp-convergence
//!
//! An instruction of the whole warp that some lanes do not execute, a mask that does not name who executes it, or a
//! shuffle that reads a lane which takes no part. What such an instruction does is undefined; hardware often gives the
//! value of a register as it happens to be.
//!
//! ```ptx
//! @%lower shfl.sync.down.b32 %other, %value, 16, 31, 0x0000ffff;   // lanes 0 to 15 read lanes 16 to 31
//! ```
//!
//! Fix: let all lanes of the mask execute the instruction, before the branch or behind it, and name exactly those lanes.
//! PTX ISA, "shfl.sync", "vote.sync", "elect.sync", "ldmatrix", "mma" (`.aligned`).

use super::{Check, words};
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Cluster, Values, describe_lanes, lanes};

pub const CHECK: Check = Check::error("warp-convergence", include_str!("warp_convergence.rs"));

/// Is the whole warp here, as `.aligned` demands?
pub fn watch_whole(cluster: &mut Cluster, at: At) {
    if at.mask == u32::MAX {
        return;
    }
    let live = cluster.warps[at.warp].live;
    let why = match at.mask == live {
        true => format!("{} {} or never began", describe_lanes(!live), have(!live, "has exited", "have exited")),
        false => format!("{} {} elsewhere", describe_lanes(live & !at.mask), have(live & !at.mask, "is", "are")),
    };
    let message = format!("the whole warp must execute this, and {why}");
    add(cluster, at, message, "move it to where all 32 lanes of the warp pass, and launch whole warps");
}

/// Does every lane name itself, and every lane that it names the same ones? Do those execute it?
pub fn agrees(cluster: &mut Cluster, at: At, members: &Values) -> bool {
    let unnamed = chosen(at.mask, |lane| members[lane] >> lane & 1 == 0);
    if unnamed != 0 {
        let named = members[unnamed.trailing_zeros() as usize] as u32;
        let verb = have(unnamed, "executes", "execute");
        let message = format!("{} {verb} this with the mask {named:#x}, which lacks {}", describe_lanes(unnamed), {
            if unnamed.count_ones() == 1 { "it" } else { "them" }
        });
        add(cluster, at.among(unnamed), message, "name every lane that executes the instruction, and no other");
    }
    let differs = |lane: usize| lanes(members[lane] as u32 & at.mask).any(|other| members[other] != members[lane]);
    let torn = if unnamed == 0 { chosen(at.mask, differs) } else { 0 };
    if torn != 0 {
        let masks = [torn.trailing_zeros(), 31 - torn.leading_zeros()].map(|lane| members[lane as usize] as u32);
        let message =
            format!("lanes that name each other do so with different masks: {:#x} and {:#x}", masks[0], masks[1]);
        add(cluster, at.among(torn), message, "give all lanes of a group the same mask");
    }
    unnamed | torn == 0 && executed_by_all(cluster, at, members)
}

/// Does the guard let every lane execute it that is here and named?
fn executed_by_all(cluster: &mut Cluster, at: At, members: &Values) -> bool {
    let named = lanes(at.mask).fold(0, |named, lane| named | members[lane] as u32);
    let idle = cluster.warps[at.warp].fragments[at.fragment].mask & !at.mask & named;
    if idle != 0 {
        let (are, them) = (have(idle, "is", "are"), if idle.count_ones() == 1 { "it" } else { "them" });
        let message = format!(
            "{} {are} named by the mask {named:#x}, and the guard keeps {them} from this",
            describe_lanes(idle)
        );
        add(cluster, at, message, "execute it without the guard, or name only the lanes whose guard holds");
    }
    idle == 0
}

/// A shuffle among `mask`: which lane each lane reads, if it is in range.
pub fn watch_sources(cluster: &mut Cluster, at: At, mask: u32, from: &[(usize, bool); 32]) {
    let astray = chosen(mask, |lane| from[lane].1 && mask >> from[lane].0 & 1 == 0);
    if astray == 0 {
        return;
    }
    let lane = astray.trailing_zeros();
    let read = from[lane as usize].0;
    let message = format!("lane {lane} reads the value of lane {read}, which takes no part in the shuffle");
    add(
        cluster,
        at.among(astray),
        message,
        "name the lanes that are read in the mask, and let them execute the shuffle",
    );
}

fn chosen(mask: u32, choose: impl Fn(usize) -> bool) -> u32 {
    lanes(mask).filter(|lane| choose(*lane)).fold(0, |chosen, lane| chosen | 1 << lane)
}

fn have(mask: u32, one: &'static str, many: &'static str) -> &'static str {
    words::verb(mask.count_ones(), one, many)
}

fn add(cluster: &mut Cluster, at: At, message: String, help: &str) {
    let label = format!("executed by {}", words::who(cluster, at.warp, at.mask));
    let second = cluster.actor(at, &label);
    cluster.findings.add(Report::new(&CHECK, message, second).help(help).count(at.mask.count_ones().into()));
}
