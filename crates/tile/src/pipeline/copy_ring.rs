//! A ring that the block fills with cp.async: all its threads, or those of some warps.
//!
//! What a kernel must get right by hand elsewhere is derived here. A ring numbers its groups of copies, so a wait names
//! how many are younger. A barrier follows each wait, for each thread waits for its own copies alone, and who copies
//! nothing has only the barrier to wait at. And a barrier stands between the last readers of a stage and the copy that
//! fills it again, unless one has passed anyway.

use crate::assertion::check;
use crate::builder::{Pipeline, Reach, ScopeId, here, with};
use crate::control::{select, when};
use crate::error::{BuildError, Place};
use crate::instructions::{barrier, cp_async_commit_group, cp_async_wait_group};
use crate::values::{CopyPlan, Element, Matrix, SharedTile, SharedVector, Type, U32, Var};
use crate::warps::Warps;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

/// Tiles of a matrix, `stages` of them in shared memory.
pub struct CopyRing<E> {
    plan: CopyPlan<E>,
    /// Who copies.
    warps: Warps,
    first: SharedTile<E>,
    pub(super) stages: u32,
    pub(super) state: Rc<RefCell<State>>,
}

pub(super) struct State {
    pub name: String,
    /// The stage that is used next. The one that is filled next lies as many stages further on as copies are in flight.
    drain: Turn,
    /// Copies not yet waited for, oldest first.
    flying: VecDeque<Group>,
    /// For each free stage: it may still be read, so a barrier is due before it is filled.
    free: VecDeque<bool>,
    /// Stages in use, oldest first: by the number of `wait`, and since when.
    held: VecDeque<(u32, Place)>,
    waits: u32,
    /// Set by the loop.
    pub pass: Option<Pass>,
    /// How often `next` was called.
    pub taken: u32,
}

/// One pass of the loop through a ring's tiles.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    /// The tile that `next` takes, and where the tiles start and end.
    pub tile: U32,
    pub start: U32,
    pub end: U32,
    /// The body of the loop.
    pub scope: ScopeId,
}

struct Group {
    number: u64,
    at: Place,
}

/// A byte offset that goes round the ring.
struct Turn {
    /// None: there is one stage, and nowhere to go.
    offset: Option<Var<u32>>,
    stages: u32,
    bytes: u32,
}

impl Turn {
    #[track_caller]
    fn new(name: String, stages: u32, bytes: u32) -> Turn {
        Turn { offset: (stages > 1).then(|| Var::new(name, 0)), stages, bytes }
    }

    /// The offset now; then on to the next stage.
    #[track_caller]
    fn advance(&mut self) -> U32 {
        let Some(offset) = &self.offset else { return 0.into() };
        let (old, next) = (offset.get(), self.further(1));
        self.offset.iter_mut().for_each(|offset| offset.set(next));
        old
    }

    /// The offset `count` stages further on.
    #[track_caller]
    fn further(&self, count: u32) -> U32 {
        let Some(offset) = &self.offset else { return 0.into() };
        match (self.stages, count) {
            (_, 0) => offset.get(),
            (2, _) => offset.get() ^ self.bytes,
            (stages, _) => {
                let (sum, end) = (offset.get() + count * self.bytes, stages * self.bytes);
                select(sum.lt(end), sum, sum - end)
            }
        }
    }
}

impl<E: Element> CopyRing<E> {
    #[track_caller]
    pub fn new(name: &str, stages: u32, rows: u32, source: Matrix<E>) -> CopyRing<E> {
        CopyRing::filled_by(Warps::all(), name, stages, rows, source)
    }

    /// A ring that `warps` alone fill. All threads of the block still call `start`, `next` and `wait`.
    #[track_caller]
    pub fn filled_by(warps: Warps, name: &str, stages: u32, rows: u32, source: Matrix<E>) -> CopyRing<E> {
        let at = here();
        with(|b| b.note_copying(warps.numbers(), name, at));
        let first = SharedTile::stages(name, stages, rows, source.columns);
        let plan = CopyPlan::new(&first, source, warps);
        let state = Rc::new(RefCell::new(State {
            name: name.into(),
            drain: Turn::new(format!("{name}_stage"), stages, first.bytes()),
            flying: VecDeque::new(),
            free: (0..stages).map(|_| false).collect(),
            held: VecDeque::new(),
            waits: 0,
            pass: None,
            taken: 0,
        }));
        with(|b| b.watch(state.clone()));
        CopyRing { plan, warps, first, stages, state }
    }

    /// Waits for the next tile, and keeps the ring filled `stages - 1` tiles ahead of it.
    #[track_caller]
    pub fn next(&self) -> Full<E> {
        self.state.borrow_mut().taken += 1;
        let at = here();
        let Some(Pass { tile, start, end, scope }) = self.state.borrow().pass else {
            let message = format!("ring `{}` does not know its tiles", self.state.borrow().name);
            BuildError::new(message, at)
                .help("call `begin` before the loop, and give `for_each` what it returns")
                .raise()
        };
        if with(|b| b.scopes.innermost()) != scope {
            let message = format!("ring `{}` moves on inside a loop or branch of the pass", self.state.borrow().name);
            BuildError::new(message, at).help("take the tile before it: every pass takes one").raise()
        }
        if self.stages == 1 {
            // The pass that uses a tile starts it: it exists.
            self.start(tile);
            return self.wait();
        }
        check(
            || self.state.borrow().drain.further(0).eq((tile - start) % self.stages * self.first.bytes()),
            &format!("the ring of {} hands out the stage of its tile", self.state.borrow().name),
        );
        let full = self.wait();
        self.start_if_any(tile + (self.stages - 1), end);
        full
    }

    /// Starts a tile before `end`. Past the last one the group stays empty, so that counts of groups are constants and no
    /// copy is in flight after the loop.
    #[track_caller]
    pub(super) fn start_if_any(&self, tile: U32, end: U32) {
        self.start_group(here(), |plan, stage| when(tile.lt(end), || plan.start(stage, tile * stage.rows)));
    }

    /// Starts copying tile number `tile`. Rows beyond the matrix become zeros.
    #[track_caller]
    pub fn start(&self, tile: impl Into<U32>) {
        let first = tile.into() * self.first.rows;
        self.start_group(here(), |plan, stage| plan.start(stage, first));
    }

    #[track_caller]
    fn start_group(&self, at: Place, copy: impl FnOnce(&CopyPlan<E>, &SharedTile<E>)) {
        let ring = format!("ring `{}`", self.state.borrow().name);
        with(|b| b.check_converged(&ring, Reach::Block, at));
        self.take_free_stage(at);
        self.warps.run(|| {
            let offset = {
                let state = self.state.borrow();
                state.drain.further(state.flying.len() as u32)
            };
            copy(&self.plan, &self.first.shifted(offset));
            cp_async_commit_group();
        });
        let number = with(|b| b.copies);
        self.state.borrow_mut().flying.push_back(Group { number, at });
    }

    /// A barrier stands between the last readers of the stage and the copy.
    #[track_caller]
    fn take_free_stage(&self, at: Place) {
        let free = self.state.borrow_mut().free.pop_front();
        match free {
            Some(true) => barrier(),
            Some(false) => {}
            None => self.full(at),
        }
    }

    fn full(&self, at: Place) -> ! {
        let state = self.state.borrow();
        let error = BuildError::new(format!("ring `{}` has no free stage of {}", state.name, self.stages), at);
        match state.held.front() {
            Some((_, held)) => error.note("one is held since here", held).raise(),
            None => error.help("wait for a copy before the next one starts").raise(),
        }
    }

    /// Waits for the oldest copy, of all threads. Younger copies, of any ring, stay in flight.
    #[track_caller]
    pub fn wait(&self) -> Full<E> {
        let at = here();
        let oldest = self.state.borrow_mut().flying.pop_front();
        let Some(group) = oldest else {
            let message = format!("ring `{}` has no copy in flight to wait for", self.state.borrow().name);
            BuildError::new(message, at).raise()
        };
        self.warps.run(|| cp_async_wait_group(with(|b| b.copies - group.number) as u32));
        barrier();
        let mut state = self.state.borrow_mut();
        state.waits += 1;
        let number = state.waits;
        state.held.push_back((number, at));
        let tile = self.first.shifted(state.drain.advance());
        Full { tile, state: Some(self.state.clone()), number, at }
    }

    /// Its memory for something else, as vectors of these lengths. A barrier stands between the last readers and what
    /// comes now, unless one has passed anyway.
    #[track_caller]
    pub fn retire<T: Type, const N: usize>(self, lengths: [u32; N]) -> [SharedVector<T>; N] {
        let at = here();
        let elements: u64 = lengths.iter().copied().map(u64::from).sum();
        self.check_idle(elements * u64::from(T::BYTES), at);
        if self.state.borrow().free.contains(&true) {
            barrier();
        }
        let mut next = 0;
        lengths.map(|length| {
            let start = next;
            next += length * T::BYTES;
            SharedVector::placed(self.first.address(start))
        })
    }

    /// Refuses to give up memory that is still used, and more than there is.
    fn check_idle(&self, bytes: u64, at: Place) {
        let (state, room) = (self.state.borrow(), self.stages * self.first.bytes());
        let refused = |why: &str| BuildError::new(format!("ring `{}` {why}", state.name), at);
        if let Some((_, held)) = state.held.front() {
            refused("retires while a stage is in use").note("it is held since here", held).raise()
        }
        if let Some(group) = state.flying.front() {
            refused("retires while a copy is in flight").note("it was started here", group.at).raise()
        }
        if bytes > room.into() {
            refused(&format!("has {room} bytes, and {bytes} are asked for")).raise()
        }
    }

    /// After the last tile: the groups that are left are empty.
    pub(super) fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.flying.clear();
        state.pass = None;
    }
}

impl<E> Drop for CopyRing<E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let state = self.state.borrow();
        if let Some(group) = state.flying.back() {
            BuildError::new(format!("this copy of ring `{}` is never waited for", state.name), group.at)
                .help("a copy must have landed when the kernel ends: call `.wait()`, or go through the tiles")
                .raise()
        }
    }
}

/// A stage whose bytes have arrived.
#[must_use = "a stage that is never released stops the ring: call `.release()`"]
pub struct Full<E> {
    tile: SharedTile<E>,
    /// None: released.
    state: Option<Rc<RefCell<State>>>,
    number: u32,
    at: Place,
}

impl<E> Full<E> {
    /// This thread reads no more. Stages come back in the order in which they were taken: they are filled in that order.
    #[track_caller]
    pub fn release(mut self) {
        if let Some(state) = self.state.take() {
            let mut state = state.borrow_mut();
            if let Some((oldest, at)) = state.held.front().filter(|(oldest, _)| *oldest != self.number) {
                let message =
                    format!("stage {} of ring `{}` is released before stage {oldest}", self.number, state.name);
                BuildError::new(message, here()).note("which is held since here", at).raise()
            }
            state.held.pop_front();
            state.free.push_back(true);
        }
    }
}

impl<E> Deref for Full<E> {
    type Target = SharedTile<E>;
    fn deref(&self) -> &SharedTile<E> {
        &self.tile
    }
}

impl<E> Drop for Full<E> {
    fn drop(&mut self) {
        if let (Some(state), false) = (&self.state, std::thread::panicking()) {
            let name = state.borrow().name.clone();
            BuildError::new(format!("this stage of ring `{name}` is never released"), self.at)
                .help("call `.release()` after the last read")
                .raise()
        }
    }
}

impl Pipeline for RefCell<State> {
    /// Ages of the copies in flight, and the free stages: what wait counts depend on.
    fn describe(&self, copies: u64) -> String {
        let state = self.borrow();
        let ages: Vec<u64> = state.flying.iter().map(|group| copies - group.number).collect();
        let (name, flying, free) = (&state.name, ages.len(), state.free.len());
        format!("ring `{name}` has {flying} copies in flight, with {ages:?} groups after them, and {free} free stages")
    }

    fn due(&self) -> Vec<bool> {
        self.borrow().free.iter().copied().collect()
    }

    fn set_due(&self, due: Vec<bool>) {
        self.borrow_mut().free = due.into();
    }
}
