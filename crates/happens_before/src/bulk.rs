//! Bulk copies: accesses by the async proxy to ranges of memory, on behalf of the lane that issues them.

use std::ops::Range;

use super::actor::{Actor, Quick};
use super::mark::{Access, Sharers};
use super::proxy;
use super::scope::Scope;
use super::touch::{touch_elements, touch_range};
use super::view::Cover;
use super::warp::Track;
use super::{Detector, Lanes, Site, Space, block_of};

/// Bytes that lie one behind the other.
pub type Stretch = (Space, Range<u64>);

/// What a bulk copy touches.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bulk<'a> {
    pub reads: &'a [Stretch],
    pub writes: &'a [Stretch],
    /// The address of the descriptor in global memory, if the copy reads one that threads may write.
    pub map: Option<u64>,
    /// `cp.reduce.async.bulk`: the bytes of an element that is read and written as a relaxed atomic.
    pub element: Option<u32>,
}

impl Detector {
    /// A bulk copy by one lane of which the mbarrier at `barrier` will tell. A multicast is one call for each destination
    /// block, with that block's mbarrier.
    pub fn bulk_load(&mut self, at: Lanes, site: Site, barrier: u64, bulk: &Bulk) {
        if self.idle {
            return;
        }
        let (row, time) = self.issue_load(at, site, barrier);
        let read = Access { asynchronous: true, ..Access::weak(row, time, site.0, false) };
        self.bulk(at, bulk, read, Access { write: true, ..read });
    }

    /// `st.async`: one lane's store into another block, of which the mbarrier there will tell. Generic proxy.
    pub fn remote_store(&mut self, at: Lanes, site: Site, barrier: u64, to: Stretch) {
        if self.idle {
            return;
        }
        let (row, time) = self.issue_load(at, site, barrier);
        let write = Access::weak(row, time, site.0, true);
        let bulk = Bulk { writes: &[to], ..Bulk::default() };
        self.bulk(at, &bulk, Access { write: false, ..write }, write);
    }

    /// A bulk copy by one lane of which its bulk group tells. Whether its source may be written again and whether its
    /// destination may be used are told apart.
    pub fn bulk_store(&mut self, at: Lanes, site: Site, bulk: &Bulk) {
        if self.idle {
            return;
        }
        let (warp, mask) = self.warp(at);
        let started = warp.time;
        let [read, write] = [Track::StoreReads, Track::StoreWrites].map(|track| {
            warp.track_mut(track).issue(mask, site, started);
            let (row, time) = (warp.track_row(track), warp.track(track).batch);
            Access { asynchronous: true, ..Access::weak(row, time, site.0, track == Track::StoreWrites) }
        });
        let strong = bulk.element.map(|_| Sharers { scope: Scope::Gpu, block: warp.block as u8 });
        self.bulk(at, bulk, read, Access { strong, ..write });
    }

    /// A bulk copy that will not be, because of its descriptor: reading that is all it does.
    pub fn refuse_bulk(&mut self, at: Lanes, site: Site, map: u64) {
        if self.idle {
            return;
        }
        self.forget_hits();
        let (warp, _) = self.warp(at);
        let read = Access { asynchronous: true, ..Access::weak(warp.lanes_row(), warp.time, site.0, false) };
        self.read_map(at, map, read);
    }

    /// `cp.async.bulk.commit_group`.
    pub fn bulk_commit(&mut self, at: Lanes) {
        if self.idle {
            return;
        }
        let (warp, mask) = self.warp(at);
        [Track::StoreReads, Track::StoreWrites].iter().for_each(|track| warp.track_mut(*track).commit(mask));
    }

    /// `cp.async.bulk.wait_group`; with `.read` only the sources are done with.
    pub fn bulk_wait(&mut self, at: Lanes, site: Site, pending: u32, read_only: bool) {
        if self.idle {
            return;
        }
        let (warp, mask) = self.warp(at);
        warp.wait(Track::StoreReads, mask, pending, site);
        if !read_only {
            warp.wait(Track::StoreWrites, mask, pending, site);
        }
    }

    fn bulk(&mut self, at: Lanes, bulk: &Bulk, read: Access, write: Access) {
        self.forget_hits();
        // Whether the block is still there when the bytes come, its wait for the phase tells.
        for (_, range) in bulk.writes.iter().filter(|(space, _)| *space == Space::Shared) {
            self.expect_started(at, Site(write.site), block_of(range.start));
        }
        if let Some(map) = bulk.map {
            self.read_map(at, map, read);
        }
        bulk.reads.iter().for_each(|stretch| self.engine_touch(at, read, stretch, None));
        for stretch in bulk.writes {
            self.engine_touch(at, write, stretch, bulk.element);
            self.words[stretch.0 as usize].erase(stretch.1.start, stretch.1.end - stretch.1.start);
        }
    }

    fn engine_touch(&mut self, at: Lanes, access: Access, (space, range): &Stretch, element: Option<u32>) {
        let lane = at.mask.trailing_zeros() as u8;
        let Some((name, access)) = self.named(at.warp, *space, access) else { return };
        let warp = &mut self.warps[at.warp as usize];
        warp.touch(at.mask & warp.live);
        let members = self.names.in_space(*space);
        let (warp, shadow) = (&*warp, &mut self.shadows[*space as usize]);
        let Some(group) = warp.group(lane) else { return };
        let needed = access.asynchronous.then_some(needed(*space, range.start));
        let actor = Actor { needed, detached: true, name, members, ..warp.actor(group) };
        let start = shadow.hits.len();
        match element {
            Some(bytes) => touch_elements(shadow, &actor, &access, lane, range, bytes.into()),
            None => touch_range(shadow, &mut Quick::new(&actor), &access, lane, range),
        }
        self.report_since(at.warp, access, *space, start);
    }

    /// The descriptor's writes must have been released to the tensormap proxy and acquired from it on the way here.
    fn read_map(&mut self, at: Lanes, map: u64, access: Access) {
        let lane = at.mask.trailing_zeros() as u8;
        let Some((name, access)) = self.named(at.warp, Space::Global, access) else { return };
        let warp = &self.warps[at.warp as usize];
        let Some(group) = warp.group(lane) else { return };
        let view = group.view.with_only(Cover::TensorMap, self.maps.acquired(map, warp, lane));
        let own = group.own.unfenced();
        let (needed, members) = (Some(Cover::TensorMap), self.names.in_space(Space::Global));
        let actor = Actor { view: &view, own: &own, needed, detached: true, name, members, ..warp.actor(group) };
        let shadow = &mut self.shadows[Space::Global as usize];
        let start = shadow.hits.len();
        touch_range(shadow, &mut Quick::new(&actor), &access, lane, &(map..map + proxy::DESCRIPTOR));
        self.report_since(at.warp, access, Space::Global, start);
    }
}

/// The proxy fence that makes threads' accesses at an address fit for the async proxy.
pub fn needed(space: Space, address: u64) -> Cover {
    match space {
        Space::Shared => Cover::Cluster(block_of(address)),
        Space::Global => Cover::Global,
    }
}
