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

/// Bytes of an operation that may land before the others: what a cache sector holds.
const STRETCH: usize = 32;

impl Piece {
    /// What is left behind the first `skip` bytes.
    fn behind(self, skip: usize) -> Piece {
        Piece { from: self.from.behind(skip), to: self.to.behind(skip), bytes: self.bytes - skip }
    }
}

impl Transfer {
    /// Takes a stretch from its end; none if that would be all.
    fn tear_off(&mut self) -> Option<Transfer> {
        let last = self.pieces.last().copied()?;
        let left = last.bytes.saturating_sub(STRETCH);
        if left == 0 && self.pieces.len() == 1 {
            return None;
        }
        let read = self.read.as_mut().and_then(|read| read.last_mut()).map(|data| vec![data.split_off(left)]);
        if left == 0 {
            self.pieces.pop();
            self.read.iter_mut().for_each(|read| drop(read.pop()));
        } else {
            self.pieces.last_mut().into_iter().for_each(|piece| piece.bytes = left);
        }
        let reduction = self.reduction;
        Some(Transfer { pieces: vec![last.behind(left)], reduction, read, ..Transfer::default() })
    }
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

    /// Takes a stretch of an operation's bytes out of the air; none if that would be all that is left.
    pub fn tear_off(&mut self, number: Number) -> Option<Transfer> {
        match self.flying.get_mut(&number)? {
            Operation::Transfer(transfer) => transfer.tear_off(),
            Operation::Signal { .. } => None,
        }
    }

    /// Takes an operation out of the air.
    pub fn take(&mut self, number: Number) -> Option<Operation> {
        self.flying.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_torn_from_its_end_until_a_stretch_is_left() {
        let [from, to] = [0, 1].map(|block| Accessed::Shared { block, offset: 64 });
        let pieces = vec![Piece { from, to, bytes: 48 }, Piece { from, to, bytes: 16 }];
        let read = Some(vec![(0..48).collect(), vec![9; 16]]);
        let mut transfer = Transfer { pieces, read, ..Transfer::default() };
        let torn = |transfer: &mut Transfer| {
            let part = transfer.tear_off()?;
            Some((part.pieces[0].from, part.pieces[0].bytes, part.read?[0][0]))
        };
        let place = |offset| Accessed::Shared { block: 0, offset };
        assert_eq!(torn(&mut transfer), Some((place(64), 16, 9)));
        assert_eq!(torn(&mut transfer), Some((place(80), 32, 16)));
        assert_eq!(torn(&mut transfer), None);
        assert_eq!((transfer.pieces[0].bytes, transfer.read.map(|read| read[0].len())), (16, Some(16)));
    }
}
