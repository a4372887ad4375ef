//! Release and acquire through memory. PTX ISA, "Release and Acquire Patterns".
//!
//! A strong write publishes what its lane had released before: by its own `.release`, by an earlier fence, or by an
//! earlier release to the same place. A strong read of the whole place takes what is published there, at once if it is
//! an `.acquire`, else at the lane's next `.acquire` of that place or its next fence. An atomic continues what it reads;
//! a plain store starts anew.
//!
//! Both scopes must include the other side, those of the release and the acquire and those of the write and the read.
//! Where they do not, or where the reader is relaxed, what was published only explains the fault that follows. A
//! relaxed write with no fence before it publishes nothing at all: counters are many.
//!
//! Two `fence.sc` follow each other in one order of all of them. That order is luck, and gives nothing, unless the program
//! fixes it: where a strong read sees a write behind the first fence and comes before the second. So what came before a
//! `fence.sc` travels with strong writes to those who read them, and is known behind their next `fence.sc`. PTX ISA,
//! "Fence-SC Order", "Causality Order". Blocks that fence in every thread, meet at a barrier and let one thread count
//! rely on it.

use super::abroad::Origin;
use super::clock::{Row, bits};
use super::scope::{Offer, Scope, Seat, Semantics};
use super::view::{Cover, ROWS, View};
use super::warp::{Fence, Handover, Meeting, Warp};
use super::{Detector, Kind, Lanes, Means, Places, Site, Space};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A space and an address in it.
pub type Place = (Space, u64);

/// What is published at a place, by whom.
#[derive(Clone)]
pub struct Published {
    pub warp: u32,
    pub lane: u8,
    /// The statement that released it.
    pub site: Site,
    /// Not released: it tells of earlier `fence.sc`, and whoever reads it is told.
    observed: bool,
    /// The warp's time at the release: what a lane releases later contains what it released before.
    time: u32,
    pub offer: Offer,
}

impl Published {
    /// The row of the lane that released it, seen from a cluster.
    pub fn origin(&self, cluster: u32) -> Origin {
        let home = self.offer.seat.cluster;
        Origin { abroad: (home != cluster).then_some(home), row: (self.warp as usize * ROWS) as Row }
    }

    fn add(self, set: &mut Vec<Published>) {
        let key = |one: &Published| (one.offer.seat.cluster, one.warp, one.lane, one.offer.scope, one.observed);
        match set.iter_mut().find(|old| key(old) == key(&self)) {
            Some(old) if old.time >= self.time => {}
            Some(old) => *old = self,
            None => set.push(self),
        }
    }
}

/// A place that somebody published at.
#[derive(Clone)]
struct Word {
    bytes: u32,
    /// Seat and scope of the last writer.
    seat: Seat,
    scope: Scope,
    set: Vec<Published>,
    /// Tells apart what was published here at different times.
    version: u64,
}

impl Word {
    fn is_linked(&self, seat: Seat, scope: Scope) -> bool {
        self.scope.includes(self.seat, seat) && scope.includes(seat, self.seat)
    }
}

/// Places of one space with something to take, by address.
#[derive(Clone, Default)]
pub struct Words {
    all: BTreeMap<u64, Word>,
    versions: u64,
}

impl Words {
    /// A write that publishes nothing ends what overlaps with it.
    pub fn erase(&mut self, address: u64, bytes: u64) {
        if self.all.is_empty() {
            return;
        }
        // No access to a word is wider than 16 bytes.
        let near = self.all.range(address.saturating_sub(16)..address + bytes);
        let overlaps = |(at, word): &(&u64, &Word)| *at + u64::from(word.bytes) > address;
        let over: Vec<_> = near.filter(overlaps).map(|(at, _)| *at).collect();
        over.iter().for_each(|at| {
            self.all.remove(at);
        });
    }

    fn get(&self, address: u64, bytes: u32) -> Option<&Word> {
        self.all.get(&address).filter(|word| word.bytes == bytes)
    }

    /// All that can be taken, and where.
    pub fn published(&self) -> impl Iterator<Item = (u64, &Published)> {
        self.all.iter().flat_map(|(address, word)| word.set.iter().map(|one| (*address, one)))
    }
}

impl Detector {
    /// A fence by lanes: what they did is published by their next strong writes, and they take what they have read.
    pub fn fence(&mut self, at: Lanes, site: Site, semantics: Semantics) {
        let semantics = self.narrowed(semantics);
        let (warp, mask) = self.warp(at);
        if semantics.acquire {
            warp.take_pending(mask, None, semantics.scope);
        }
        let sequential = semantics.sequential && semantics.scope == Scope::Gpu;
        if sequential {
            warp.learn(mask, View::follow_sequential);
        }
        if semantics.release {
            warp.fence(mask, semantics.scope, site);
            self.published(Lanes { mask, ..at }, site, Means::Fence);
        }
        if sequential {
            self.proxy_fence(at, &[Cover::Sequential]);
        }
    }

    /// A cluster of one block is that block.
    pub(super) fn narrowed(&self, semantics: Semantics) -> Semantics {
        if self.blocks > 1 { semantics } else { Semantics { scope: semantics.scope.max(Scope::Cluster), ..semantics } }
    }

    /// A weak load or store of `bytes` bytes per lane; `ldmatrix` is 16 bytes by each lane that gives an address. It orders
    /// nothing, and a store ends what was published there.
    pub fn access(&mut self, at: Lanes, site: Site, kind: Kind, space: Space, places: Places, bytes: u32) {
        self.scoped_access(at, site, (kind, Scope::default()), space, places, bytes);
        if kind.writes() && !self.words[space as usize].all.is_empty() {
            let mask = self.warp(at).1;
            bits(mask).for_each(|lane| self.words[space as usize].erase(places.at(lane, bytes), bytes.into()));
        }
    }

    /// An access with what it orders.
    pub fn ordered_access(
        &mut self,
        at: Lanes,
        site: Site,
        (kind, semantics): (Kind, Semantics),
        space: Space,
        places: Places,
        bytes: u32,
    ) {
        if self.idle {
            return;
        }
        if !kind.is_strong() && !semantics.release {
            return self.access(at, site, kind, space, places, bytes);
        }
        let written = semantics.scope;
        let semantics = self.narrowed(semantics);
        let mask = self.warp(at).1;
        self.scoped_access(at, site, (kind, written), space, places, bytes);
        let mut released = Vec::new();
        if semantics.release {
            let warp = &mut self.warps[at.warp as usize];
            released = warp.snapshot(mask, semantics.scope, site);
            warp.tick(site, mask, Meeting::Fence);
            self.published(Lanes { mask, ..at }, site, Means::Fence);
        }
        for lane in bits(mask) {
            let address = places.at(lane, bytes);
            if matches!(kind, Kind::StrongRead | Kind::Atomic) && !semantics.blind {
                self.take(Lanes { mask: 1 << lane, ..at }, site, (space, address), bytes, semantics);
            }
            if kind.writes() {
                self.publish((at.warp, lane), (space, address), bytes, (kind, semantics.scope), &released);
            }
        }
    }

    /// An acquire takes what this and earlier reads found at its place; other reads wait for a fence.
    fn take(&mut self, at: Lanes, site: Site, place: Place, bytes: u32, semantics: Semantics) {
        let Detector { words, warps, near_misses, .. } = self;
        let (warp, lane) = (&mut warps[at.warp as usize], at.mask.trailing_zeros() as u8);
        if let Some(word) = words[place.0 as usize].get(place.1, bytes) {
            let now = (word.version, semantics.scope);
            if warp.heard.insert((lane, place), now) != Some(now) {
                let linked = word.is_linked(warp.seat(), semantics.scope);
                for one in &word.set {
                    let known = warp.knows_of(lane, one.origin(warp.cluster), one.lane, one.time);
                    if known || one.observed && !linked {
                        continue;
                    }
                    if one.observed {
                        let told = one.offer.told_in(warp.cluster);
                        warp.learn(at.mask, |view| view.join(&told));
                        continue;
                    }
                    let offer = if linked { one.offer.clone() } else { one.offer.clone().broken() };
                    near_misses.note(at.warp, warp.cluster, one, (site, semantics));
                    warp.pend(lane, place, offer, semantics);
                }
            }
        }
        if semantics.acquire {
            warp.take_pending(1 << lane, Some(place), semantics.scope);
        }
    }

    fn publish(
        &mut self,
        (index, lane): (u32, u8),
        place: Place,
        bytes: u32,
        (kind, scope): (Kind, Scope),
        released: &[Fence],
    ) {
        let warp = &self.warps[index as usize];
        let (seat, words) = (warp.seat(), &mut self.words[place.0 as usize]);
        let fences = if kind.is_strong() { warp.fences.as_slice() } else { &[] };
        let of_lane = fences.iter().chain(released).filter(|fence| fence.mask >> lane & 1 == 1);
        let observed = warp.sequential(lane).filter(|_| kind.is_strong()).map(|view| {
            let offer = Offer { view: Arc::new(view), scope: Some(scope), seat };
            Published { warp: index, lane, site: Site(0), observed: true, time: warp.time, offer }
        });
        let new: Vec<Published> = of_lane
            .map(|fence| Published {
                warp: index,
                lane,
                site: fence.site,
                observed: false,
                time: fence.time,
                offer: Offer { view: Arc::new(warp.told(fence, 1 << lane)), scope: Some(fence.scope), seat },
            })
            .chain(observed)
            .collect();
        if new.is_empty() && words.all.is_empty() {
            return;
        }
        let mut set = match words.all.remove(&place.1).filter(|word| word.bytes == bytes) {
            Some(word) if kind.is_strong() => kept(word, (index, lane), seat, kind, scope),
            _ => vec![],
        };
        words.erase(place.1, bytes.into());
        new.into_iter().for_each(|one| one.add(&mut set));
        if !set.is_empty() {
            words.versions += 1;
            let version = words.versions;
            words.all.insert(place.1, Word { bytes, seat, scope, set, version });
        }
    }
}

/// What survives a strong write: all of it behind an atomic, the lane's own releases behind a store.
fn kept(word: Word, (warp, lane): (u32, u8), seat: Seat, kind: Kind, scope: Scope) -> Vec<Published> {
    let linked = word.is_linked(seat, scope);
    let own = |one: &Published| {
        linked && (one.warp, one.lane, one.offer.seat) == (warp, lane, seat) && one.offer.scope.is_some()
    };
    match (kind, linked) {
        (Kind::Atomic, true) => word.set,
        (Kind::Atomic, false) => {
            let released = word.set.into_iter().filter(|one| !one.observed);
            released.map(|one| Published { offer: one.offer.broken(), ..one }).collect()
        }
        _ => word.set.into_iter().filter(own).collect(),
    }
}

impl Warp {
    /// What these lanes have done and know now.
    pub fn snapshot(&self, mask: u32, scope: Scope, site: Site) -> Vec<Fence> {
        let groups = self.groups.iter().filter(|group| group.mask & mask != 0);
        let part = |group: &super::warp::Group| {
            let (mask, view, own) = (group.mask & mask, group.view.clone(), group.own);
            Fence { mask, scope, site, view, time: self.time, own }
        };
        groups.map(part).collect()
    }

    /// Notes what these lanes have done and know up to now. A fence replaces those that reach no further.
    fn fence(&mut self, mask: u32, scope: Scope, site: Site) {
        self.fences.iter_mut().filter(|fence| fence.scope <= scope).for_each(|fence| fence.mask &= !mask);
        self.fences.retain(|fence| fence.mask != 0);
        self.fences.extend(self.snapshot(mask, scope, site));
        self.tick(site, mask, Meeting::Fence);
    }

    /// What a lane can tell of earlier `fence.sc`.
    fn sequential(&self, lane: u8) -> Option<View> {
        let group = self.group(lane)?;
        let mut known = group.view.only_sequential().unwrap_or_default();
        known.write_out_sequential(self.lanes_row(), 1 << lane, &group.own);
        known.only_sequential()
    }

    /// What these lanes had done and knew at a fence.
    pub fn told(&self, fence: &Fence, mask: u32) -> View {
        let mut view = (*fence.view).clone();
        view.write_out(self.lanes_row(), fence.mask & mask, fence.time, &fence.own, self.block);
        view
    }

    /// A lane has read what others offer. Unless it acquires at once, that explains what follows.
    pub fn pend(&mut self, lane: u8, place: Place, offer: Offer, semantics: Semantics) {
        let same = |old: &Offer| Arc::ptr_eq(&old.view, &offer.view) && old.scope == offer.scope;
        if self.pending.get(&(lane, place)).is_some_and(|pending| pending.iter().any(same)) {
            return;
        }
        if !semantics.acquire || offer.scope.is_none() {
            let told = offer.told_in(self.cluster);
            self.learn(1 << lane, |known| known.join_loosely(&told));
        }
        if offer.scope.is_some() {
            self.pending.entry((lane, place)).or_default().push(offer);
        }
    }

    /// Takes whatever the lanes have read, at one place or everywhere. What the scope does not reach waits for another.
    pub fn take_pending(&mut self, mask: u32, place: Option<Place>, scope: Scope) {
        let chosen = |(lane, at): &&(u8, Place)| mask >> lane & 1 == 1 && place.is_none_or(|place| place == *at);
        let keys: Vec<(u8, Place)> = self.pending.keys().filter(chosen).copied().collect();
        for key in keys {
            let pending = self.pending.remove(&key).unwrap_or_default();
            let (seat, cluster) = (self.seat(), self.cluster);
            let (taken, left): (Vec<Offer>, Vec<Offer>) =
                pending.into_iter().partition(|offer| offer.reaches(seat, scope));
            self.learn(1 << key.0, |view| {
                taken.iter().for_each(|offer| view.join(&offer.told_in(cluster)));
                left.iter().for_each(|offer| view.join_loosely(&offer.told_in(cluster)));
            });
            if !left.is_empty() {
                self.pending.insert(key, left);
            }
        }
    }

    /// Lanes take what is offered, as far as it reaches them.
    pub fn accept(&mut self, mask: u32, offers: &[Offer], scope: Scope) {
        let seat = self.seat();
        self.learn(mask, |view| {
            for offer in offers {
                if offer.reaches(seat, scope) { view.join(&offer.view) } else { view.join_loosely(&offer.view) }
            }
        });
    }

    /// What lanes offer when they arrive: all they know if they release, else what they knew at their fences.
    pub fn offers(&mut self, mask: u32, site: Site, meeting: Meeting, semantics: Semantics) -> Vec<Offer> {
        let (seat, scope) = (self.seat(), semantics.scope);
        let of_lanes = self.fences.iter().filter(|fence| !semantics.release && fence.mask & mask != 0);
        let mut offers: Vec<Offer> = of_lanes
            .map(|fence| {
                let (view, scope) = (Arc::new(self.told(fence, mask)), Some(fence.scope.min(scope)));
                Offer { view, scope, seat }
            })
            .collect();
        let mut all = Handover::default();
        self.release(mask, site, meeting, &mut all);
        let scope = semantics.release.then_some(scope);
        offers.extend(all.finish().map(|view| Offer { view, scope, seat }));
        offers
    }
}
