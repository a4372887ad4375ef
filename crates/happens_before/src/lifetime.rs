//! Shared memory of another block lives from that block's start to its exit: an access must follow something that a
//! thread of the block did, and the exit of one of its threads must follow the access.
//!
//! What counts is that one thing happens after the other, not what it makes visible: relaxed barriers are enough.

use std::collections::BTreeMap;

use super::clock::{Row, bits};
use super::view::View;
use super::warp::{Group, Warp};
use super::{Detector, Lanes, Places, Site, block_of};

/// An access to shared memory of a block that need not be there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Absence {
    NotStarted,
    Gone,
}

/// Who accessed whose memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absent {
    pub absence: Absence,
    pub site: Site,
    pub warp: u32,
    pub mask: u32,
    /// The block whose memory it is.
    pub block: u32,
}

/// The last accesses of a warp's lanes to a block that no exit has followed yet.
#[derive(Clone)]
struct Pending {
    mask: u32,
    times: [u32; 32],
    sites: [Site; 32],
}

#[derive(Clone, Default)]
pub struct Lifetimes {
    /// By the accessed block and the accessing warp.
    pending: BTreeMap<(u32, u32), Pending>,
    /// The first example at each site.
    early: BTreeMap<Site, Absent>,
}

impl Detector {
    /// Lanes access shared memory at these addresses, if it belongs to other blocks.
    #[inline]
    pub(super) fn remote_access(&mut self, at: Lanes, site: Site, places: Places, bytes: u32) {
        if self.blocks > 1 {
            self.distributed_access(at, site, places, bytes);
        }
    }

    fn distributed_access(&mut self, at: Lanes, site: Site, places: Places, bytes: u32) {
        let (home, mask) = (self.warps[at.warp as usize].block, at.mask & self.warps[at.warp as usize].live);
        for lane in bits(mask) {
            let block = block_of(places.at(lane, bytes));
            if block != home {
                let one = Lanes { mask: 1 << lane, ..at };
                self.expect_started(one, site, block);
                self.expect_alive(one, site, block);
            }
        }
    }

    /// A lane uses the memory of a block, which must have started.
    pub(super) fn expect_started(&mut self, at: Lanes, site: Site, block: u32) {
        let user = &self.warps[at.warp as usize];
        let Some(group) = user.group(at.mask.trailing_zeros() as u8) else { return };
        let has_begun = |warp: &Warp| warp.block == block && knows_any(&group.view, warp.lanes_row());
        if block != user.block && block < self.blocks && !self.warps.iter().any(has_begun) {
            let absent = Absent { absence: Absence::NotStarted, site, warp: at.warp, mask: at.mask, block };
            let known = self.lifetimes.early.entry(site).or_insert(absent);
            if (known.warp, known.block) == (at.warp, block) {
                known.mask |= at.mask;
            }
        }
    }

    /// Has a statement used the memory of a block that need not have started? What became of that there is luck.
    pub fn is_too_early(&self, site: Site) -> bool {
        self.lifetimes.early.contains_key(&site)
    }

    /// Has any statement?
    pub fn was_too_early(&self) -> bool {
        !self.lifetimes.early.is_empty()
    }

    /// A lane uses the memory of a block, which must not exit before.
    fn expect_alive(&mut self, at: Lanes, site: Site, block: u32) {
        let time = self.warps[at.warp as usize].time;
        let nothing = || Pending { mask: 0, times: [0; 32], sites: [site; 32] };
        let pending = self.lifetimes.pending.entry((block, at.warp)).or_insert_with(nothing);
        let lane = at.mask.trailing_zeros() as usize;
        pending.mask |= at.mask;
        (pending.times[lane], pending.sites[lane]) = (time, site);
    }

    /// Lanes exit: accesses to their block that they know of have found it alive.
    pub(super) fn settle_remote(&mut self, at: Lanes) {
        let Detector { warps, lifetimes, .. } = self;
        let warp = &warps[at.warp as usize];
        for ((_, other), pending) in lifetimes.pending.range_mut((warp.block, 0)..=(warp.block, u32::MAX)) {
            let row = warps[*other as usize].lanes_row();
            for group in warp.groups.iter().filter(|group| group.mask & at.mask != 0) {
                pending.mask = bits(pending.mask)
                    .filter(|lane| !knows(group, row, *lane, pending))
                    .fold(0, |mask, lane| mask | 1 << lane);
            }
        }
    }

    /// Accesses to blocks that had not started, or may have exited. Blocks that have not exited are no news.
    pub fn absences(&self) -> Vec<Absent> {
        let mut all: Vec<Absent> = self.lifetimes.early.values().copied().collect();
        for ((block, warp), pending) in &self.lifetimes.pending {
            let is_over = self.warps.iter().all(|one| one.block != *block || one.live == 0);
            let mut rest = if is_over { pending.mask } else { 0 };
            while rest != 0 {
                let site = pending.sites[rest.trailing_zeros() as usize];
                let same = |lane: &u8| pending.sites[*lane as usize] == site;
                let mask = bits(rest).filter(same).fold(0, |mask, lane| mask | 1 << lane);
                all.push(Absent { absence: Absence::Gone, site, warp: *warp, mask, block: *block });
                rest &= !mask;
            }
        }
        all
    }
}

/// Is anything known that a lane of this row did?
fn knows_any(view: &View, row: Row) -> bool {
    [&view.seen, &view.loose].iter().any(|clock| clock.unknown(row, 1, u32::MAX) != u32::MAX)
}

fn knows(group: &Group, row: Row, lane: u8, pending: &Pending) -> bool {
    let unknown = group.view.seen.unknown(row, pending.times[lane as usize], 1 << lane);
    group.view.loose.unknown(row, pending.times[lane as usize], unknown) == 0
}
