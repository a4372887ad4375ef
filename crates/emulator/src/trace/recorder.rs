//! What happened in one cluster, as slices on tracks and arrows between them.

use crate::async_engines::Number;
use serde_json::Value;
use std::collections::BTreeMap;

/// Instructions of the cluster's warps so far, and landings.
pub type Time = u64;

/// The place of a slice in its recorder.
pub type SliceId = usize;

/// Where a slice is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Track {
    /// A warp, numbered through the cluster.
    Warp(usize),
    /// Copies that warps of the block with this rank started.
    Copies(usize),
    /// Products of warpgroups of the block with this rank.
    Products(usize),
}

#[derive(Clone, Debug)]
pub struct Slice {
    pub track: Track,
    pub start: Time,
    /// None while it lasts.
    pub end: Option<Time>,
    pub name: String,
    pub details: Vec<(&'static str, Value)>,
}

impl Slice {
    pub fn new(track: Track, start: Time, name: impl Into<String>) -> Slice {
        Slice { track, start, end: None, name: name.into(), details: vec![] }
    }

    pub fn detail(mut self, name: &'static str, value: impl Into<Value>) -> Slice {
        self.details.push((name, value.into()));
        self
    }
}

/// One slice led to another.
#[derive(Clone, Copy, Debug)]
pub struct Arrow {
    pub name: &'static str,
    pub from: (SliceId, Time),
    pub to: (SliceId, Time),
}

/// What a warp is at.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The slice of its run, with the first statement and the warp's own clock at its start.
    pub run: Option<Run>,
    /// The slice of its wait.
    pub wait: Option<SliceId>,
    /// Where lanes exited last.
    pub exit: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub slice: SliceId,
    pub first: u32,
    pub steps: u64,
}

/// Keeps the slices of one cluster, up to a limit.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    pub slices: Vec<Slice>,
    pub arrows: Vec<Arrow>,
    /// Something was left out, since there was too much.
    pub cut: bool,
    limit: usize,
    /// Landings so far.
    pub ticks: Time,
    /// By warp.
    pub courses: Vec<Course>,
    /// The warp that runs.
    pub running: Option<usize>,
    /// The bulk operations in flight.
    flights: BTreeMap<Number, SliceId>,
    /// One `cp.async` of one warp each: its slice, and how many lanes' copies are still in flight.
    batches: Vec<(SliceId, usize)>,
    /// What lands now, and what it is known to be: a signal is told by the copies that it waited for.
    landing: Option<Option<SliceId>>,
    /// Groups of products, by the first warp of their warpgroup and their number.
    groups: BTreeMap<(usize, u64), SliceId>,
    /// By warp, the groups that it has waited for.
    waited: BTreeMap<usize, u64>,
}

impl Recorder {
    /// `limit`: most events that are kept.
    pub fn new(warps: usize, limit: usize) -> Recorder {
        Recorder { courses: vec![Course::default(); warps], limit, ..Recorder::default() }
    }

    /// A slice begins; none if there is no room for it.
    pub fn open(&mut self, slice: Slice) -> Option<SliceId> {
        // An arrow is two events.
        self.cut |= self.slices.len() + 2 * self.arrows.len() >= self.limit;
        if self.cut {
            return None;
        }
        self.slices.push(slice);
        Some(self.slices.len() - 1)
    }

    pub fn close(&mut self, slice: SliceId, now: Time) {
        self.slices[slice].end = Some(now);
    }

    /// `from` led to `to`, by what ended just now.
    pub fn connect(&mut self, name: &'static str, from: Option<SliceId>, to: Option<SliceId>, now: Time) {
        if let (Some(from), Some(to), false) = (from, to, self.cut) {
            self.arrows.push(Arrow { name, from: (from, now.saturating_sub(1)), to: (to, now) });
        }
    }

    /// The slice of the warp that runs.
    pub fn run_slice(&self, warp: usize) -> Option<SliceId> {
        self.courses[warp].run.map(|run| run.slice)
    }

    /// Who is to thank for what happens now: the operation that lands, else the warp that runs.
    pub fn cause(&self) -> Option<SliceId> {
        match self.landing {
            Some(landing) => landing,
            None => self.run_slice(self.running?),
        }
    }

    /// A warp issues an operation, whose slice begins.
    pub fn issue(&mut self, warp: usize, slice: Slice) -> Option<SliceId> {
        let (from, now) = (self.run_slice(warp), slice.start);
        let slice = self.open(slice);
        self.connect("issues", from, slice, now);
        slice
    }

    pub fn depart(&mut self, number: Number, slice: Option<SliceId>) {
        self.flights.extend(slice.map(|slice| (number, slice)));
    }

    /// From now on, what happens is the work of this operation. Landing takes time.
    pub fn begin_landing(&mut self, number: Number, now: Time) {
        self.ticks += 1;
        let slice = self.flights.remove(&number);
        slice.into_iter().for_each(|slice| self.close(slice, now + 1));
        self.landing = Some(slice);
    }

    pub fn end_landing(&mut self) {
        self.landing = None;
    }

    /// Copies of so many lanes have started together; returns by which number they say that they have landed.
    pub fn start_batch(&mut self, slice: Option<SliceId>, lanes: usize) -> Option<u32> {
        self.batches.push((slice?, lanes));
        Some(self.batches.len() as u32 - 1)
    }

    /// One lane's copy has landed; the slice ends with the last.
    pub fn land_one(&mut self, batch: u32, now: Time) {
        let Some((slice, left)) = self.batches.get_mut(batch as usize) else { return };
        let slice = *slice;
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.close(slice, now);
        }
        if let Some(landing) = &mut self.landing {
            *landing = Some(slice);
        }
    }

    /// A warp adds a product to a group of its warpgroup; the first one of all opens the slice.
    pub fn multiply(&mut self, (warpgroup, group): (usize, u64), warp: usize, slice: Slice) {
        match self.groups.get(&(warpgroup, group)) {
            Some(known) if warp == warpgroup => {
                let products = self.slices[*known].details.iter_mut().find(|(name, _)| *name == "products");
                products.into_iter().for_each(|(_, count)| *count = (count.as_u64().unwrap_or(0) + 1).into());
            }
            Some(_) => {}
            None => {
                let products = u64::from(warp == warpgroup);
                let slice = self.issue(warp, slice.detail("products", products));
                self.groups.extend(slice.map(|slice| ((warpgroup, group), slice)));
            }
        }
    }

    /// A warp has waited for the groups below `until`; a slice ends with the last warp that does.
    pub fn wait_for_groups(&mut self, warpgroup: usize, warp: usize, until: u64, now: Time) {
        let from = self.waited.insert(warp, until).unwrap_or(0);
        for group in from..until {
            let slice = self.groups.get(&(warpgroup, group)).copied();
            slice.into_iter().for_each(|slice| self.close(slice, now));
        }
    }

    /// What still lasts when the cluster ends, ends with it.
    pub fn finish(&mut self, now: Time) {
        for slice in self.slices.iter_mut().filter(|slice| slice.end.is_none()) {
            slice.end = Some(now);
            slice.details.push(("unfinished", true.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(start: Time) -> Slice {
        Slice::new(Track::Copies(0), start, "copy")
    }

    #[test]
    fn what_finds_no_room_is_left_out_and_said_so() {
        let mut recorder = Recorder::new(1, 3);
        let first = recorder.open(slice(0));
        recorder.connect("issues", first, first, 0);
        assert!(!recorder.cut);
        assert_eq!(recorder.open(slice(1)), None);
        assert!(recorder.cut);
        recorder.connect("issues", first, first, 1);
        assert_eq!((recorder.slices.len(), recorder.arrows.len()), (1, 1));
    }

    #[test]
    fn a_batch_ends_with_its_last_copy() {
        let mut recorder = Recorder::new(1, 10);
        let slice = recorder.open(slice(0));
        let batch = recorder.start_batch(slice, 2).unwrap();
        recorder.land_one(batch, 5);
        assert_eq!(recorder.slices[0].end, None);
        recorder.land_one(batch, 7);
        assert_eq!(recorder.slices[0].end, Some(7));
    }

    #[test]
    fn a_group_of_products_ends_with_the_last_warp_that_waits() {
        let mut recorder = Recorder::new(4, 10);
        (0..4).for_each(|warp| recorder.multiply((0, 0), warp, slice(warp as Time)));
        assert_eq!(recorder.slices.len(), 1);
        recorder.wait_for_groups(0, 2, 1, 10);
        recorder.wait_for_groups(0, 1, 1, 12);
        recorder.wait_for_groups(0, 1, 1, 15);
        assert_eq!((recorder.slices[0].start, recorder.slices[0].end), (0, Some(12)));
    }
}
