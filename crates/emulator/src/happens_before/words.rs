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

use super::clock::bits;
use super::scope::{Offer, Scope, Semantics};
use super::view::View;
use super::warp::{Fence, Handover, Meeting, Warp};
use super::{Detector, Kind, Lanes, Means, Site, Space};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A space and an address in it.
pub type Place = (Space, u64);

/// What is published at a place, by whom.
#[derive(Clone)]
struct Published {
    warp: u32,
    lane: u8,
    /// The warp's time at the release: what a lane releases later contains what it released before.
    time: u32,
    offer: Offer,
}

impl Published {
    fn add(self, set: &mut Vec<Published>) {
        let key = |one: &Published| (one.warp, one.lane, one.offer.scope);
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
    /// Block and scope of the last writer.
    block: u32,
    scope: Scope,
    set: Vec<Published>,
}

impl Word {
    fn is_linked(&self, block: u32, scope: Scope) -> bool {
        self.scope.includes(self.block, block) && scope.includes(block, self.block)
    }
}

/// Places with something to take, by space and address.
#[derive(Clone, Default)]
pub struct Words {
    all: BTreeMap<Place, Word>,
}

impl Words {
    /// A write that publishes nothing ends what overlaps with it.
    pub fn erase(&mut self, space: Space, address: u64, bytes: u64) {
        if self.all.is_empty() {
            return;
        }
        // No access to a word is wider than 16 bytes.
        let near = self.all.range((space, address.saturating_sub(16))..(space, address + bytes));
        let overlaps = |(at, word): &(&Place, &Word)| at.1 + u64::from(word.bytes) > address;
        let over: Vec<_> = near.filter(overlaps).map(|(at, _)| *at).collect();
        over.iter().for_each(|at| {
            self.all.remove(at);
        });
    }

    fn get(&self, place: Place, bytes: u32) -> Option<&Word> {
        self.all.get(&place).filter(|word| word.bytes == bytes)
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
        if semantics.release {
            warp.fence(mask, semantics.scope, site);
            self.published(Lanes { mask, ..at }, site, Means::Fence);
        }
    }

    /// In a cluster of one block all scopes are the same.
    pub(super) fn narrowed(&self, semantics: Semantics) -> Semantics {
        if self.blocks > 1 { semantics } else { Semantics { scope: Scope::Cluster, ..semantics } }
    }

    /// An access with what it orders.
    pub fn ordered_access(
        &mut self,
        at: Lanes,
        site: Site,
        (kind, semantics): (Kind, Semantics),
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        if self.idle {
            return;
        }
        let semantics = self.narrowed(semantics);
        let mask = self.warp(at).1;
        let mut released = Vec::new();
        if semantics.release {
            let warp = &mut self.warps[at.warp as usize];
            released = warp.snapshot(mask, semantics.scope);
            warp.tick(site, mask, Meeting::Fence);
            self.published(Lanes { mask, ..at }, site, Means::Fence);
        }
        self.scoped_access(at, site, (kind, semantics.scope), space, addresses, bytes);
        if !kind.is_strong() && (kind == Kind::Read || self.words.all.is_empty()) {
            return;
        }
        for lane in bits(mask) {
            let address = addresses[lane as usize];
            if matches!(kind, Kind::StrongRead | Kind::Atomic) && !semantics.blind {
                self.take(at.warp, lane, (space, address), bytes, semantics);
            }
            if kind.writes() {
                self.publish((at.warp, lane), (space, address), bytes, (kind, semantics.scope), &released);
            }
        }
    }

    /// An acquire takes what this and earlier reads found at its place; other reads wait for a fence.
    fn take(&mut self, warp: u32, lane: u8, place: Place, bytes: u32, semantics: Semantics) {
        let Detector { words, warps, .. } = self;
        let warp = &mut warps[warp as usize];
        if let Some(word) = words.get(place, bytes) {
            let linked = word.is_linked(warp.block, semantics.scope);
            for one in &word.set {
                let offer = if linked { one.offer.clone() } else { one.offer.clone().broken() };
                warp.pend(lane, place, offer, semantics);
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
        let block = warp.block;
        let fences = if kind.is_strong() { warp.fences.as_slice() } else { &[] };
        let of_lane = fences.iter().chain(released).filter(|fence| fence.mask >> lane & 1 == 1);
        let new: Vec<Published> = of_lane
            .map(|fence| Published {
                warp: index,
                lane,
                time: fence.time,
                offer: Offer { view: Arc::new(warp.told(fence, 1 << lane)), scope: Some(fence.scope), block },
            })
            .collect();
        if new.is_empty() && self.words.all.is_empty() {
            return;
        }
        let mut set = match self.words.get(place, bytes) {
            Some(word) if kind.is_strong() => kept(word, (index, lane), block, kind, scope),
            _ => vec![],
        };
        self.words.erase(place.0, place.1, bytes.into());
        new.into_iter().for_each(|one| one.add(&mut set));
        if !set.is_empty() {
            self.words.all.insert(place, Word { bytes, block, scope, set });
        }
    }
}

/// What survives a strong write: all of it behind an atomic, the lane's own releases behind a store.
fn kept(word: &Word, (warp, lane): (u32, u8), block: u32, kind: Kind, scope: Scope) -> Vec<Published> {
    let linked = word.is_linked(block, scope);
    let own = |one: &&Published| linked && (one.warp, one.lane) == (warp, lane) && one.offer.scope.is_some();
    match (kind, linked) {
        (Kind::Atomic, true) => word.set.clone(),
        (Kind::Atomic, false) => {
            word.set.iter().map(|one| Published { offer: one.offer.clone().broken(), ..*one }).collect()
        }
        _ => word.set.iter().filter(own).cloned().collect(),
    }
}

impl Warp {
    /// What these lanes have done and know now.
    pub fn snapshot(&self, mask: u32, scope: Scope) -> Vec<Fence> {
        let groups = self.groups.iter().filter(|group| group.mask & mask != 0);
        let part = |group: &super::warp::Group| {
            let (mask, view, own) = (group.mask & mask, group.view.clone(), group.own);
            Fence { mask, scope, view, time: self.time, own }
        };
        groups.map(part).collect()
    }

    /// Notes what these lanes have done and know up to now. A fence replaces those that reach no further.
    fn fence(&mut self, mask: u32, scope: Scope, site: Site) {
        self.fences.iter_mut().filter(|fence| fence.scope <= scope).for_each(|fence| fence.mask &= !mask);
        self.fences.retain(|fence| fence.mask != 0);
        self.fences.extend(self.snapshot(mask, scope));
        self.tick(site, mask, Meeting::Fence);
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
            self.learn(1 << lane, |known| known.join_loosely(&offer.view));
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
            let reaches = |offer: &Offer| offer.reaches(self.block, scope);
            let (taken, left): (Vec<Offer>, Vec<Offer>) = pending.into_iter().partition(reaches);
            self.learn(1 << key.0, |view| {
                taken.iter().for_each(|offer| view.join(&offer.view));
                left.iter().for_each(|offer| view.join_loosely(&offer.view));
            });
            if !left.is_empty() {
                self.pending.insert(key, left);
            }
        }
    }

    /// Lanes take what is offered, as far as it reaches them.
    pub fn accept(&mut self, mask: u32, offers: &[Offer], scope: Scope) {
        let block = self.block;
        self.learn(mask, |view| {
            for offer in offers {
                if offer.reaches(block, scope) { view.join(&offer.view) } else { view.join_loosely(&offer.view) }
            }
        });
    }

    /// What lanes offer when they arrive: all they know if they release, else what they knew at their fences.
    pub fn offers(&mut self, mask: u32, site: Site, meeting: Meeting, semantics: Semantics) -> Vec<Offer> {
        let (block, scope) = (self.block, semantics.scope);
        let of_lanes = self.fences.iter().filter(|fence| !semantics.release && fence.mask & mask != 0);
        let mut offers: Vec<Offer> = of_lanes
            .map(|fence| {
                let (view, scope) = (Arc::new(self.told(fence, mask)), Some(fence.scope.min(scope)));
                Offer { view, scope, block }
            })
            .collect();
        let mut all = Handover::default();
        self.release(mask, site, meeting, &mut all);
        let scope = semantics.release.then_some(scope);
        offers.extend(all.finish().map(|view| Offer { view, scope, block }));
        offers
    }
}
