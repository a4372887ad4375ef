//! `cp.async` copies in flight, per lane, in groups. A copy reads its source and writes its destination when it lands:
//! at any time between its start and the wait that covers it.

use crate::exec::Accessed;
use std::collections::VecDeque;

/// One lane's copy.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub to: Accessed,
    pub from: Accessed,
    pub bytes: u32,
    /// The rest of the destination becomes zero.
    pub source_bytes: u32,
    /// What started it, for a trace.
    pub batch: Option<u32>,
}

/// The copies of one lane: committed groups, oldest first, and those not committed yet.
#[derive(Clone, Debug, Default)]
struct Lane {
    groups: VecDeque<Vec<Flight>>,
    open: Vec<Flight>,
}

#[derive(Debug)]
pub struct Copies {
    lanes: Vec<Lane>,
}

impl Copies {
    pub fn new(warps: usize) -> Copies {
        Copies { lanes: vec![Lane::default(); warps * 32] }
    }

    pub fn start(&mut self, warp: usize, lane: usize, flight: Flight) {
        self.lanes[warp * 32 + lane].open.push(flight);
    }

    /// An empty group counts too.
    pub fn commit(&mut self, warp: usize, lane: usize) {
        let lane = &mut self.lanes[warp * 32 + lane];
        lane.groups.push_back(std::mem::take(&mut lane.open));
    }

    /// Removes all but the `pending` youngest groups; their copies land now.
    pub fn complete(&mut self, warp: usize, lane: usize, pending: u32) -> Vec<Flight> {
        let groups = &mut self.lanes[warp * 32 + lane].groups;
        let done = groups.len().saturating_sub(pending as usize);
        groups.drain(..done).flatten().collect()
    }

    /// All copies that a lane has started; their groups stay, empty.
    pub fn take_lane(&mut self, warp: usize, lane: usize) -> Vec<Flight> {
        let lane = &mut self.lanes[warp * 32 + lane];
        lane.groups.iter_mut().chain([&mut lane.open]).flat_map(std::mem::take).collect()
    }

    /// Takes the copies that `chosen` picks; their groups stay, emptier.
    pub fn take(&mut self, mut chosen: impl FnMut() -> bool) -> Vec<Flight> {
        let mut taken = vec![];
        for lane in &mut self.lanes {
            for group in lane.groups.iter_mut().chain([&mut lane.open]) {
                group.retain(|flight| {
                    let lands = chosen();
                    if lands {
                        taken.push(*flight);
                    }
                    !lands
                });
            }
        }
        taken
    }
}
