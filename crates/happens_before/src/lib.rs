//! Happens-before: is every access ordered with the accesses that it conflicts with? Each cluster of CTAs has a detector.
//!
//! Judged by the PTX memory consistency model, per lane and per byte, for the control flow that ran. The order in which
//! the emulator happened to run things does not count; only edges do: program order of one lane, CTA and cluster
//! barriers, mbarriers, `bar.warp.sync`, release and acquire through memory, and waits for what is in flight. Lanes of a
//! warp are not ordered by lockstep.
//!
//! - **Rows.** A row is 32 agents that share one counter; an epoch is (row, lane, time). Each warp has a row for its
//!   lanes, whose time ticks at every release by any of them, and rows for the copies and bulk stores its lanes issued,
//!   whose time is the batch. A warpgroup has a row for its products, an mbarrier one for the bulk copies that it tells
//!   of. A copy is thus an access by the channel that will tell of its completion, at the time it will tell; nobody
//!   knows that epoch before the wait, not even the issuer.
//! - **Knowledge.** Lanes that know the same form a [`warp::Group`] with one [`view::View`]. A release writes out what
//!   lanes know, an acquire replaces it by the join. What a lane knows of itself is kept beside the view.
//! - **Proxies.** Asynchronous units follow a thread's access only if a proxy fence lies on the way. A view keeps which
//!   part of it has passed a fence, so that a missing fence is told apart from a missing edge.
//! - **Shadow.** [`shadow::Shadow`] remembers who touched each byte: one mark for 16 bytes where that tells the truth,
//!   finer where it does not. Something is forgotten only when a later access stands for it. Whoever follows a copy that
//!   stands for an access follows that access, although a completion tells of nothing but the copy.
//! - **Clusters.** They meet in global memory only. Those that cannot wait for each other leave summaries, which
//!   [`ledger::Ledger`] compares. Those that can run in turns, and hand [`commons::Commons`] on: one shadow of global memory
//!   and what was published there. A clock knows the rows of its own cluster, and of others what it was told.
//!
//! An exit is no release: the manual gives a barrier's guarantee to the threads that execute it. What a lane did
//! before it exited, and did not release, is unordered with the rest of the cluster. A collective asks its live lanes.
//! A grid follows those before it, unless it may overlap with them: then `griddepcontrol.wait` is what orders it
//! ([`earlier`]).
//!
//! Atomics, `red`, volatile, relaxed, acquiring and releasing accesses are strong: they do not race among themselves on
//! the same location with the same size, if their scopes include each other. What they order, [`words`] says. Whoever
//! follows an atomic follows those whose results it has read.
//!
//! Tests hold all of it against `definition`, which summarises nothing.

mod abroad;
mod actor;
mod barrier;
mod bulk;
mod clock;
mod cluster;
mod commons;
mod copies;
mod crossing;
#[cfg(any(test, feature = "definition"))]
pub mod definition;
mod earlier;
mod fault;
mod footprint;
mod ledger;
mod lifetime;
mod lists;
mod mark;
mod mbarrier;
mod near_miss;
mod pages;
mod places;
mod pool;
mod product;
mod proxy;
mod record;
mod report;
mod rows;
mod scope;
mod shadow;
mod summary;
#[cfg(test)]
mod tests;
mod touch;
mod unfinished;
mod view;
mod warp;
mod words;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::Actor;
pub use actor::Gap;
use barrier::Barrier;
pub use bulk::{Bulk, Stretch};
use clock::bits;
use cluster::Cluster;
pub use commons::Commons;
use commons::Names;
use crossing::Crossings;
pub use crossing::{Crossing, Told, Visitor};
pub use earlier::Touches;
pub use fault::{Agent, Batch, Class, Fault, Means, Party, Published, Reach, Release};
pub use footprint::Footprint;
pub use ledger::Ledger;
use lifetime::Lifetimes;
pub use lifetime::{Absence, Absent};
use mark::{Access, Sharers};
use mbarrier::Mbarriers;
pub use near_miss::NearMiss;
use near_miss::NearMisses;
pub use places::Places;
pub use proxy::ProxyFence;
use proxy::TensorMaps;
use record::Objects;
pub use record::{Seen, Sight};
use rows::Rows;
use scope::Seat;
pub use scope::{Scope, Semantics};
use shadow::Shadow;
pub use summary::{Summary, Unit};
use touch::Touch;
pub use unfinished::{Unfinished, Waitable};
use view::View;
use warp::{Group, Handover, Meeting, Track, Warp};
use words::Words;

/// Some lanes of one warp; warps are numbered through the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lanes {
    pub warp: u32,
    pub mask: u32,
}

/// Index of an instruction in its function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Site(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// Addresses are `rank << 32 | offset`: the block's rank in the cluster, and the offset in its shared memory.
    Shared,
    Global,
}

/// What an instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Read,
    Write,
    /// A store whose lanes write equal values where they write the same bytes. CUDA C++ Programming Guide, "SIMT
    /// Architecture": one of them is written last, and it does not matter which.
    EqualWrite,
    /// `ld.volatile`, `ld.relaxed`.
    StrongRead,
    /// `st.volatile`, `st.relaxed`.
    StrongWrite,
    /// `atom`, `red`.
    Atomic,
}

impl Kind {
    pub fn writes(self) -> bool {
        !matches!(self, Kind::Read | Kind::StrongRead)
    }

    fn is_strong(self) -> bool {
        !matches!(self, Kind::Read | Kind::Write | Kind::EqualWrite)
    }
}

/// The block of the cluster whose shared memory holds an address.
fn block_of(shared: u64) -> u32 {
    (shared >> 32) as u32
}

/// The race detector of one cluster. Addresses must have passed the bounds check.
#[derive(Clone)]
pub struct Detector {
    warps: Vec<Warp>,
    /// The cluster's place in the grid.
    number: u32,
    blocks: u32,
    rows: Rows,
    cluster: Cluster,
    mbarriers: Mbarriers,
    maps: TensorMaps,
    barriers: BTreeMap<u32, Barrier>,
    shadows: [Shadow; 2],
    /// Who is who in the shadow of global memory.
    names: Names,
    faults: Vec<Fault>,
    /// Which fault stands for a pair of sites.
    index: BTreeMap<(Class, Space, Site, Site, Option<report::Pair>), usize>,
    /// Faults whose first access may still be released.
    unpublished: Vec<usize>,
    /// Faults about copies that may still be waited for.
    awaited: Vec<report::Awaited>,
    /// What strong writes have published, by space.
    words: [Words; 2],
    near_misses: NearMisses,
    /// Races with other clusters.
    crossings: Crossings,
    /// Races with earlier grids, by their number.
    too_early: BTreeMap<usize, Crossings>,
    lifetimes: Lifetimes,
    /// A proxy fence was missing since somebody asked.
    missed_fence: bool,
    /// Looks away: accesses and barriers cost nothing, and nothing is found.
    idle: bool,
    objects: Objects,
}

impl Detector {
    /// A cluster whose warps have these lanes; the last warp of a block may be partial.
    pub fn new(lanes: &[u32], warps_per_block: u32) -> Detector {
        Detector::numbered(0, lanes, warps_per_block)
    }

    /// One of several clusters.
    pub fn numbered(number: u32, lanes: &[u32], warps_per_block: u32) -> Detector {
        let rows = Rows::new(lanes.len() as u32, warps_per_block);
        let start = Arc::new(View::new(rows.fixed()));
        let seat = |index: u32| Seat { cluster: number, block: index / warps_per_block };
        let warp = |(mask, index): (&u32, u32)| Warp::new(index, seat(index), *mask, start.clone());
        Detector {
            number,
            warps: lanes.iter().zip(0..).map(warp).collect(),
            blocks: (lanes.len() as u32).div_ceil(warps_per_block),
            rows,
            cluster: Cluster::default(),
            mbarriers: Mbarriers::default(),
            maps: TensorMaps::default(),
            barriers: BTreeMap::new(),
            shadows: Default::default(),
            names: Names::default(),
            faults: Vec::new(),
            index: BTreeMap::new(),
            unpublished: Vec::new(),
            awaited: Vec::new(),
            words: Default::default(),
            near_misses: NearMisses::default(),
            crossings: Crossings::default(),
            too_early: BTreeMap::new(),
            lifetimes: Lifetimes::default(),
            missed_fence: false,
            idle: false,
            objects: Objects::default(),
        }
    }

    /// The same, but a detector that does not watch finds nothing.
    pub fn watching(number: u32, lanes: &[u32], warps_per_block: u32, watches: bool) -> Detector {
        Detector { idle: !watches, ..Detector::numbered(number, lanes, warps_per_block) }
    }

    /// The warp, and those of the lanes that have not exited.
    fn warp(&mut self, at: Lanes) -> (&mut Warp, u32) {
        let warp = &mut self.warps[at.warp as usize];
        let mask = at.mask & warp.live;
        (warp, mask)
    }

    /// What all loads, stores and atomics have in common.
    #[inline]
    fn scoped_access(
        &mut self,
        at: Lanes,
        site: Site,
        (kind, scope): (Kind, Scope),
        space: Space,
        places: Places,
        bytes: u32,
    ) {
        if self.idle {
            return;
        }
        self.forget_hits();
        if space == Space::Shared {
            self.remote_access(at, site, places, bytes);
        }
        let (warp, _) = self.warp(at);
        if kind == Kind::EqualWrite {
            // What has this time is of this instruction.
            warp.time += 1;
        }
        let (row, time, block) = (warp.lanes_row(), warp.time, warp.block as u8);
        let strong = kind.is_strong().then_some(Sharers { scope, block });
        let atomic = kind == Kind::Atomic;
        let agreed = kind == Kind::EqualWrite;
        let access = Access { strong, atomic, agreed, ..Access::weak(row, time, site.0, kind.writes()) };
        self.touch(at, access, space, places, bytes);
        self.report(at.warp, access, space);
    }

    /// `cp.async`: reads `from_bytes` of each lane's source in global memory and writes `bytes` to shared memory.
    pub fn copy(
        &mut self,
        at: Lanes,
        site: Site,
        from: &[u64; 32],
        from_bytes: &[u32; 32],
        to: &[u64; 32],
        bytes: u32,
    ) {
        if self.idle {
            return;
        }
        self.forget_hits();
        let (read, write) = self.start_copy(at, site);
        let mut rest = at.mask;
        while rest != 0 {
            let size = from_bytes[rest.trailing_zeros() as usize];
            let mask = bits(rest).filter(|lane| from_bytes[*lane as usize] == size).fold(0, |m, lane| m | 1 << lane);
            self.touch(Lanes { mask, ..at }, read, Space::Global, Places::Each(from), size);
            rest &= !mask;
        }
        self.report(at.warp, read, Space::Global);
        self.touch(at, write, Space::Shared, Places::Each(to), bytes);
        self.report(at.warp, write, Space::Shared);
    }

    /// Notes a copy as in flight; returns how it reads and how it writes.
    fn start_copy(&mut self, at: Lanes, site: Site) -> (Access, Access) {
        let (warp, mask) = self.warp(at);
        let started = warp.time;
        warp.track_mut(Track::Copies).issue(mask, site, started);
        let (row, time) = (warp.track_row(Track::Copies), warp.track(Track::Copies).batch);
        let read = Access::weak(row, time, site.0, false);
        (read, Access { write: true, ..read })
    }

    /// `cp.async.commit_group`.
    pub fn commit(&mut self, at: Lanes) {
        let (warp, mask) = self.warp(at);
        warp.track_mut(Track::Copies).commit(mask);
    }

    /// `cp.async.wait_group`.
    pub fn wait(&mut self, at: Lanes, site: Site, pending: u32) {
        let (warp, mask) = self.warp(at);
        warp.wait(Track::Copies, mask, pending, site);
        self.settle_awaited(Lanes { mask, ..at }, site);
    }

    /// `cp.async.wait_all`: also waits for copies not committed (PTX ISA: a `commit_group` and a `wait_group 0`).
    pub fn wait_all(&mut self, at: Lanes, site: Site) {
        self.commit(at);
        self.wait(at, site, 0);
    }

    /// `bar.warp.sync` by all lanes of its mask.
    pub fn warp_sync(&mut self, at: Lanes, site: Site) {
        let (warp, mask) = self.warp(at);
        let mut handover = Handover::default();
        warp.release(mask, site, Meeting::Warp, &mut handover);
        if let Some(view) = handover.finish() {
            warp.acquire(mask, &view);
        }
        self.published(Lanes { mask, ..at }, site, Means::WarpSync { mask });
    }

    pub fn exit(&mut self, at: Lanes) {
        self.settle_remote(at);
        let (warp, mask) = self.warp(at);
        warp.exit(mask);
    }

    /// Different faults since they were taken.
    pub fn count_faults(&self) -> u64 {
        self.faults.len() as u64
    }

    /// Can nothing later put what was found in other words?
    pub fn is_settled(&self) -> bool {
        self.awaited.is_empty() && self.unpublished.is_empty()
    }

    /// Faults found since the last call, in the order of discovery.
    pub fn take_faults(&mut self) -> Vec<Fault> {
        self.index.clear();
        self.unpublished.clear();
        self.awaited.clear();
        report::merged(std::mem::take(&mut self.faults))
    }

    fn forget_hits(&mut self) {
        self.shadows.iter_mut().for_each(|shadow| shadow.hits.clear());
        self.shadows[Space::Global as usize].earlier.forget();
    }

    #[inline]
    fn touch(&mut self, at: Lanes, access: Access, space: Space, places: Places, bytes: u32) {
        let Some((name, access)) = self.named(at.warp, space, access) else { return };
        let warp = &mut self.warps[at.warp as usize];
        warp.touch(at.mask & warp.live);
        let detached = access.row != warp.lanes_row();
        let members = self.names.in_space(space);
        let taking_part = warp.groups.iter().filter(|group| access.agreed && group.mask & at.mask != 0);
        let agreed: Vec<&View> = taking_part.map(|group| &*group.view).collect();
        for group in &warp.groups {
            let actor = Actor { detached, name, members, agreed: &agreed, ..warp.actor(group) };
            let touch = Touch { actor: &actor, access, mask: group.mask & at.mask, places, bytes };
            touch.apply(&mut self.shadows[space as usize]);
        }
    }

    /// What the warp's lanes are called in the shadow of a space, and the access by the name of its row.
    #[inline]
    fn named(&mut self, warp: u32, space: Space, access: Access) -> Option<(u32, Access)> {
        let lanes = self.warps[warp as usize].lanes_row();
        if space == Space::Shared {
            return Some((lanes.into(), access));
        }
        let own = self.names.of(self.number, lanes, warp)?;
        let name = self.names.of(self.number, access.row, warp)?;
        Some((own, Access { name, ..access }))
    }
}

impl Warp {
    /// Lanes of a group that access memory as threads do.
    fn actor<'a>(&self, group: &'a Group) -> Actor<'a> {
        Actor {
            view: &group.view,
            own: &group.own,
            rows: self.lanes_row(),
            block: self.block,
            cluster: self.cluster,
            members: None,
            name: self.lanes_row().into(),
            needed: None,
            detached: false,
            agreed: &[],
            collective: None,
        }
    }
}
