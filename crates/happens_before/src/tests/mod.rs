//! The detector against the definition: every program runs on both, and they must agree on every byte.

mod clusters;
mod differential;
mod grids;
mod litmus;
mod machine;
mod oracle;
mod proxies;
mod rings;
mod skeleton;
mod wording;

use std::collections::BTreeMap;

use super::actor::Gap;
use super::clock::bits;
use super::lists::Hit;
use super::rows::Channel;
use super::warp::Track;
use super::{Agent, Bulk, Detector, Kind, Lanes, Party, Places, ProxyFence, Semantics, Site, Space, Stretch};
use oracle::{Oracle, Race, Unit};

const ALL: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Event {
    Access { at: Lanes, kind: Kind, semantics: Semantics, space: Space, addresses: Box<[u64; 32]>, bytes: u32 },
    Fence(Lanes, Semantics),
    ProxyFence(Lanes, ProxyFence),
    Copy { at: Lanes, from: Box<[u64; 32]>, from_bytes: Box<[u32; 32]>, to: Box<[u64; 32]>, bytes: u32 },
    Commit(Lanes),
    Wait(Lanes, u32),
    WaitAll(Lanes),
    WarpSync(Lanes),
    Arrive { at: Lanes, id: u32 },
    Complete { id: u32, waiters: Vec<Lanes> },
    ClusterArrive(Lanes, Semantics),
    ClusterComplete(Vec<Lanes>),
    ClusterWait(Lanes),
    MbarrierInit { at: Lanes, barrier: u64 },
    MbarrierArrive { at: Lanes, barrier: u64, semantics: Semantics },
    CopyArrive { at: Lanes, barrier: u64 },
    MbarrierComplete(u64),
    MbarrierWait { at: Lanes, barrier: u64, semantics: Semantics },
    Load { at: Lanes, barrier: u64, reads: Vec<Stretch>, writes: Vec<Stretch> },
    RemoteStore { at: Lanes, barrier: u64, to: Stretch },
    Store { at: Lanes, reads: Vec<Stretch>, writes: Vec<Stretch>, element: Option<u32> },
    BulkCommit(Lanes),
    BulkWait { at: Lanes, pending: u32, read: bool },
    Wgmma { at: Lanes, reads: Vec<Stretch> },
    WgmmaCommit(Lanes),
    WgmmaWait(Lanes, u32),
    Exit(Lanes),
}

/// Addresses by their shape, as an engine tells them that knows it.
fn shaped(mask: u32, addresses: &[u64; 32], bytes: u32) -> Places<'_> {
    let first = mask.trailing_zeros() as u8 & 31;
    let same = Places::Same(addresses[first as usize]);
    let start = addresses[first as usize].checked_sub(u64::from(first) * u64::from(bytes));
    let fits = |places: &Places| bits(mask).all(|lane| places.at(lane, bytes) == addresses[lane as usize]);
    start.map(Places::Row).into_iter().chain([same]).find(fits).unwrap_or(Places::Each(addresses))
}

impl Event {
    /// Who accesses memory, if the event does.
    fn accessing(&self) -> Option<Lanes> {
        match self {
            Event::Access { at, .. } | Event::Copy { at, .. } | Event::Load { at, .. } => Some(*at),
            Event::RemoteStore { at, .. } | Event::Store { at, .. } | Event::Wgmma { at, .. } => Some(*at),
            _ => None,
        }
    }
}

fn lanes_of(mask: u32) -> Vec<u8> {
    (0..32).filter(|lane| mask >> lane & 1 == 1).collect()
}

/// Faulty bytes, and the worst that lies between two accesses to each.
type Faulty = BTreeMap<(Space, u64), Gap>;

fn worst(faulty: &mut Faulty, place: (Space, u64), gap: Gap) {
    let found = faulty.entry(place).or_insert(gap);
    *found = gap.max(*found);
}

/// The definition does not tire of a word that is raced for all the time.
fn never_quiet(detector: &mut Detector) {
    detector.shadows.iter_mut().for_each(|shadow| shadow.lists.patience = u32::MAX);
}

/// Detector and oracle, side by side.
#[derive(Clone)]
struct Duel {
    detector: Detector,
    oracle: Oracle,
}

impl Duel {
    fn new(lanes: &[u32], warps_per_block: u32) -> Duel {
        let mut detector = Detector::new(lanes, warps_per_block);
        never_quiet(&mut detector);
        Duel { detector, oracle: Oracle::new(lanes, warps_per_block) }
    }

    /// Executes an event on both; returns the faulty bytes, or how they disagree.
    fn step(&mut self, event: &Event, site: Site) -> Result<Faulty, String> {
        let races = self.oracle.step(event, site);
        let mut expected = Faulty::new();
        races.iter().for_each(|race| worst(&mut expected, (race.space, race.byte), race.gap));
        self.run(event, site);
        if event.accessing().is_none() {
            return Ok(expected);
        }
        let mut found = Faulty::new();
        for space in [Space::Shared, Space::Global] {
            for hit in &self.detector.shadows[space as usize].hits {
                for byte in (0..4).filter(|byte| hit.bytes >> byte & 1 == 1).map(|byte| hit.address + byte) {
                    worst(&mut found, (space, byte), hit.gap);
                    let at_byte = |race: &&Race| (race.space, race.byte) == (space, byte);
                    if !races.iter().filter(at_byte).any(|race| self.is_truth(event, site, hit, race)) {
                        return Err(format!("{space:?} byte {byte}: no such race as {hit:?}"));
                    }
                }
            }
        }
        if found == expected { Ok(expected) } else { Err(format!("found {found:?}, expected {expected:?}")) }
    }

    /// Does the oracle's race say what the detector found?
    fn is_truth(&self, event: &Event, site: Site, hit: &Hit, race: &Race) -> bool {
        let row = self.detector.origin(race.space, hit.first.name).row;
        let (item, past) = (&super::mark::Item { name: row.into(), ..hit.first }, &race.first);
        let (warp, unit) = match self.detector.rows.channel(row) {
            Channel::Lanes(warp) => (warp, Unit::Thread),
            Channel::Track(warp, Track::Copies) => (warp, Unit::Copy),
            Channel::Track(warp, _) => (warp, Unit::Store),
            Channel::Mbarrier(barrier) => {
                let start = self.detector.mbarriers.start(barrier, item.time, hit.first_lane, Site(item.site));
                (start.map_or(0, |start| start.warp), Unit::Load)
            }
            // A product names its warpgroup, and no lane.
            Channel::Products(_) => (past.warp, Unit::Product),
        };
        let first_lane = if unit == Unit::Product { past.lane } else { hit.first_lane };
        let pair = (past.lane, race.second_lane);
        // Lanes of one instruction have no order: either may come first.
        let lanes = pair == (first_lane, hit.second_lane) || past.site == site && pair == (hit.second_lane, first_lane);
        // By now an acquire knows more than its access did.
        let acquires = matches!(event, Event::Access { semantics, .. } if semantics.acquire);
        let tracked = matches!(unit, Unit::Copy | Unit::Store) && !acquires;
        let asking = event.accessing().map_or(0, |at| at.warp);
        let second = Party { warp: asking, lane: hit.second_lane, site, write: false, agent: Agent::Thread };
        lanes
            && race.gap == hit.gap
            && (past.warp, past.site, past.write, past.unit) == (warp, Site(item.site), item.write, unit)
            && (!tracked || race.start_known == self.detector.knows_start(item, hit.first_lane, &second))
    }

    fn run(&mut self, event: &Event, site: Site) {
        let detector = &mut self.detector;
        match event {
            Event::Access { at, kind, semantics, space, addresses, bytes } => {
                detector.ordered_access(
                    *at,
                    site,
                    (*kind, *semantics),
                    *space,
                    shaped(at.mask, addresses, *bytes),
                    *bytes,
                );
            }
            Event::Fence(at, semantics) => detector.fence(*at, site, *semantics),
            Event::ProxyFence(at, which) => detector.fence_proxy_async(*at, *which),
            Event::Copy { at, from, from_bytes, to, bytes } => {
                detector.copy(*at, site, from, from_bytes, to, *bytes);
            }
            Event::Commit(at) => detector.commit(*at),
            Event::Wait(at, pending) => detector.wait(*at, site, *pending),
            Event::WaitAll(at) => detector.wait_all(*at, site),
            Event::WarpSync(at) => detector.warp_sync(*at, site),
            Event::Arrive { at, id } => detector.barrier_arrive(*at, site, *id),
            Event::Complete { id, waiters } => detector.barrier_complete(*id, waiters),
            Event::Exit(at) => detector.exit(*at),
            event => self.run_asynchronous(event, site),
        }
    }

    fn run_asynchronous(&mut self, event: &Event, site: Site) {
        let detector = &mut self.detector;
        match event {
            Event::ClusterArrive(at, semantics) => detector.cluster_arrive(*at, site, *semantics),
            Event::ClusterComplete(waiters) => detector.cluster_complete(waiters),
            Event::ClusterWait(at) => detector.cluster_wait(*at),
            Event::MbarrierInit { at, barrier } => detector.mbarrier_init(*at, *barrier),
            Event::MbarrierArrive { at, barrier, semantics } => {
                detector.mbarrier_arrive(*at, site, *barrier, *semantics);
            }
            Event::CopyArrive { at, barrier } => detector.copy_arrive(*at, *barrier),
            Event::MbarrierComplete(barrier) => detector.mbarrier_phase_complete(*barrier),
            Event::MbarrierWait { at, barrier, semantics } => detector.mbarrier_wait(*at, *barrier, *semantics),
            Event::Load { at, barrier, reads, writes } => {
                detector.bulk_load(*at, site, *barrier, &Bulk { reads, writes, ..Bulk::default() });
            }
            Event::RemoteStore { at, barrier, to } => detector.remote_store(*at, site, *barrier, to.clone()),
            Event::Store { at, reads, writes, element } => {
                detector.bulk_store(*at, site, &Bulk { reads, writes, map: None, element: *element });
            }
            Event::BulkCommit(at) => detector.bulk_commit(*at),
            Event::BulkWait { at, pending, read } => detector.bulk_wait(*at, site, *pending, *read),
            Event::Wgmma { at, reads } => detector.wgmma(*at, site, reads),
            Event::WgmmaCommit(at) => detector.wgmma_commit(*at),
            Event::WgmmaWait(at, pending) => detector.wgmma_wait(*at, *pending),
            event => unreachable!("{event:?}"),
        }
    }
}
