//! `cp.async` copies in flight, per lane, in groups. A copy reads its source and writes its destination when it lands:
//! at any time between its start and the wait that covers it.

use crate::audit::Ticket;
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
    /// Likewise, for whoever keeps the books.
    pub ticket: Ticket,
}

impl Flight {
    /// Bytes of the longest copy.
    pub const LONGEST: usize = 16;
}

/// The copies of one lane, oldest first.
#[derive(Clone, Debug, Default)]
struct Lane {
    flights: VecDeque<Flight>,
    /// How many of them each committed group has; the rest is not committed yet.
    groups: VecDeque<usize>,
    committed: usize,
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
        self.lanes[warp * 32 + lane].flights.push_back(flight);
    }

    /// An empty group counts too.
    pub fn commit(&mut self, warp: usize, lane: usize) {
        let lane = &mut self.lanes[warp * 32 + lane];
        lane.groups.push_back(lane.flights.len() - lane.committed);
        lane.committed = lane.flights.len();
    }

    /// Removes all but the `pending` youngest groups; their copies land now.
    pub fn complete(&mut self, warp: usize, lane: usize, pending: u32) -> impl Iterator<Item = Flight> {
        let lane = &mut self.lanes[warp * 32 + lane];
        let done = lane.groups.len().saturating_sub(pending as usize);
        let landing: usize = lane.groups.drain(..done).sum();
        lane.committed -= landing;
        lane.flights.drain(..landing)
    }

    /// All copies that a lane has started; their groups stay, empty.
    pub fn take_lane(&mut self, warp: usize, lane: usize) -> Vec<Flight> {
        self.lanes[warp * 32 + lane].take(|| true)
    }

    /// Takes the copies that `chosen` picks; their groups stay, emptier.
    pub fn take(&mut self, mut chosen: impl FnMut() -> bool) -> Vec<Flight> {
        self.lanes.iter_mut().flat_map(|lane| lane.take(&mut chosen)).collect()
    }
}

impl Lane {
    fn take(&mut self, mut chosen: impl FnMut() -> bool) -> Vec<Flight> {
        let (mut taken, mut kept) = (vec![], VecDeque::with_capacity(self.flights.len()));
        let open = self.flights.len() - self.committed;
        let mut flights = std::mem::take(&mut self.flights).into_iter();
        for group in self.groups.iter_mut().chain([&mut { open }]) {
            let before = kept.len();
            for flight in flights.by_ref().take(*group) {
                if chosen() {
                    taken.push(flight);
                } else {
                    kept.push_back(flight);
                }
            }
            *group = kept.len() - before;
        }
        self.committed = self.groups.iter().sum();
        self.flights = kept;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(bytes: u32) -> Flight {
        let (to, from, ticket) = (Accessed::Nothing, Accessed::Nothing, Ticket::default());
        Flight { to, from, bytes, source_bytes: bytes, batch: None, ticket }
    }

    fn sizes(flights: impl IntoIterator<Item = Flight>) -> Vec<u32> {
        flights.into_iter().map(|flight| flight.bytes).collect()
    }

    #[test]
    fn groups_land_in_their_order_however_many_copies_landed_before() {
        let mut copies = Copies::new(1);
        for group in [&[1, 2][..], &[], &[3], &[4, 5]] {
            group.iter().for_each(|bytes| copies.start(0, 7, flight(*bytes)));
            copies.commit(0, 7);
        }
        copies.start(0, 7, flight(6));
        let mut picks = [false, true, false, false, true, true].into_iter();
        assert_eq!(sizes(copies.take(|| picks.next().unwrap())), [2, 5, 6]);
        assert_eq!(sizes(copies.complete(0, 7, 3)), [1]);
        assert_eq!(sizes(copies.complete(0, 7, 1)), [3]);
        copies.start(0, 7, flight(8));
        assert_eq!(sizes(copies.complete(0, 7, 0)), [4]);
        assert_eq!(sizes(copies.take_lane(0, 7)), [8]);
    }
}
