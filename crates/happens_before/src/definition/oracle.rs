//! The definition, executed naively: one node for each operation of each lane and of each asynchronous unit, with the
//! set of its ancestors. Nothing is summarised and nothing is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::earlier::{Earlier, Early};
use super::event::{Event, descriptor, elements, lanes_of};
use super::graph::{Ancestors, Id, Node, Release};
use super::memory::{History, Past, Race, Unit};
use crate::{Lanes, ProxyFence, Scope, Semantics, Site, Space, Stretch};

#[derive(Clone, Default)]
pub struct Thread {
    /// How many operations it has executed, the last one, and what it has learnt of others.
    pub count: u32,
    pub last: Id,
    pub before: Rc<Ancestors>,
    pub exited: bool,
    /// Copies so far, those of the open group, and groups.
    pub copies: Vec<Id>,
    pub open: Vec<Id>,
    groups: Vec<Vec<Id>>,
    /// The same of bulk stores: what reads and what writes.
    open_stores: Vec<[Id; 2]>,
    store_groups: Vec<Vec<[Id; 2]>>,
    /// Fences that release, the last one of each scope.
    pub fences: BTreeMap<Scope, Id>,
    /// What was read of others' releases.
    pub pending: Vec<((Space, u64), Release)>,
}

#[derive(Clone, Default)]
struct Mbarrier {
    phase: u32,
    filling: Vec<Release>,
    done: Vec<Release>,
    loads: Vec<(u32, Id)>,
}

/// Size, block and scope of the last writer of a place, and what is released there.
pub type Word = (u32, u32, Scope, Vec<Release>);

/// What a fence between proxies makes fit for whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fenced {
    Everything,
    /// The shared memory of this block.
    Block(u32),
    Shared,
    Global,
    /// `fence.proxy.tensormap::generic.release`.
    Released,
    /// `fence.proxy.tensormap::generic.acquire` of the map at this address.
    Acquired(u64),
}

impl Fenced {
    fn by(fence: ProxyFence, block: u32) -> Fenced {
        match fence {
            ProxyFence::All => Fenced::Everything,
            ProxyFence::SharedBlock => Fenced::Block(block),
            ProxyFence::SharedCluster => Fenced::Shared,
            ProxyFence::Global => Fenced::Global,
        }
    }
}

#[derive(Clone)]
pub struct Oracle {
    pub warps_per_block: u32,
    pub blocks_per_cluster: u32,
    pub nodes: Vec<Node>,
    /// Operations of units so far.
    pub units: u32,
    pub threads: Vec<Thread>,
    barriers: BTreeMap<u32, Vec<Id>>,
    /// Of each cluster: releases into the open generation of its barrier, and into the complete one.
    clusters: BTreeMap<u32, [Vec<Release>; 2]>,
    mbarriers: BTreeMap<u64, Mbarrier>,
    /// By what they cover and the lane.
    pub proxy_fences: BTreeMap<(Fenced, u32), Vec<Id>>,
    /// Of each warp: products of the open group, and of the groups.
    products: BTreeMap<u32, (Vec<Id>, Vec<Vec<Id>>)>,
    pub history: BTreeMap<(Space, u64), Rc<History>>,
    /// Where accesses begin and end, if that is known beforehand: what lies between two cuts has one history.
    pub cuts: Option<Rc<BTreeSet<(Space, u64)>>>,
    pub words: BTreeMap<(Space, u64), Word>,
    /// Events so far.
    pub steps: usize,
    /// Grids that need not be complete, and what the last event touched of theirs.
    pub earlier: Vec<Earlier>,
    pub early: Vec<Early>,
}

impl Oracle {
    /// One cluster. Lanes that a warp does not have count as exited.
    pub fn new(lanes: &[u32], warps_per_block: u32) -> Oracle {
        Oracle::grid(lanes, warps_per_block, (lanes.len() as u32).div_ceil(warps_per_block))
    }

    /// Several clusters, whose warps and blocks are numbered through.
    pub fn grid(lanes: &[u32], warps_per_block: u32, blocks_per_cluster: u32) -> Oracle {
        let exists = lanes.iter().flat_map(|mask| (0..32).map(move |lane| mask >> lane & 1 == 1));
        Oracle {
            warps_per_block,
            blocks_per_cluster,
            nodes: vec![Node::default()],
            units: 0,
            threads: exists.map(|exists| Thread { exited: !exists, ..Thread::default() }).collect(),
            barriers: BTreeMap::new(),
            clusters: BTreeMap::new(),
            mbarriers: BTreeMap::new(),
            proxy_fences: BTreeMap::new(),
            products: BTreeMap::new(),
            history: BTreeMap::new(),
            cuts: None,
            words: BTreeMap::new(),
            steps: 0,
            earlier: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Executes an event; returns every unordered pair that it completes.
    pub fn step(&mut self, event: &Event, site: Site) -> Vec<Race> {
        let mut races = Vec::new();
        self.steps += 1;
        self.early.clear();
        match event {
            Event::Access { .. } | Event::Copy { .. } => self.access(event, site, &mut races),
            Event::Load { .. } | Event::RemoteStore { .. } | Event::Store { .. } | Event::Wgmma { .. } => {
                self.unit(event, site, &mut races);
            }
            Event::Fence(at, semantics) => self.fence(*at, *semantics),
            Event::ProxyFence(at, which) => self.proxy_fence(*at, Fenced::by(*which, self.block(at.warp))),
            Event::MapRelease(at) => self.proxy_fence(*at, Fenced::Released),
            Event::MapAcquire { at, map } => self.proxy_fence(*at, Fenced::Acquired(*map)),
            Event::Commit(at) => self.commit(*at),
            Event::Wait(at, pending) => self.wait(*at, *pending),
            Event::WaitAll(at) => {
                self.commit(*at);
                self.wait(*at, 0);
            }
            Event::BulkCommit(at) => {
                for lane in self.live(*at) {
                    let thread = self.thread(at.warp, lane);
                    let group = std::mem::take(&mut thread.open_stores);
                    thread.store_groups.push(group);
                }
            }
            Event::BulkWait { at, pending, read } => self.bulk_wait(*at, *pending, *read),
            Event::WgmmaCommit(at) => {
                let (open, groups) = self.products.entry(at.warp).or_default();
                groups.push(std::mem::take(open));
            }
            Event::WgmmaWait(at, pending) => self.wgmma_wait(*at, *pending),
            Event::GridWait(at) => self.wait_for_grids(*at),
            Event::Exit(at) => lanes_of(at.mask).iter().for_each(|lane| self.thread(at.warp, *lane).exited = true),
            _ => self.meeting(event),
        }
        races
    }

    fn meeting(&mut self, event: &Event) {
        match event {
            Event::WarpSync(at) => {
                let lasts: Vec<Id> = self.live(*at).iter().map(|lane| self.thread(at.warp, *lane).last).collect();
                self.meet(&lasts, &[*at]);
            }
            Event::Arrive { at, id } => {
                let arrivals: Vec<Id> = self.live(*at).iter().map(|lane| self.next(at.warp, *lane)).collect();
                self.barriers.entry(*id).or_default().extend(arrivals);
            }
            Event::Complete { id, waiters } => {
                let arrivals = self.barriers.remove(id).unwrap_or_default();
                self.meet(&arrivals, waiters);
            }
            Event::ClusterArrive(at, semantics) => {
                let releases = self.releases(*at, *semantics);
                let cluster = self.block(at.warp) / self.blocks_per_cluster;
                self.clusters.entry(cluster).or_default()[0].extend(releases);
            }
            Event::ClusterComplete { cluster, waiters } => {
                let [open, complete] = self.clusters.entry(*cluster).or_default();
                *complete = std::mem::take(open);
                waiters.iter().for_each(|at| self.cluster_wait(*at));
            }
            Event::ClusterWait(at) => self.cluster_wait(*at),
            Event::MbarrierInvalidate { .. } | Event::InitFence(_) => {}
            Event::MbarrierInit { barrier, .. } => {
                self.mbarriers.insert(*barrier, Mbarrier::default());
            }
            Event::MbarrierArrive { at, barrier, semantics } => {
                let releases = self.releases(*at, *semantics);
                let filling = &mut self.mbarriers.entry(*barrier).or_default().filling;
                releases.into_iter().for_each(|release| release.gather(filling));
            }
            Event::CopyArrive { at, barrier } => self.copy_arrive(*at, *barrier),
            Event::MbarrierComplete(barrier) => {
                let barrier = self.mbarriers.entry(*barrier).or_default();
                barrier.phase += 1;
                let filled = std::mem::take(&mut barrier.filling);
                filled.into_iter().for_each(|release| release.gather(&mut barrier.done));
            }
            Event::MbarrierWait { at, barrier, semantics } => self.mbarrier_wait(*at, *barrier, *semantics),
            event => unreachable!("{event:?}"),
        }
    }

    fn fence(&mut self, at: Lanes, semantics: Semantics) {
        for lane in self.live(at) {
            if semantics.acquire {
                self.take_pending(at.warp, lane, None, semantics.scope);
            }
            let sequential = semantics.sequential && semantics.scope == Scope::Gpu;
            if sequential {
                self.sequential_fence(at.warp, lane);
            }
            if semantics.release {
                let node = self.next(at.warp, lane);
                self.thread(at.warp, lane).fences.insert(semantics.scope, node);
            }
            if sequential {
                self.note_sequential(at.warp, lane);
            }
        }
    }

    /// What arriving lanes release.
    fn releases(&mut self, at: Lanes, semantics: Semantics) -> Vec<Release> {
        let (block, mut all) = (self.block(at.warp), Vec::new());
        for lane in self.live(at) {
            let node = self.next(at.warp, lane);
            let release = |node, scope| released(node, scope, block, (at.warp, lane));
            all.push(release(node, semantics.release.then_some(semantics.scope)));
            if !semantics.release {
                let fences = &self.thread(at.warp, lane).fences;
                all.extend(fences.iter().map(|(scope, node)| release(*node, Some(*scope.min(&semantics.scope)))));
            }
        }
        all
    }

    fn copy_arrive(&mut self, at: Lanes, barrier: u64) {
        let block = self.block(at.warp);
        for lane in self.live(at) {
            let copies = self.thread(at.warp, lane).copies.clone();
            let told = |node| Release { alone: true, ..released(node, Some(Scope::Cta), block, (at.warp, lane)) };
            let filling = &mut self.mbarriers.entry(barrier).or_default().filling;
            copies.into_iter().for_each(|node| told(node).gather(filling));
        }
    }

    fn mbarrier_wait(&mut self, at: Lanes, barrier: u64, semantics: Semantics) {
        let (found, block) = (self.mbarriers.entry(barrier).or_default().clone(), self.block(at.warp));
        let loads = found.loads.iter().filter(|(phase, _)| *phase < found.phase);
        let told = |node| Release { alone: true, ..released(node, Some(Scope::Cluster), block, (0, 0)) };
        let all: Vec<Release> = loads.map(|(_, node)| told(*node)).chain(found.done.iter().copied()).collect();
        if semantics.acquire {
            return self.take_all(at, &all, semantics.scope);
        }
        for lane in self.live(at) {
            for release in &all {
                let linked = self.reaches(release, block, semantics.scope);
                self.pend(at.warp, lane, (Space::Shared, barrier), if linked { *release } else { release.broken() });
            }
        }
    }

    fn cluster_wait(&mut self, at: Lanes) {
        let cluster = self.block(at.warp) / self.blocks_per_cluster;
        let releases = self.clusters.entry(cluster).or_default()[1].clone();
        self.take_all(at, &releases, Scope::Cluster);
    }

    fn proxy_fence(&mut self, at: Lanes, fenced: Fenced) {
        for lane in self.live(at) {
            let node = self.next(at.warp, lane);
            self.proxy_fences.entry((fenced, at.warp * 32 + u32::from(lane))).or_default().push(node);
        }
    }

    fn commit(&mut self, at: Lanes) {
        for lane in self.live(at) {
            let thread = self.thread(at.warp, lane);
            let group = std::mem::take(&mut thread.open);
            thread.groups.push(group);
        }
    }

    fn wait(&mut self, at: Lanes, pending: u32) {
        for lane in self.live(at) {
            let groups = &self.thread(at.warp, lane).groups;
            let done = groups[..groups.len().saturating_sub(pending as usize)].concat();
            self.learn(at.warp, lane, &done);
        }
    }

    fn bulk_wait(&mut self, at: Lanes, pending: u32, read: bool) {
        for lane in self.live(at) {
            let groups = &self.thread(at.warp, lane).store_groups;
            let done = groups[..groups.len().saturating_sub(pending as usize)].concat();
            let nodes: Vec<Id> =
                done.iter().flat_map(|pair| if read { &pair[..1] } else { &pair[..] }).copied().collect();
            self.learn(at.warp, lane, &nodes);
        }
    }

    /// A group is the warpgroup's: the same group of its other warps is complete too.
    fn wgmma_wait(&mut self, at: Lanes, pending: u32) {
        let done = self.products.entry(at.warp).or_default().1.len().saturating_sub(pending as usize);
        let group = |warp: u32| (self.block(warp), warp % self.warps_per_block / 4);
        let peers = self.products.iter().filter(|(warp, _)| group(**warp) == group(at.warp));
        let nodes: Vec<Id> = peers.flat_map(|(_, (_, groups))| groups.iter().take(done).flatten().copied()).collect();
        self.live(at).into_iter().for_each(|lane| self.learn(at.warp, lane, &nodes));
    }

    fn unit(&mut self, event: &Event, site: Site, races: &mut Vec<Race>) {
        match event {
            Event::Load { at, barrier, reads, writes, map } => {
                self.load(*at, site, *barrier, (reads, writes, *map), true, races);
            }
            Event::RemoteStore { at, barrier, to } => {
                self.load(*at, site, *barrier, (&[], std::slice::from_ref(to), None), false, races);
            }
            Event::Store { at, reads, writes, map, element } => {
                let lane = self.live(*at)[0];
                let issue = self.next(at.warp, lane);
                let nodes = [self.start(issue), self.start(issue)];
                self.thread(at.warp, lane).open_stores.push(nodes);
                let read = Past {
                    start: issue,
                    unit: Unit::Store,
                    asynchronous: true,
                    ..self.past(nodes[0], *at, lane, site)
                };
                let write = Past { node: nodes[1], write: true, ..read.clone() };
                self.read_map(&read, *map, races);
                reads.iter().for_each(|stretch| self.touch(read.clone(), stretch, races));
                for stretch in writes {
                    self.erase(stretch);
                    for part in elements(stretch, *element) {
                        let strong = element.map(|bytes| (part.1.start, bytes, Scope::Gpu, self.block(at.warp)));
                        self.touch(Past { strong, ..write.clone() }, &part, races);
                    }
                }
            }
            Event::Wgmma { at, reads } => {
                for lane in self.live(*at) {
                    let issue = self.next(at.warp, lane);
                    let node = self.start(issue);
                    let read = Past { unit: Unit::Product, asynchronous: true, ..self.past(node, *at, lane, site) };
                    reads.iter().for_each(|stretch| self.touch(read.clone(), stretch, races));
                    self.products.entry(at.warp).or_default().0.push(node);
                }
            }
            event => unreachable!("{event:?}"),
        }
    }

    fn load(
        &mut self,
        at: Lanes,
        site: Site,
        barrier: u64,
        (reads, writes, map): (&[Stretch], &[Stretch], Option<u64>),
        asynchronous: bool,
        races: &mut Vec<Race>,
    ) {
        let lane = self.live(at)[0];
        let issue = self.next(at.warp, lane);
        let node = self.start(issue);
        let found = self.mbarriers.entry(barrier).or_default();
        found.loads.push((found.phase, node));
        let read = Past { unit: Unit::Load, asynchronous, ..self.past(node, at, lane, site) };
        self.read_map(&read, map, races);
        reads.iter().for_each(|stretch| self.touch(read.clone(), stretch, races));
        for stretch in writes {
            self.erase(stretch);
            self.touch(Past { write: true, ..read.clone() }, stretch, races);
        }
    }

    fn read_map(&mut self, read: &Past, map: Option<u64>, races: &mut Vec<Race>) {
        if let Some(map) = map {
            self.touch(Past { map: Some(map), ..read.clone() }, &descriptor(map), races);
        }
    }
}

/// Knowledge that a lane releases.
pub fn released(node: Id, scope: Option<Scope>, block: u32, lane: (u32, u8)) -> Release {
    Release { node, scope, block, lane, alone: false, observed: false }
}
