//! From hits in the shadow to faults: the parties, the class, and the release that should have carried the order.

use std::collections::BTreeMap;

use super::abroad::Origin;
use super::actor::Gap;
use super::clock::Row;
use super::copies::State;
use super::fault::{Agent, Batch, Class, Fault, Means, Party, Published, Reach, Release};
use super::lists::Hit;
use super::mark::{Access, Item};
use super::rows::Channel;
use super::warp::{Meeting, REMEMBERED, Released, Track};
use super::{Detector, Lanes, Site, Space};

/// Most faults about copies in flight that are followed until the wait; later ones keep their first judgement.
const MOST_AWAITED: usize = 1024;

/// The copies of a batch and the warp that does not know of their completion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    first: u32,
    batch: u32,
    second: u32,
}

/// A fault about a copy in flight, and the warp time of the second access.
#[derive(Clone)]
pub struct Awaited {
    fault: usize,
    batch: u32,
    second: u32,
}

/// One fault for each class and pair of sites, in the order of discovery.
pub fn merged(faults: Vec<Fault>) -> Vec<Fault> {
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    let mut merged: Vec<Fault> = Vec::new();
    for fault in faults {
        let key = (fault.class, fault.space, fault.first.site, fault.second.site);
        match places.get(&key) {
            Some(place) => merged[*place].count += fault.count,
            None => {
                places.insert(key, merged.len());
                merged.push(fault);
            }
        }
    }
    merged
}

/// Adjoining bytes of the same two accesses.
struct Clash {
    hit: Hit,
    address: u64,
    bytes: u32,
}

fn clashes(hits: &[Hit]) -> Vec<Clash> {
    let key = |hit: &Hit| (hit.first.name, hit.first.time, hit.first.site, hit.first_lane, hit.second_lane, hit.gap);
    let mut sorted = hits.to_vec();
    sorted.sort_by_key(|hit| (key(hit), hit.address, hit.bytes));
    let mut clashes: Vec<Clash> = Vec::new();
    for hit in sorted {
        for address in (0..4).filter(|byte| hit.bytes >> byte & 1 == 1).map(|byte| hit.address + byte) {
            let end = |clash: &Clash| clash.address + clash.bytes as u64;
            match clashes.last_mut().filter(|last| key(&last.hit) == key(&hit) && end(last) == address) {
                Some(last) => last.bytes += 1,
                None => clashes.push(Clash { hit, address, bytes: 1 }),
            }
        }
    }
    clashes
}

impl Detector {
    /// Turns what an access of a warp has hit into faults.
    #[inline]
    pub(super) fn report(&mut self, warp: u32, access: Access, space: Space) {
        self.report_since(warp, access, space, 0);
    }

    /// `report` for the hits from the given one on.
    #[inline]
    pub(super) fn report_since(&mut self, warp: u32, access: Access, space: Space, start: usize) {
        self.report_too_early(warp, &access);
        if self.shadows[space as usize].hits.len() > start {
            self.add_since(warp, access, space, start);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_since(&mut self, warp: u32, access: Access, space: Space, start: usize) {
        for clash in clashes(&self.shadows[space as usize].hits[start..]) {
            self.add(warp, access, space, &clash);
        }
    }

    fn add(&mut self, warp: u32, access: Access, space: Space, clash: &Clash) {
        let origin = self.origin(space, clash.hit.first.name);
        if origin.abroad.is_some() {
            return self.cross(warp, &access, &clash.hit, (clash.address, clash.bytes));
        }
        let item = Item { name: origin.row.into(), ..clash.hit.first };
        let second = self.second_party(warp, clash.hit.second_lane, &access);
        let (first, since) = self.first_party(&item, clash.hit.first_lane, &second);
        let (first, second, since) = match self.awaited_load(&first, &second) {
            // It read without a wait, and was faster.
            Some(load) if clash.hit.gap == Gap::Order => (load, first, Err(Published::InFlight)),
            _ => (first, second, since),
        };
        let class = Fault::classify(&first, &second, clash.hit.gap);
        self.missed_fence |= class == Class::Proxy;
        let next = self.faults.len();
        let pair = self.awaited_pair(class, clash.hit.first.time, &first, &second);
        let known = *self.index.entry((class, space, first.site, second.site, pair)).or_insert(next);
        if known < next {
            self.faults[known].count += 1;
            return;
        }
        if let Some(pair) = pair {
            self.awaited.push(Awaited { fault: next, batch: pair.batch, second: self.warps[warp as usize].time });
        }
        let published = match since {
            Ok(since) if class == Class::Reach => self.loose_carrier(&first, since, &second),
            Ok(since) => self.carrier(&first, since, &second),
            Err(unknown) => unknown,
        };
        if published == Published::Never {
            self.unpublished.push(next);
        }
        let (address, bytes) = (clash.address, clash.bytes);
        self.faults.push(Fault { class, space, address, bytes, first, second, published, count: 1 });
    }

    /// A copy in flight may still be waited for: the copies of one batch and one other warp are judged together then.
    fn awaited_pair(&self, class: Class, batch: u32, first: &Party, second: &Party) -> Option<Pair> {
        let in_flight = matches!(class, Class::MissingWait | Class::EarlyRelease)
            && matches!(first.agent, Agent::Copy(Batch::Open | Batch::Committed { .. }))
            && self.awaited.len() < MOST_AWAITED;
        in_flight.then_some(Pair { first: first.warp, batch, second: second.warp })
    }

    /// Whose mark it is, seen from here.
    pub(super) fn origin(&self, space: Space, name: u32) -> Origin {
        match space {
            Space::Shared => Origin::home(name as Row),
            Space::Global => self.names.member(name).seen_from(self.number),
        }
    }

    /// The earlier party of this cluster, named by its row, and since when its warp's releases carry it.
    fn first_party(&self, item: &Item, lane: u8, second: &Party) -> (Party, Result<u32, Published>) {
        let in_flight = Err(Published::InFlight);
        let (warp, agent, since) = match self.rows.channel(item.name as Row) {
            Channel::Lanes(warp) => (warp, Agent::Thread, Ok(item.time)),
            Channel::Track(warp, track) => {
                let (batch, since) = self.batch(warp, track, item, lane, second);
                (warp, if track == Track::Copies { Agent::Copy(batch) } else { Agent::Store(batch) }, since)
            }
            Channel::Products(warp) => {
                let (batch, published) = self.product(item, warp, second);
                (warp, Agent::Product(batch), Err(published))
            }
            Channel::Mbarrier(barrier) => {
                let start = self.mbarriers.start(barrier, item.time, lane, Site(item.site));
                let rushed = !self.knows_start(item, lane, second) && self.is_rushed(barrier, second);
                let phase = self.mbarriers.phase_of(barrier, item.time);
                (start.map_or(0, |start| start.warp), Agent::Load { barrier, phase, rushed }, in_flight)
            }
        };
        (Party { warp, lane, site: Site(item.site), write: item.write, agent }, since)
    }

    /// How far the issuing lane had brought what it had in flight.
    fn batch(
        &self,
        index: u32,
        track: Track,
        item: &Item,
        lane: u8,
        second: &Party,
    ) -> (Batch, Result<u32, Published>) {
        if !self.knows_start(item, lane, second) {
            return (Batch::Unseen, Err(Published::InFlight));
        }
        match self.warps[index as usize].track(track).state(lane, item.time) {
            State::Open => (Batch::Open, Err(Published::InFlight)),
            State::Committed { later } => (Batch::Committed { wait_group: later }, Err(Published::InFlight)),
            State::Told(told) => (Batch::Told { barrier: told.barrier, phase: told.phase }, Err(Published::InFlight)),
            State::Waited(wait) => {
                let site = wait.map(|wait| wait.site);
                (Batch::Waited { site }, wait.map(|wait| wait.time).ok_or(Published::Forgotten))
            }
        }
    }

    /// Does the party know that the copy was started? One that is too old to be remembered counts as known.
    pub(super) fn knows_start(&self, copy: &Item, lane: u8, party: &Party) -> bool {
        let site = Site(copy.site);
        let start = match self.rows.channel(copy.name as Row) {
            Channel::Track(warp, track) => {
                self.warps[warp as usize].track(track).start(lane, copy.time, site).map(|time| (warp, time))
            }
            Channel::Mbarrier(barrier) => {
                self.mbarriers.start(barrier, copy.time, lane, site).map(|start| (start.warp, start.time))
            }
            Channel::Lanes(_) | Channel::Products(_) => None,
        };
        start.is_none_or(|(warp, time)| {
            self.warps[party.warp as usize].knows(party.lane, self.warps[warp as usize].lanes_row(), lane, time)
        })
    }

    /// A bulk copy that came second, if the first party should have waited for it.
    fn awaited_load(&self, first: &Party, second: &Party) -> Option<Party> {
        let Agent::Load { barrier, phase, .. } = second.agent else { return None };
        let waits = matches!(first.agent, Agent::Thread | Agent::Product(Batch::Unseen));
        let awaited = waits && !self.is_rushed(barrier, first);
        awaited.then_some(Party { agent: Agent::Load { barrier, phase, rushed: false }, ..*second })
    }

    /// Has a bulk copy, of whose start the party does not know, perhaps come too early? Else the party does not wait.
    fn is_rushed(&self, barrier: u64, party: &Party) -> bool {
        party.write || self.mbarriers.has_told(barrier, party.warp)
    }

    fn second_party(&self, warp: u32, lane: u8, access: &Access) -> Party {
        let agent = match self.rows.channel(access.row) {
            Channel::Lanes(_) => Agent::Thread,
            Channel::Track(_, Track::Copies) => Agent::Copy(Batch::Unseen),
            Channel::Track(..) => Agent::Store(Batch::Unseen),
            Channel::Products(_) => Agent::Product(Batch::Unseen),
            Channel::Mbarrier(barrier) => {
                Agent::Load { barrier, phase: self.mbarriers.phase_of(barrier, access.time), rushed: true }
            }
        };
        Party { warp, lane, site: Site(access.site), write: access.write, agent }
    }

    /// Lanes have waited for copies. An access that they do not know of is no longer judged by the missing wait: whether
    /// it ran before the wait was luck, and what is missing is the barrier after it.
    pub(super) fn settle_awaited(&mut self, at: Lanes, site: Site) {
        let Detector { warps, faults, awaited, unpublished, .. } = self;
        let warp = &warps[at.warp as usize];
        awaited.retain(|one| {
            let fault = &mut faults[one.fault];
            let lane = fault.first.lane;
            let own = fault.first.warp == at.warp && at.mask >> lane & 1 == 1;
            if !own || !matches!(warp.track(Track::Copies).state(lane, one.batch), State::Waited(_)) {
                return true;
            }
            let other = warps[fault.second.warp as usize].lanes_row();
            if !warp.knows(lane, other, fault.second.lane, one.second) {
                fault.first.agent = Agent::Copy(Batch::Waited { site: Some(site) });
                fault.class = Fault::classify(&fault.first, &fault.second, Gap::Order);
                fault.published = Published::Never;
                unpublished.push(one.fault);
            }
            false
        });
    }

    /// The first release that tells of the first party, and why it did not reach the second.
    fn carrier(&self, first: &Party, since: u32, second: &Party) -> Published {
        let warp = &self.warps[first.warp as usize];
        let oldest = warp.releases.front().map_or(warp.time, |release| release.time);
        if since < oldest && warp.releases.len() == REMEMBERED {
            return Published::Forgotten;
        }
        let after = || warp.releases.iter().filter(|release| release.time >= since);
        let own = after().find(|release| release.mask >> first.lane & 1 == 1);
        let found = own.or_else(|| after().find(|release| self.joined(first.warp, release, second)));
        let Some(release) = found else { return Published::Never };
        let reach = match (own.is_some(), self.joined(first.warp, release, second)) {
            (true, false) => Reach::NotJoined,
            (true, true) => Reach::ArrivedOnly,
            (false, _) => Reach::FirstAbsent,
        };
        Published::By(release.told(reach))
    }

    /// The last release of which the second party heard, though not in a way that orders.
    fn loose_carrier(&self, first: &Party, since: u32, second: &Party) -> Published {
        let warp = &self.warps[first.warp as usize];
        let Some(group) = self.warps[second.warp as usize].group(second.lane) else { return Published::Forgotten };
        let heard = |release: &&Released| {
            let unknown = group.view.seen.unknown(warp.lanes_row(), release.time, 1 << first.lane);
            group.view.loose.unknown(warp.lanes_row(), release.time, unknown) == 0
        };
        let after = warp.releases.iter().rev().take_while(|release| release.time >= since);
        let found = after.into_iter().find(heard);
        found.map_or(Published::Forgotten, |release| Published::By(release.told(Reach::Loose)))
    }

    /// Did the party take part in a release of this warp, or in the same barrier generation?
    fn joined(&self, warp: u32, release: &Released, party: &Party) -> bool {
        let takes_part = |release: &Released| release.mask >> party.lane & 1 == 1;
        match release.meeting {
            Meeting::Warp => warp == party.warp && takes_part(release),
            Meeting::Fence | Meeting::Mbarrier { .. } => false,
            Meeting::Barrier { .. } | Meeting::Cluster { .. } => {
                let own = &self.warps[party.warp as usize].releases;
                own.iter().any(|own| own.meeting == release.meeting && takes_part(own))
            }
        }
    }

    /// Lanes have released what they did: for faults of which that is the first party, it came too late.
    pub(super) fn published(&mut self, at: Lanes, site: Site, means: Means) {
        let faults = &mut self.faults;
        self.unpublished.retain(|index| {
            let fault = &mut faults[*index];
            let carries = fault.first.warp == at.warp && at.mask >> fault.first.lane & 1 == 1;
            if carries {
                fault.published = Published::By(Release { site, means, reach: Reach::TooLate });
            }
            !carries
        });
    }
}
