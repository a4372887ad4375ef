//! Grids that may still run. Whoever has waited for them, or follows somebody who has, follows all they did: they are
//! complete, and what they did is visible to the whole grid, whichever proxy it is seen through. PTX ISA,
//! "griddepcontrol". What was seen of them without that is luck, and orders nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::event::Event;
use super::found::Faulty;
use super::graph::Id;
use super::memory::Past;
use super::oracle::Oracle;
use crate::actor::Gap;
use crate::{Detector, Lanes, Scope, Site, Space, Unit};

/// Who made an access of an earlier grid, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    cluster: u32,
    /// In its cluster. The detector does not know who issued a load of another one.
    warp: Option<u32>,
    lane: u8,
    site: Site,
    write: bool,
}

/// One access to the bytes of a piece; start, size and proxy if it may share them with strong ones of any grid.
#[derive(Clone, Copy)]
struct Prior {
    who: Who,
    shared: Option<(u64, u32, bool)>,
}

impl Past {
    fn shared(&self) -> Option<(u64, u32, bool)> {
        let strong = self.strong.filter(|(_, _, scope, _)| *scope == Scope::Gpu);
        strong.map(|(start, bytes, ..)| (start, bytes, self.asynchronous))
    }
}

/// All accesses of a grid to global memory, by where their pieces begin.
#[derive(Default)]
pub struct Accesses(BTreeMap<u64, Vec<Prior>>);

impl Accesses {
    /// Adds those of clusters that are numbered from `first` on.
    pub fn add(&mut self, first: u32, oracle: &Oracle) {
        let warps = oracle.warps_per_block * oracle.blocks_per_cluster;
        for ((_, start), history) in oracle.history.range((Space::Global, 0)..) {
            let prior = |past: &Past| {
                let Past { warp, lane, site, write, .. } = *past;
                let who = Who { cluster: first + warp / warps, warp: Some(warp % warps), lane, site, write };
                Prior { who, shared: past.shared() }
            };
            self.0.entry(*start).or_default().extend(history.all.iter().map(prior));
        }
    }

    /// Of a grid that lets nobody start before its blocks have ended: what it reads it has read.
    pub fn of_ended_blocks(mut self) -> Accesses {
        self.0.values_mut().for_each(|all| all.retain(|prior| prior.who.write));
        self
    }
}

/// A grid that this one may overlap with, and the operation that completes it.
#[derive(Clone)]
pub struct Earlier {
    complete: Id,
    accesses: Rc<Accesses>,
}

/// An access to bytes of a grid that may still run.
#[derive(Clone, Debug)]
pub struct Early {
    grid: usize,
    bytes: Range<u64>,
    /// Who touched the first of them.
    first: Who,
    second_lane: u8,
}

impl Oracle {
    pub fn begin_behind(&mut self, grids: &[Rc<Accesses>]) {
        for accesses in grids {
            let complete = self.start(0);
            self.earlier.push(Earlier { complete, accesses: accesses.clone() });
        }
    }

    pub fn wait_for_grids(&mut self, at: Lanes) {
        let complete: Vec<Id> = self.earlier.iter().map(|grid| grid.complete).collect();
        self.live(at).into_iter().for_each(|lane| self.learn(at.warp, lane, &complete));
    }

    /// Notes all conflicting accesses of earlier grids to a piece that this access does not follow.
    pub fn note_early(&mut self, now: &Past, piece: &Range<u64>) {
        for (number, grid) in self.earlier.iter().enumerate() {
            if self.follows(now.node, grid.complete) {
                continue;
            }
            let morally_strong = |prior: &Prior| prior.shared.is_some() && prior.shared == now.shared();
            let conflicts = |prior: &&Prior| (prior.who.write || now.write) && !morally_strong(prior);
            let priors = grid.accesses.0.get(&piece.start).into_iter().flatten().filter(conflicts);
            let early = |prior: &Prior| {
                let (bytes, first, second_lane) = (piece.clone(), prior.who, now.lane);
                Early { grid: number, bytes, first, second_lane }
            };
            self.early.extend(priors.map(early));
        }
    }
}

impl Early {
    /// What the event that the detector has just executed touched too early.
    pub fn by(detector: &Detector, event: &Event) -> Vec<Early> {
        if event.accessing().is_none() {
            return vec![];
        }
        let found = detector.shadows[Space::Global as usize].earlier.found.iter();
        let early = found.map(|one| {
            let first = &one.first;
            let (lane, warp) = (first.lane_at(first.start), (first.unit != Unit::Load).then_some(first.warp));
            let who = Who { cluster: first.cluster, warp, lane, site: first.site, write: one.wrote };
            Early { grid: one.grid, bytes: first.start..first.end(), first: who, second_lane: one.lane }
        });
        early.collect()
    }

    /// Does the definition know this pair, at the first byte?
    fn is(&self, known: &Early) -> bool {
        let first = Who { warp: self.first.warp.and(known.first.warp), ..known.first };
        (known.grid, known.second_lane) == (self.grid, self.second_lane)
            && known.bytes.contains(&self.bytes.start)
            && first == self.first
    }
}

/// Do both see the same bytes as touched too early, and is every pair that the detector names one?
pub fn agree_early(expected: &[Early], found: &[Early]) -> Result<Faulty, String> {
    let bytes = |all: &[Early]| -> BTreeSet<(usize, u64)> {
        all.iter().flat_map(|one| one.bytes.clone().map(|byte| (one.grid, byte))).collect()
    };
    if let Some(one) = found.iter().find(|one| !expected.iter().any(|known| one.is(known))) {
        return Err(format!("no such access to bytes of an earlier grid as {one:x?}"));
    }
    let (expected, found) = (bytes(expected), bytes(found));
    if found != expected {
        return Err(format!("found to be of earlier grids {found:x?}, expected {expected:x?}"));
    }
    Ok(expected.into_iter().map(|(grid, byte)| ((Some(grid), Space::Global, byte), Gap::Order)).collect())
}
