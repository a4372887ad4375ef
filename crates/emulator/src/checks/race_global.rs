//! # race-global
//!
//! Threads of different blocks access the same bytes of global memory, at least one writes, and nothing orders them.
//! Blocks run in any order, side by side or one after the other: what a block reads of another's output is there or not,
//! and of two writes either may be the last. Two writes of equal values race too.
//!
//! ```ptx
//! st.global.f32 [%mine], %value;
//! ld.global.f32 %other, [%neighbours];   // written by another block of the same launch
//! ```
//!
//! Fix: give each block bytes of its own; or read in a second launch what the first wrote; or let atomics combine what
//! blocks contribute. Where a block must wait for another, the writer publishes (`fence.acq_rel.gpu` and an atomic, or
//! `st.release.gpu`) and the reader acquires (`ld.acquire.gpu`, or the fence behind a relaxed read) before it reads. A
//! barrier of the block carries that to its other threads: they arrive before the one that publishes, and wait for the one
//! that acquires. Both need a scope that includes the other block: `.cta` does not. Blocks of one cluster can use its
//! barrier instead (`barrier.cluster.arrive`, `barrier.cluster.wait`). A bulk store must have been waited for, not only its
//! source (`cp.async.bulk.wait_group 0` without `.read`).
//!
//! An atomic follows those whose results it has read: the last block may set a counter back with a plain store, if that
//! counter told it to be the last.
//!
//! A launch with `overlap = true` in its recipe (programmatic dependent launch) may start before the one before it is complete. What
//! that grid writes may be touched, and what it reads be written, only behind `griddepcontrol.wait`, or by threads that a
//! barrier tells of it.
//!
//! `ld.global.nc` reads through a cache that no fence reaches. It is for bytes that nobody writes during the launch; any
//! write of them, ordered or not, is reported here. PTX ISA, "Memory Consistency Model": "Conflict and Data-races",
//! "Release and Acquire Patterns"; "ld.global.nc".

use super::{Check, proxy_fence, words};
use crate::finding::{Actor, Findings, Place, Report};
use crate::machine::LaunchShape;
use crate::memory::GlobalMemory;
use happens_before::{Crossing, Gap, NearMiss, Scope, Site, Told, Unit, Visitor};

pub const CHECK: Check = Check::error("race-global", include_str!("race_global.rs"));

/// Where clusters met: the launch and its memory.
pub struct Scene<'a> {
    pub shape: &'a LaunchShape,
    pub global: &'a GlobalMemory,
}

pub fn report(scene: &Scene, findings: &Findings, crossing: &Crossing) -> Report {
    let [first, second] = sides(crossing);
    let check = if crossing.gap == Gap::Fence { &proxy_fence::CHECK } else { &CHECK };
    let report = Report::new(check, message(scene, crossing), scene.actor(crossing, second, 2));
    let report = report.first(scene.actor(crossing, first, 1)).count(crossing.count);
    report.missing(missing(scene, findings, crossing)).help(help(crossing))
}

fn message(scene: &Scene, crossing: &Crossing) -> String {
    let [first, second] = sides(crossing);
    let [one, two] = [first, second].map(|side| scene.block(side));
    let place = scene.place(crossing);
    let what = match (first.write, second.write) {
        _ if one == two => format!("block {one} writes and reads {place}"),
        (true, true) => format!("blocks {one} and {two} both write {place}"),
        _ => format!("block {one} {} and block {two} {} {place}", verb(first), verb(second)),
    };
    let why = match (crossing.gap, crossing.told) {
        (_, Told::ReadOnly) => ", the latter with `.nc`, which sees no write of the same launch".into(),
        (Gap::Fence, _) => ", in order, but without a proxy fence on the way".into(),
        (Gap::Reach, _) => ", and what should order them does not reach".into(),
        (Gap::Order, _) => match narrow(crossing) {
            Some(scope) => format!(", and `{scope}` does not include the other"),
            None => ", and nothing orders them".into(),
        },
    };
    what + &why
}

/// The parties in the order of the text; whichever ran first is luck. A read that sees no write comes last.
fn sides(crossing: &Crossing) -> [&Visitor; 2] {
    let mut sides = [&crossing.first, &crossing.second];
    if crossing.told != Told::ReadOnly {
        sides.sort_by_key(|side| (side.site, side.cluster, side.warp, side.lane));
    }
    sides
}

pub fn verb(side: &Visitor) -> &'static str {
    if side.write { "writes" } else { "reads" }
}

/// The scope that keeps two strong accesses from being fit for each other.
fn narrow(crossing: &Crossing) -> Option<&'static str> {
    match crossing.first.strong?.min(crossing.second.strong?) {
        Scope::Cta => Some(".cta"),
        Scope::Cluster => Some(".cluster"),
        Scope::Gpu => None,
    }
}

/// A bulk store that the other party knows nothing of: it must be waited for before it is published.
fn is_unfinished_store(crossing: &Crossing) -> bool {
    crossing.told == Told::Never && crossing.first.unit == Unit::Store && crossing.first.write
}

/// A plain load of what another block changes with atomics or strong stores.
fn reads_an_atomic(crossing: &Crossing) -> bool {
    let [first, second] = [&crossing.first, &crossing.second];
    let (write, read) = if first.write { (first, second) } else { (second, first) };
    write.strong.is_some() && !read.write && read.strong.is_none() && read.unit == Unit::Thread
}

/// What should have told the second party of the first access.
fn missing(scene: &Scene, findings: &Findings, crossing: &Crossing) -> String {
    let [first, second] = [&crossing.first, &crossing.second].map(|side| findings.line(side.site.0));
    let [one, two] = [&crossing.first, &crossing.second].map(|side| scene.block(side));
    let at = |site: Site| format!("`{}` at line {}", findings.text(site.0), findings.line(site.0));
    match crossing.told {
        _ if crossing.gap == Gap::Fence => format!("`fence.proxy.async` between line {first} and line {second}"),
        Told::ReadOnly => "a load without `.nc`: no fence and no barrier reaches what `.nc` reads".into(),
        _ if narrow(crossing).is_some() => "a scope that includes both blocks".into(),
        Told::Apart => "an order: without atomics and strong accesses blocks cannot wait for each other".into(),
        _ if is_unfinished_store(crossing) => {
            format!("a wait for the copy of line {first}, and a release behind it that block {two} acquires")
        }
        Told::Never => {
            format!("a release: what block {one} did at line {first} it had not published when block {two} came")
        }
        Told::At { release, address } => {
            let place = scene.global.place(address);
            format!("an acquire: {} publishes line {first} at {place}, and block {two} had not taken that", at(release))
        }
        Told::Missed(NearMiss { release, read, scope, semantics }) => match (scope, semantics.scope) {
            (Some(Scope::Gpu), Scope::Gpu) => {
                format!("an acquire: {} reads what {} released, and takes nothing of it", at(read), at(release))
            }
            (Some(Scope::Gpu), _) => format!("a wider scope: {} takes nothing from other blocks", at(read)),
            (Some(_), _) => format!("a wider scope: {} does not reach other blocks", at(release)),
            (None, _) => format!("wider scopes: what {} released is written or read without them", at(release)),
        },
    }
}

fn help(crossing: &Crossing) -> &'static str {
    match crossing.told {
        _ if crossing.gap == Gap::Fence => "emit `fence.proxy.async` behind the write, before what publishes it",
        Told::ReadOnly => "load with `ld.global`; `.nc` is for bytes that nobody writes during the launch",
        _ if narrow(crossing).is_some() => "give both accesses the scope `.gpu`, which is the default of atomics",
        Told::Apart if crossing.first.write && crossing.second.write => {
            "give each block bytes of its own, or combine what they write with `red.global`"
        }
        Told::Apart => "read it in a second launch, or publish it with `st.release.gpu` and wait with `ld.acquire.gpu`",
        _ if is_unfinished_store(crossing) => {
            "emit `cp.async.bulk.wait_group 0` and `fence.acq_rel.gpu` before the flag is raised"
        }
        Told::Never if crossing.first.write && crossing.second.write => {
            "give each block bytes of its own, or combine what they write with `red.global`; if a flag is to order the \
             blocks, emit `fence.acq_rel.gpu` before it is raised"
        }
        Told::Never if reads_an_atomic(crossing) => {
            "read what atomics change with `ld.relaxed.gpu` or `ld.acquire.gpu`, or read it in a second launch"
        }
        Told::Never => "emit `fence.acq_rel.gpu` between what must come first and the atomic or flag that tells of it",
        Told::Missed(NearMiss { scope: Some(Scope::Cta | Scope::Cluster), .. }) => {
            "release with `.gpu` scope: `st.release.gpu`, or `fence.acq_rel.gpu` before the flag is written"
        }
        Told::At { .. } | Told::Missed(_) => {
            "acquire with `.gpu` scope: `ld.acquire.gpu`, or `fence.acq_rel.gpu` behind the read of the flag"
        }
    }
}

impl Scene<'_> {
    fn index(&self, side: &Visitor) -> [u32; 3] {
        let rank = side.warp / self.shape.warps_per_block();
        self.shape.members(side.cluster).nth(rank as usize).unwrap_or_default()
    }

    /// `4 bytes of `out`+16`.
    pub fn place(&self, crossing: &Crossing) -> String {
        format!("{} of {}", words::bytes(crossing.bytes.into()), self.global.place(crossing.address))
    }

    /// `(1,0,0)`.
    pub fn block(&self, side: &Visitor) -> String {
        let [x, y, z] = self.index(side);
        format!("({x},{y},{z})")
    }

    /// `(1) lane 5 of warp 3 in block (0,0,0) writes them`.
    pub fn actor(&self, crossing: &Crossing, side: &Visitor, number: u32) -> Actor {
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
