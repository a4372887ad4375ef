//! From hits in the shadow to faults: the parties, the class, and the release that should have carried the order.

use super::fault::{Agent, Batch, Fault, Means, Party, Published, Reach, Release};
use super::mark::{Access, Item};
use super::shadow::Hit;
use super::warp::{Meeting, Released, State};
use super::{Detector, Lanes, Site, Space};

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
        let (first, since) = self.first_party(&clash.hit.first, clash.hit.first_lane);
        let second = self.second_party(warp, clash.hit.second_lane, &access);
        let class = Fault::classify(&first, &second);
        let next = self.faults.len();
        let known = *self.index.entry((class, space, first.site, second.site)).or_insert(next);
        if known < next {
            self.faults[known].count += 1;
            return;
        }
        let published = since.map_or_else(|unknown| unknown, |since| self.carrier(&first, since, &second));
        if published == Published::Never {
            self.unpublished.push(next);
        }
        let (address, bytes) = (clash.address, clash.bytes);
        self.faults.push(Fault { class, space, address, bytes, first, second, published, count: 1 });
    }

    /// The earlier party, and since when its warp's releases carry it.
    fn first_party(&self, item: &Item, lane: u8) -> (Party, Result<u32, Published>) {
        let warp = item.row as u32 / 2;
        let copies = &self.warps[warp as usize].copies;
        let (agent, since) = if item.row == self.warps[warp as usize].lanes_row() {
            (Agent::Thread, Ok(item.time))
        } else {
            match copies.state(lane, item.time) {
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
        (Party { warp, lane, site: Site(item.site), write: item.write, agent }, since)
    }

    fn second_party(&self, warp: u32, lane: u8, access: &Access) -> Party {
        let thread = access.row == self.warps[warp as usize].lanes_row();
        let agent = if thread { Agent::Thread } else { Agent::Copy(Batch::Open) };
        Party { warp, lane, site: Site(access.site), write: access.write, agent }
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
        };
        Published::By(Release { site: release.site, means, reach })
    }

    /// Did the party take part in a release of this warp, or in the same barrier generation?
    fn joined(&self, warp: u32, release: &Released, party: &Party) -> bool {
        let takes_part = |release: &Released| release.mask >> party.lane & 1 == 1;
        match release.meeting {
            Meeting::Warp => warp == party.warp && takes_part(release),
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
