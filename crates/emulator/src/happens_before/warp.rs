//! What the lanes of a warp know, what they have released, and what they have in flight.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Site;
use super::clock::{Clock, Row, bits};
use super::words::Place;

/// Releases, waits and finished copies remembered per warp, for the wording of faults.
const REMEMBERED: usize = 256;

fn remember<T>(past: &mut VecDeque<T>, new: T) {
    past.push_back(new);
    if past.len() > REMEMBERED {
        past.pop_front();
    }
}

/// Lanes of a warp that know the same, except each of itself.
#[derive(Clone)]
pub struct Group {
    pub mask: u32,
    pub view: Arc<Clock>,
    /// Each of the lanes knows its own copies up to this batch: waiting for one's own copies is not waiting for others'.
    pub waited: u32,
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
}

/// One release by lanes of the warp. Releases tick the warp's time, so their times are consecutive.
#[derive(Clone, Copy)]
pub struct Released {
    pub time: u32,
    pub site: Site,
    pub mask: u32,
    pub meeting: Meeting,
}

#[derive(Clone)]
pub struct Warp {
    index: u32,
    pub time: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Lanes that have accessed memory.
    touched: u32,
    pub groups: Vec<Group>,
    pub releases: VecDeque<Released>,
    pub copies: Copies,
    pub fences: Vec<Fence>,
    /// What lanes have read of others' releases, by lane and place, and not taken yet.
    pub pending: BTreeMap<(u8, Place), Clock>,
}

/// What lanes had done, and knew, at their last fence.
#[derive(Clone)]
pub struct Fence {
    pub mask: u32,
    pub view: Arc<Clock>,
    pub time: u32,
    pub waited: u32,
}

impl Warp {
    pub fn new(index: u32, live: u32, start: Arc<Clock>) -> Warp {
        let groups = vec![Group { mask: live, view: start, waited: 0 }];
        let (releases, copies) = (VecDeque::new(), Copies { batch: 1, ..Copies::default() });
        let (fences, pending) = (Vec::new(), BTreeMap::new());
        Warp { index, time: 1, live, touched: 0, groups, releases, copies, fences, pending }
    }

    /// The row of the warp's lanes.
    pub fn lanes_row(&self) -> Row {
        (self.index * 2) as Row
    }

    /// The row of the copies that its lanes issued.
    pub fn copies_row(&self) -> Row {
        (self.index * 2 + 1) as Row
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
            let clock = into.join(&group.view);
            clock.raise(self.lanes_row(), lanes, self.time);
            clock.raise(self.copies_row(), lanes, group.waited);
        }
        self.tick(site, mask, meeting);
    }

    /// What these lanes do from now on is not part of the release.
    pub fn tick(&mut self, site: Site, mask: u32, meeting: Meeting) {
        remember(&mut self.releases, Released { time: self.time, site, mask, meeting });
        self.time += 1;
    }

    /// Makes one group of lanes that take `view`, which must contain what each of them knew.
    pub fn acquire(&mut self, mask: u32, view: &Arc<Clock>) {
        self.split(mask);
        let inside = |group: &&Group| group.mask & mask != 0;
        let Some(waited) = self.groups.iter().filter(inside).map(|group| group.waited).min() else { return };
        self.groups.retain(|group| group.mask & mask == 0);
        self.groups.push(Group { mask, view: view.clone(), waited });
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
            let same = |old: &&mut Group| Arc::ptr_eq(&old.view, &group.view) && old.waited == group.waited;
            match merged.iter_mut().find(same) {
                Some(old) => old.mask |= group.mask,
                None => merged.push(group),
            }
        }
        self.groups = merged;
    }

    /// Each of the lanes learns of its own committed copies, the last `pending` batches excepted.
    pub fn wait(&mut self, mask: u32, pending: u32, site: Site) {
        for (mask, batch) in self.copies.complete(mask, pending) {
            self.copies.finish(mask, batch, Waited { site, mask, batch, time: self.time });
            self.split(mask);
            for group in self.groups.iter_mut().filter(|group| group.mask & mask != 0) {
                group.waited = group.waited.max(batch);
            }
        }
        self.coalesce();
    }

    /// Does a lane know what a lane of `row`, the row of a warp's lanes, did up to `time`?
    pub fn knows(&self, lane: u8, row: Row, other: u8, time: u32) -> bool {
        let own = row == self.lanes_row() && lane == other;
        let group = self.groups.iter().find(|group| group.mask >> lane & 1 == 1);
        own || group.is_some_and(|group| group.view.unknown(row, time, 1 << other) == 0)
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
    clock: Option<Clock>,
    /// The view joined last: warps that left a barrier together share one.
    last: Option<Arc<Clock>>,
}

impl Handover {
    fn join(&mut self, view: &Arc<Clock>) -> &mut Clock {
        let clock = self.clock.get_or_insert_with(|| (**view).clone());
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, view)) {
            clock.join(view);
            self.last = Some(view.clone());
        }
        clock
    }

    pub fn finish(self) -> Option<Arc<Clock>> {
        self.clock.map(Arc::new)
    }
}

#[derive(Clone, Copy)]
struct Commit {
    mask: u32,
    batch: u32,
}

/// Copies that one instruction started.
#[derive(Clone, Copy)]
pub struct Flight {
    pub mask: u32,
    pub batch: u32,
    pub site: Site,
    /// The warp's time at the start.
    pub time: u32,
}

/// A wait by lanes that covered their copies up to a batch.
#[derive(Clone, Copy)]
pub struct Waited {
    pub site: Site,
    /// The warp's time: releases from then on carry the copies.
    pub time: u32,
    mask: u32,
    batch: u32,
}

/// What became of a copy, as far as its issuing lane is concerned.
pub enum State {
    Open,
    Committed { later: u32 },
    Waited(Option<Waited>),
}

/// The `cp.async` copies of a warp's lanes. A batch is what lies between two commits by any lanes of the warp; a lane's
/// group may span several batches, and ends with the batch that the lane committed.
#[derive(Clone, Default)]
pub struct Copies {
    pub batch: u32,
    /// Commits not yet waited for, oldest first.
    commits: Vec<Commit>,
    /// Those that their lanes have not waited for.
    pub flights: Vec<Flight>,
    /// The last ones that were waited for.
    landed: VecDeque<Flight>,
    waits: VecDeque<Waited>,
}

impl Copies {
    pub fn issue(&mut self, mask: u32, site: Site, time: u32) {
        let batch = self.batch;
        match self.flights.last_mut().filter(|last| (last.batch, last.site, last.time) == (batch, site, time)) {
            Some(last) => last.mask |= mask,
            None => self.flights.push(Flight { mask, batch, site, time }),
        }
    }

    /// The warp's time when the lane last started a copy at this site in this batch, if that is remembered.
    pub fn start(&self, lane: u8, batch: u32, site: Site) -> Option<u32> {
        let of_lane = |flight: &&Flight| (flight.batch, flight.site) == (batch, site) && flight.mask >> lane & 1 == 1;
        self.flights.iter().chain(&self.landed).filter(of_lane).map(|flight| flight.time).max()
    }

    pub fn commit(&mut self, mask: u32) {
        self.commits.push(Commit { mask, batch: self.batch });
        self.batch += 1;
    }

    /// Which lanes find which of their batches complete when all but their last `pending` groups are.
    fn complete(&self, mask: u32, pending: u32) -> Vec<(u32, u32)> {
        let (mut left, mut rest, mut complete) = ([pending; 32], mask, Vec::new());
        for commit in self.commits.iter().rev() {
            let done =
                bits(commit.mask & rest).filter(|lane| left[*lane as usize] == 0).fold(0, |m, lane| m | 1 << lane);
            bits(commit.mask & rest & !done).for_each(|lane| left[lane as usize] -= 1);
            if done != 0 {
                complete.push((done, commit.batch));
                rest &= !done;
            }
        }
        complete
    }

    fn finish(&mut self, mask: u32, batch: u32, wait: Waited) {
        self.commits.iter_mut().filter(|commit| commit.batch <= batch).for_each(|commit| commit.mask &= !mask);
        self.commits.retain(|commit| commit.mask != 0);
        for flight in self.flights.iter_mut().filter(|flight| flight.batch <= batch && flight.mask & mask != 0) {
            remember(&mut self.landed, Flight { mask: flight.mask & mask, ..*flight });
            flight.mask &= !mask;
        }
        self.flights.retain(|flight| flight.mask != 0);
        remember(&mut self.waits, wait);
    }

    pub fn is_committed(&self, lane: u8, batch: u32) -> bool {
        self.commits.iter().any(|commit| commit.batch >= batch && commit.mask >> lane & 1 == 1)
    }

    pub fn state(&self, lane: u8, batch: u32) -> State {
        if !self.flights.iter().any(|flight| flight.batch == batch && flight.mask >> lane & 1 == 1) {
            let covers = |wait: &&Waited| wait.batch >= batch && wait.mask >> lane & 1 == 1;
            return State::Waited(self.waits.iter().find(covers).copied());
        }
        let own = self.commits.iter().filter(|commit| commit.batch >= batch && commit.mask >> lane & 1 == 1);
        match own.count() {
            0 => State::Open,
            groups => State::Committed { later: groups as u32 - 1 },
        }
    }
}
