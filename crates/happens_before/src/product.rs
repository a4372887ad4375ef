//! `wgmma`: a warpgroup's products read their operands in shared memory through the async proxy.
//!
//! Each warp's part is judged when that warp executes it. The manual does not say which lane reads which byte, so every
//! live lane of the warp must follow what is read. A group of products is the warpgroup's: who has waited for it vouches
//! for all four warps, and must not return before all of them have committed it.

use super::actor::{Actor, Quick};
use super::bulk::{Stretch, needed};
use super::fault::Batch;
use super::mark::{Access, Item};
use super::touch::touch_range;
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
        self.warps[at.warp as usize].products += 1;
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

    /// How far the warpgroup that begins with a warp had brought a product.
    pub(super) fn product(&self, item: &Item, first: u32) -> Batch {
        let members = || self.warps[first as usize..].iter().take(4);
        let of_group = |index: u32| u32::from(self.rows.products(index)) == item.name;
        let knows = |warp: &super::Warp| {
            warp.groups.iter().any(|group| item.time <= group.view.seen.floor(item.name as super::clock::Row))
        };
        let mut same = members().zip(first..).filter(|(_, index)| of_group(*index)).map(|(warp, _)| warp);
        if same.clone().any(knows) {
            return Batch::Waited { site: None };
        }
        match same.next().map_or(0, |warp| warp.products.saturating_sub(item.time)) {
            0 => Batch::Open,
            groups => Batch::Committed { wait_group: groups - 1 },
        }
    }
}
