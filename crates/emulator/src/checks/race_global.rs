//! # race-global
//!
//! Threads of different clusters (without clusters: of different blocks) access the same bytes of global memory, at least
//! one writes, and nothing orders them. Blocks run in any order, side by side or one after the other: what a block reads
//! of another's output is there or not, and of two writes either may be the last. Two writes of equal values race too.
//!
//! ```ptx
//! st.global.f32 [%mine], %value;
//! ld.global.f32 %other, [%neighbours];   // written by another block of the same launch
//! ```
//!
//! Fix: give each block bytes of its own; or read in a second launch what the first wrote; or let atomics combine what
//! blocks contribute. PTX ISA, "Memory Consistency Model": "Conflict and Data-races".

use super::{Check, words};
use crate::finding::{Actor, Findings, Place, Report};
use crate::happens_before::{Crossing, Unit, Visitor};
use crate::machine::LaunchShape;
use crate::memory::GlobalMemory;

pub const CHECK: Check = Check::error("race-global", include_str!("race_global.rs"));

/// Where clusters met: the launch and its memory.
pub struct Scene<'a> {
    pub shape: &'a LaunchShape,
    pub global: &'a GlobalMemory,
}

pub fn report(scene: &Scene, findings: &Findings, crossing: &Crossing) -> Report {
    let [first, second] = sides(crossing);
    let [one, two] = [first, second].map(|side| scene.block(side));
    let place = format!("{} of {}", words::bytes(crossing.bytes.into()), scene.global.place(crossing.address));
    let message = match (first.write, second.write) {
        (true, true) => format!("blocks {one} and {two} both write {place}, and nothing orders them"),
        _ => format!("block {one} {} and block {two} {} {place}, and nothing orders them", verb(first), verb(second)),
    };
    let report = Report::new(&CHECK, message, scene.actor(crossing, second, 2)).first(scene.actor(crossing, first, 1));
    report.missing(missing(findings, crossing)).help(help(crossing)).count(crossing.count)
}

/// The parties in the order of the text; whichever ran first is luck.
fn sides(crossing: &Crossing) -> [&Visitor; 2] {
    let mut sides = [&crossing.first, &crossing.second];
    sides.sort_by_key(|side| (side.site, side.cluster, side.warp, side.lane));
    sides
}

fn verb(side: &Visitor) -> &'static str {
    if side.write { "writes" } else { "reads" }
}

fn missing(findings: &Findings, crossing: &Crossing) -> String {
    let [first, second] = sides(crossing).map(|side| findings.line(side.site.0));
    let between =
        if first == second { format!("at line {first}") } else { format!("between lines {first} and {second}") };
    format!(
        "an order {between}: no atomic and no strong access to global memory lets blocks of this kernel wait for each other"
    )
}

fn help(crossing: &Crossing) -> &'static str {
    match (crossing.first.write, crossing.second.write) {
        (true, true) => "give each block bytes of its own, or combine what they write with `red.global`",
        _ => {
            "read it in a second launch, or publish it with `st.release.gpu` to a flag that the reader waits for with `ld.acquire.gpu`"
        }
    }
}

impl Scene<'_> {
    fn index(&self, side: &Visitor) -> [u32; 3] {
        let rank = side.warp / self.shape.warps_per_block();
        self.shape.members(side.cluster).nth(rank as usize).unwrap_or_default()
    }

    /// `(1,0,0)`.
    fn block(&self, side: &Visitor) -> String {
        let [x, y, z] = self.index(side);
        format!("({x},{y},{z})")
    }

    /// `(1) lane 5 of warp 3 in block (0,0,0) writes them`.
    fn actor(&self, crossing: &Crossing, side: &Visitor, number: u32) -> Actor {
        let (cta, warp) = (self.index(side), side.warp % self.shape.warps_per_block());
        let them = words::them(crossing.bytes.into());
        let does = match (side.unit, side.write) {
            (Unit::Thread, _) => format!("{} {them}", verb(side)),
            (_, true) => format!("starts a copy into {them}"),
            (_, false) => format!("starts a copy from {them}"),
        };
        let cluster =
            if self.shape.cluster == [1; 3] { String::new() } else { format!(" of cluster {}", side.cluster) };
        let who = format!("lane {} of warp {warp} in block {}{cluster}", side.lane, self.block(side));
        let place = Place::Statement(side.site.0);
        Actor { place, cta, warp, lanes: 1 << side.lane, label: format!("({number}) {who} {does}") }
    }
}
