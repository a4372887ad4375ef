//! Programs made at random, event by event.

use std::collections::BTreeMap;

use super::Dice;
use crate::tests::{ALL, Event};
use crate::{Kind, Lanes, ProxyFence, Scope, Semantics, Space, Stretch};

/// Where flags and mbarriers lie.
const FLAG: u64 = 2048;
/// A tensor map in the global memory that everybody writes.
const MAP: u64 = 0x7f00_0000_0000;
const MBARRIERS: u64 = 0x4000;

#[derive(Clone, Default)]
struct Barrier {
    arrivals: Vec<Lanes>,
    waiters: Vec<Lanes>,
}

/// How far a warp is with the cluster barrier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Free,
    Arrived,
    Complete,
}

/// A cluster that does what it may, as an emulator would run it.
pub struct Program {
    pub dice: Dice,
    pub warps_per_block: u32,
    pub live: Vec<u32>,
    /// Lanes that wait at a barrier.
    blocked: Vec<u32>,
    /// Three for each block.
    barriers: Vec<Barrier>,
    rounds: Vec<Round>,
    /// How many arrivals an mbarrier still expects.
    mbarriers: BTreeMap<u64, u32>,
    /// Groups of products that each warp has committed.
    products: Vec<u32>,
    /// Only messages through flags, at every scope: what chains of releases look like.
    messages: bool,
}

impl Program {
    pub fn new(mut dice: Dice, messages: bool) -> Program {
        let shapes: &[(u32, u32)] = &[(1, 1), (1, 2), (1, 2), (1, 2), (1, 3), (2, 1), (2, 1), (2, 2)];
        let (blocks, warps_per_block) = if messages { dice.pick(&[(3, 1), (2, 2), (2, 1)]) } else { dice.pick(shapes) };
        let warps = (blocks * warps_per_block) as usize;
        let live: Vec<u32> = (0..warps).map(|_| dice.pick(&[0xff, 0xff, 0xff, ALL, 0x0f, 0x01])).collect();
        let addresses =
            (0..blocks).flat_map(|block| [0, 8].map(|place| (u64::from(block) << 32) | (MBARRIERS + place)));
        let mbarriers = addresses.map(|address| (address, 1)).collect();
        let (blocked, barriers) = (vec![0; warps], vec![Barrier::default(); 3 * blocks as usize]);
        let (rounds, products) = (vec![Round::Free; warps], vec![0; warps]);
        Program { dice, warps_per_block, live, blocked, barriers, rounds, mbarriers, products, messages }
    }

    fn blocks(&self) -> u32 {
        self.live.len() as u32 / self.warps_per_block
    }

    fn block(&self, warp: u32) -> u32 {
        warp / self.warps_per_block
    }

    fn awake(&self) -> Vec<u32> {
        (0..self.live.len() as u32).filter(|warp| self.ready(*warp) != 0).collect()
    }

    /// What happens next, unless nobody can go on.
    pub fn event(&mut self) -> Option<Event> {
        self.complete().or_else(|| {
            let awake = self.awake();
            let warp = (!awake.is_empty()).then(|| self.dice.pick(&awake))?;
            Some(self.next(warp))
        })
    }

    fn ready(&self, warp: u32) -> u32 {
        self.live[warp as usize] & !self.blocked[warp as usize]
    }

    fn some(&mut self, warp: u32) -> Lanes {
        let mask = self.dice.pick(&[ALL, ALL, ALL, ALL, 0x0f, 0xf0, 0x01, 0x03, 0x82, 0x55]) & self.ready(warp);
        Lanes { warp, mask: if mask == 0 { self.ready(warp) } else { mask } }
    }

    /// The shared memory of the warp's block, now and then of another.
    fn shared(&mut self, warp: u32) -> u64 {
        let other = self.dice.roll(self.blocks());
        u64::from(if self.dice.roll(4) == 0 { other } else { self.block(warp) }) << 32
    }

    fn addresses(&mut self, space: Space, shared: u64, size: u64) -> Box<[u64; 32]> {
        // Two bases per space, one of them just below a page's end.
        let base = match (space, self.dice.roll(6)) {
            (Space::Shared, 0) => shared + 4096 - 48,
            (Space::Shared, _) => shared,
            (Space::Global, 0) => 0x7f00_0000_0000 + 4096 - 48,
            (Space::Global, _) => 0x7f00_0000_0000,
        };
        let shift = self.dice.pick(&[0, 0, 0, 16, 32, 4, 8, size]);
        let (pattern, twist) = (self.dice.roll(8), self.dice.roll(8) as u64);
        Box::new(std::array::from_fn(|lane| {
            let lane = lane as u64;
            let offset = match pattern {
                0 => 0,
                1 => lane * size * 2,
                2 => (lane ^ twist) * size,
                3 => lane / 4 * size,
                4 => lane / 4 * 32 + lane % 4 * size,
                _ => lane * size,
            };
            base + shift + offset
        }))
    }

    fn access(&mut self, at: Lanes) -> Event {
        let space = self.dice.pick(&[Space::Shared, Space::Shared, Space::Global]);
        let strong = self.dice.roll(4) == 0;
        let kinds = if strong {
            [Kind::Atomic, Kind::StrongRead, Kind::StrongWrite]
        } else {
            [Kind::Read, self.dice.pick(&[Kind::Read, Kind::EqualWrite]), Kind::Write]
        };
        let kind = self.dice.pick(&kinds);
        let Semantics { release, acquire, blind, scope, .. } = self.semantics();
        // Loads do not release, stores do not acquire, and only `red` is blind.
        let semantics = Semantics {
            release: release && matches!(kind, Kind::Atomic | Kind::StrongWrite),
            acquire: acquire && matches!(kind, Kind::Atomic | Kind::StrongRead),
            blind: blind && kind == Kind::Atomic,
            ..Semantics::relaxed(scope)
        };
        if strong && self.dice.roll(3) > 0 {
            // A flag that many use: otherwise nobody would read what another wrote.
            return self.flag(at, kind, semantics);
        }
        let bytes = self.dice.pick(&[1, 2, 4, 4, 4, 8, 16, 16]);
        let shared = self.shared(at.warp);
        Event::Access { at, kind, semantics, space, addresses: self.addresses(space, shared, bytes as u64), bytes }
    }

    fn flag(&mut self, at: Lanes, kind: Kind, semantics: Semantics) -> Event {
        let addresses = Box::new([FLAG + 4 * u64::from(self.dice.roll(5) / 4); 32]);
        Event::Access { at, kind, semantics, space: Space::Shared, addresses, bytes: 4 }
    }

    fn message(&mut self, at: Lanes) -> Event {
        let at = Lanes { mask: 1 << at.mask.trailing_zeros(), ..at };
        let semantics = self.semantics();
        match self.dice.roll(10) {
            0..4 => {
                let (kind, word) = (self.dice.pick(&[Kind::Read, Kind::Write]), u64::from(self.dice.roll(3)) * 4);
                let (space, addresses) = (Space::Shared, Box::new([word; 32]));
                Event::Access { at, kind, semantics: Semantics::default(), space, addresses, bytes: 4 }
            }
            4 => Event::Fence(at, semantics),
            5 => Event::WarpSync(Lanes { mask: self.ready(at.warp), ..at }),
            6 if self.dice.roll(3) == 0 => self.flag(at, Kind::Write, Semantics::default()),
            _ => {
                let kind = self.dice.pick(&[Kind::StrongRead, Kind::StrongRead, Kind::StrongWrite, Kind::Atomic]);
                let semantics = Semantics {
                    release: semantics.release && kind != Kind::StrongRead,
                    acquire: semantics.acquire && kind != Kind::StrongWrite,
                    blind: semantics.blind && kind == Kind::Atomic,
                    ..semantics
                };
                self.flag(at, kind, semantics)
            }
        }
    }

    fn semantics(&mut self) -> Semantics {
        let [release, acquire, blind] = [2, 2, 6].map(|sides| self.dice.roll(sides) == 0);
        Semantics {
            release,
            acquire,
            blind,
            sequential: false,
            scope: self.dice.pick(&[Scope::Cta, Scope::Cluster, Scope::Gpu]),
        }
    }

    fn copy(&mut self, at: Lanes) -> Event {
        let bytes = self.dice.pick(&[4, 8, 16, 16]);
        let fill = self.dice.pick(&[0, 0, 0, 3, 7]);
        let short = self.dice.pick(&[0, bytes / 2]);
        let from_bytes = std::array::from_fn(|lane| if fill >> (lane % 4) & 1 == 1 { short } else { bytes });
        let own = u64::from(self.block(at.warp)) << 32;
        let from = self.addresses(Space::Global, 0, bytes as u64);
        let to = self.addresses(Space::Shared, own, bytes as u64);
        Event::Copy { at, from, from_bytes: Box::new(from_bytes), to, bytes }
    }

    fn arrive(&mut self, at: Lanes) -> Event {
        let kind = self.dice.pick(&[0, 0, 0, 1, 2]);
        let id = self.block(at.warp) * 3 + kind;
        let at = if self.dice.roll(6) > 0 { Lanes { mask: self.ready(at.warp), ..at } } else { at };
        let barrier = &mut self.barriers[id as usize];
        barrier.arrivals.push(at);
        if kind == 0 || self.dice.roll(3) > 0 {
            barrier.waiters.push(at);
            self.blocked[at.warp as usize] |= at.mask;
        }
        Event::Arrive { at, id }
    }

    fn next(&mut self, warp: u32) -> Event {
        let at = self.some(warp);
        if self.messages {
            return self.message(at);
        }
        match self.dice.roll(143) {
            0..40 => self.access(at),
            40..50 => self.copy(at),
            50..56 => Event::Commit(at),
            56..62 => Event::Wait(at, self.dice.pick(&[0, 0, 0, 1, 2])),
            62..64 => Event::WaitAll(at),
            64..72 => Event::WarpSync(if self.dice.roll(4) > 0 { Lanes { mask: self.ready(warp), ..at } } else { at }),
            72..81 => self.arrive(at),
            81..85 => Event::Fence(at, self.semantics()),
            85..91 => {
                let all = [ProxyFence::All, ProxyFence::SharedBlock, ProxyFence::SharedCluster, ProxyFence::Global];
                Event::ProxyFence(at, self.dice.pick(&all))
            }
            91..139 => self.asynchronous(at),
            139..142 => Event::GridWait(at),
            _ => {
                self.live[warp as usize] &= !at.mask;
                Event::Exit(at)
            }
        }
    }

    /// A generation that is complete: barrier 0 wants every live lane, the others two arrivals. When nobody can go on,
    /// any generation with a waiter ends.
    fn complete(&mut self) -> Option<Event> {
        if let Some(barrier) = self.mbarriers.iter().find(|(_, left)| **left == 0).map(|(barrier, _)| *barrier) {
            self.mbarriers.insert(barrier, self.dice.pick(&[1, 2, 8]));
            return Some(Event::MbarrierComplete(barrier));
        }
        self.complete_round().or_else(|| self.complete_barrier())
    }

    fn complete_round(&mut self) -> Option<Event> {
        let missing = |warp: usize| self.live[warp] != 0 && self.rounds[warp] != Round::Arrived;
        let arrived: Vec<usize> = (0..self.live.len()).filter(|warp| self.rounds[*warp] == Round::Arrived).collect();
        if arrived.is_empty() || (0..self.live.len()).any(missing) {
            return None;
        }
        arrived.iter().for_each(|warp| self.rounds[*warp] = Round::Complete);
        let free = arrived.into_iter().filter(|warp| self.blocked[*warp] == 0 && self.live[*warp] != 0);
        let waits: Vec<usize> = free.filter(|_| self.dice.roll(4) == 0).collect();
        waits.iter().for_each(|warp| self.rounds[*warp] = Round::Free);
        let waiters = waits.into_iter().map(|warp| Lanes { warp: warp as u32, mask: self.live[warp] }).collect();
        Some(Event::ClusterComplete { cluster: 0, waiters })
    }

    fn complete_barrier(&mut self) -> Option<Event> {
        let stuck = self.awake().is_empty();
        let full = (0..self.barriers.len()).find(|id| {
            let barrier = &self.barriers[*id];
            let block = *id as u32 / 3 * self.warps_per_block;
            let missing = |warp: u32| self.live[warp as usize] & !arrived(barrier, warp) != 0;
            let everybody = || !(block..block + self.warps_per_block).any(missing);
            let enough = if *id % 3 == 0 { everybody() } else { barrier.arrivals.len() >= 2 };
            !barrier.arrivals.is_empty() && (enough || stuck && !barrier.waiters.is_empty())
        })?;
        let Barrier { waiters, .. } = std::mem::take(&mut self.barriers[full]);
        waiters.iter().for_each(|at| self.blocked[at.warp as usize] &= !at.mask);
        Some(Event::Complete { id: full as u32, waiters })
    }
}

/// What only Hopper has.
impl Program {
    fn asynchronous(&mut self, at: Lanes) -> Event {
        let one = Lanes { mask: 1 << at.mask.trailing_zeros(), ..at };
        match self.dice.roll(52) {
            0..6 => self.cluster(at.warp),
            6..13 => self.mbarrier_arrive(at, one),
            13..24 => self.mbarrier_wait(at, one),
            24..26 => Event::CopyArrive { at, barrier: self.mbarrier(at.warp) },
            26..33 => self.load(one),
            33..36 => {
                let element = self.dice.pick(&[None, None, Some(4)]);
                let reads = vec![self.stretch(at.warp, Space::Shared)];
                let writes = match element {
                    Some(_) => vec![(Space::Global, 0x7f00_0000_0000..0x7f00_0000_0020)],
                    None => vec![self.stretch(at.warp, Space::Global)],
                };
                Event::Store { at: one, reads, writes, map: None, element }
            }
            36..38 => Event::BulkCommit(one),
            38..40 => Event::MapRelease(at),
            40..42 => Event::MapAcquire { at: one, map: MAP },
            42..44 => Event::BulkWait { at: one, pending: self.dice.roll(2), read: self.dice.roll(2) == 0 },
            _ => self.product(at.warp),
        }
    }

    fn stretch(&mut self, warp: u32, space: Space) -> Stretch {
        let base = if space == Space::Shared { self.shared(warp) } else { 0x7f00_0000_0000 };
        let start = base + self.dice.pick(&[0, 0, 16, 32, 48, 64, 4, 14]);
        let bytes = self.dice.pick(&[16, 16, 32, 32, 64, 24, 5]);
        (space, start..start + bytes)
    }

    /// An mbarrier of the warp's block, now and then of another.
    fn mbarrier(&mut self, warp: u32) -> u64 {
        self.shared(warp) | (MBARRIERS + 8 * u64::from(self.dice.roll(2)))
    }

    fn count(&mut self, barrier: u64, arrivals: u32) {
        let left = self.mbarriers.entry(barrier).or_default();
        *left = left.saturating_sub(arrivals);
    }

    fn mbarrier_arrive(&mut self, at: Lanes, one: Lanes) -> Event {
        let (barrier, scope) = (self.mbarrier(at.warp), self.dice.pick(&[Scope::Cta, Scope::Cta, Scope::Cluster]));
        let at = if self.dice.roll(2) == 0 { at } else { one };
        self.count(barrier, at.mask.count_ones());
        let relaxed = self.dice.roll(5) == 0;
        let semantics = if relaxed { Semantics::relaxed(scope) } else { Semantics::release(scope) };
        Event::MbarrierArrive { at, barrier, semantics }
    }

    fn mbarrier_wait(&mut self, at: Lanes, one: Lanes) -> Event {
        let (barrier, scope) = (self.mbarrier(at.warp), self.dice.pick(&[Scope::Cta, Scope::Cta, Scope::Cluster]));
        let relaxed = self.dice.roll(5) == 0;
        let semantics = if relaxed { Semantics::relaxed(scope) } else { Semantics::acquire(scope) };
        Event::MbarrierWait { at: if self.dice.roll(3) == 0 { one } else { at }, barrier, semantics }
    }

    fn load(&mut self, at: Lanes) -> Event {
        let barrier = self.mbarrier(at.warp);
        self.count(barrier, 1);
        let to = self.stretch(at.warp, Space::Shared);
        match self.dice.roll(5) {
            0 => Event::RemoteStore { at, barrier, to },
            number => {
                let map = (number == 1).then_some(MAP);
                Event::Load { at, barrier, reads: vec![self.stretch(at.warp, Space::Global)], writes: vec![to], map }
            }
        }
    }

    fn cluster(&mut self, warp: u32) -> Event {
        let at = Lanes { warp, mask: self.live[warp as usize] };
        match self.rounds[warp as usize] {
            Round::Free if self.blocked[warp as usize] == 0 => {
                self.rounds[warp as usize] = Round::Arrived;
                let relaxed = self.dice.roll(3) == 0;
                let scope = Scope::Cluster;
                Event::ClusterArrive(at, if relaxed { Semantics::relaxed(scope) } else { Semantics::release(scope) })
            }
            Round::Complete if self.blocked[warp as usize] == 0 => {
                self.rounds[warp as usize] = Round::Free;
                Event::ClusterWait(at)
            }
            _ => Event::WarpSync(Lanes { mask: self.ready(warp), ..at }),
        }
    }

    fn product(&mut self, warp: u32) -> Event {
        let at = Lanes { warp, mask: self.live[warp as usize] };
        let (committed, pending) = (self.products[warp as usize], self.dice.roll(2));
        if self.blocked[warp as usize] != 0 {
            return Event::WarpSync(Lanes { mask: self.ready(warp), ..at });
        }
        let block = self.block(warp) * self.warps_per_block;
        let peers = &self.products[block as usize..(block + self.warps_per_block) as usize];
        let may_wait = peers.iter().all(|peer| *peer >= committed.saturating_sub(pending));
        match self.dice.roll(5) {
            0 if may_wait => Event::WgmmaWait(at, pending),
            0 | 1 => {
                self.products[warp as usize] += 1;
                Event::WgmmaCommit(at)
            }
            _ => {
                let reads = vec![self.stretch(warp, Space::Shared), self.stretch(warp, Space::Shared)];
                Event::Wgmma { at, reads }
            }
        }
    }
}

fn arrived(barrier: &Barrier, warp: u32) -> u32 {
    barrier.arrivals.iter().filter(|at| at.warp == warp).fold(0, |mask, at| mask | at.mask)
}
