//! What the lanes of a warp know, what they have released, and what they have in flight.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Site;
use super::abroad::Origin;
use super::clock::Row;
use super::copies::{Copies, Waited};
use super::fault::{Means, Reach, Release};
use super::scope::{Offer, Scope, Seat};
use super::view::{COPIES, Own, ROWS, STORE_READS, STORE_WRITES, View};
use super::words::Place;

/// Releases, waits and finished copies remembered per warp, for the wording of faults.
pub const REMEMBERED: usize = 256;

pub fn remember<T>(past: &mut VecDeque<T>, new: T) {
    past.push_back(new);
    if past.len() > REMEMBERED {
        past.pop_front();
    }
}

/// Lanes of a warp that know the same, except each of itself.
#[derive(Clone)]
pub struct Group {
    pub mask: u32,
    pub view: Arc<View>,
    /// What each of them knows of itself: waiting for one's own copies is not waiting for others'.
    pub own: Own,
}

/// What carried a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    Barrier {
        id: u32,
        generation: u32,
    },
    Warp,
    /// A fence, or an access that releases.
    Fence,
    Cluster {
        generation: u32,
    },
    Mbarrier {
        barrier: u64,
        phase: u32,
    },
}

/// One release by lanes of the warp. Releases tick the warp's time, so their times rise.
#[derive(Clone, Copy)]
pub struct Released {
    pub time: u32,
    pub site: Site,
    pub mask: u32,
    pub meeting: Meeting,
}

impl Released {
    /// As faults tell of it.
    pub fn told(&self, reach: Reach) -> Release {
        let means = match self.meeting {
            Meeting::Barrier { id, .. } => Means::Barrier { id },
            Meeting::Warp => Means::WarpSync { mask: self.mask },
            Meeting::Fence => Means::Fence,
            Meeting::Cluster { .. } => Means::Cluster,
            Meeting::Mbarrier { barrier, phase } => Means::Mbarrier { barrier, phase },
        };
        Release { site: self.site, means, reach }
    }
}

/// A warp's part in a group of its warpgroup's products.
#[derive(Clone, Copy)]
pub struct Part {
    pub group: u32,
    /// The warp's time when it began.
    pub start: u32,
    /// The warp's time when it was committed.
    pub committed: Option<u32>,
}

/// The trackers of a warp, by what they track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Track {
    Copies,
    StoreReads,
    StoreWrites,
}

impl Track {
    /// Its row among those of the warp.
    pub fn row(self) -> usize {
        match self {
            Track::Copies => COPIES,
            Track::StoreReads => STORE_READS,
            Track::StoreWrites => STORE_WRITES,
        }
    }
}

#[derive(Clone)]
pub struct Warp {
    index: u32,
    pub cluster: u32,
    /// The block of the cluster that it belongs to.
    pub block: u32,
    pub time: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Lanes that have accessed memory.
    touched: u32,
    pub groups: Vec<Group>,
    pub releases: VecDeque<Released>,
    /// `cp.async` copies, and the reads and the writes of bulk stores.
    tracks: [Copies; 3],
    /// The group that its next `wgmma` belongs to.
    pub products: u32,
    /// Its part in the last groups of products, oldest first.
    pub parts: VecDeque<Part>,
    pub fences: Vec<Fence>,
    /// What lanes have read of others' releases, by lane and place, and not taken yet.
    pub pending: BTreeMap<(u8, Place), Vec<Offer>>,
    /// What lanes have read last of each place, by the version of what was published there, and with which scope.
    pub heard: BTreeMap<(u8, Place), (u64, Scope)>,
}

/// What lanes had done, and knew, at a fence.
#[derive(Clone)]
pub struct Fence {
    pub mask: u32,
    pub scope: Scope,
    pub site: Site,
    pub view: Arc<View>,
    pub time: u32,
    pub own: Own,
}

impl Warp {
    pub fn new(index: u32, seat: Seat, live: u32, start: Arc<View>) -> Warp {
        Warp {
            index,
            cluster: seat.cluster,
            block: seat.block,
            time: 1,
            live,
            touched: 0,
            groups: vec![Group { mask: live, view: start, own: Own::default() }],
            releases: VecDeque::new(),
            tracks: Default::default(),
            products: 1,
            parts: VecDeque::new(),
            fences: Vec::new(),
            pending: BTreeMap::new(),
            heard: BTreeMap::new(),
        }
    }

    pub fn seat(&self) -> Seat {
        Seat { cluster: self.cluster, block: self.block }
    }

    /// The row of the warp's lanes, the first of its rows.
    pub fn lanes_row(&self) -> Row {
        (self.index as usize * ROWS) as Row
    }

    pub fn track(&self, track: Track) -> &Copies {
        &self.tracks[track as usize]
    }

    pub fn track_mut(&mut self, track: Track) -> &mut Copies {
        &mut self.tracks[track as usize]
    }

    pub fn track_row(&self, track: Track) -> Row {
        self.lanes_row() + track.row() as Row
    }

    pub fn touch(&mut self, mask: u32) {
        self.touched |= mask;
    }

    /// Lanes that are gone (or never were) and did nothing that could be unknown: a release may vouch for them too,
    /// which keeps the rows of partial warps even.
    fn vacant(&self) -> u32 {
        !self.live & !self.touched
    }

    /// Adds everything that these lanes know, themselves included, to `into`; what they do later is not part of it.
    pub fn release(&mut self, mask: u32, site: Site, meeting: Meeting, into: &mut Handover) {
        for group in self.groups.iter().filter(|group| group.mask & mask != 0) {
            let lanes = group.mask & mask | self.vacant();
            into.join(&group.view).write_out(self.lanes_row(), lanes, self.time, &group.own, self.block);
        }
        self.tick(site, mask, meeting);
    }

    /// What these lanes do from now on is not part of the release.
    pub fn tick(&mut self, site: Site, mask: u32, meeting: Meeting) {
        remember(&mut self.releases, Released { time: self.time, site, mask, meeting });
        self.time += 1;
    }

    /// Makes one group of lanes that take `view`, which must contain what each of them knew.
    pub fn acquire(&mut self, mask: u32, view: &Arc<View>) {
        self.split(mask);
        let inside = |group: &&Group| group.mask & mask != 0;
        let owns = self.groups.iter().filter(inside).map(|group| group.own);
        let Some(own) = owns.reduce(|one, two| one.least(&two)) else { return };
        self.groups.retain(|group| group.mask & mask == 0);
        self.groups.push(Group { mask, view: view.clone(), own });
        self.coalesce();
    }

    /// Lanes learn something besides what they know.
    pub fn learn(&mut self, mask: u32, change: impl Fn(&mut View)) {
        self.split(mask);
        let mut changed: Vec<(Arc<View>, Arc<View>)> = Vec::new();
        for group in self.groups.iter_mut().filter(|group| group.mask & mask != 0) {
            let known =
                changed.iter().find(|(before, _)| Arc::ptr_eq(before, &group.view)).map(|(_, after)| after.clone());
            let before = group.view.clone();
            group.view = known.unwrap_or_else(|| {
                let mut view = (*before).clone();
                change(&mut view);
                changed.push((before, Arc::new(view)));
                changed[changed.len() - 1].1.clone()
            });
        }
        self.coalesce();
    }

    /// Each of the lanes learns something of itself.
    pub fn learn_own(&mut self, mask: u32, change: impl Fn(&mut Own)) {
        self.split(mask);
        self.groups.iter_mut().filter(|group| group.mask & mask != 0).for_each(|group| change(&mut group.own));
        self.coalesce();
    }

    /// Splits groups so that `mask` is a union of groups.
    fn split(&mut self, mask: u32) {
        for index in 0..self.groups.len() {
            let group = &mut self.groups[index];
            let inside = group.mask & mask;
            if inside != 0 && inside != group.mask {
                group.mask &= !inside;
                let part = Group { mask: inside, ..group.clone() };
                self.groups.push(part);
            }
        }
    }

    /// Groups that know the same again become one.
    fn coalesce(&mut self) {
        let mut merged: Vec<Group> = Vec::with_capacity(self.groups.len());
        for group in self.groups.drain(..) {
            let same = |old: &&mut Group| Arc::ptr_eq(&old.view, &group.view) && old.own == group.own;
            match merged.iter_mut().find(same) {
                Some(old) => old.mask |= group.mask,
                None => merged.push(group),
            }
        }
        self.groups = merged;
    }

    /// Its first product of the group that is open, or another one.
    pub fn begin_part(&mut self) {
        if self.parts.back().is_none_or(|last| last.group < self.products) {
            remember(&mut self.parts, Part { group: self.products, start: self.time, committed: None });
        }
    }

    /// `wgmma.commit_group`; a group may be empty.
    pub fn commit_part(&mut self) {
        self.begin_part();
        let time = self.time;
        self.parts.back_mut().into_iter().for_each(|part| part.committed = Some(time));
        self.products += 1;
    }

    /// Its part in a group of products, unless it has none or that is long ago.
    pub fn part(&self, group: u32) -> Option<&Part> {
        self.parts.iter().rev().find(|part| part.group == group)
    }

    /// How many groups of products, from the given one on, it had committed at a time.
    pub fn committed(&self, group: u32, time: u32) -> u32 {
        let by_then = |part: &&Part| part.group >= group && part.committed.is_some_and(|at| at <= time);
        self.parts.iter().filter(by_then).count() as u32
    }

    /// Each of the lanes learns of what it committed itself, the last `pending` batches excepted.
    pub fn wait(&mut self, track: Track, mask: u32, pending: u32, site: Site) {
        for (mask, batch) in self.track(track).complete(mask, pending) {
            let wait = Waited { site, mask, batch, time: self.time };
            self.track_mut(track).finish(mask, batch, wait);
            self.learn_own(mask, |own| own.seen[track.row()] = own.seen[track.row()].max(batch));
        }
    }

    /// Does a lane know what a lane of `row`, the row of a warp's lanes, did up to `time`?
    pub fn knows(&self, lane: u8, row: Row, other: u8, time: u32) -> bool {
        self.knows_of(lane, Origin::home(row), other, time)
    }

    /// The same for a row of any cluster.
    pub fn knows_of(&self, lane: u8, origin: Origin, other: u8, time: u32) -> bool {
        let own = origin == Origin::home(self.lanes_row()) && lane == other;
        own || self.group(lane).is_some_and(|group| group.view.seen.unknown_at(origin, time, 1 << other) == 0)
    }

    /// The group of a lane, unless the lane has exited.
    pub fn group(&self, lane: u8) -> Option<&Group> {
        self.groups.iter().find(|group| group.mask >> lane & 1 == 1)
    }

    pub fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        self.groups.iter_mut().for_each(|group| group.mask &= !mask);
        self.groups.retain(|group| group.mask != 0);
    }
}

/// Knowledge on its way from those who release it to those who acquire it.
#[derive(Clone, Default)]
pub struct Handover {
    view: Option<View>,
    /// The view joined last: warps that left a barrier together share one.
    last: Option<Arc<View>>,
}

impl Handover {
    fn join(&mut self, view: &Arc<View>) -> &mut View {
        let joined = self.view.get_or_insert_with(|| (**view).clone());
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, view)) {
            joined.join(view);
            self.last = Some(view.clone());
        }
        joined
    }

    pub fn finish(self) -> Option<Arc<View>> {
        self.view.map(Arc::new)
    }
}
