//! The barriers of a block: whoever waits there learns what all who came had done.

use super::warp::{Handover, Meeting};
use super::{Detector, Lanes, Means, Site};

/// The open generation of a barrier, and who came to the one before.
#[derive(Clone, Default)]
pub struct Barrier {
    generation: u32,
    arrived: Handover,
    here: Vec<Visit>,
    before: Vec<Visit>,
    /// The warps that waited in the generation before: a bit for each, by its number modulo 64. A block has at most 32.
    waited: u64,
}

/// Lanes that came to a barrier, and the time of their warp.
#[derive(Clone, Copy)]
struct Visit {
    at: Lanes,
    site: Site,
    time: u32,
}

impl Detector {
    /// Lanes arrive at a CTA barrier, whether they wait (`bar.sync`, `bar.red`) or not (`bar.arrive`).
    pub fn barrier_arrive(&mut self, at: Lanes, site: Site, id: u32) {
        if self.idle {
            return;
        }
        let warp = &mut self.warps[at.warp as usize];
        let mask = at.mask & warp.live;
        let barrier = self.barriers.entry(id).or_default();
        let meeting = Meeting::Barrier { id, generation: barrier.generation };
        barrier.here.push(Visit { at, site, time: warp.time });
        warp.release(mask, site, meeting, &mut barrier.arrived);
        self.published(Lanes { mask, ..at }, site, Means::Barrier { id });
    }

    /// The barrier's generation is complete: those who waited since their arrival go on, the next generation begins.
    pub fn barrier_complete(&mut self, id: u32, waiters: &[Lanes]) {
        if self.idle {
            return;
        }
        let barrier = self.barriers.entry(id).or_default();
        barrier.generation += 1;
        barrier.waited = waiters.iter().fold(0, |all, at| all | 1 << (at.warp % 64));
        std::mem::swap(&mut barrier.here, &mut barrier.before);
        barrier.here.clear();
        if let Some(view) = std::mem::take(&mut barrier.arrived).finish() {
            for at in waiters {
                let (warp, mask) = self.warp(*at);
                warp.acquire(mask, &view);
            }
        }
    }

    /// Asked before lanes come to a barrier: somebody who came to the generation before, and of whom they know nothing.
    /// Had these lanes been faster, the two would have met. Of several, one that came from another statement.
    pub fn stranger_at_barrier(&self, at: Lanes, site: Site, id: u32) -> Option<(Lanes, Site)> {
        let barrier = self.barriers.get(&id).filter(|barrier| barrier.waited >> (at.warp % 64) & 1 == 0)?;
        let (warp, lane) = (&self.warps[at.warp as usize], at.mask.trailing_zeros() as u8);
        let unknown = |visit: &&Visit| {
            let row = self.warps[visit.at.warp as usize].lanes_row();
            visit.at.warp != at.warp && !warp.knows(lane, row, visit.at.mask.trailing_zeros() as u8, visit.time)
        };
        let strangers = barrier.before.iter().filter(unknown);
        let visit = strangers.min_by_key(|visit| (visit.site == site, visit.site, visit.at.warp))?;
        Some((visit.at, visit.site))
    }
}
