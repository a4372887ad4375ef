//! What the detector has found, in the words of the definition, and whether the two agree.

use std::collections::BTreeMap;

use super::event::{Event, Shift};
use super::memory::{Race, Unit};
use crate::actor::Gap;
use crate::lists::Hit;
use crate::mark::Item;
use crate::rows::Channel;
use crate::warp::Track;
use crate::{Agent, Detector, Lanes, Party, Site, Space};

/// Two unordered accesses to bytes of a word.
#[derive(Clone, Debug)]
pub struct Found {
    pub space: Space,
    /// The word, and which of its bytes.
    pub address: u64,
    bytes: u8,
    /// The cluster of the first party.
    pub cluster: u32,
    /// Its warp in its cluster, unless the detector does not say.
    pub warp: Option<u32>,
    /// Its lane, unless all lanes of a warp are meant.
    lane: Option<u8>,
    unit: Unit,
    site: Site,
    write: bool,
    second_lane: u8,
    gap: Gap,
    /// Did the second party know of the start of the first? Asked of copies in flight.
    start_known: Option<bool>,
}

/// A byte, and the earlier grid that may still touch it, if the race is with that one.
type Place = (Option<usize>, Space, u64);

/// Faulty bytes, and the worst that lies between two accesses to each.
pub type Faulty = BTreeMap<Place, Gap>;

impl Found {
    /// What the event that the detector has just executed has hit.
    pub fn by(detector: &Detector, event: &Event, site: Site) -> Vec<Found> {
        let Some(at) = event.accessing() else { return vec![] };
        // By now an acquire knows more than its access did.
        let acquires = matches!(event, Event::Access { semantics, .. } if semantics.acquire);
        let hits = |space: Space| detector.shadows[space as usize].hits.iter().map(move |hit| (space, hit));
        let both = hits(Space::Shared).chain(hits(Space::Global));
        both.map(|(space, hit)| Found::of(detector, (at, site, acquires), space, hit)).collect()
    }

    fn of(detector: &Detector, (at, site, acquires): (Lanes, Site, bool), space: Space, hit: &Hit) -> Found {
        let origin = detector.origin(space, hit.first.name);
        let first = Item { name: origin.row.into(), ..hit.first };
        let fixed = (origin.row as usize) < detector.rows.fixed();
        // An mbarrier's row means nothing in another cluster.
        let channel = (fixed || origin.abroad.is_none()).then(|| detector.rows.channel(origin.row));
        let (warp, unit) = match channel {
            Some(Channel::Lanes(warp)) => (Some(warp), Unit::Thread),
            Some(Channel::Track(warp, Track::Copies)) => (Some(warp), Unit::Copy),
            Some(Channel::Track(warp, _)) => (Some(warp), Unit::Store),
            Some(Channel::Mbarrier(barrier)) => {
                let start = detector.mbarriers.start(barrier, first.time, hit.first_lane, Site(first.site));
                (start.map(|start| start.warp), Unit::Load)
            }
            // A product names its warpgroup, and no lane.
            Some(Channel::Products(_)) => (None, Unit::Product),
            None => (None, Unit::Load),
        };
        let tracked = matches!(unit, Unit::Copy | Unit::Store) && !acquires && origin.abroad.is_none();
        let second = Party { warp: at.warp, lane: hit.second_lane, site, write: false, agent: Agent::Thread };
        Found {
            space,
            address: hit.address,
            bytes: hit.bytes,
            cluster: origin.abroad.unwrap_or(detector.number),
            warp,
            lane: (unit != Unit::Product).then_some(hit.first_lane),
            unit,
            site: Site(first.site),
            write: first.write,
            second_lane: hit.second_lane,
            gap: hit.gap,
            start_known: tracked.then(|| detector.knows_start(&first, hit.first_lane, &second)),
        }
    }

    /// The same where warps and blocks are numbered through: `here` for those of the second party, `there` of the first.
    pub fn shifted(&self, here: Shift, there: Shift) -> Found {
        let address = if self.space == Space::Shared { here.shared(self.address) } else { self.address };
        Found { address, warp: self.warp.map(|warp| warp + there.warps), ..self.clone() }
    }

    fn bytes(&self) -> impl Iterator<Item = u64> {
        let (address, bytes) = (self.address, self.bytes);
        (0..4).filter(move |byte| bytes >> byte & 1 == 1).map(move |byte| address + byte)
    }

    /// Does the definition's race say the same?
    fn is(&self, race: &Race) -> bool {
        let first = &race.first;
        let lane = self.lane.unwrap_or(first.lane);
        let (pair, same_instruction) = ((first.lane, race.second_lane), first.step == race.step);
        // Lanes of one instruction have no order: either may come first.
        let lanes = pair == (lane, self.second_lane) || same_instruction && pair == (self.second_lane, lane);
        lanes
            && race.gap == self.gap
            && (first.site, first.write, first.unit) == (self.site, self.write, self.unit)
            && self.warp.is_none_or(|warp| warp == first.warp)
            && self.start_known.is_none_or(|known| known == race.start_known)
    }
}

fn worst(faulty: &mut Faulty, place: Place, gap: Gap) {
    let found = faulty.entry(place).or_insert(gap);
    *found = gap.max(*found);
}

/// Do both see the same bytes as faulty, equally so, and is everything true that the detector says? The definition tells
/// of all unordered pairs, the detector of those that no later access stands for.
pub fn agree(races: &[Race], found: &[Found]) -> Result<Faulty, String> {
    let (mut expected, mut faulty) = (Faulty::new(), Faulty::new());
    for race in races {
        race.bytes.clone().for_each(|byte| worst(&mut expected, (None, race.space, byte), race.gap));
    }
    for one in found {
        for byte in one.bytes() {
            worst(&mut faulty, (None, one.space, byte), one.gap);
            let at_byte = |race: &&Race| race.space == one.space && race.bytes.contains(&byte);
            if !races.iter().filter(at_byte).any(|race| one.is(race)) {
                return Err(format!("byte {byte:#x}: no such race as {one:?}"));
            }
        }
    }
    if faulty == expected { Ok(expected) } else { Err(format!("found {faulty:x?}, expected {expected:x?}")) }
}
