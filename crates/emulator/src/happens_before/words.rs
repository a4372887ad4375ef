//! Release and acquire through memory. PTX ISA, "Release and Acquire Patterns".
//!
//! A strong write publishes what its lane had released before: by its own `.release`, by an earlier fence, or by an
//! earlier release to the same place. A strong read of the whole place takes what is published there, at once if it is
//! an `.acquire`, else at the lane's next `.acquire` of that place or its next fence. An atomic continues what it reads; a plain store starts anew.
//! All threads belong to one block, which every scope includes.

use super::clock::{Clock, bits};
use super::warp::{Fence, Meeting, Warp};
use super::{Detector, Kind, Lanes, Means, Site, Space};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an instruction orders besides touching memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Semantics {
    /// What came before is published: `.release`, `.acq_rel`.
    pub release: bool,
    /// What others published is taken: `.acquire`, `.acq_rel`.
    pub acquire: bool,
    /// `red`: nobody learns what it read.
    pub blind: bool,
}

/// A space and an address in it.
pub type Place = (Space, u64);

/// What is published at a place, by whom.
#[derive(Clone)]
struct Published {
    warp: u32,
    lane: u8,
    clock: Arc<Clock>,
}

/// A place that somebody published at.
#[derive(Clone)]
struct Word {
    bytes: u32,
    set: Vec<Published>,
}

/// Places with something to take, by space and address.
#[derive(Clone, Default)]
pub struct Words {
    all: BTreeMap<Place, Word>,
}

impl Words {
    /// A write that publishes nothing ends what overlaps with it.
    fn erase(&mut self, space: Space, address: u64, bytes: u32) {
        // No access is wider than 16 bytes.
        let near = self.all.range((space, address.saturating_sub(16))..(space, address + u64::from(bytes)));
        let overlaps = |(at, word): &(&Place, &Word)| at.1 + u64::from(word.bytes) > address;
        let over: Vec<_> = near.filter(overlaps).map(|(at, _)| *at).collect();
        over.iter().for_each(|at| {
            self.all.remove(at);
        });
    }

    fn read(&self, place: Place, bytes: u32) -> Option<Clock> {
        let word = self.all.get(&place).filter(|word| word.bytes == bytes)?;
        let mut clocks = word.set.iter().map(|published| &published.clock);
        let mut all = (**clocks.next()?).clone();
        clocks.for_each(|clock| all.join(clock));
        Some(all)
    }
}

impl Detector {
    /// A fence by lanes: what they did is published by their next strong writes, and they take what they have read.
    pub fn fence(&mut self, at: Lanes, site: Site, semantics: Semantics) {
        let (warp, mask) = self.warp(at);
        if semantics.acquire {
            warp.take_pending(mask);
        }
        if semantics.release {
            warp.fence(mask, site);
            self.published(Lanes { mask, ..at }, site, Means::Fence);
        }
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
        let mask = self.warp(at).1;
        if semantics.release {
            let warp = &mut self.warps[at.warp as usize];
            warp.fence(mask, site);
            self.published(Lanes { mask, ..at }, site, Means::Fence);
        }
        self.access(at, site, kind, space, addresses, bytes);
        if !kind.is_strong() && (kind == Kind::Read || self.words.all.is_empty()) {
            return;
        }
        for lane in bits(mask) {
            let address = addresses[lane as usize];
            if matches!(kind, Kind::StrongRead | Kind::Atomic) && !semantics.blind {
                self.take(at.warp, lane, (space, address), bytes, semantics.acquire);
            }
            if kind.writes() {
                self.publish(at.warp, lane, (space, address), bytes, kind);
            }
        }
    }

    /// An acquire takes what this and earlier reads found at its place; other reads wait for a fence.
    fn take(&mut self, warp: u32, lane: u8, place: Place, bytes: u32, acquire: bool) {
        let clock = self.words.read(place, bytes);
        let warp = &mut self.warps[warp as usize];
        if let Some(clock) = clock {
            warp.pend(lane, place, clock);
        }
        if acquire && let Some(clock) = warp.pending.remove(&(lane, place)) {
            warp.learn(lane, clock);
        }
    }

    fn publish(&mut self, index: u32, lane: u8, place: Place, bytes: u32, kind: Kind) {
        let clock = if kind.is_strong() { self.warps[index as usize].fenced(lane) } else { None };
        if clock.is_none() && self.words.all.is_empty() {
            return;
        }
        let kept = match self.words.all.get(&place).filter(|word| word.bytes == bytes) {
            Some(word) if kind == Kind::Atomic => word.set.clone(),
            Some(word) if kind == Kind::StrongWrite => {
                word.set.iter().filter(|one| (one.warp, one.lane) == (index, lane)).cloned().collect()
            }
            _ => vec![],
        };
        self.words.erase(place.0, place.1, bytes);
        let new = clock.map(|clock| Published { warp: index, lane, clock: Arc::new(clock) });
        // What a lane publishes later contains what it published before.
        let renewed = new.is_some();
        let mut set: Vec<_> =
            kept.into_iter().filter(|one| !renewed || (one.warp, one.lane) != (index, lane)).collect();
        set.extend(new);
        if !set.is_empty() {
            self.words.all.insert(place, Word { bytes, set });
        }
    }
}

impl Warp {
    /// Notes what these lanes have done and know up to now.
    fn fence(&mut self, mask: u32, site: Site) {
        self.fences.iter_mut().for_each(|fence| fence.mask &= !mask);
        self.fences.retain(|fence| fence.mask != 0);
        for group in self.groups.iter().filter(|group| group.mask & mask != 0) {
            let (mask, view, waited) = (group.mask & mask, group.view.clone(), group.waited);
            self.fences.push(Fence { mask, view, time: self.time, waited });
        }
        self.tick(site, mask, Meeting::Fence);
    }

    /// What a lane had done and knew at its last fence.
    fn fenced(&self, lane: u8) -> Option<Clock> {
        let fence = self.fences.iter().find(|fence| fence.mask >> lane & 1 == 1)?;
        let mut clock = (*fence.view).clone();
        clock.raise(self.lanes_row(), 1 << lane, fence.time);
        clock.raise(self.copies_row(), 1 << lane, fence.waited);
        Some(clock)
    }

    /// A lane has read what others published.
    fn pend(&mut self, lane: u8, place: Place, clock: Clock) {
        match self.pending.get_mut(&(lane, place)) {
            Some(pending) => pending.join(&clock),
            None => {
                self.pending.insert((lane, place), clock);
            }
        }
    }

    /// A fence takes whatever its lanes have read.
    fn take_pending(&mut self, mask: u32) {
        let inside = |(lane, _): &&(u8, Place)| mask >> lane & 1 == 1;
        let taken: Vec<(u8, Place)> = self.pending.keys().filter(inside).copied().collect();
        for key in taken {
            if let Some(clock) = self.pending.remove(&key) {
                self.learn(key.0, clock);
            }
        }
    }

    fn learn(&mut self, lane: u8, mut clock: Clock) {
        if let Some(group) = self.groups.iter().find(|group| group.mask >> lane & 1 == 1) {
            clock.join(&group.view);
            self.acquire(1 << lane, &Arc::new(clock));
        }
    }
}
