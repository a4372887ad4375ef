//! Bulk operations in flight. Each reads its sources and writes its destinations at some time between its start and
//! the completion that somebody observes; the adversary says when.

use super::mbarrier::Spot;
use super::reduce::Reduction;
use crate::exec::Accessed;
use std::collections::{BTreeMap, VecDeque};

/// Bytes that move together.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub from: Accessed,
    pub to: Accessed,
    pub bytes: usize,
}

/// A bulk copy or reduction.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    pub pieces: Vec<Piece>,
    /// Destinations outside of the tensor, and what they become.
    pub fills: Vec<(Accessed, Vec<u8>)>,
    pub reduction: Option<Reduction>,
    /// Barriers that are told, each of that many bytes.
    pub signals: Vec<(Spot, u32)>,
    /// What was read, if the sources have been read already.
    pub read: Option<Vec<Vec<u8>>>,
}

/// Something that completes later.
#[derive(Clone, Debug)]
pub enum Operation {
    Transfer(Box<Transfer>),
    /// Arrives at a barrier when the copies that a lane has started have landed.
    Signal {
        warp: usize,
        lane: usize,
        spot: Spot,
    },
}

pub type Number = u64;

/// The operations in flight, in the order of their start, and the bulk groups of each lane.
#[derive(Debug, Default)]
pub struct Flights {
    next: Number,
    flying: BTreeMap<Number, Operation>,
    groups: BTreeMap<(usize, usize), Groups>,
}

/// The bulk groups of one lane: committed ones, oldest first, and what is not committed yet.
#[derive(Debug, Default)]
struct Groups {
    committed: VecDeque<Vec<Number>>,
    open: Vec<Number>,
}

impl Flights {
    /// The number of the operation that starts next.
    pub fn announce(&mut self) -> Number {
        self.next += 1;
        self.next
    }

    /// Makes an operation part of the lane's open group.
    pub fn join_group(&mut self, lane: (usize, usize), number: Number) {
        self.groups.entry(lane).or_default().open.push(number);
    }

    /// An empty group counts too.
    pub fn commit(&mut self, lane: (usize, usize)) {
        let groups = self.groups.entry(lane).or_default();
        groups.committed.push_back(std::mem::take(&mut groups.open));
    }

    /// The operations of all but the `pending` youngest groups of a lane. `forget`: the groups are over.
    pub fn older(&mut self, lane: (usize, usize), pending: u32, forget: bool) -> Vec<Number> {
        let Some(groups) = self.groups.get_mut(&lane) else { return vec![] };
        let done = groups.committed.len().saturating_sub(pending as usize);
        match forget {
            true => groups.committed.drain(..done).flatten().collect(),
            false => groups.committed.iter().take(done).flatten().copied().collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }

    pub fn len(&self) -> usize {
        self.flying.len()
    }

    /// The operation that is `place`th in the order of their start.
    pub fn nth(&self, place: usize) -> Option<Number> {
        self.flying.keys().nth(place).copied()
    }

    /// An operation starts, or goes on.
    pub fn fly(&mut self, number: Number, operation: Operation) {
        self.flying.insert(number, operation);
    }

    /// Takes an operation out of the air.
    pub fn take(&mut self, number: Number) -> Option<Operation> {
        self.flying.remove(&number)
    }
}
