//! What a cluster did to global memory, in the end: for every byte one who wrote it and one who read it.

use super::clock::Row;
use super::commons::Member;
use super::mark::{Item, Location, Mark};
use super::rows::Channel;
use super::shadow::Remembered;
use super::warp::Track;
use super::{Detector, Site, Space};

/// Who accesses memory for a thread, if it does not do so itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unit {
    Thread,
    /// `cp.async`.
    Copy,
    /// A bulk copy from shared memory.
    Store,
    /// A bulk copy to shared memory.
    Load,
}

/// Bytes that lie one behind the other, touched with one statement by lanes of one warp: `each` bytes by a lane, then as
/// many by the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    pub start: u64,
    pub bytes: u32,
    each: u32,
    /// Bytes that lay before the start and are not part of it.
    skipped: u32,
    pub site: Site,
    pub cluster: u32,
    /// In its cluster.
    pub warp: u32,
    lane: u8,
    pub unit: Unit,
    /// Strong accesses of the same location may share it.
    pub shared: Option<Location>,
}

impl Touched {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }

    /// The lane that touched the byte at an address.
    pub fn lane_at(&self, address: u64) -> u8 {
        self.lane + ((address - self.start + u64::from(self.skipped)) / u64::from(self.each)) as u8
    }

    /// How many bytes from an address on that lane touched.
    pub fn lane_bytes(&self, address: u64) -> u32 {
        let left = self.each - ((address - self.start) as u32 + self.skipped) % self.each;
        left.min((self.end() - address) as u32)
    }

    /// The part between two addresses, both inside.
    pub fn cut(&self, start: u64, end: u64) -> Touched {
        let skipped = self.skipped + (start - self.start) as u32;
        Touched { start, bytes: (end - start) as u32, skipped, ..*self }
    }

    /// Appends what lies right behind it and was touched in the same way; false if it does not.
    fn extend(&mut self, next: &Touched) -> bool {
        let who = |one: &Touched| (one.site, one.cluster, one.warp, one.unit, one.shared);
        let same = who(self) == who(next);
        let one_lane = self.bytes == self.each && next.bytes == next.each && self.lane == next.lane;
        let goes_on = self.bytes.is_multiple_of(self.each)
            && self.each == next.each
            && u32::from(next.lane) == u32::from(self.lane) + self.bytes / self.each;
        if !same || self.end() != next.start || !(one_lane || goes_on) {
            return false;
        }
        self.bytes += next.bytes;
        if one_lane {
            self.each = self.bytes;
        }
        true
    }
}

/// Stretches by address. They do not overlap, but for strong accesses of different locations.
#[derive(Clone, Default, Debug)]
pub struct Stretches(pub Vec<Touched>);

impl Stretches {
    fn push(&mut self, next: Touched) {
        if !self.0.last_mut().is_some_and(|last| last.extend(&next)) {
            self.0.push(next);
        }
    }
}

/// The global memory that a cluster touched.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    pub writes: Stretches,
    pub reads: Stretches,
}

impl Detector {
    /// What the cluster did to global memory until now.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.shadows[Space::Global as usize].visit(|address, remembered| match remembered {
            Remembered::Marks { bytes, write, read } => {
                self.add_mark(&mut summary.writes, address, bytes, &write);
                self.add_mark(&mut summary.reads, address, bytes, &read);
            }
            Remembered::Items(items) => {
                self.add_items(&mut summary.writes, address, items, true);
                self.add_items(&mut summary.reads, address, items, false);
            }
        });
        summary
    }

    fn add_mark(&self, into: &mut Stretches, start: u64, bytes: u64, mark: &Mark) {
        if mark.time == 0 {
            return;
        }
        let (lane, each) = mark.pattern().first_lane();
        let (member, site) = (self.names.member(mark.name()), Site(mark.site));
        let (warp, unit) = self.issuer_of(member, mark.time, lane, site);
        let (bytes, cluster) = (bytes as u32, member.cluster);
        let each = each.min(bytes);
        into.push(Touched { start, bytes, each, skipped: 0, site, cluster, warp, lane, unit, shared: None });
    }

    fn add_items(&self, into: &mut Stretches, word: u64, items: &[Item], write: bool) {
        for byte in 0..4 {
            let touches = |item: &&Item| item.write == write && item.bytes >> byte & 1 == 1;
            let shared = |item: &&Item| item.shared_by_all(word);
            // One that conflicts with atomics, too, stands for those that do not, and so do two of different locations.
            let first = items.iter().filter(touches).min_by_key(|item| shared(item).is_some());
            let differs =
                |item: &&Item| first.is_some_and(|first| shared(&first).is_some() && shared(item) != shared(&first));
            for item in first.into_iter().chain(items.iter().filter(touches).find(differs)) {
                let lane = item.mask.trailing_zeros() as u8;
                let (member, start, site) = (self.names.member(item.name), word + byte, Site(item.site));
                let (warp, unit) = self.issuer_of(member, item.time, lane, site);
                let (cluster, shared) = (member.cluster, shared(&item));
                into.push(Touched { start, bytes: 1, each: 1, skipped: 0, site, cluster, warp, lane, unit, shared });
            }
        }
    }

    /// The same of any cluster: rows mean the same in all of them, but for those of mbarriers.
    pub(super) fn issuer_of(&self, member: Member, time: u32, lane: u8, site: Site) -> (u32, Unit) {
        let known = member.cluster == self.number || (member.row as usize) < self.rows.fixed();
        if known { self.issuer(member.row, time, lane, site) } else { (member.warp, Unit::Load) }
    }

    /// The warp that a row belongs to, and the unit.
    pub(super) fn issuer(&self, row: Row, time: u32, lane: u8, site: Site) -> (u32, Unit) {
        match self.rows.channel(row) {
            Channel::Lanes(warp) | Channel::Products(warp) => (warp, Unit::Thread),
            Channel::Track(warp, Track::Copies) => (warp, Unit::Copy),
            Channel::Track(warp, _) => (warp, Unit::Store),
            Channel::Mbarrier(barrier) => {
                let start = self.mbarriers.start(barrier, time, lane, site);
                (start.map_or(0, |start| start.warp), Unit::Load)
            }
        }
    }
}
