//! The definition, executed naively: one node for each operation of each lane and for each copy, with the set of its
//! ancestors. Nothing is summarised and nothing is forgotten.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Event, lanes_of};
use crate::happens_before::{Kind, Lanes, Semantics, Site, Space};

type Id = usize;
/// Warp, lane and operation of a release.
type Released = (u32, u8, Id);

#[derive(Clone, Default)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, id: Id) {
        self.0.resize(self.0.len().max(id / 64 + 1), 0);
        self.0[id / 64] |= 1 << (id % 64);
    }

    fn has(&self, id: Id) -> bool {
        self.0.get(id / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    fn join(&mut self, other: &Set) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

#[derive(Clone, Default)]
struct Thread {
    last: Id,
    exited: bool,
    open: Vec<Id>,
    groups: Vec<Vec<Id>>,
    /// The last operation that releases.
    fence: Option<Id>,
    /// What was read of others' releases and not taken yet.
    pending: Vec<((Space, u64), Id)>,
}

/// One access to one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    node: Id,
    pub warp: u32,
    pub lane: u8,
    pub site: Site,
    pub write: bool,
    pub copy: bool,
    /// The operation that started the copy; the access itself if it is none.
    start: Id,
    /// Start and size of a strong access.
    strong: Option<(u64, u32)>,
}

/// Two unordered accesses to a byte.
pub struct Race {
    pub space: Space,
    pub byte: u64,
    pub first: Past,
    pub second_lane: u8,
    /// Does the second access follow the start of the first, if that is a copy?
    pub start_known: bool,
}

#[derive(Clone)]
pub struct Oracle {
    nodes: Vec<Rc<Set>>,
    threads: Vec<Thread>,
    barriers: BTreeMap<u32, Vec<Id>>,
    history: BTreeMap<(Space, u64), Rc<Vec<Past>>>,
    /// Size of a place, and who released there.
    words: BTreeMap<(Space, u64), (u32, Vec<Released>)>,
}

impl Oracle {
    /// Lanes that a warp does not have count as exited.
    pub fn new(lanes: &[u32]) -> Oracle {
        let exists = lanes.iter().flat_map(|mask| (0..32).map(move |lane| mask >> lane & 1 == 1));
        let threads = exists.map(|exists| Thread { exited: !exists, ..Thread::default() }).collect();
        let (barriers, history, words) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Oracle { nodes: vec![Rc::default()], threads, barriers, history, words }
    }

    fn thread(&mut self, warp: u32, lane: u8) -> &mut Thread {
        &mut self.threads[warp as usize * 32 + lane as usize]
    }

    fn fresh(&mut self, parents: &[Id]) -> Id {
        let mut node = Set::default();
        parents.iter().for_each(|parent| node.join(&self.nodes[*parent]));
        node.insert(self.nodes.len());
        self.nodes.push(Rc::new(node));
        self.nodes.len() - 1
    }

    /// The lane's next operation, which also follows `parents`.
    fn next(&mut self, warp: u32, lane: u8, parents: &[Id]) -> Id {
        let last = self.thread(warp, lane).last;
        let id = self.fresh(&[&[last], parents].concat());
        self.thread(warp, lane).last = id;
        id
    }

    fn live(&mut self, at: Lanes) -> Vec<u8> {
        lanes_of(at.mask).into_iter().filter(|lane| !self.thread(at.warp, *lane).exited).collect()
    }

    /// Executes an event; returns every unordered pair that it completes.
    pub fn step(&mut self, event: &Event, site: Site) -> Vec<Race> {
        let mut races = Vec::new();
        match event {
            Event::Access { at, kind, semantics, space, addresses, bytes } => {
                for lane in self.live(*at) {
                    if semantics.release {
                        let node = self.next(at.warp, lane, &[]);
                        self.thread(at.warp, lane).fence = Some(node);
                    }
                    let node = self.next(at.warp, lane, &[]);
                    let start = addresses[lane as usize];
                    let strong = kind.is_strong().then_some((start, *bytes));
                    let now = Past {
                        node,
                        warp: at.warp,
                        lane,
                        site,
                        write: kind.writes(),
                        copy: false,
                        start: node,
                        strong,
                    };
                    self.touch(now, *space, start, *bytes, &mut races);
                }
                for lane in self.live(*at) {
                    let place = (*space, addresses[lane as usize]);
                    self.order(at.warp, lane, (*kind, *semantics), place, *bytes);
                }
            }
            Event::Fence(at, semantics) => {
                for lane in self.live(*at) {
                    if semantics.acquire {
                        self.take(at.warp, lane, None);
                    }
                    if semantics.release {
                        let node = self.next(at.warp, lane, &[]);
                        self.thread(at.warp, lane).fence = Some(node);
                    }
                }
            }
            Event::Copy { at, from, from_bytes, to, bytes } => {
                for lane in self.live(*at) {
                    let issue = self.next(at.warp, lane, &[]);
                    let node = self.fresh(&[issue]);
                    self.thread(at.warp, lane).open.push(node);
                    let (write, copy, start, strong) = (false, true, issue, None);
                    let read = Past { node, warp: at.warp, lane, site, write, copy, start, strong };
                    let index = lane as usize;
                    self.touch(read, Space::Global, from[index], from_bytes[index], &mut races);
                    self.touch(Past { write: true, ..read }, Space::Shared, to[index], *bytes, &mut races);
                }
            }
            Event::Commit(at) => self.commit(*at),
            Event::Wait(at, pending) => self.wait(*at, *pending),
            Event::WaitAll(at) => {
                self.commit(*at);
                self.wait(*at, 0);
            }
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
            Event::Exit(at) => lanes_of(at.mask).iter().for_each(|lane| self.thread(at.warp, *lane).exited = true),
        }
        races
    }

    /// Takes what the lane has read so far, at one place or everywhere.
    fn take(&mut self, warp: u32, lane: u8, place: Option<(Space, u64)>) {
        let pending = &self.thread(warp, lane).pending;
        let taken = pending.iter().filter(|(at, _)| place.is_none_or(|place| place == *at)).map(|(_, node)| *node);
        let taken: Vec<Id> = taken.collect();
        self.next(warp, lane, &taken);
    }

    /// What an access takes from its place, and what it leaves there.
    fn order(&mut self, warp: u32, lane: u8, (kind, semantics): (Kind, Semantics), place: (Space, u64), bytes: u32) {
        let same = self.words.get(&place).filter(|(size, _)| *size == bytes);
        let released = same.map(|(_, released)| released.clone()).unwrap_or_default();
        if matches!(kind, Kind::StrongRead | Kind::Atomic) && !semantics.blind {
            self.thread(warp, lane).pending.extend(released.iter().map(|(_, _, node)| (place, *node)));
            if semantics.acquire {
                self.take(warp, lane, Some(place));
            }
        }
        if kind.writes() {
            let end = place.1 + u64::from(bytes);
            self.words
                .retain(|(space, at), (size, _)| *space != place.0 || *at >= end || *at + u64::from(*size) <= place.1);
            let survives = |(other, lane_there, _): &Released| {
                kind == Kind::Atomic || kind == Kind::StrongWrite && (*other, *lane_there) == (warp, lane)
            };
            let mut left: Vec<_> = released.into_iter().filter(survives).collect();
            left.extend(self.thread(warp, lane).fence.filter(|_| kind.is_strong()).map(|node| (warp, lane, node)));
            self.words.insert(place, (bytes, left));
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
            self.next(at.warp, lane, &done);
        }
    }

    fn touch(&mut self, now: Past, space: Space, start: u64, bytes: u32, races: &mut Vec<Race>) {
        let known = self.nodes[now.node].clone();
        for byte in start..start + bytes as u64 {
            let past = Rc::make_mut(self.history.entry((space, byte)).or_default());
            let morally_strong = |first: &Past| first.strong.is_some() && first.strong == now.strong;
            let faulty = past
                .iter()
                .filter(|first| (first.write || now.write) && !known.has(first.node) && !morally_strong(first));
            races.extend(faulty.map(|first| {
                let start_known = known.has(first.start);
                Race { space, byte, first: *first, second_lane: now.lane, start_known }
            }));
            past.push(now);
        }
    }
}
