//! From hits in the shadow to faults: the parties, the class, and the release that should have carried the order.

use std::collections::BTreeMap;

use super::fault::{Agent, Batch, Class, Fault, Means, Party, Published, Reach, Release};
use super::mark::{Access, Item};
use super::shadow::Hit;
use super::warp::{Meeting, Released, State};
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
    let key = |hit: &Hit| (hit.first.row, hit.first.time, hit.first.site, hit.first_lane, hit.second_lane);
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
    pub(super) fn report(&mut self, warp: u32, access: Access, space: Space) {
        for clash in clashes(&self.shadows[space as usize].hits) {
            self.add(warp, access, space, &clash);
        }
    }

    fn add(&mut self, warp: u32, access: Access, space: Space, clash: &Clash) {
        let second = self.second_party(warp, clash.hit.second_lane, &access);
        let (first, since) = self.first_party(&clash.hit.first, clash.hit.first_lane, &second);
        let class = Fault::classify(&first, &second);
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
        let published = since.map_or_else(|unknown| unknown, |since| self.carrier(&first, since, &second));
        if published == Published::Never {
            self.unpublished.push(next);
        }
        let (address, bytes) = (clash.address, clash.bytes);
        self.faults.push(Fault { class, space, address, bytes, first, second, published, count: 1 });
    }

    /// A copy in flight may still be waited for: the copies of one batch and one other warp are judged together then.
    fn awaited_pair(&self, class: Class, batch: u32, first: &Party, second: &Party) -> Option<Pair> {
        let in_flight = matches!(class, Class::MissingWait | Class::EarlyRelease) && self.awaited.len() < MOST_AWAITED;
        in_flight.then_some(Pair { first: first.warp, batch, second: second.warp })
    }

    /// The earlier party, and since when its warp's releases carry it.
    fn first_party(&self, item: &Item, lane: u8, second: &Party) -> (Party, Result<u32, Published>) {
        let index = item.row as u32 / 2;
        let warp = &self.warps[index as usize];
        let (agent, since) = if item.row == warp.lanes_row() {
            (Agent::Thread, Ok(item.time))
        } else if !self.knows_start(item, lane, second) {
            (Agent::Copy(Batch::Unseen), Err(Published::InFlight))
        } else {
            match warp.copies.state(lane, item.time) {
                State::Open => (Agent::Copy(Batch::Open), Err(Published::InFlight)),
                State::Committed { later } => {
                    (Agent::Copy(Batch::Committed { wait_group: later }), Err(Published::InFlight))
                }
                State::Waited(wait) => {
                    let site = wait.map(|wait| wait.site);
                    (Agent::Copy(Batch::Waited { site }), wait.map(|wait| wait.time).ok_or(Published::Forgotten))
                }
            }
        };
        (Party { warp: index, lane, site: Site(item.site), write: item.write, agent }, since)
    }

    /// Does the party know that the copy was started? One that is too old to be remembered counts as known.
    pub(super) fn knows_start(&self, copy: &Item, lane: u8, party: &Party) -> bool {
        let warp = &self.warps[copy.row as usize / 2];
        let start = warp.copies.start(lane, copy.time, Site(copy.site));
        start.is_none_or(|time| self.warps[party.warp as usize].knows(party.lane, warp.lanes_row(), lane, time))
    }

    fn second_party(&self, warp: u32, lane: u8, access: &Access) -> Party {
        let thread = access.row == self.warps[warp as usize].lanes_row();
        let agent = if thread { Agent::Thread } else { Agent::Copy(Batch::Unseen) };
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
            if !own || !matches!(warp.copies.state(lane, one.batch), State::Waited(_)) {
                return true;
            }
            let other = warps[fault.second.warp as usize].lanes_row();
            if !warp.knows(lane, other, fault.second.lane, one.second) {
                fault.first.agent = Agent::Copy(Batch::Waited { site: Some(site) });
                fault.class = Fault::classify(&fault.first, &fault.second);
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
        if since < oldest {
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
        let means = match release.meeting {
            Meeting::Barrier { id, .. } => Means::Barrier { id },
            Meeting::Warp => Means::WarpSync { mask: release.mask },
            Meeting::Fence => Means::Fence,
        };
        Published::By(Release { site: release.site, means, reach })
    }

    /// Did the party take part in a release of this warp, or in the same barrier generation?
    fn joined(&self, warp: u32, release: &Released, party: &Party) -> bool {
        let takes_part = |release: &Released| release.mask >> party.lane & 1 == 1;
        match release.meeting {
            Meeting::Warp => warp == party.warp && takes_part(release),
            Meeting::Fence => false,
            Meeting::Barrier { .. } => {
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
