//! Proxy fences: what threads did becomes fit for asynchronous units. PTX ISA, "Proxies".
//!
//! A fence covers what its lanes know, and travels with it. It may thus stand anywhere on the way from the thread's access
//! to the unit's: at the writer before the release, at the issuer after the acquire, or at a third thread in between.

use super::clock::Clock;
use super::view::Cover;
use super::warp::Warp;
use super::{Detector, Lanes, Site};

/// Bytes of a tensor map.
pub const DESCRIPTOR: u64 = 128;

/// The memory that `fence.proxy.async` covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyFence {
    /// No space named: all of them.
    All,
    /// `.shared::cta`: the shared memory of the fencing thread's block.
    SharedBlock,
    /// `.shared::cluster`.
    SharedCluster,
    Global,
}

/// `fence.proxy.tensormap::generic.acquire` by a lane, and what had been released to the tensormap proxy then.
#[derive(Clone)]
struct Acquired {
    map: u64,
    warp: u32,
    lane: u8,
    time: u32,
    released: Clock,
}

#[derive(Clone, Default)]
pub struct TensorMaps {
    acquired: Vec<Acquired>,
}

impl TensorMaps {
    /// What was acquired of a map by those whom the lane follows.
    pub fn acquired(&self, map: u64, warp: &Warp, lane: u8) -> Clock {
        let rows = |index: u32| (index as usize * super::view::ROWS) as super::clock::Row;
        let known = |one: &&Acquired| one.map == map && warp.knows(lane, rows(one.warp), one.lane, one.time);
        let mut all = Clock::default();
        self.acquired.iter().filter(known).for_each(|one| all.join(&one.released));
        all
    }
}

impl Detector {
    /// `fence.proxy.async` by lanes.
    pub fn fence_proxy_async(&mut self, at: Lanes, which: ProxyFence) {
        if self.idle {
            return;
        }
        let alone = self.blocks == 1;
        let block = self.warps[at.warp as usize].block;
        match which {
            ProxyFence::All => self.proxy_fence(at, &[Cover::Shared, Cover::Global]),
            ProxyFence::SharedBlock if !alone => self.proxy_fence(at, &[Cover::Cluster(block)]),
            ProxyFence::SharedBlock | ProxyFence::SharedCluster => self.proxy_fence(at, &[Cover::Shared]),
            ProxyFence::Global => self.proxy_fence(at, &[Cover::Global]),
        }
    }

    /// Lanes go on as if they had executed the fence whose absence was just reported, so that each missing fence is one
    /// finding, not one for every access behind it.
    pub fn heal_missed_fence(&mut self, at: Lanes) {
        if std::mem::take(&mut self.missed_fence) {
            self.fence_proxy_async(at, ProxyFence::All);
        }
    }

    /// `fence.proxy.tensormap::generic.release`, and `tensormap.cp_fenceproxy` after its write.
    pub fn fence_tensormap_release(&mut self, at: Lanes) {
        if self.idle {
            return;
        }
        self.proxy_fence(at, &[Cover::TensorMap]);
    }

    /// `fence.proxy.tensormap::generic.acquire` of the map at an address in global memory.
    pub fn fence_tensormap_acquire(&mut self, at: Lanes, map: u64) {
        if self.idle {
            return;
        }
        let (warp, mask) = self.warp(at);
        let time = warp.time;
        let told = warp.snapshot(mask, Default::default(), Site(0));
        let released: Vec<(u32, Clock)> =
            told.iter().map(|part| (part.mask, warp.told(part, part.mask).covered(Cover::TensorMap))).collect();
        warp.time += 1;
        for (mask, released) in released {
            let lane = mask.trailing_zeros() as u8;
            self.maps.acquired.push(Acquired { map, warp: at.warp, lane, time, released });
        }
    }

    /// Marks all that these lanes know as fenced. What they do later is not.
    pub(super) fn proxy_fence(&mut self, at: Lanes, covers: &[Cover]) {
        let (warp, mask) = self.warp(at);
        let time = warp.time;
        warp.learn(mask, |view| covers.iter().for_each(|cover| view.fence(*cover)));
        warp.learn_own(mask, |own| covers.iter().for_each(|cover| own.fence(*cover, time)));
        warp.time += 1;
    }
}
