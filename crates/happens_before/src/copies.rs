//! What the lanes of a warp have in flight, and what became of it.

use std::collections::VecDeque;

use super::Site;
use super::clock::bits;
use super::warp::remember;

#[derive(Clone, Copy)]
struct Commit {
    mask: u32,
    batch: u32,
}

/// Copies that one instruction started.
#[derive(Clone, Copy)]
pub struct Flight {
    pub mask: u32,
    pub batch: u32,
    pub site: Site,
    /// The warp's time at the start.
    pub time: u32,
}

/// A wait by lanes that covered their copies up to a batch.
#[derive(Clone, Copy)]
pub struct Waited {
    pub site: Site,
    /// The warp's time: releases from then on carry the copies.
    pub time: u32,
    pub mask: u32,
    pub batch: u32,
}

/// Copies that the completion of an mbarrier's phase tells of.
#[derive(Clone, Copy)]
pub struct Told {
    pub barrier: u64,
    pub phase: u32,
    mask: u32,
    batch: u32,
}

/// What became of a copy, as far as its issuing lane is concerned.
pub enum State {
    Open,
    Committed {
        later: u32,
    },
    /// An mbarrier will tell of it.
    Told(Told),
    Waited(Option<Waited>),
}

/// The `cp.async` copies of a warp's lanes, or the reads or the writes of their bulk stores. A batch is what lies between two commits by any lanes of the warp; a lane's
/// group may span several batches, and ends with the batch that the lane committed.
#[derive(Clone)]
pub struct Copies {
    pub batch: u32,
    /// Commits not yet waited for, oldest first.
    commits: Vec<Commit>,
    /// Those that their lanes have not waited for.
    pub flights: Vec<Flight>,
    /// The last ones that were waited for.
    landed: VecDeque<Flight>,
    waits: VecDeque<Waited>,
    told: VecDeque<Told>,
}

impl Default for Copies {
    /// Nothing in flight; batch 0 is "nothing".
    fn default() -> Copies {
        let (landed, waits, told) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Copies { batch: 1, commits: Vec::new(), flights: Vec::new(), landed, waits, told }
    }
}

impl Copies {
    pub fn issue(&mut self, mask: u32, site: Site, time: u32) {
        let batch = self.batch;
        match self.flights.last_mut().filter(|last| (last.batch, last.site, last.time) == (batch, site, time)) {
            Some(last) => last.mask |= mask,
            None => self.flights.push(Flight { mask, batch, site, time }),
        }
    }

    /// The warp's time when the lane last started a copy at this site in this batch, if that is remembered.
    pub fn start(&self, lane: u8, batch: u32, site: Site) -> Option<u32> {
        let of_lane = |flight: &&Flight| (flight.batch, flight.site) == (batch, site) && flight.mask >> lane & 1 == 1;
        self.flights.iter().chain(&self.landed).filter(of_lane).map(|flight| flight.time).max()
    }

    pub fn commit(&mut self, mask: u32) {
        self.commits.push(Commit { mask, batch: self.batch });
        self.batch += 1;
    }

    /// `cp.async.mbarrier.arrive`: an mbarrier will tell of everything that these lanes have in flight. Returns up to
    /// which batch.
    pub fn hand_over(&mut self, mask: u32, barrier: u64, phase: u32) -> u32 {
        let batch = self.batch;
        remember(&mut self.told, Told { barrier, phase, mask, batch });
        self.land(mask, batch);
        self.batch += 1;
        batch
    }

    fn land(&mut self, mask: u32, batch: u32) {
        for flight in self.flights.iter_mut().filter(|flight| flight.batch <= batch && flight.mask & mask != 0) {
            remember(&mut self.landed, Flight { mask: flight.mask & mask, ..*flight });
            flight.mask &= !mask;
        }
        self.flights.retain(|flight| flight.mask != 0);
    }

    /// Which lanes find which of their batches complete when all but their last `pending` groups are.
    pub fn complete(&self, mask: u32, pending: u32) -> Vec<(u32, u32)> {
        let (mut left, mut rest, mut complete) = ([pending; 32], mask, Vec::new());
        for commit in self.commits.iter().rev() {
            let done =
                bits(commit.mask & rest).filter(|lane| left[*lane as usize] == 0).fold(0, |m, lane| m | 1 << lane);
            bits(commit.mask & rest & !done).for_each(|lane| left[lane as usize] -= 1);
            if done != 0 {
                complete.push((done, commit.batch));
                rest &= !done;
            }
        }
        complete
    }

    pub fn finish(&mut self, mask: u32, batch: u32, wait: Waited) {
        self.commits.iter_mut().filter(|commit| commit.batch <= batch).for_each(|commit| commit.mask &= !mask);
        self.commits.retain(|commit| commit.mask != 0);
        self.land(mask, batch);
        remember(&mut self.waits, wait);
    }

    pub fn is_committed(&self, lane: u8, batch: u32) -> bool {
        self.commits.iter().any(|commit| commit.batch >= batch && commit.mask >> lane & 1 == 1)
    }

    pub fn state(&self, lane: u8, batch: u32) -> State {
        if !self.flights.iter().any(|flight| flight.batch == batch && flight.mask >> lane & 1 == 1) {
            let covers = |wait: &&Waited| wait.batch >= batch && wait.mask >> lane & 1 == 1;
            let tells = |told: &&Told| told.batch >= batch && told.mask >> lane & 1 == 1;
            let wait = self.waits.iter().find(covers).copied();
            return match self.told.iter().find(tells) {
                Some(told) if wait.is_none() => State::Told(*told),
                _ => State::Waited(wait),
            };
        }
        let own = self.commits.iter().filter(|commit| commit.batch >= batch && commit.mask >> lane & 1 == 1);
        match own.count() {
            0 => State::Open,
            groups => State::Committed { later: groups as u32 - 1 },
        }
    }
}
