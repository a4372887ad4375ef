//! Races between clusters.

use std::collections::BTreeMap;

use super::actor::Gap;
use super::commons::Member;
use super::lists::Hit;
use super::mark::{Access, Item};
use super::near_miss::NearMiss;
use super::scope::Scope;
use super::summary::Unit;
use super::{Detector, Site, Space};

/// One side of a race between clusters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visitor {
    pub cluster: u64,
    /// In its cluster.
    pub warp: u32,
    pub lane: u8,
    pub site: Site,
    pub write: bool,
    pub unit: Unit,
    /// The scope of a strong access.
    pub strong: Option<Scope>,
}

/// How the first access was told to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// Clusters of this kernel cannot tell each other anything.
    Apart,
    /// It does not matter: the reader reads through a path that nothing keeps up to date.
    ReadOnly,
    /// Nothing that was published when the second access ran contains it.
    Never,
    /// This release published it at this address, and the second party had not acquired it.
    At { release: Site, address: u64 },
    /// The second party read the release, but the two do not synchronise.
    Missed(NearMiss),
}

/// Two conflicting accesses by different clusters: the first example, and how often the same two sites clashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// First byte that both touched.
    pub address: u64,
    /// How many bytes from there on one lane of each touched.
    pub bytes: u32,
    pub first: Visitor,
    pub second: Visitor,
    pub gap: Gap,
    pub told: Told,
    pub count: u64,
}

/// One crossing for each pair of sites, in the order of discovery.
#[derive(Clone, Default)]
pub struct Crossings {
    all: Vec<Crossing>,
    index: BTreeMap<(Gap, Site, Site, bool, bool), usize>,
}

impl Crossings {
    fn place(&mut self, gap: Gap, first: &Visitor, second: &Visitor) -> (usize, bool) {
        let next = self.all.len();
        let place = *self.index.entry((gap, first.site, second.site, first.write, second.write)).or_insert(next);
        (place, place == next)
    }

    pub fn note(&mut self, crossing: Crossing) {
        match self.place(crossing.gap, &crossing.first, &crossing.second) {
            (_, true) => self.all.push(crossing),
            (known, false) => self.all[known].count += 1,
        }
    }

    pub fn take(&mut self) -> Vec<Crossing> {
        self.index.clear();
        std::mem::take(&mut self.all)
    }
}

impl Detector {
    /// Races with other clusters since the last call, in the order of discovery.
    pub fn take_crossings(&mut self) -> Vec<Crossing> {
        self.crossings.take()
    }

    /// Bytes that somebody wrote and somebody read with one of these statements, in whatever order.
    pub fn read_only_crossings(&self, read_only: &[u32]) -> Vec<Crossing> {
        let mut found = Crossings::default();
        if read_only.is_empty() {
            return vec![];
        }
        self.shadows[Space::Global as usize].visit(|address, remembered| {
            if remembered.has_one_side() {
                return;
            }
            let items = remembered.items();
            let reads = items.iter().filter(|item| !item.write && read_only.binary_search(&item.site).is_ok());
            for read in reads {
                let over = |item: &&Item| item.write && item.bytes & read.bytes != 0;
                if let Some(write) = items.iter().find(over) {
                    found.note(self.stale(address, write, read));
                }
            }
        });
        found.take()
    }

    fn stale(&self, word: u64, write: &Item, read: &Item) -> Crossing {
        let side = |item: &Item| self.foreigner(self.names.member(item.name), item, item.mask.trailing_zeros() as u8);
        let both = write.bytes & read.bytes;
        let address = word + u64::from(both.trailing_zeros());
        let (first, second, told) = (side(write), side(read), Told::ReadOnly);
        Crossing { address, bytes: both.count_ones(), first, second, gap: Gap::Order, told, count: 1 }
    }

    /// An access has hit one of another cluster.
    pub(super) fn cross(&mut self, warp: u32, access: &Access, hit: &Hit, (address, bytes): (u64, u32)) {
        let member = self.names.member(hit.first.name);
        let first = self.foreigner(member, &hit.first, hit.first_lane);
        let (lane, site) = (hit.second_lane, Site(access.site));
        let (_, unit) = self.issuer(access.row, access.time, lane, site);
        let strong = access.strong.map(|sharers| sharers.scope);
        let second = Visitor { cluster: self.number.into(), warp, lane, site, write: access.write, unit, strong };
        self.missed_fence |= hit.gap == Gap::Fence;
        let (place, new) = self.crossings.place(hit.gap, &first, &second);
        if !new {
            self.crossings.all[place].count += 1;
            return;
        }
        let told = self.told(warp, member, hit);
        self.crossings.all.push(Crossing { address, bytes, first, second, gap: hit.gap, told, count: 1 });
    }

    fn foreigner(&self, member: Member, item: &Item, lane: u8) -> Visitor {
        let (warp, unit) = self.issuer_of(member, item.time, lane, Site(item.site));
        let strong = item.strong.map(|strong| strong.sharers.scope);
        Visitor { cluster: member.cluster.into(), warp, lane, site: Site(item.site), write: item.write, unit, strong }
    }

    /// What became of the earlier access until now.
    fn told(&self, warp: u32, member: Member, hit: &Hit) -> Told {
        if hit.gap == Gap::Reach {
            return self.near_misses.of(warp, member.cluster).map_or(Told::Never, Told::Missed);
        }
        let tells = |one: &super::words::Published| {
            one.offer.seat.cluster == member.cluster
                && one.offer.scope == Some(Scope::Gpu)
                && one.offer.view.seen.unknown(member.row, hit.first.time, 1 << hit.first_lane) == 0
        };
        let found = self.words[Space::Global as usize].published().find(|(_, one)| tells(one));
        found.map_or(Told::Never, |(address, one)| Told::At { release: one.site, address })
    }
}
