//! Where warps wait for each other: the barriers of a block, and the one of a cluster.

use super::warp::Fragment;
use super::{Cluster, State};
use crate::checks;
use crate::checks::barrier::BARRIERS;
use crate::exec::{self, At, Ballot, Next};
use happens_before::{Lanes, Semantics, Site};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A block barrier that is filling.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    /// Threads it needs, if the instruction says so.
    pub expected: Option<u32>,
    /// Who came first, and with which count.
    pub opened: Option<(At, Option<u32>)>,
    /// The count of those who met before.
    pub before: Option<u32>,
    /// The lanes that have come, by warp of the block; empty if none have.
    arrived: Vec<u32>,
    pub waiting: Vec<Lanes>,
    /// What those that meet at a `bar.red` said.
    pub ballots: Vec<Ballot>,
}

impl Barrier {
    /// The lanes of a warp of the block that have come.
    pub fn came(&self, warp: usize) -> u32 {
        self.arrived.get(warp).copied().unwrap_or(0)
    }

    fn come(&mut self, warp: usize, mask: u32) {
        if self.arrived.len() <= warp {
            self.arrived.resize(warp + 1, 0);
        }
        self.arrived[warp] |= mask;
    }

    /// Have as many warps come as it needs, of those whose live lanes are `live`? Those that have exited do not count
    /// (sm_70 and later).
    fn is_full(&self, live: impl Iterator<Item = u32>) -> bool {
        let mut warps = live.enumerate();
        let complete = |&(warp, live): &(usize, u32)| self.came(warp) != 0 && live & !self.came(warp) == 0;
        match self.expected {
            // Warps count, not threads.
            Some(threads) => warps.filter(complete).count() >= threads.div_ceil(32) as usize,
            None => warps.all(|one| one.1 == 0 || complete(&one)),
        }
    }

    /// Nobody has come; the room that was needed stays.
    fn clear(&mut self) {
        self.before = self.opened.and_then(|(_, count)| count);
        (self.expected, self.opened) = (None, None);
        self.arrived.clear();
        self.waiting.clear();
        self.ballots.clear();
    }
}

/// The barrier of the cluster. Lanes arrive, and wait later for the others.
#[derive(Clone, Debug, Default)]
pub struct ClusterBarrier {
    /// Per warp, the lanes that have come to the open generation.
    pub arrived: BTreeMap<usize, u32>,
}

/// The number under which the detector knows a barrier of a block: it counts those of a cluster's blocks in one row.
fn watched(rank: usize, id: u32) -> u32 {
    rank as u32 * BARRIERS + id
}

impl Cluster<'_, '_> {
    /// The number under which the detector knows barrier `id` of a warp's block.
    pub fn watched_barrier(&self, warp: usize, id: u32) -> u32 {
        watched(self.rank(warp), id)
    }

    /// Lanes come to barrier `id` of their block.
    pub fn meet(&mut self, at: At, id: u32, threads: Option<u32>, waits: bool) -> Next {
        let (who, rank) = (Lanes { warp: at.warp as u32, mask: at.mask }, self.rank(at.warp));
        if self.orders(at) {
            self.detector.barrier_arrive(who, Site(at.statement), watched(rank, id));
        }
        let own = self.warp_in_block(at.warp);
        let barrier = &mut self.blocks[rank].barriers[id as usize];
        // Counts that differ are a finding; the smaller one lets the run go on, whoever came first.
        barrier.expected = [threads, barrier.expected].into_iter().flatten().min();
        barrier.opened.get_or_insert((at, threads));
        barrier.come(own, at.mask);
        if waits {
            barrier.waiting.push(who);
            self.warps[at.warp].fragments[at.fragment].state = State::Barrier(id);
        } else {
            self.warps[at.warp].fragments[at.fragment].next += 1;
        }
        self.open_barrier(rank, id);
        Next::Done
    }

    /// Lets everybody go on if the barrier is full.
    pub fn open_barrier(&mut self, rank: usize, id: u32) {
        if self.blocks[rank].barriers[id as usize].arrived.is_empty() {
            return;
        }
        let warps = self.warps.len() / self.blocks.len();
        let own = rank * warps..(rank + 1) * warps;
        if !self.blocks[rank].barriers[id as usize].is_full(self.warps[own].iter().map(|warp| warp.live)) {
            return;
        }
        let mut barrier = std::mem::take(&mut self.blocks[rank].barriers[id as usize]);
        let learning = self.learning(id, &barrier.waiting);
        self.detector.barrier_complete(watched(rank, id), &learning);
        if self.lints.is_some() {
            checks::redundant_sync::met(self, rank, &barrier);
        }
        exec::announce(self, &barrier.ballots);
        for who in &barrier.waiting {
            self.warps[who.warp as usize].release(|state| state == State::Barrier(id));
        }
        barrier.clear();
        self.blocks[rank].barriers[id as usize] = barrier;
        self.trace_woken();
    }

    /// Those of the waiting lanes that learn what the others did.
    fn learning<'w>(&self, id: u32, waiting: &'w [Lanes]) -> Cow<'w, [Lanes]> {
        if self.silenced.is_empty() {
            return Cow::Borrowed(waiting);
        }
        let here = |who: &Lanes, fragment: &Fragment| {
            fragment.state == State::Barrier(id) && fragment.mask & who.mask != 0 && !self.is_silenced(fragment.next)
        };
        let learns = |who: &&Lanes| self.warps[who.warp as usize].fragments.iter().any(|one| here(who, one));
        Cow::Owned(waiting.iter().filter(learns).copied().collect())
    }

    /// Lanes come to the barrier of the cluster, and go on.
    pub fn arrive_in_cluster(&mut self, at: At, semantics: Semantics) {
        if self.orders(at) {
            self.detector.cluster_arrive(at.lanes(), Site(at.statement), semantics);
        }
        *self.cluster_barrier.arrived.entry(at.warp).or_default() |= at.mask;
        self.open_cluster_barrier();
    }

    /// Lanes wait until everybody has come to the generation that they came to.
    pub fn wait_in_cluster(&mut self, at: At) -> Next {
        if self.cluster_barrier.arrived.get(&at.warp).is_some_and(|mask| mask & at.mask != 0) {
            self.warps[at.warp].fragments[at.fragment].state = State::Cluster;
            return Next::Done;
        }
        if self.orders(at) {
            self.detector.cluster_wait(at.lanes());
        }
        Next::Following
    }

    /// Ends the generation if all live threads of all blocks have come.
    pub fn open_cluster_barrier(&mut self) {
        let arrived = &self.cluster_barrier.arrived;
        let missing =
            |(index, warp): (usize, &super::Warp)| warp.live & !arrived.get(&index).copied().unwrap_or(0) != 0;
        if arrived.is_empty() || self.warps.iter().enumerate().any(missing) {
            return;
        }
        let arrived = std::mem::take(&mut self.cluster_barrier.arrived);
        self.detector.cluster_complete(&[]);
        arrived.keys().for_each(|warp| self.warps[*warp].wake(|state| state == State::Cluster));
        self.trace_woken();
    }
}
