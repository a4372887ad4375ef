//! The graph of operations, and how lanes take what others have released.

use std::rc::Rc;

use super::event::lanes_of;
use super::oracle::{Oracle, Thread};
use crate::{Lanes, Scope, Space};

pub type Id = usize;

/// A set of operations that contains, with one of a lane, all that the lane did before: so many of each lane's. Those of
/// units stand for themselves.
#[derive(Clone, Default)]
pub struct Set {
    lanes: Vec<u32>,
    units: Vec<u64>,
}

impl Set {
    fn raise(&mut self, lane: u32, count: u32) {
        self.lanes.resize(self.lanes.len().max(lane as usize + 1), 0);
        self.lanes[lane as usize] = self.lanes[lane as usize].max(count);
    }

    fn insert(&mut self, unit: u32) {
        let place = unit as usize / 64;
        self.units.resize(self.units.len().max(place + 1), 0);
        self.units[place] |= 1 << (unit % 64);
    }

    pub fn count(&self, lane: u32) -> u32 {
        self.lanes.get(lane as usize).copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.units.is_empty()
    }

    fn has(&self, node: &Node) -> bool {
        match node.unit {
            None => self.count(node.lane) >= node.count,
            Some(unit) => self.units.get(unit as usize / 64).is_some_and(|word| word >> (unit % 64) & 1 == 1),
        }
    }

    fn join(&mut self, other: &Set) {
        self.lanes.resize(self.lanes.len().max(other.lanes.len()), 0);
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        self.units.resize(self.units.len().max(other.units.len()), 0);
        self.units.iter_mut().zip(&other.units).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

/// What came before an operation.
#[derive(Clone, Default)]
pub struct Ancestors {
    /// By the model.
    pub exact: Set,
    /// As if every scope were wide and everything synchronised.
    pub loose: Set,
    /// What came before a `fence.sc` that came before this in the order of all of them.
    pub sequential: Set,
}

impl Ancestors {
    fn join(&mut self, other: &Ancestors) {
        self.exact.join(&other.exact);
        self.loose.join(&other.loose);
        self.sequential.join(&other.sequential);
    }

    fn raise(&mut self, lane: u32, count: u32) {
        self.exact.raise(lane, count);
        self.loose.raise(lane, count);
    }

    fn insert(&mut self, unit: u32) {
        self.exact.insert(unit);
        self.loose.insert(unit);
    }

    fn contains(&self, other: &Ancestors) -> bool {
        let within = |one: &Set, two: &Set| {
            let lanes = two.lanes.iter().zip(0..).all(|(count, lane)| one.count(lane) >= *count);
            let unit = |place: usize| one.units.get(place).copied().unwrap_or(0);
            lanes && two.units.iter().enumerate().all(|(place, word)| word & !unit(place) == 0)
        };
        within(&self.exact, &other.exact)
            && within(&self.loose, &other.loose)
            && within(&self.sequential, &other.sequential)
    }
}

/// An operation of a lane, or one of a unit that follows what its lane did until then.
#[derive(Clone, Default)]
pub struct Node {
    /// Which of all units' operations it is.
    unit: Option<u32>,
    lane: u32,
    /// How many operations the lane has executed, with this one.
    pub count: u32,
    /// What the lane has learnt of others.
    pub before: Rc<Ancestors>,
}

impl Node {
    fn precedes(&self, now: &Node, learnt: &Set) -> bool {
        let own = match self.unit {
            None => self.lane == now.lane && self.count <= now.count,
            Some(_) => self.unit == now.unit,
        };
        own || learnt.has(self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub node: Id,
    pub scope: Option<Scope>,
    pub block: u32,
    pub lane: (u32, u8),
    /// A completion tells of itself only, not of the thread that issued it.
    pub alone: bool,
    /// It synchronises with nobody, and tells of earlier `fence.sc`.
    pub observed: bool,
}

impl Release {
    pub fn broken(self) -> Release {
        Release { scope: None, ..self }
    }

    /// What a lane releases later contains what it released before.
    pub fn gather(self, into: &mut Vec<Release>) {
        let key = |one: &Release| (one.lane, one.scope, one.observed);
        into.retain(|old| old.alone || self.alone || key(old) != key(&self) || old.node > self.node);
        if !into.contains(&self) {
            into.push(self);
        }
    }
}

impl Oracle {
    pub fn block(&self, warp: u32) -> u32 {
        warp / self.warps_per_block
    }

    /// Does a scope, taken at one block, include the threads of another?
    pub(super) fn includes(&self, scope: Scope, from: u32, to: u32) -> bool {
        match scope {
            Scope::Cta => from == to,
            Scope::Cluster => from / self.blocks_per_cluster == to / self.blocks_per_cluster,
            Scope::Gpu => true,
        }
    }

    pub(super) fn reaches(&self, release: &Release, block: u32, scope: Scope) -> bool {
        let back = self.includes(scope, block, release.block);
        back && release.scope.is_some_and(|scope| self.includes(scope, release.block, block))
    }

    pub(super) fn thread(&mut self, warp: u32, lane: u8) -> &mut Thread {
        &mut self.threads[warp as usize * 32 + lane as usize]
    }

    pub fn live(&mut self, at: Lanes) -> Vec<u8> {
        lanes_of(at.mask).into_iter().filter(|lane| !self.thread(at.warp, *lane).exited).collect()
    }

    /// Does an operation follow another?
    pub(super) fn follows(&self, now: Id, first: Id) -> bool {
        self.nodes[first].precedes(&self.nodes[now], &self.nodes[now].before.exact)
    }

    pub(super) fn follows_loosely(&self, now: Id, first: Id) -> bool {
        self.nodes[first].precedes(&self.nodes[now], &self.nodes[now].before.loose)
    }

    /// How many operations of a lane an operation follows.
    pub(super) fn known(&self, now: Id, lane: u32) -> u32 {
        let now = &self.nodes[now];
        if now.lane == lane { now.count } else { now.before.exact.count(lane) }
    }

    /// The lane's next operation.
    pub fn next(&mut self, warp: u32, lane: u8) -> Id {
        let id = self.nodes.len();
        let thread = self.thread(warp, lane);
        (thread.count, thread.last) = (thread.count + 1, id);
        let (count, before) = (thread.count, thread.before.clone());
        self.nodes.push(Node { unit: None, lane: warp * 32 + u32::from(lane), count, before });
        id
    }

    /// An operation of a unit, which the lane starts.
    pub fn start(&mut self, issue: Id) -> Id {
        let unit = Some(self.units);
        self.units += 1;
        self.nodes.push(Node { unit, ..self.nodes[issue].clone() });
        self.nodes.len() - 1
    }

    /// These operations and all that came before them.
    fn all_before(&self, nodes: &[Id]) -> Ancestors {
        let mut all = Ancestors::default();
        let mut last: Option<&Rc<Ancestors>> = None;
        for node in nodes.iter().map(|id| &self.nodes[*id]) {
            if !last.is_some_and(|last| Rc::ptr_eq(last, &node.before)) {
                all.join(&node.before);
                last = Some(&node.before);
            }
            all.raise(node.lane, node.count);
        }
        all
    }

    fn tell(&mut self, warp: u32, lane: u8, change: impl FnOnce(&mut Ancestors)) {
        change(Rc::make_mut(&mut self.thread(warp, lane).before));
        self.next(warp, lane);
    }

    /// The lane learns that units are done, and nothing else.
    pub fn learn(&mut self, warp: u32, lane: u8, done: &[Id]) {
        let units: Vec<u32> = done.iter().filter_map(|id| self.nodes[*id].unit).collect();
        self.tell(warp, lane, |before| units.iter().for_each(|unit| before.insert(*unit)));
    }

    /// Lanes learn what came before some operations.
    pub fn meet(&mut self, from: &[Id], to: &[Lanes]) {
        let met = Rc::new(self.all_before(from));
        to.iter().for_each(|at| self.tell_all(*at, &met));
    }

    fn tell_all(&mut self, at: Lanes, met: &Rc<Ancestors>) {
        for lane in self.live(at) {
            let before = &mut self.thread(at.warp, lane).before;
            if met.contains(before) {
                *before = met.clone();
            } else if !before.contains(met) {
                Rc::make_mut(before).join(met);
            }
            self.next(at.warp, lane);
        }
    }

    pub fn take(&mut self, warp: u32, lane: u8, release: &Release, ordered: bool) {
        let last = self.thread(warp, lane).last;
        // Who knows an operation knows what came before it.
        if if ordered { self.follows(last, release.node) } else { self.follows_loosely(last, release.node) } {
            return;
        }
        let taken = if ordered { self.offered(&[*release], &[]) } else { self.offered(&[], &[*release]) };
        self.tell(warp, lane, |before| before.join(&taken));
    }

    pub fn take_all(&mut self, at: Lanes, releases: &[Release], scope: Scope) {
        let block = self.block(at.warp);
        let (ordered, loose): (Vec<Release>, Vec<Release>) =
            releases.iter().partition(|release| self.reaches(release, block, scope));
        let offered = Rc::new(self.offered(&ordered, &loose));
        self.tell_all(at, &offered);
    }

    /// What releases give to somebody who synchronises with the first, and not with the others.
    fn offered(&self, ordered: &[Release], loose: &[Release]) -> Ancestors {
        let sum = |releases: &[Release]| {
            let nodes: Vec<Id> = releases.iter().filter(|one| !one.alone).map(|one| one.node).collect();
            let mut all = self.all_before(&nodes);
            let alone = releases.iter().filter(|one| one.alone);
            alone.filter_map(|one| self.nodes[one.node].unit).for_each(|unit| all.insert(unit));
            all
        };
        let mut all = sum(ordered);
        all.loose.join(&sum(loose).loose);
        all
    }

    /// The lane reads a write that came after a `fence.sc`.
    pub fn observe(&mut self, warp: u32, lane: u8, release: &Release) {
        let from = self.nodes[release.node].before.clone();
        self.tell(warp, lane, |before| before.sequential.join(&from.sequential));
    }

    /// A `fence.sc` follows those that came before it; who comes later follows it.
    pub fn sequential_fence(&mut self, warp: u32, lane: u8) {
        self.tell(warp, lane, |before| {
            let Ancestors { exact, loose, sequential } = before;
            exact.join(sequential);
            loose.join(sequential);
        });
    }

    /// What the lane did and knows until now came before a `fence.sc`.
    pub fn note_sequential(&mut self, warp: u32, lane: u8) {
        let count = self.thread(warp, lane).count;
        self.tell(warp, lane, |before| {
            before.sequential.join(&before.exact);
            before.sequential.raise(warp * 32 + u32::from(lane), count);
        });
    }

    /// The lane has read what others released: without an acquire that only explains.
    pub fn pend(&mut self, warp: u32, lane: u8, place: (Space, u64), release: Release) {
        self.take(warp, lane, &release, false);
        let pending = &mut self.thread(warp, lane).pending;
        if !pending.contains(&(place, release)) {
            pending.push((place, release));
        }
    }

    /// Takes what the lane has read so far, at one place or everywhere.
    pub fn take_pending(&mut self, warp: u32, lane: u8, place: Option<(Space, u64)>, scope: Scope) {
        let block = self.block(warp);
        let pending = self.thread(warp, lane).pending.clone();
        for (_, release) in pending.iter().filter(|(at, _)| place.is_none_or(|place| place == *at)) {
            let ordered = self.reaches(release, block, scope);
            self.take(warp, lane, release, ordered);
        }
    }
}
