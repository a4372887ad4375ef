//! Programs with mbarriers and asynchronous units: the builder counts arrivals and bytes as the hardware would.

use super::litmus::{Program, rows};
use super::{ALL, Event};
use crate::{Class, Kind, Lanes, ProxyFence, Scope, Semantics, Space, Stretch};

pub const RELEASE: Semantics = Semantics::release(Scope::Cta);
pub const ACQUIRE: Semantics = Semantics::acquire(Scope::Cta);
pub const WIDE_RELEASE: Semantics = Semantics::release(Scope::Cluster);
pub const WIDE_ACQUIRE: Semantics = Semantics::acquire(Scope::Cluster);
pub const RELAXED: Semantics = Semantics::relaxed(Scope::Cluster);

/// The state of an mbarrier.
#[derive(Clone, Copy, Default)]
pub struct Mbarrier {
    pub count: u32,
    pub left: u32,
    pub bytes: u64,
    pub phase: u32,
}

/// What is missing in a program, worst first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    Order,
    Reach,
    Fence,
}

pub fn one(warp: u32) -> Lanes {
    Lanes { warp, mask: 1 }
}

pub fn whole(warp: u32) -> Lanes {
    Lanes { warp, mask: ALL }
}

/// A stage of 128 bytes of shared memory: what a warp covers with one word per lane.
pub fn stage(base: u64) -> Stretch {
    (Space::Shared, base..base + 128)
}

pub fn global(base: u64) -> Stretch {
    (Space::Global, base..base + 128)
}

/// The address of something in another block.
pub fn in_block(block: u64, offset: u64) -> u64 {
    block << 32 | offset
}

impl Program {
    pub fn init(mut self, barrier: u64, count: u32) -> Program {
        self.mbarriers.insert(barrier, Mbarrier { count, left: count, ..Mbarrier::default() });
        self
    }

    fn advance(mut self, barrier: u64) -> Program {
        let state = self.mbarriers.entry(barrier).or_insert(Mbarrier { count: 1, left: 1, ..Mbarrier::default() });
        if state.left > 0 || state.bytes > 0 {
            return self;
        }
        (state.left, state.phase) = (state.count, state.phase + 1);
        self.then(Event::MbarrierComplete(barrier))
    }

    fn count(mut self, barrier: u64, arrivals: u32, bytes: u64) -> Program {
        let state = self.mbarriers.entry(barrier).or_insert(Mbarrier { count: 1, left: 1, ..Mbarrier::default() });
        state.left = state.left.saturating_sub(arrivals);
        state.bytes += bytes;
        self
    }

    pub fn signal_as(self, at: Lanes, barrier: u64, semantics: Semantics) -> Program {
        let program = self.then(Event::MbarrierArrive { at, barrier, semantics });
        program.count(barrier, at.mask.count_ones(), 0).advance(barrier)
    }

    /// `mbarrier.arrive` by one lane.
    pub fn signal(self, warp: u32, barrier: u64) -> Program {
        self.signal_as(one(warp), barrier, RELEASE)
    }

    /// `mbarrier.arrive.expect_tx` by one lane.
    pub fn expect(self, warp: u32, barrier: u64, bytes: u64) -> Program {
        let program = self.then(Event::MbarrierArrive { at: one(warp), barrier, semantics: RELEASE });
        program.count(barrier, 1, bytes)
    }

    /// A wait for a parity; without effect while the phase is incomplete.
    pub fn pass_as(self, at: Lanes, barrier: u64, parity: u32, semantics: Semantics) -> Program {
        let phase = self.mbarriers.get(&barrier).map_or(0, |state| state.phase);
        self.when(phase & 1 != parity, |program| program.then(Event::MbarrierWait { at, barrier, semantics }))
    }

    pub fn pass(self, warp: u32, barrier: u64, parity: u32) -> Program {
        self.pass_as(whole(warp), barrier, parity, ACQUIRE)
    }

    pub fn copy_signal(self, warp: u32, barrier: u64) -> Program {
        self.then(Event::CopyArrive { at: whole(warp), barrier }).count(barrier, 32, 0).advance(barrier)
    }

    pub fn issue(self, warp: u32, to: Stretch, barrier: u64) -> Program {
        let bytes = to.1.end - to.1.start;
        let reads = vec![(Space::Global, 0..bytes)];
        self.then(Event::Load { at: one(warp), barrier, reads, writes: vec![to], map: None })
    }

    /// All bytes that an mbarrier expects have arrived.
    pub fn land(mut self, barrier: u64) -> Program {
        self.mbarriers.entry(barrier).or_default().bytes = 0;
        self.advance(barrier)
    }

    /// Expect, issue and complete one load of a stage.
    pub fn load(self, warp: u32, to: u64, barrier: u64) -> Program {
        self.expect(warp, barrier, 128).issue(warp, stage(to), barrier).land(barrier)
    }

    pub fn store(self, warp: u32, from: u64, to: u64) -> Program {
        let (reads, writes) = (vec![stage(from)], vec![global(to)]);
        self.then(Event::Store { at: one(warp), reads, writes, map: None, element: None })
    }

    pub fn store_commit(self, warp: u32) -> Program {
        self.then(Event::BulkCommit(one(warp)))
    }

    pub fn store_wait(self, warp: u32, pending: u32, read: bool) -> Program {
        self.then(Event::BulkWait { at: one(warp), pending, read })
    }

    pub fn proxy_fence(self, at: Lanes) -> Program {
        self.then(Event::ProxyFence(at, ProxyFence::SharedBlock))
    }

    pub fn product(self, warp: u32, from: u64) -> Program {
        self.then(Event::Wgmma { at: whole(warp), reads: vec![stage(from)] })
    }

    pub fn product_commit(self, warp: u32) -> Program {
        self.then(Event::WgmmaCommit(whole(warp)))
    }

    pub fn product_wait(self, warp: u32, pending: u32) -> Program {
        self.then(Event::WgmmaWait(whole(warp), pending))
    }

    /// `barrier.cluster` by every warp.
    pub fn cluster_sync(mut self, semantics: Semantics) -> Program {
        let warps: Vec<u32> = (0..self.live.len() as u32).collect();
        for warp in &warps {
            self = self.then(Event::ClusterArrive(whole(*warp), semantics));
        }
        self.then(Event::ClusterComplete { cluster: 0, waiters: warps.iter().map(|warp| whole(*warp)).collect() })
    }

    /// One lane touches one word of a space.
    pub fn word(self, warp: u32, kind: Kind, space: Space, address: u64) -> Program {
        let (at, semantics, addresses) = (one(warp), Semantics::default(), rows(address, 0));
        self.then(Event::Access { at, kind, semantics, space, addresses, bytes: 4 })
    }

    pub fn missing(mut self) -> Option<Missing> {
        let missing = |class: Class| match class {
            Class::Proxy => Missing::Fence,
            Class::Reach => Missing::Reach,
            _ => Missing::Order,
        };
        let all: Vec<Missing> = self.faults().iter().map(|fault| missing(fault.class)).collect();
        [Missing::Order, Missing::Reach, Missing::Fence].into_iter().find(|one| all.contains(one))
    }
}

/// The correct program is silent, in the broken one something is missing.
pub fn twins(name: &str, missing: Missing, program: impl Fn(bool) -> Program) {
    variants(name, missing, 2, |variant| program(variant == 0));
}

/// Variant 0 is correct, the others are broken in different ways.
pub fn variants(name: &str, missing: Missing, count: usize, program: impl Fn(usize) -> Program) {
    for variant in 0..count {
        let expected = (variant > 0).then_some(missing);
        assert_eq!(program(variant).missing(), expected, "{name}, variant {variant}");
    }
}
