//! Warps with a task of their own: some copy, while the others compute. All of them still meet at every barrier.

use crate::builder::{here, with};
use crate::control::only;
use crate::error::BuildError;
use crate::instructions::{thread_index, warp_index};
use crate::values::{Pred, U32};
use std::ops::Range;

const LANES: u32 = 32;

/// Some warps of the block, or all.
#[derive(Clone, Copy)]
pub struct Warps {
    first: u32,
    count: u32,
    /// Whether a thread is one of theirs; none if all are.
    members: Option<Pred>,
}

impl Warps {
    #[track_caller]
    pub fn all() -> Warps {
        Warps { first: 0, count: with(|b| b.options.threads / LANES), members: None }
    }

    #[track_caller]
    pub fn numbered(numbers: Range<u32>) -> Warps {
        let (at, all) = (here(), Warps::all());
        if numbers.is_empty() || numbers.end > all.count {
            let message = format!("there are no warps {numbers:?} in a block of {}", all.count);
            BuildError::new(message, at).raise()
        }
        let (first, count) = (numbers.start, numbers.end - numbers.start);
        let members = (count < all.count).then(|| (warp_index() - first).lt(count));
        Warps { first, count, members }
    }

    /// Runs `body` on these warps alone. What it makes may be used by them later: no other warp gets there.
    #[track_caller]
    pub fn run<R>(&self, body: impl FnOnce() -> R) -> R {
        match self.members {
            Some(members) => only(members, body),
            None => body(),
        }
    }

    pub fn numbers(&self) -> Range<u32> {
        self.first..self.first + self.count
    }

    pub(crate) fn threads(&self) -> u32 {
        self.count * LANES
    }

    /// The number of a thread among those of these warps.
    #[track_caller]
    pub(crate) fn thread_index(&self) -> U32 {
        thread_index() - self.first * LANES
    }
}
