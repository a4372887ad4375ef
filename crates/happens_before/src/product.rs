//! `wgmma`: a warpgroup's products read their operands in shared memory through the async proxy.
//!
//! Each warp's part is judged when that warp executes it. The manual does not say which lane reads which byte, so every
//! live lane of the warp must follow what is read. A group of products is the warpgroup's: who has waited for it vouches
//! for all four warps, and must not return before all of them have committed it.

use std::collections::VecDeque;

use super::actor::{Actor, Quick};
use super::bulk::{Stretch, needed};
use super::clock::Row;
use super::fault::{Batch, Party};
use super::mark::{Access, Item};
use super::touch::touch_range;
use super::warp::remember;
use super::{Detector, Lanes, Site, Space};

/// When a warp started a product.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Start {
    group: u32,
    site: Site,
    /// The warp's time.
    time: u32,
}

/// What a warp has done of its warpgroup's products.
#[derive(Clone)]
pub struct Products {
    /// The group that its next `wgmma` belongs to.
    group: u32,
    starts: VecDeque<Start>,
}

impl Default for Products {
    /// Group 0 is "nothing".
    fn default() -> Products {
        Products { group: 1, starts: VecDeque::new() }
    }
}

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
        let start = Start { group: warp.products.group, site, time: warp.time };
        if warp.products.starts.back() != Some(&start) {
            remember(&mut warp.products.starts, start);
        }
        let access = Access { asynchronous: true, ..Access::weak(row, start.group, site.0, false) };
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
        self.warps[at.warp as usize].products.group += 1;
    }

    /// `wgmma.wait_group` by one warp, when all warps of the warpgroup have committed the groups it waits for.
    pub fn wgmma_wait(&mut self, at: Lanes, pending: u32) {
        if self.idle {
            return;
        }
        let row = self.rows.products(at.warp);
        let (warp, mask) = self.warp(at);
        let time = warp.products.group.saturating_sub(1 + pending);
        warp.learn(mask, |view| view.seen.raise(row, u32::MAX, time));
    }

    /// How far the warpgroup that begins with a warp had brought a product. Who knows of its start and not of its end was
    /// told too early, whether or not the warpgroup has waited since.
    pub(super) fn product(&self, item: &Item, first: u32, other: &Party) -> Batch {
        if !self.knows_product(item, first, other) {
            return Batch::Unseen;
        }
        match self.warps[first as usize].products.group.saturating_sub(item.time) {
            0 => Batch::Open,
            groups => Batch::Committed { wait_group: groups - 1 },
        }
    }

    /// Does the party know that a warp of the warpgroup started the product? One too old to be remembered counts as known.
    fn knows_product(&self, item: &Item, first: u32, party: &Party) -> bool {
        let members = (first..).zip(&self.warps[first as usize..]).take(4);
        let mut starts = members.filter_map(|(index, warp)| {
            let fits = |start: &&Start| (start.group, start.site) == (item.time, Site(item.site));
            Some((index, warp.lanes_row(), warp.products.starts.iter().find(fits)?.time))
        });
        let view = self.warps[party.warp as usize].group(party.lane).map(|group| &group.view.seen);
        let knows = |(index, row, time): (u32, Row, u32)| {
            index == party.warp || view.is_some_and(|seen| seen.unknown(row, time, u32::MAX) != u32::MAX)
        };
        let remembered = starts.clone().next().is_some();
        !remembered || starts.any(knows)
    }
}
