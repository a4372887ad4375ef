//! What is left when threads have exited: copies, stores and loads that nobody waited for.

use super::clock::bits;
use super::copies::State;
use super::warp::Track;
use super::{Detector, Site};

/// What would have told of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waitable {
    /// A group of `cp.async` copies.
    Copies { committed: bool },
    /// A bulk group, for the sources of its stores.
    Stores { committed: bool },
    /// A phase of an mbarrier.
    Phase { barrier: u64, phase: u32 },
}

/// Operations of some lanes that nobody waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfinished {
    pub warp: u32,
    pub mask: u32,
    pub site: Site,
    pub by: Waitable,
}

impl Detector {
    /// `cp.async` copies that their lanes have not waited for.
    pub fn unfinished_copies(&self) -> Vec<Unfinished> {
        self.unfinished(Track::Copies, |committed| Waitable::Copies { committed })
    }

    /// Bulk stores whose sources may still be read, for all that their lanes know.
    pub fn unfinished_stores(&self) -> Vec<Unfinished> {
        self.unfinished(Track::StoreReads, |committed| Waitable::Stores { committed })
    }

    /// Copies of which an mbarrier tells, and whose phase nobody has waited for.
    pub fn unfinished_loads(&self) -> Vec<Unfinished> {
        let left = self.mbarriers.unwaited().map(|(one, batch)| {
            let copies = self.warps[one.warp as usize].track(Track::Copies);
            let waited = |lane: &u8| batch.is_some_and(|batch| matches!(copies.state(*lane, batch), State::Waited(_)));
            let mask = bits(one.mask).filter(|lane| !waited(lane)).fold(0, |mask, lane| mask | 1 << lane);
            Unfinished { mask, ..one }
        });
        left.filter(|one| one.mask != 0).collect()
    }

    fn unfinished(&self, track: Track, by: impl Fn(bool) -> Waitable) -> Vec<Unfinished> {
        let mut all = vec![];
        for (warp, index) in self.warps.iter().zip(0..) {
            for flight in &warp.track(track).flights {
                let is_committed = |lane: &u8| warp.track(track).is_committed(*lane, flight.batch);
                let committed = bits(flight.mask).filter(is_committed).fold(0, |mask, lane| mask | 1 << lane);
                for (mask, committed) in [(committed, true), (flight.mask & !committed, false)] {
                    all.push(Unfinished { warp: index, mask, site: flight.site, by: by(committed) });
                }
            }
        }
        all.retain(|one| one.mask != 0);
        all
    }
}
