//! The definition, executed naively: one node for each operation of each lane and of each asynchronous unit, with the
//! set of its ancestors. Nothing is summarised and nothing is forgotten.

mod graph;
mod memory;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Event, lanes_of};
use crate::{Lanes, ProxyFence, Scope, Semantics, Site, Space, Stretch};
use graph::{Id, Node, Release};
pub use memory::{Past, Race, Unit};

#[derive(Clone, Default)]
struct Thread {
    last: Id,
    exited: bool,
    /// Copies so far, those of the open group, and groups.
    copies: Vec<Id>,
    open: Vec<Id>,
    groups: Vec<Vec<Id>>,
    /// The same of bulk stores: what reads and what writes.
    open_stores: Vec<[Id; 2]>,
    store_groups: Vec<Vec<[Id; 2]>>,
    /// Fences that release.
    fences: Vec<(Id, Scope)>,
    /// What was read of others' releases.
    pending: Vec<((Space, u64), Release)>,
}

#[derive(Clone, Default)]
struct Mbarrier {
    phase: u32,
    filling: Vec<Release>,
    done: Vec<Release>,
    loads: Vec<(u32, Id)>,
}

/// Size, block and scope of the last writer of a place, and what is released there.
type Word = (u32, u32, Scope, Vec<Release>);

#[derive(Clone)]
pub struct Oracle {
    warps_per_block: u32,
    nodes: Vec<Rc<Node>>,
    threads: Vec<Thread>,
    barriers: BTreeMap<u32, Vec<Id>>,
    cluster: [Vec<Release>; 2],
    mbarriers: BTreeMap<u64, Mbarrier>,
    proxy_fences: Vec<(Id, u32, ProxyFence)>,
    /// Of each warp: products of the open group, and of the groups.
    products: BTreeMap<u32, (Vec<Id>, Vec<Vec<Id>>)>,
    history: BTreeMap<(Space, u64), Rc<Vec<Past>>>,
    words: BTreeMap<(Space, u64), Word>,
}

impl Oracle {
    /// Lanes that a warp does not have count as exited.
    pub fn new(lanes: &[u32], warps_per_block: u32) -> Oracle {
        let exists = lanes.iter().flat_map(|mask| (0..32).map(move |lane| mask >> lane & 1 == 1));
        Oracle {
            warps_per_block,
            nodes: vec![Rc::default()],
            threads: exists.map(|exists| Thread { exited: !exists, ..Thread::default() }).collect(),
            barriers: BTreeMap::new(),
            cluster: Default::default(),
            mbarriers: BTreeMap::new(),
            proxy_fences: Vec::new(),
            products: BTreeMap::new(),
            history: BTreeMap::new(),
            words: BTreeMap::new(),
        }
    }

    /// Executes an event; returns every unordered pair that it completes.
    pub fn step(&mut self, event: &Event, site: Site) -> Vec<Race> {
        let mut races = Vec::new();
        match event {
            Event::Access { .. } | Event::Copy { .. } => self.access(event, site, &mut races),
            Event::Load { .. } | Event::RemoteStore { .. } | Event::Store { .. } | Event::Wgmma { .. } => {
                self.unit(event, site, &mut races);
            }
            Event::Fence(at, semantics) => self.fence(*at, *semantics),
            Event::ProxyFence(at, which) => {
                for lane in self.live(*at) {
                    let node = self.next(at.warp, lane, &[]);
                    self.proxy_fences.push((node, self.block(at.warp), *which));
                }
            }
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
                let arrivals: Vec<Id> = self.live(*at).iter().map(|lane| self.next(at.warp, *lane, &[])).collect();
                self.barriers.entry(*id).or_default().extend(arrivals);
            }
            Event::Complete { id, waiters } => {
                let arrivals = self.barriers.remove(id).unwrap_or_default();
                self.meet(&arrivals, waiters);
            }
            Event::ClusterArrive(at, semantics) => {
                let releases = self.releases(*at, *semantics);
                self.cluster[0].extend(releases);
            }
            Event::ClusterComplete(waiters) => {
                self.cluster[1] = std::mem::take(&mut self.cluster[0]);
                waiters.iter().for_each(|at| self.take_all(*at, &self.cluster[1].clone(), Scope::Cluster));
            }
            Event::ClusterWait(at) => self.take_all(*at, &self.cluster[1].clone(), Scope::Cluster),
            Event::MbarrierInit { barrier, .. } => {
                self.mbarriers.insert(*barrier, Mbarrier::default());
            }
            Event::MbarrierArrive { at, barrier, semantics } => {
                let releases = self.releases(*at, *semantics);
                self.mbarriers.entry(*barrier).or_default().filling.extend(releases);
            }
            Event::CopyArrive { at, barrier } => self.copy_arrive(*at, *barrier),
            Event::MbarrierComplete(barrier) => {
                let barrier = self.mbarriers.entry(*barrier).or_default();
                barrier.phase += 1;
                let filled = std::mem::take(&mut barrier.filling);
                barrier.done.extend(filled);
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
            if semantics.release {
                let node = self.next(at.warp, lane, &[]);
                self.thread(at.warp, lane).fences.push((node, semantics.scope));
            }
        }
    }

    /// What arriving lanes release.
    fn releases(&mut self, at: Lanes, semantics: Semantics) -> Vec<Release> {
        let (block, mut all) = (self.block(at.warp), Vec::new());
        for lane in self.live(at) {
            let node = self.next(at.warp, lane, &[]);
            let release = |node, scope| Release { node, scope, block, lane: (at.warp, lane), alone: false };
            all.push(release(node, semantics.release.then_some(semantics.scope)));
            if !semantics.release {
                let fences = &self.thread(at.warp, lane).fences;
                all.extend(fences.iter().map(|(node, scope)| release(*node, Some(*scope.min(&semantics.scope)))));
            }
        }
        all
    }

    fn copy_arrive(&mut self, at: Lanes, barrier: u64) {
        let block = self.block(at.warp);
        for lane in self.live(at) {
            let copies = self.thread(at.warp, lane).copies.clone();
            let told = |node| Release { node, scope: Some(Scope::Cta), block, lane: (at.warp, lane), alone: true };
            self.mbarriers.entry(barrier).or_default().filling.extend(copies.into_iter().map(told));
        }
    }

    fn mbarrier_wait(&mut self, at: Lanes, barrier: u64, semantics: Semantics) {
        let (found, block) = (self.mbarriers.entry(barrier).or_default().clone(), self.block(at.warp));
        let loads = found.loads.iter().filter(|(phase, _)| *phase < found.phase);
        let told = |node| Release { node, scope: Some(Scope::Cluster), block, lane: (0, 0), alone: true };
        let all: Vec<Release> = loads.map(|(_, node)| told(*node)).chain(found.done.iter().copied()).collect();
        if semantics.acquire {
            return self.take_all(at, &all, semantics.scope);
        }
        for lane in self.live(at) {
            for release in &all {
                let linked = release.reaches(block, semantics.scope);
                self.pend(at.warp, lane, (Space::Shared, barrier), if linked { *release } else { release.broken() });
            }
        }
    }

    fn meet(&mut self, from: &[Id], to: &[Lanes]) {
        let met = self.fresh(from);
        for at in to {
            for lane in self.live(*at) {
                self.next(at.warp, lane, &[met]);
            }
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
            Event::Load { at, barrier, reads, writes } => {
                self.load(*at, site, *barrier, (reads, writes), true, races);
            }
            Event::RemoteStore { at, barrier, to } => {
                self.load(*at, site, *barrier, (&[], std::slice::from_ref(to)), false, races);
            }
            Event::Store { at, reads, writes, element } => {
                let lane = self.live(*at)[0];
                let issue = self.next(at.warp, lane, &[]);
                let nodes = [self.fresh(&[issue]), self.fresh(&[issue])];
                self.thread(at.warp, lane).open_stores.push(nodes);
                let read = Past {
                    start: issue,
                    unit: Unit::Store,
                    asynchronous: true,
                    ..Past::new(nodes[0], *at, lane, site)
                };
                let write = Past { node: nodes[1], write: true, ..read.clone() };
                reads.iter().for_each(|(space, range)| self.touch(read.clone(), *space, range.clone(), races));
                for (space, range) in writes {
                    self.erase(*space, range.clone());
                    let Some(bytes) = element else {
                        self.touch(write.clone(), *space, range.clone(), races);
                        continue;
                    };
                    for start in range.clone().step_by(*bytes as usize) {
                        let strong = Some((start, *bytes, Scope::Cluster, self.block(at.warp)));
                        let element = Past { strong, ..write.clone() };
                        self.touch(element, *space, start..start + u64::from(*bytes), races);
                    }
                }
            }
            Event::Wgmma { at, reads } => {
                for lane in self.live(*at) {
                    let issue = self.next(at.warp, lane, &[]);
                    let node = self.fresh(&[issue]);
                    let read = Past { unit: Unit::Product, asynchronous: true, ..Past::new(node, *at, lane, site) };
                    reads.iter().for_each(|(space, range)| self.touch(read.clone(), *space, range.clone(), races));
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
        (reads, writes): (&[Stretch], &[Stretch]),
        asynchronous: bool,
        races: &mut Vec<Race>,
    ) {
        let lane = self.live(at)[0];
        let issue = self.next(at.warp, lane, &[]);
        let node = self.fresh(&[issue]);
        let found = self.mbarriers.entry(barrier).or_default();
        found.loads.push((found.phase, node));
        let read = Past { unit: Unit::Load, asynchronous, ..Past::new(node, at, lane, site) };
        reads.iter().for_each(|(space, range)| self.touch(read.clone(), *space, range.clone(), races));
        for (space, range) in writes {
            self.erase(*space, range.clone());
            self.touch(Past { write: true, ..read.clone() }, *space, range.clone(), races);
        }
    }
}
