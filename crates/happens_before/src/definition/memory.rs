//! Every access to every byte, and what strong accesses order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::event::Event;
use super::graph::{Id, Release};
use super::oracle::{Fenced, Oracle, Word, released};
use crate::actor::Gap;
use crate::{Kind, Lanes, Scope, Semantics, Site, Space, Stretch};

/// The widest access that orders, in bytes.
const WIDEST: u64 = 16;

/// Who made an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Thread,
    Copy,
    Store,
    Load,
    Product,
}

/// Start, size, scope and block of a strong access.
type Strong = (u64, u32, Scope, u32);

/// One access to one byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Past {
    pub node: Id,
    /// The event.
    pub step: usize,
    pub warp: u32,
    pub lane: u8,
    pub site: Site,
    pub write: bool,
    pub unit: Unit,
    pub asynchronous: bool,
    /// A read of the tensor map at this address.
    pub map: Option<u64>,
    /// The operation that started the access; the access itself if it is a thread's.
    pub start: Id,
    pub strong: Option<Strong>,
    /// Later accesses of units to this byte that follow this one: whoever follows those follows it, although completions
    /// tell of nothing else. Order composes on one byte.
    pub covers: Vec<usize>,
    /// `atom`, `red`.
    pub atomic: bool,
    /// Lanes of its instruction write equal values where they write the same bytes.
    pub agreed: bool,
    /// Later atomics that stand for this access, or that read what this one left, or what one left that did.
    pub observers: Vec<usize>,
}

/// All accesses to a byte, and which of them are writes.
#[derive(Clone, Default)]
pub struct History {
    pub all: Vec<Past>,
    writes: Vec<usize>,
}

/// Two unordered accesses to the same bytes.
pub struct Race {
    pub space: Space,
    pub bytes: Range<u64>,
    pub first: Past,
    /// Of the second: its event and lane.
    pub step: usize,
    pub second_lane: u8,
    pub gap: Gap,
    /// Does the second access follow the start of the first?
    pub start_known: bool,
}

impl Oracle {
    /// A thread's weak read.
    pub fn past(&self, node: Id, at: Lanes, lane: u8, site: Site) -> Past {
        Past {
            node,
            step: self.steps,
            warp: at.warp,
            lane,
            site,
            write: false,
            unit: Unit::Thread,
            asynchronous: false,
            map: None,
            start: node,
            strong: None,
            covers: Vec::new(),
            atomic: false,
            agreed: false,
            observers: Vec::new(),
        }
    }

    pub fn access(&mut self, event: &Event, site: Site, races: &mut Vec<Race>) {
        match event {
            Event::Access { at, kind, semantics, space, addresses, bytes } => {
                let mut released = [None; 32];
                for lane in self.live(*at) {
                    let node = self.next(at.warp, lane);
                    if semantics.release {
                        released[lane as usize] = Some(node);
                    }
                    let start = addresses[lane as usize];
                    let strong = kind.is_strong().then_some((start, *bytes, semantics.scope, self.block(at.warp)));
                    let atomic = *kind == Kind::Atomic;
                    let agreed = *kind == Kind::EqualWrite;
                    let now = Past { write: kind.writes(), strong, atomic, agreed, ..self.past(node, *at, lane, site) };
                    self.touch(now, &(*space, start..start + u64::from(*bytes)), races);
                }
                for lane in self.live(*at) {
                    let place = (*space, addresses[lane as usize]);
                    self.order((at.warp, lane), (*kind, *semantics), place, *bytes, released[lane as usize]);
                }
            }
            Event::Copy { at, from, from_bytes, to, bytes } => {
                for lane in self.live(*at) {
                    let issue = self.next(at.warp, lane);
                    let node = self.start(issue);
                    let thread = self.thread(at.warp, lane);
                    thread.open.push(node);
                    thread.copies.push(node);
                    let read = Past { unit: Unit::Copy, start: issue, ..self.past(node, *at, lane, site) };
                    let lane = lane as usize;
                    let (from, size, to) = (from[lane], from_bytes[lane], to[lane]);
                    self.touch(read.clone(), &(Space::Global, from..from + u64::from(size)), races);
                    let written = (Space::Shared, to..to + u64::from(*bytes));
                    self.touch(Past { write: true, ..read }, &written, races);
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
        release: Option<Id>,
    ) {
        let chain = self.chain(warp, semantics.scope, place, bytes);
        if matches!(kind, Kind::StrongRead | Kind::Atomic) && !semantics.blind {
            for release in &chain {
                match release.observed {
                    true => self.observe(warp, lane, release),
                    false => self.pend(warp, lane, place, *release),
                }
            }
            if semantics.acquire {
                self.take_pending(warp, lane, Some(place), semantics.scope);
            }
        }
        if kind.writes() {
            self.erase(&(place.0, place.1..place.1 + u64::from(bytes)));
            let own = |release: &Release| release.lane == (warp, lane) && release.scope.is_some();
            let survives = |release: &Release| kind == Kind::Atomic || kind == Kind::StrongWrite && own(release);
            let mut left: Vec<Release> = chain.into_iter().filter(survives).collect();
            if kind.is_strong() {
                self.leave((warp, lane), semantics.scope, release, &mut left);
            }
            if !left.is_empty() {
                self.words.insert(place, (bytes, self.block(warp), semantics.scope, left));
            }
        }
    }

    /// What was released at a place, as an access of this scope finds it.
    fn chain(&self, warp: u32, scope: Scope, place: (Space, u64), bytes: u32) -> Vec<Release> {
        let Some((size, writer, written, all)) = self.words.get(&place) else { return vec![] };
        let block = self.block(warp);
        let linked = self.includes(*written, *writer, block) && self.includes(scope, block, *writer);
        match (*size == bytes, linked) {
            (false, _) => vec![],
            (true, true) => all.clone(),
            (true, false) => all.iter().filter(|release| !release.observed).map(|release| release.broken()).collect(),
        }
    }

    /// What a strong write releases: what its lane's fences and its own release did, and which `fence.sc` came before.
    fn leave(&mut self, at: (u32, u8), scope: Scope, release: Option<Id>, left: &mut Vec<Release>) {
        let block = self.block(at.0);
        let fences = self.thread(at.0, at.1).fences.clone();
        let own = fences.into_iter().chain(release.map(|node| (scope, node)));
        own.for_each(|(scope, node)| released(node, Some(scope), block, at).gather(left));
        if !self.thread(at.0, at.1).before.sequential.is_empty() {
            let now = self.next(at.0, at.1);
            Release { observed: true, ..released(now, Some(scope), block, at) }.gather(left);
        }
    }

    /// A write ends what was released at places that it overlaps.
    pub fn erase(&mut self, (space, range): &Stretch) {
        let near = self.words.range((*space, range.start.saturating_sub(WIDEST))..(*space, range.end));
        let overlaps = |((_, at), word): &(&(Space, u64), &Word)| at + u64::from(word.0) > range.start;
        let over: Vec<(Space, u64)> = near.filter(overlaps).map(|(place, _)| *place).collect();
        over.iter().for_each(|place| {
            self.words.remove(place);
        });
    }

    /// Bytes that have one history, cut by cut.
    fn pieces(&self, (space, range): &Stretch) -> Vec<Range<u64>> {
        let Some(cuts) = &self.cuts else { return range.clone().map(|byte| byte..byte + 1).collect() };
        let inner = cuts.range((*space, range.start)..(*space, range.end)).map(|(_, at)| *at);
        let starts: Vec<u64> = inner.filter(|at| *at > range.start).collect();
        let ends = starts.iter().copied().chain([range.end]);
        [range.start].into_iter().chain(starts.iter().copied()).zip(ends).map(|(from, to)| from..to).collect()
    }

    pub fn touch(&mut self, now: Past, stretch: &Stretch, races: &mut Vec<Race>) {
        let space = stretch.0;
        let pieces: Vec<Range<u64>> = self.pieces(stretch).into_iter().filter(|bytes| !bytes.is_empty()).collect();
        let read = now.atomic.then(|| self.last_writer(space, &pieces, now.step)).flatten();
        for bytes in pieces {
            if space == Space::Global {
                self.note_early(&now, &bytes);
            }
            let mut past = self.history.remove(&(space, bytes.start)).unwrap_or_default();
            let mut gaps = BTreeMap::new();
            let conflicts: Box<dyn Iterator<Item = usize>> =
                if now.write { Box::new(0..past.all.len()) } else { Box::new(past.writes.iter().copied()) };
            let agreed = |index: &usize| now.agreed && past.all[*index].step == now.step;
            for index in conflicts.filter(|index| !agreed(index)) {
                if let Some(gap) = self.through(&past.all, index, &now, (space, bytes.start), &mut gaps) {
                    let first = past.all[index].clone();
                    let start_known = self.follows(now.node, first.start);
                    let (bytes, step, second_lane) = (bytes.clone(), now.step, now.lane);
                    races.push(Race { space, bytes, first, step, second_lane, gap, start_known });
                }
            }
            self.observe_atomics(Rc::make_mut(&mut past), &now, (space, bytes.start), read);
            let History { all, writes } = Rc::make_mut(&mut past);
            let index = all.len();
            if now.unit != Unit::Thread {
                self.cover(all, &now, (space, bytes.start));
            }
            if now.write {
                writes.push(index);
            }
            all.push(now.clone());
            self.history.insert((space, bytes.start), past);
        }
    }

    /// Notes which earlier accesses a unit's access will stand for, when it comes behind them.
    fn cover(&self, past: &mut [Past], now: &Past, place: (Space, u64)) {
        let (index, class) = (past.len(), |past: &Past| (past.strong, past.asynchronous));
        for first in past.iter_mut().filter(|first| now.write || !first.write) {
            let stands = now.strong.is_none() || class(first) == class(now);
            if stands && self.order_gap(first, now, place).is_none() {
                first.covers.push(index);
            }
        }
    }

    /// The event that wrote all these bytes last, but for one.
    fn last_writer(&self, space: Space, pieces: &[Range<u64>], but: usize) -> Option<usize> {
        let of_piece = |bytes: &Range<u64>| {
            let History { all, writes } = &**self.history.get(&(space, bytes.start))?;
            writes.iter().map(|write| all[*write].step).rfind(|step| *step != but)
        };
        let first = of_piece(pieces.first()?)?;
        pieces.iter().all(|bytes| of_piece(bytes) == Some(first)).then_some(first)
    }

    /// An atomic reads what the last write left, if one left all its bytes; if that was an atomic, it observes it and all that
    /// one observed. PTX ISA, "Observation Order". Lanes of one instruction have no order among themselves. An atomic stands
    /// for accesses of its class that it follows: order composes on one byte.
    fn observe_atomics(
        &self,
        History { all, writes }: &mut History,
        now: &Past,
        place: (Space, u64),
        last_writer: Option<usize>,
    ) {
        if !now.atomic {
            return;
        }
        let class = |past: &Past| (past.strong, past.asynchronous);
        let (index, last) = (all.len(), writes.iter().copied().rfind(|write| Some(all[*write].step) == last_writer));
        let read = last.filter(|last| all[*last].atomic && self.is_morally_strong(&all[*last], now));
        let step = read.map(|last| all[last].step);
        let read: BTreeSet<usize> = (0..index).filter(|one| Some(all[*one].step) == step).collect();
        for (one, past) in all.iter_mut().enumerate().filter(|(_, past)| past.step != now.step) {
            let stands = class(past) == class(now) && self.order_gap(past, now, place).is_none();
            if stands || read.contains(&one) || past.observers.iter().any(|observer| read.contains(observer)) {
                past.observers.push(index);
            }
        }
    }

    fn is_morally_strong(&self, first: &Past, now: &Past) -> bool {
        let shared = |one: Strong, two: Strong| {
            (one.0, one.1, first.asynchronous) == (two.0, two.1, now.asynchronous)
                && self.includes(one.2, one.3, two.3)
                && self.includes(two.2, two.3, one.3)
        };
        first.strong.zip(now.strong).is_some_and(|(one, two)| shared(one, two))
    }

    /// What lies between an earlier access and this one, or between this one and something that stands for the earlier.
    /// `known` are the answers so far.
    fn through(
        &self,
        past: &[Past],
        index: usize,
        now: &Past,
        place: (Space, u64),
        known: &mut BTreeMap<usize, Option<Gap>>,
    ) -> Option<Gap> {
        if let Some(gap) = known.get(&index) {
            return *gap;
        }
        let mut least = self.gap(&past[index], now, place);
        least?;
        for observer in &past[index].observers {
            least = least.min(self.order_gap(&past[*observer], now, place));
        }
        for cover in past[index].covers.iter().rev() {
            if least.is_some() {
                least = least.min(self.through(past, *cover, now, place, known));
            }
        }
        known.insert(index, least);
        least
    }

    fn gap(&self, first: &Past, now: &Past, place: (Space, u64)) -> Option<Gap> {
        if self.is_morally_strong(first, now) { None } else { self.order_gap(first, now, place) }
    }

    fn order_gap(&self, first: &Past, now: &Past, place: (Space, u64)) -> Option<Gap> {
        if !self.follows(now.node, first.node) {
            return Some(if self.follows_loosely(now.node, first.node) { Gap::Reach } else { Gap::Order });
        }
        let fenced = !now.asynchronous || first.asynchronous || self.is_fenced(first, now, place);
        (!fenced).then_some(Gap::Fence)
    }

    /// Does a fence that makes a thread's access fit for the unit lie on the way?
    fn is_fenced(&self, first: &Past, now: &Past, (space, address): (Space, u64)) -> bool {
        if let Some(map) = now.map {
            return self.is_between(first.node, now.node, Fenced::Acquired(map), |acquire| {
                self.is_between(first.node, acquire, Fenced::Released, |_| true)
            });
        }
        let covers = match space {
            Space::Shared => [Fenced::Everything, Fenced::Shared, Fenced::Block((address >> 32) as u32)],
            Space::Global => [Fenced::Everything, Fenced::Global, Fenced::Global],
        };
        covers.into_iter().any(|cover| self.is_between(first.node, now.node, cover, |_| true))
    }

    /// A fence that follows one operation, precedes another, and is as it should be. Of a lane's, the last one that the
    /// second follows is enough: it follows whatever those before it follow.
    fn is_between(&self, first: Id, now: Id, cover: Fenced, fits: impl Fn(Id) -> bool) -> bool {
        self.proxy_fences.range((cover, 0)..=(cover, u32::MAX)).any(|((_, lane), fences)| {
            let known = self.known(now, *lane);
            let later = fences.partition_point(|fence| self.nodes[*fence].count <= known);
            let last = later.checked_sub(1).map(|place| fences[place]);
            last.is_some_and(|fence| self.follows(fence, first) && fits(fence))
        })
    }
}
