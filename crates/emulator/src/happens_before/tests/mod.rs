//! The detector against the definition: every program runs on both, and they must agree on every byte.

mod differential;
mod litmus;
mod oracle;
mod wording;

use std::collections::BTreeSet;

use super::shadow::Hit;
use super::{Agent, Detector, Kind, Lanes, Party, Semantics, Site, Space};
use oracle::Oracle;

const ALL: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Event {
    Access { at: Lanes, kind: Kind, semantics: Semantics, space: Space, addresses: Box<[u64; 32]>, bytes: u32 },
    Fence(Lanes, Semantics),
    Copy { at: Lanes, from: Box<[u64; 32]>, from_bytes: Box<[u32; 32]>, to: Box<[u64; 32]>, bytes: u32 },
    Commit(Lanes),
    Wait(Lanes, u32),
    WaitAll(Lanes),
    WarpSync(Lanes),
    Arrive { at: Lanes, id: u32 },
    Complete { id: u32, waiters: Vec<Lanes> },
    Exit(Lanes),
}

fn lanes_of(mask: u32) -> Vec<u8> {
    (0..32).filter(|lane| mask >> lane & 1 == 1).collect()
}

/// The second party of a hit.
fn asking(event: &Event, hit: &Hit) -> Party {
    let (Event::Access { at, .. } | Event::Copy { at, .. }) = event else { panic!("only accesses hit: {event:?}") };
    Party { warp: at.warp, lane: hit.second_lane, site: Site(0), write: false, agent: Agent::Thread }
}

/// Detector and oracle, side by side.
#[derive(Clone)]
struct Duel {
    detector: Detector,
    oracle: Oracle,
}

impl Duel {
    fn new(lanes: &[u32]) -> Duel {
        Duel { detector: Detector::new(lanes), oracle: Oracle::new(lanes) }
    }

    /// Executes an event on both; returns the faulty bytes, or how they disagree.
    fn step(&mut self, event: &Event, site: Site) -> Result<BTreeSet<(Space, u64)>, String> {
        let races = self.oracle.step(event, site);
        let expected: BTreeSet<(Space, u64)> = races.iter().map(|race| (race.space, race.byte)).collect();
        self.run(event, site);
        if !matches!(event, Event::Access { .. } | Event::Copy { .. }) {
            return Ok(expected);
        }
        // By now an acquire knows more than its access did.
        let acquires = matches!(event, Event::Access { semantics, .. } if semantics.acquire);
        let mut found = BTreeSet::new();
        for space in [Space::Shared, Space::Global] {
            for hit in &self.detector.shadows[space as usize].hits {
                for byte in (0..4).filter(|byte| hit.bytes >> byte & 1 == 1).map(|byte| hit.address + byte) {
                    found.insert((space, byte));
                    let (warp, copy) = (hit.first.row as u32 / 2, hit.first.row % 2 == 1);
                    let first = (warp, Site(hit.first.site), hit.first.write, copy);
                    let known = copy && self.detector.knows_start(&hit.first, hit.first_lane, &asking(event, hit));
                    let truth = races.iter().any(|race| {
                        let past = &race.first;
                        let pair = (past.lane, race.second_lane);
                        // Lanes of one instruction have no order: either may come first.
                        let lanes = pair == (hit.first_lane, hit.second_lane)
                            || past.site == site && pair == (hit.second_lane, hit.first_lane);
                        (race.space, race.byte) == (space, byte)
                            && lanes
                            && (past.warp, past.site, past.write, past.copy) == first
                            && (!copy || acquires || race.start_known == known)
                    });
                    if !truth {
                        return Err(format!("{space:?} byte {byte}: no race with {first:?} of {hit:?}"));
                    }
                }
            }
        }
        if found == expected { Ok(expected) } else { Err(format!("found {found:?}, expected {expected:?}")) }
    }

    fn run(&mut self, event: &Event, site: Site) {
        let detector = &mut self.detector;
        match event {
            Event::Access { at, kind, semantics, space, addresses, bytes } => {
                detector.ordered_access(*at, site, (*kind, *semantics), *space, addresses, *bytes);
            }
            Event::Fence(at, semantics) => detector.fence(*at, site, *semantics),
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
        }
    }
}
