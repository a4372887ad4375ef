//! A warp: registers of 32 lanes, and the fragments its lanes have split into.

use super::definedness::Definedness;
use super::registers::{Layout, Registers, bits_to_values};
use super::{CallSite, Source, Values, lanes};
use crate::async_engines::Spot;
use crate::memory::LocalMemory;
use crate::simd::Parted;
use ptx::RegisterId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Lanes that run together.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub mask: u32,
    pub next: u32,
    pub state: State,
    /// The nearest meeting point ahead; each knows the next one.
    join: Option<usize>,
    /// Functions that run, the innermost last; the lanes of a fragment have come the same way.
    pub calls: Vec<Call>,
    /// Its wait for a phase has run out.
    pub expired: bool,
}

/// A function that runs.
#[derive(Clone, Debug)]
pub struct Call {
    pub site: Arc<CallSite>,
    /// Its registers before, if it runs already: each call has its own.
    saved: Option<Arc<Vec<Values>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    /// At the place where a branch ends, until the other side comes.
    Joining,
    /// At a block barrier.
    Barrier(u32),
    /// At the barrier of the cluster.
    Cluster,
    /// At the wait for a phase of an mbarrier.
    Phase(Spot),
    /// At the wait for products that other warps of the warpgroup have not committed.
    Products,
    /// At the demand for so many registers per thread, which the block does not have.
    Registers(u32),
    /// At an instruction that all lanes of a mask execute together.
    Gathering(u32),
}

/// Where lanes that a branch separated meet again.
#[derive(Clone, Debug)]
struct Join {
    place: u32,
    expected: u32,
    arrived: u32,
    outer: Option<usize>,
    /// Calls around it: a function that calls itself comes by its own places again.
    calls: Vec<Call>,
}

pub struct Warp {
    pub index: u32,
    /// Lanes that exist and have not exited.
    pub live: u32,
    pub fragments: Vec<Fragment>,
    /// The carry flag of every lane (PTX ISA, "CC.CF").
    pub carry: u32,
    /// Instructions so far: the warp's clock.
    pub steps: u64,
    /// Waits that have given up, and have not succeeded since.
    pub given_up: BTreeSet<u32>,
    joins: Vec<Join>,
    pub registers: Registers,
    pub definedness: Definedness,
    /// Where each lane's innermost frame begins in its local memory.
    pub frames: Values,
    pub local: Vec<LocalMemory>,
}

impl Warp {
    /// All lanes at the first step, each with an open frame of `frame` bytes.
    pub fn new(index: u32, live: u32, layout: &Arc<Layout>, frame: u64) -> Warp {
        let all = Fragment { mask: live, next: 0, state: State::Ready, join: None, calls: vec![], expired: false };
        let mut local = LocalMemory::default();
        local.open(0, frame);
        let (local, registers) = (vec![local; 32], Registers::new(layout));
        Warp {
            index,
            live,
            fragments: vec![all],
            carry: 0,
            steps: 0,
            given_up: BTreeSet::new(),
            joins: vec![],
            registers,
            definedness: Definedness::default(),
            frames: [0; 32],
            local,
        }
    }

    pub fn register(&self, register: RegisterId) -> Values {
        self.registers.read(register)
    }

    pub fn read(&self, source: Source, special: &dyn Fn(&str, usize) -> u64) -> Values {
        match source {
            Source::Register(register) => self.register(register),
            Source::Not(register) => bits_to_values(!self.registers.predicate(register)),
            Source::Constant(value) => [value; 32],
            Source::Frame(offset) => self.frames.map(|frame| frame + offset),
            Source::Special(name) => std::array::from_fn(|lane| special(name, lane)),
        }
    }

    pub fn write(&mut self, register: Option<RegisterId>, mask: u32, values: &Values) {
        if let Some(register) = register {
            self.registers.write(register, mask, values);
        }
    }

    /// Lanes of a fragment whose guard holds.
    pub fn guarded(&self, fragment: usize, guard: Option<ptx::Guard>) -> u32 {
        let mask = self.fragments[fragment].mask;
        let Some(guard) = guard else { return mask };
        let holds = self.registers.predicate(guard.register);
        mask & if guard.negated { !holds } else { holds }
    }

    /// Sends the lanes of `taken` to `target`; the others go on. They meet again at `meeting`.
    pub fn branch(&mut self, fragment: usize, taken: u32, target: u32, meeting: Option<u32>) {
        let current = &mut self.fragments[fragment];
        let rest = current.mask & !taken;
        if taken == 0 || rest == 0 {
            current.next = if taken == 0 { current.next + 1 } else { target };
            return;
        }
        if let Some(place) = meeting {
            let (outer, calls) = (current.join, current.calls.clone());
            current.join = Some(self.joins.len());
            self.joins.push(Join { place, expected: current.mask, arrived: 0, outer, calls });
        }
        let jumped = Fragment { mask: taken, next: target, ..current.clone() };
        current.mask = rest;
        current.next += 1;
        self.fragments.push(jumped);
    }

    /// A fragment that was run over a branch that parted, and has not come to its end: the lanes get fragments of their
    /// own, as if [`Warp::branch`] had sent them.
    pub fn part(&mut self, fragment: usize, parted: &Parted, next: u32) {
        let Parted { whole, runs, waits, target, meeting, .. } = *parted;
        self.fragments[fragment].mask = whole;
        if waits != 0 {
            self.branch(fragment, waits, target, Some(meeting));
            self.fragments[fragment].next = next;
            return;
        }
        self.branch(fragment, runs, next, Some(meeting));
        self.fragments[fragment].next = meeting;
        self.arrive_at_join(fragment);
    }

    /// Sends lanes each their own way; all of the fragment's lanes must have one.
    pub fn scatter(&mut self, fragment: usize, ways: &[(u32, u32)], meeting: Option<u32>) {
        for (index, (mask, target)) in ways.iter().enumerate() {
            let here = self.fragments[fragment].next;
            // The first separation makes the meeting point; the others inherit it.
            self.branch(fragment, *mask, *target, meeting.filter(|_| index == 0));
            if index + 1 < ways.len() {
                self.fragments[fragment].next = here;
            }
        }
    }

    /// Sends the lanes of `taken` into a function; they meet the others where it returns to.
    pub fn call(&mut self, fragment: usize, taken: u32, site: &Arc<CallSite>) {
        let current = &mut self.fragments[fragment];
        let (outer, calls) = (current.join, current.calls.clone());
        let again = calls.iter().any(|call| call.site.entry == site.entry);
        let registers = site.registers.clone().map(|register| self.registers.read(RegisterId(register)));
        let saved = again.then(|| Arc::new(registers.collect()));
        current.join = Some(self.joins.len());
        self.joins.push(Join { place: site.back, expected: current.mask, arrived: 0, outer, calls });
        let mut inside = Fragment { mask: taken, next: site.entry, ..current.clone() };
        inside.calls.push(Call { site: site.clone(), saved });
        lanes(taken).for_each(|lane| self.frames[lane] += site.caller_frame);
        current.mask &= !taken;
        current.next = site.back;
        if current.mask == 0 {
            *current = inside;
        } else {
            self.fragments.push(inside);
        }
    }

    /// How many functions the lanes of a fragment are inside of.
    pub fn depth(&self, fragment: usize) -> usize {
        self.fragments[fragment].calls.len()
    }

    /// The lanes of `taken` return from the innermost function, whose place they get to know; the others go on.
    pub fn give_back(&mut self, fragment: usize, taken: u32) -> Option<Arc<CallSite>> {
        let current = &mut self.fragments[fragment];
        let mut outside = current.clone();
        let Call { site, saved } = outside.calls.pop()?;
        (outside.mask, outside.next) = (taken, site.back);
        current.mask &= !taken;
        current.next += 1;
        if current.mask == 0 {
            *current = outside;
        } else {
            self.fragments.push(outside);
        }
        for (register, values) in site.registers.clone().zip(saved.iter().flat_map(|saved| saved.iter())) {
            self.write(Some(RegisterId(register)), taken, values);
        }
        lanes(taken).for_each(|lane| self.frames[lane] -= site.caller_frame);
        Some(site)
    }

    /// The step where a fragment must stop, since others wait there for it; none is `u32::MAX`.
    pub fn stop(&self, fragment: usize) -> u32 {
        let Fragment { join, calls, .. } = &self.fragments[fragment];
        let join = join.map(|join| &self.joins[join]).filter(|join| join.calls.len() == calls.len());
        join.map_or(u32::MAX, |join| join.place)
    }

    /// Parks a fragment that has reached its meeting point, and merges those that have all come.
    pub fn arrive_at_join(&mut self, fragment: usize) {
        let Some(join) = self.fragments[fragment].join else { return };
        let depth = self.fragments[fragment].calls.len();
        if self.joins[join].place != self.fragments[fragment].next || self.joins[join].calls.len() != depth {
            return;
        }
        self.fragments[fragment].state = State::Joining;
        self.joins[join].arrived |= self.fragments[fragment].mask;
        self.settle_join(join);
    }

    fn settle_join(&mut self, join: usize) {
        let Join { place, expected, arrived, outer, ref calls } = self.joins[join];
        if arrived != expected {
            return;
        }
        let calls = calls.clone();
        let waits = |fragment: &Fragment| fragment.state == State::Joining && fragment.join == Some(join);
        self.fragments.retain(|fragment| !waits(fragment));
        if join + 1 == self.joins.len() {
            self.joins.pop(); // Nobody waits there any more: a loop that parts again finds its place free.
        }
        if arrived != 0 {
            self.fragments.push(Fragment {
                mask: arrived,
                next: place,
                state: State::Ready,
                join: outer,
                calls,
                expired: false,
            });
            let merged = self.fragments.len() - 1;
            self.arrive_at_join(merged);
        }
    }

    /// Lanes end; nobody waits for them any more.
    pub fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        for fragment in &mut self.fragments {
            fragment.mask &= !mask;
            if matches!(fragment.state, State::Gathering(_)) {
                fragment.state = State::Ready; // Looks again whether everybody is here.
            }
        }
        self.fragments.retain(|fragment| fragment.mask != 0);
        let mut following = 0..;
        while let Some(join) = following.next().filter(|join| *join < self.joins.len()) {
            let open = self.joins[join].expected != 0;
            self.joins[join].expected &= !mask;
            self.joins[join].arrived &= !mask;
            let awaited = self.fragments.iter().any(|one| one.state == State::Joining && one.join == Some(join));
            if open && awaited {
                self.settle_join(join);
            }
        }
    }

    /// Have all live lanes of `members` come to the gathering at `place`? If so, those lanes.
    pub fn gathered(&self, place: u32, members: u32) -> Option<u32> {
        let here = |fragment: &&Fragment| fragment.next == place && fragment.state == State::Gathering(members);
        let mask = self.fragments.iter().filter(here).fold(0, |mask, fragment| mask | fragment.mask);
        (mask & members == self.live & members).then_some(mask & members)
    }

    /// Fragments that wait look again.
    pub fn wake(&mut self, waits: impl Fn(State) -> bool) {
        self.fragments.iter_mut().filter(|one| waits(one.state)).for_each(|one| one.state = State::Ready);
    }

    /// Fragments that wait go on behind what they waited at.
    pub fn release(&mut self, waits: impl Fn(State) -> bool) {
        for fragment in self.fragments.iter_mut().filter(|one| waits(one.state)) {
            fragment.state = State::Ready;
            fragment.next += 1;
        }
        for index in (0..self.fragments.len()).rev() {
            if self.fragments.get(index).is_some_and(|one| one.state == State::Ready) {
                self.arrive_at_join(index);
            }
        }
    }

    /// Lets the fragments of a gathering go on.
    pub fn disperse(&mut self, place: u32, members: u32) {
        for index in 0..self.fragments.len() {
            let fragment = &mut self.fragments[index];
            if fragment.next == place && fragment.state == State::Gathering(members) {
                fragment.state = State::Ready;
                fragment.next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(warp: &Warp) -> Vec<(u32, u32)> {
        warp.fragments.iter().map(|fragment| (fragment.mask, fragment.next)).collect()
    }

    #[test]
    fn lanes_that_part_meet_again() {
        let mut warp = Warp::new(0, 0xff, &Arc::default(), 0);
        warp.branch(0, 0x0f, 10, Some(20));
        assert_eq!(places(&warp), [(0xf0, 1), (0x0f, 10)]);
        warp.fragments[0].next = 20;
        warp.arrive_at_join(0);
        assert_eq!(warp.fragments[0].state, State::Joining);
        warp.fragments[1].next = 20;
        warp.arrive_at_join(1);
        assert_eq!(places(&warp), [(0xff, 20)]);
    }

    #[test]
    fn a_run_that_ends_inside_a_branch_leaves_fragments() {
        let parted = |waits| Parted { whole: 0xff, runs: 0x0f, waits, target: 10, meeting: 20, outer: u32::MAX };
        let mut warp = Warp::new(0, 0xff, &Arc::default(), 0);
        warp.part(0, &Parted { runs: 0xf0, ..parted(0x0f) }, 3);
        assert_eq!(places(&warp), [(0xf0, 3), (0x0f, 10)]);
        let mut warp = Warp::new(0, 0xff, &Arc::default(), 0);
        warp.part(0, &parted(0), 12);
        assert_eq!(places(&warp), [(0xf0, 20), (0x0f, 12)]);
        assert_eq!([0, 1].map(|index| warp.fragments[index].state), [State::Joining, State::Ready]);
        warp.fragments[1].next = 20;
        warp.arrive_at_join(1);
        assert_eq!(places(&warp), [(0xff, 20)]);
    }

    #[test]
    fn nobody_waits_for_lanes_that_exit() {
        let mut warp = Warp::new(0, 0xff, &Arc::default(), 0);
        warp.branch(0, 0x0f, 10, Some(20));
        warp.fragments[0].next = 20;
        warp.arrive_at_join(0);
        warp.exit(0x0f);
        assert_eq!(places(&warp), [(0xf0, 20)]);
        assert_eq!(warp.fragments[0].state, State::Ready);
    }

    #[test]
    fn nested_branches_meet_inside_out() {
        let mut warp = Warp::new(0, 0xf, &Arc::default(), 0);
        warp.branch(0, 0x3, 10, Some(20));
        warp.branch(1, 0x1, 15, Some(20));
        for _ in 0..3 {
            let ready = warp.fragments.iter().position(|fragment| fragment.state == State::Ready).unwrap();
            warp.fragments[ready].next = 20;
            warp.arrive_at_join(ready);
        }
        assert_eq!(places(&warp), [(0xf, 20)]);
    }
}
