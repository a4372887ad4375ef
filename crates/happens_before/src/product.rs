//! `wgmma`: a warpgroup's products read their operands in shared memory through the async proxy.
//!
//! Each warp's part is judged when that warp executes it. The manual does not say which lane reads which byte, so every
//! live lane of the warp must follow what is read. A group of products is the warpgroup's: who has waited for it vouches
//! for all four warps, and must not return before all of them have committed it.

use super::actor::{Actor, Quick};
use super::bulk::{Stretch, needed};
use super::fault::{Batch, Party, Published};
use super::mark::{Access, Item};
use super::touch::touch_range;
use super::warp::{Released, Warp};
use super::{Detector, Lanes, Site, Space};

impl Detector {
    /// One warp's part of a `wgmma.mma_async`: its rows of the first operand, and all of the second.
    pub fn wgmma(&mut self, at: Lanes, site: Site, reads: &[Stretch]) {
        if self.idle {
            return;
        }
        self.forget_hits();
        let row = self.rows.products(at.warp);
        let Detector { warps, shadows, .. } = self;
        let warp = &mut warps[at.warp as usize];
        let access = Access { asynchronous: true, ..Access::weak(row, warp.products, site.0, false) };
        warp.touch(at.mask & warp.live);
        warp.begin_part();
        let warp = &*warp;
        for group in warp.groups.iter().filter(|group| group.mask & at.mask != 0) {
            for (space, range) in reads {
                let collective = Some(group.mask & at.mask);
                let needed = Some(needed(*space, range.start));
                let actor = Actor { needed, detached: true, collective, ..warp.actor(group) };
                touch_range(&mut shadows[*space as usize], &mut Quick::new(&actor), &access, 0, range);
            }
        }
        self.report(at.warp, access, Space::Shared);
    }

    /// `wgmma.commit_group` by one warp.
    pub fn wgmma_commit(&mut self, at: Lanes) {
        if self.idle {
            return;
        }
        self.warps[at.warp as usize].commit_part();
    }

    /// `wgmma.wait_group` by one warp, when all warps of the warpgroup have committed the groups it waits for.
    pub fn wgmma_wait(&mut self, at: Lanes, pending: u32) {
        if self.idle {
            return;
        }
        let row = self.rows.products(at.warp);
        let (warp, mask) = self.warp(at);
        let time = warp.products.saturating_sub(1 + pending);
        warp.learn(mask, |view| view.seen.raise(row, u32::MAX, time));
    }

    /// How the second party stands to products of the warpgroup that begins with a warp, and what told it of their start.
    /// Whether the warpgroup had waited for them when the second access ran is luck, and does not count.
    pub(super) fn product(&self, item: &Item, first: u32, second: &Party) -> (Batch, Published) {
        let members = (first..).zip(&self.warps[first as usize..]).take(4);
        let same = members.filter(|(index, _)| u32::from(self.rows.products(*index)) == item.name);
        let parts = same.filter_map(|(_, warp)| Some((warp, warp.part(item.time)?)));
        let Some((warp, part)) = parts.into_iter().find(|(warp, part)| self.knows_any(second, warp, part.start)) else {
            return (Batch::Unseen, Published::InFlight);
        };
        let outside = u32::from(self.rows.products(second.warp)) != item.name;
        let told = if outside { self.last_known(second, warp, part.start) } else { None };
        let until = told.map_or(u32::MAX, |release| release.time);
        let batch = match warp.committed(item.time, until) {
            0 => Batch::Open,
            groups => Batch::Committed { wait_group: groups - 1 },
        };
        (batch, told.map_or(Published::InFlight, |release| Published::TooEarly(release.site)))
    }

    /// Does the party know what some lane of a warp did up to a time?
    fn knows_any(&self, party: &Party, warp: &Warp, time: u32) -> bool {
        let knows = |lane| self.warps[party.warp as usize].knows(party.lane, warp.lanes_row(), lane, time);
        (0..32).any(knows)
    }

    /// The last release of a warp, at or after a time, that the party knows of.
    fn last_known<'a>(&self, party: &Party, warp: &'a Warp, since: u32) -> Option<&'a Released> {
        let after = warp.releases.iter().rev().take_while(|release| release.time >= since);
        after.into_iter().find(|release| self.knows_any(party, warp, release.time))
    }
}
