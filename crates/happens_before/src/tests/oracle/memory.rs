//! Every access to every byte, and what strong accesses order.

use std::ops::Range;
use std::rc::Rc;

use super::Oracle;
use super::graph::{Id, Release};
use crate::actor::Gap;
use crate::tests::Event;
use crate::{Kind, Lanes, ProxyFence, Scope, Semantics, Site, Space};

/// Who made an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Thread,
    Copy,
    Store,
    Load,
    Product,
}

/// One access to one byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Past {
    pub node: Id,
    pub warp: u32,
    pub lane: u8,
    pub site: Site,
    pub write: bool,
    pub unit: Unit,
    pub asynchronous: bool,
    /// The operation that started the access; the access itself if it is a thread's.
    pub start: Id,
    /// Start, size, scope and block of a strong access.
    pub strong: Option<(u64, u32, Scope, u32)>,
    /// Later accesses of units to this byte that follow this one: whoever follows those follows it, although completions
    /// tell of nothing else. Order composes on one byte.
    pub covers: Vec<usize>,
}

impl Past {
    /// A thread's weak read.
    pub fn new(node: Id, at: Lanes, lane: u8, site: Site) -> Past {
        let (write, unit, asynchronous, strong) = (false, Unit::Thread, false, None);
        Past { node, warp: at.warp, lane, site, write, unit, asynchronous, start: node, strong, covers: Vec::new() }
    }
}

/// Two unordered accesses to a byte.
pub struct Race {
    pub space: Space,
    pub byte: u64,
    pub first: Past,
    pub second_lane: u8,
    pub gap: Gap,
    /// Does the second access follow the start of the first?
    pub start_known: bool,
}

impl Oracle {
    pub fn access(&mut self, event: &Event, site: Site, races: &mut Vec<Race>) {
        match event {
            Event::Access { at, kind, semantics, space, addresses, bytes } => {
                let mut released = [None; 32];
                for lane in self.live(*at) {
                    if semantics.release {
                        released[lane as usize] = Some(self.next(at.warp, lane, &[]));
                    }
                    let node = self.next(at.warp, lane, &[]);
                    let start = addresses[lane as usize];
                    let strong = kind.is_strong().then_some((start, *bytes, semantics.scope, self.block(at.warp)));
                    let now = Past { write: kind.writes(), strong, ..Past::new(node, *at, lane, site) };
                    self.touch(now, *space, start..start + u64::from(*bytes), races);
                }
                for lane in self.live(*at) {
                    let place = (*space, addresses[lane as usize]);
                    self.order((at.warp, lane), (*kind, *semantics), place, *bytes, released[lane as usize]);
                }
            }
            Event::Copy { at, from, from_bytes, to, bytes } => {
                for lane in self.live(*at) {
                    let issue = self.next(at.warp, lane, &[]);
                    let node = self.fresh(&[issue]);
                    let thread = self.thread(at.warp, lane);
                    thread.open.push(node);
                    thread.copies.push(node);
                    let read = Past { unit: Unit::Copy, start: issue, ..Past::new(node, *at, lane, site) };
                    let (from, size, to) = (from[lane as usize], from_bytes[lane as usize], to[lane as usize]);
                    self.touch(read.clone(), Space::Global, from..from + u64::from(size), races);
                    self.touch(Past { write: true, ..read }, Space::Shared, to..to + u64::from(*bytes), races);
                }
            }
            event => unreachable!("{event:?}"),
        }
    }

    /// What an access takes from its place, and what it leaves there.
    fn order(
        &mut self,
        (warp, lane): (u32, u8),
        (kind, semantics): (Kind, Semantics),
        place: (Space, u64),
        bytes: u32,
        released: Option<Id>,
    ) {
        let (block, scope) = (self.block(warp), semantics.scope);
        let same = self.words.get(&place).filter(|word| word.0 == bytes).cloned();
        let wide = |scope: Scope, other: u32| scope != Scope::Cta || other == block;
        let linked = same.as_ref().is_some_and(|word| wide(word.2, word.1) && wide(scope, word.1));
        let chain = same.map(|word| word.3).unwrap_or_default();
        let chain = chain.into_iter().map(|release| if linked { release } else { release.broken() });
        let chain: Vec<Release> = chain.collect();
        if matches!(kind, Kind::StrongRead | Kind::Atomic) && !semantics.blind {
            chain.iter().for_each(|release| self.pend(warp, lane, place, *release));
            if semantics.acquire {
                self.take_pending(warp, lane, Some(place), scope);
            }
        }
        if kind.writes() {
            self.erase(place.0, place.1..place.1 + u64::from(bytes));
            let own = |release: &Release| release.lane == (warp, lane) && release.scope.is_some();
            let survives = |release: &Release| kind == Kind::Atomic || kind == Kind::StrongWrite && own(release);
            let mut left: Vec<Release> = chain.into_iter().filter(survives).collect();
            if kind.is_strong() {
                let fences = self.thread(warp, lane).fences.clone();
                let new = fences.into_iter().chain(released.map(|node| (node, scope)));
                let release =
                    |(node, scope)| Release { node, scope: Some(scope), block, lane: (warp, lane), alone: false };
                left.extend(new.map(release));
            }
            self.words.insert(place, (bytes, block, scope, left));
        }
    }

    /// A write ends what was released at places that it overlaps.
    pub fn erase(&mut self, space: Space, range: Range<u64>) {
        self.words
            .retain(|(other, at), word| *other != space || *at >= range.end || *at + u64::from(word.0) <= range.start);
    }

    pub fn touch(&mut self, now: Past, space: Space, range: Range<u64>, races: &mut Vec<Race>) {
        for byte in range {
            let mut past = self.history.remove(&(space, byte)).unwrap_or_default();
            let gaps: Vec<Option<Gap>> =
                (0..past.len()).map(|index| self.through(&past, index, &now, space, byte)).collect();
            for (first, gap) in past.iter().zip(&gaps).filter(|(first, _)| first.write || now.write) {
                if let Some(gap) = *gap {
                    let start_known = self.nodes[now.node].exact.has(first.start);
                    let second_lane = now.lane;
                    races.push(Race { space, byte, first: first.clone(), second_lane, gap, start_known });
                }
            }
            let all = Rc::make_mut(&mut past);
            let index = all.len();
            for first in all.iter_mut().filter(|_| now.unit != Unit::Thread) {
                let class = |past: &Past| (past.strong, past.asynchronous);
                let stands = (now.write || !first.write) && (now.strong.is_none() || class(first) == class(&now));
                if stands && self.order_gap(first, &now, space, byte).is_none() {
                    first.covers.push(index);
                }
            }
            all.push(now.clone());
            self.history.insert((space, byte), past);
        }
    }

    /// What lies between an earlier access and this one, or between this one and something that stands for the earlier.
    fn through(&self, past: &[Past], index: usize, now: &Past, space: Space, byte: u64) -> Option<Gap> {
        let covers = past[index].covers.iter().map(|cover| self.through(past, *cover, now, space, byte));
        covers.chain([self.gap(&past[index], now, space, byte)]).min().flatten()
    }

    fn gap(&self, first: &Past, now: &Past, space: Space, byte: u64) -> Option<Gap> {
        if let (Some(one), Some(two)) = (first.strong, now.strong)
            && (one.0, one.1, first.asynchronous) == (two.0, two.1, now.asynchronous)
            && [one.2, two.2].iter().all(|scope| *scope != Scope::Cta || one.3 == two.3)
        {
            return None;
        }
        self.order_gap(first, now, space, byte)
    }

    fn order_gap(&self, first: &Past, now: &Past, space: Space, byte: u64) -> Option<Gap> {
        let here = &self.nodes[now.node];
        if !here.exact.has(first.node) {
            return Some(if here.loose.has(first.node) { Gap::Reach } else { Gap::Order });
        }
        let covers = |block: u32, which: ProxyFence| match (space, which) {
            (_, ProxyFence::All) | (Space::Shared, ProxyFence::SharedCluster) => true,
            (Space::Shared, ProxyFence::SharedBlock) => u64::from(block) == byte >> 32,
            (space, which) => space == Space::Global && which == ProxyFence::Global,
        };
        let between = |(fence, block, which): &(Id, u32, ProxyFence)| {
            covers(*block, *which) && self.nodes[*fence].exact.has(first.node) && here.exact.has(*fence)
        };
        let fenced = !now.asynchronous || first.asynchronous || self.proxy_fences.iter().any(between);
        (!fenced).then_some(Gap::Fence)
    }
}
