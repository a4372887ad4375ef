//! Small programs in twins: the correct one is silent, the broken one has exactly the expected classes of faults.
//! Every program also runs on the oracle, which must agree on every byte.

use std::collections::BTreeMap;

use super::machine::Mbarrier;
use super::{ALL, Duel, Event};
use crate::{Class, Fault, Kind, Lanes, Scope, Semantics, Site, Space};

/// A program under construction: steps are numbered from 0, and their numbers are their sites.
pub(super) struct Program {
    duel: Duel,
    pub(super) live: Vec<u32>,
    /// Long programs run on the detector alone: the oracle forgets nothing.
    unwatched: bool,
    /// What the mbarriers of the program count.
    pub(super) mbarriers: BTreeMap<u64, Mbarrier>,
    pub(super) sites: u32,
}

pub(super) fn cta(warps: usize) -> Program {
    with_lanes(&vec![ALL; warps])
}

pub(super) fn with_lanes(lanes: &[u32]) -> Program {
    shaped(lanes, lanes.len() as u32)
}

pub(super) fn cluster(blocks: usize, warps_per_block: u32) -> Program {
    shaped(&vec![ALL; blocks * warps_per_block as usize], warps_per_block)
}

fn shaped(lanes: &[u32], warps_per_block: u32) -> Program {
    let (duel, mbarriers) = (Duel::new(lanes, warps_per_block), BTreeMap::new());
    Program { duel, live: lanes.to_vec(), mbarriers, unwatched: false, sites: 0 }
}

fn at(warp: u32, mask: u32) -> Lanes {
    Lanes { warp, mask }
}

/// Lane l at `base + stride * l`.
pub(super) fn rows(base: u64, stride: u64) -> Box<[u64; 32]> {
    Box::new(std::array::from_fn(|lane| base + stride * lane as u64))
}

impl Program {
    pub(super) fn then(mut self, event: Event) -> Program {
        if self.unwatched {
            self.duel.run(&event, Site(self.sites));
            self.sites += 1;
            return self;
        }
        if let Err(difference) = self.duel.step(&event, Site(self.sites)) {
            panic!("step {}, {event:?}: {difference}", self.sites);
        }
        self.sites += 1;
        self
    }

    pub(super) fn unwatched(self) -> Program {
        Program { unwatched: true, ..self }
    }

    pub(super) fn when(self, condition: bool, then: impl Fn(Program) -> Program) -> Program {
        if condition { then(self) } else { self }
    }

    pub(super) fn access(self, lanes: Lanes, kind: Kind, addresses: Box<[u64; 32]>, bytes: u32) -> Program {
        let semantics = Semantics::default();
        self.then(Event::Access { at: lanes, kind, semantics, space: Space::Shared, addresses, bytes })
    }

    /// One lane writes or reads the flag.
    fn flag(self, warp: u32, kind: Kind, semantics: Semantics) -> Program {
        let (at, addresses) = (at(warp, 1), rows(FLAG, 0));
        self.then(Event::Access { at, kind, semantics, space: Space::Shared, addresses, bytes: 4 })
    }

    /// One lane fences.
    fn fence(self, warp: u32, semantics: Semantics) -> Program {
        self.then(Event::Fence(at(warp, 1), semantics))
    }

    /// One lane touches one word.
    fn touch(self, warp: u32, kind: Kind) -> Program {
        self.access(at(warp, 1), kind, rows(0, 0), 4)
    }

    /// Every lane writes its own word from `base` on.
    pub(super) fn write(self, warp: u32, base: u64) -> Program {
        self.access(at(warp, ALL), Kind::Write, rows(base, 4), 4)
    }

    pub(super) fn read(self, warp: u32, base: u64) -> Program {
        self.access(at(warp, ALL), Kind::Read, rows(base, 4), 4)
    }

    /// Every lane reads the word of its neighbour.
    fn read_neighbour(self, warp: u32, base: u64) -> Program {
        let addresses = std::array::from_fn(|lane| base + (lane as u64 ^ 1) * 4);
        self.access(at(warp, ALL), Kind::Read, Box::new(addresses), 4)
    }

    pub(super) fn copy_by(self, warp: u32, mask: u32, base: u64) -> Program {
        let (from, to) = (rows(0x7000_0000 + base, 16), rows(base, 16));
        self.then(Event::Copy { at: at(warp, mask), from, from_bytes: Box::new([16; 32]), to, bytes: 16 })
    }

    pub(super) fn copy(self, warp: u32, base: u64) -> Program {
        self.copy_by(warp, ALL, base)
    }

    pub(super) fn commit(self, warp: u32) -> Program {
        self.then(Event::Commit(at(warp, ALL)))
    }

    pub(super) fn wait(self, warp: u32, pending: u32) -> Program {
        self.then(Event::Wait(at(warp, ALL), pending))
    }

    pub(super) fn warp_sync(self, warp: u32, mask: u32) -> Program {
        self.then(Event::WarpSync(at(warp, mask)))
    }

    pub(super) fn arrive(self, warp: u32, id: u32) -> Program {
        self.then(Event::Arrive { at: at(warp, ALL), id })
    }

    pub(super) fn complete(self, id: u32, waiters: &[u32]) -> Program {
        let waiters = waiters.iter().map(|warp| at(*warp, ALL)).collect();
        self.then(Event::Complete { id, waiters })
    }

    /// `bar.sync 0` by the whole CTA.
    pub(super) fn barrier(mut self) -> Program {
        let warps: Vec<u32> = (0..self.live.len() as u32).collect();
        for warp in &warps {
            self = self.arrive(*warp, 0);
        }
        self.complete(0, &warps)
    }

    pub(super) fn exit(self, warp: u32, mask: u32) -> Program {
        self.then(Event::Exit(at(warp, mask)))
    }

    pub(super) fn faults(&mut self) -> Vec<Fault> {
        self.duel.detector.take_faults()
    }

    pub(super) fn detector(&self) -> &crate::Detector {
        &self.duel.detector
    }

    fn classes(mut self) -> Vec<Class> {
        let mut classes: Vec<Class> = self.faults().iter().map(|fault| fault.class).collect();
        classes.sort();
        classes.dedup();
        classes
    }
}

/// The correct program is silent, the broken one has faults of one class.
fn twins(class: Class, program: impl Fn(bool) -> Program) {
    assert_eq!(program(true).classes(), [], "the correct program");
    assert_eq!(program(false).classes(), [class], "the broken program");
}

#[test]
fn a_barrier_orders_a_write_and_a_read_of_another_warp() {
    twins(Class::RaceShared, |right| cta(2).write(0, 0).when(right, Program::barrier).read(1, 0));
}

#[test]
fn a_barrier_orders_a_read_and_the_write_that_reuses_the_buffer() {
    twins(Class::RaceShared, |right| cta(2).write(0, 0).barrier().read(1, 0).when(right, Program::barrier).write(0, 0));
}

#[test]
fn accesses_after_the_arrival_are_not_covered() {
    twins(Class::RaceShared, |right| {
        let early = cta(2).when(right, |p| p.write(0, 0)).arrive(0, 1);
        early.when(!right, |p| p.write(0, 0)).arrive(1, 1).complete(1, &[1]).read(1, 0)
    });
}

#[test]
fn an_arrival_releases_and_does_not_acquire() {
    twins(Class::RaceShared, |right| {
        let met = cta(2).write(0, 0).write(1, 128).arrive(0, 1).arrive(1, 1).complete(1, &[1]);
        if right { met.read(1, 0) } else { met.read(0, 128) }
    });
}

#[test]
fn a_generation_does_not_tell_of_the_next_one() {
    twins(Class::RaceShared, |right| {
        let first = cta(3).arrive(0, 1).arrive(1, 1).complete(1, &[0, 1]);
        let second = first.write(2, 0).arrive(2, 1).arrive(0, 1).complete(1, &[0, 2]);
        second.read(if right { 0 } else { 1 }, 0)
    });
}

#[test]
fn another_barrier_is_no_substitute() {
    twins(Class::RaceShared, |right| {
        let id = if right { 1 } else { 2 };
        let met = cta(3).write(0, 0).arrive(0, 1).arrive(1, 1).complete(1, &[0, 1]);
        met.arrive(1, id).arrive(2, id).complete(id, if right { &[1, 2] } else { &[1] }).read(2, 0)
    });
}

#[test]
fn order_composes_over_barriers() {
    let met = cta(3).write(0, 0).arrive(0, 1).arrive(1, 1).complete(1, &[1]);
    assert_eq!(met.arrive(1, 2).arrive(2, 2).complete(2, &[2]).read(2, 0).classes(), []);
}

#[test]
fn lanes_that_arrive_alone_release_alone() {
    let half = |p: Program, mask| p.then(Event::Arrive { at: at(0, mask), id: 1 });
    twins(Class::RaceShared, |right| {
        let met = half(cta(2).write(0, 0), 0xffff).when(right, |p| half(p, 0xffff_0000));
        met.arrive(1, 1).complete(1, &[1]).read(1, 0)
    });
}

#[test]
fn lockstep_does_not_order_lanes() {
    twins(Class::RaceWarp, |right| cta(1).write(0, 0).when(right, |p| p.warp_sync(0, ALL)).read_neighbour(0, 0));
}

#[test]
fn a_warp_synchronisation_covers_its_mask_only() {
    twins(Class::RaceWarp, |right| {
        let mask = if right { ALL } else { 0x7fff_ffff };
        cta(1).write(0, 0).warp_sync(0, mask).read_neighbour(0, 0)
    });
}

#[test]
fn a_warp_synchronisation_says_nothing_to_other_warps() {
    let synced = cta(2).write(0, 0).warp_sync(0, ALL).warp_sync(1, ALL);
    assert_eq!(synced.read(1, 0).classes(), [Class::RaceShared]);
}

#[test]
fn one_lane_may_speak_for_the_warp_after_a_warp_synchronisation() {
    let leader = |p: Program| p.then(Event::Arrive { at: at(0, 1), id: 1 }).arrive(1, 1).complete(1, &[1]);
    twins(Class::RaceShared, |right| leader(cta(2).write(0, 0).when(right, |p| p.warp_sync(0, ALL))).read(1, 0));
}

#[test]
fn lanes_of_one_instruction_race_on_one_byte_even_with_equal_values() {
    let broadcast = |mask, kind| cta(1).access(at(0, mask), kind, rows(64, 0), 4).classes();
    assert_eq!(broadcast(ALL, Kind::Write), [Class::RaceWarp]);
    assert_eq!(broadcast(0x30, Kind::Write), [Class::RaceWarp]);
    assert_eq!((broadcast(1 << 7, Kind::Write), broadcast(ALL, Kind::Read)), (vec![], vec![]));
    assert_eq!(broadcast(ALL, Kind::Atomic), []);
    let overlap = cta(1).access(at(0, ALL), Kind::Write, rows(0, 2), 4);
    assert_eq!(overlap.classes(), [Class::RaceWarp]);
}

#[test]
fn neighbouring_bytes_do_not_conflict() {
    let halves = |base| rows(base, 4);
    let clean = cta(2).access(at(0, ALL), Kind::Write, halves(0), 2).access(at(1, ALL), Kind::Write, halves(2), 2);
    assert_eq!(clean.classes(), []);
    let one = cta(2).access(at(0, ALL), Kind::Write, halves(0), 2).access(at(1, ALL), Kind::Write, halves(1), 1);
    assert_eq!(one.classes(), [Class::RaceShared]);
}

#[test]
fn concurrent_readers_are_fine_and_all_of_them_must_be_waited_for() {
    twins(Class::RaceShared, |right| {
        let read = cta(3).write(0, 0).barrier().read(0, 0).read(1, 0).read(2, 0).arrive(1, 1);
        read.when(right, |p| p.arrive(2, 1)).arrive(0, 1).complete(1, &[0]).write(0, 0)
    });
}

#[test]
fn atomics_do_not_race_with_each_other_and_order_nothing() {
    let both = |first, second, bytes| {
        let program = cta(2).access(at(0, ALL), first, rows(0, 8), 4);
        program.access(at(1, ALL), second, rows(0, 8), bytes).classes()
    };
    assert_eq!(both(Kind::Atomic, Kind::Atomic, 4), []);
    assert_eq!(both(Kind::StrongWrite, Kind::StrongRead, 4), []);
    assert_eq!(both(Kind::Atomic, Kind::Atomic, 8), [Class::RaceShared]);
    assert_eq!(both(Kind::Atomic, Kind::Read, 4), [Class::RaceShared]);
    assert_eq!(both(Kind::Write, Kind::Atomic, 4), [Class::RaceShared]);
    let flag = cta(2).write(0, 0).access(at(0, 1), Kind::Atomic, rows(512, 0), 4);
    assert_eq!(flag.access(at(1, 1), Kind::Atomic, rows(512, 0), 4).read(1, 0).classes(), [Class::RaceShared]);
}

/// PTX ISA, "Observation Order", "Causality Order".
#[test]
fn whoever_follows_an_atomic_follows_those_whose_results_it_has_read() {
    let count = |p: Program, warp| p.access(at(warp, 1), Kind::Atomic, rows(512, 0), 4);
    let plain = |p: Program, warp| p.access(at(warp, 1), Kind::Write, rows(512, 0), 4).classes();
    assert_eq!(plain(count(count(cta(2), 0), 1), 1), [], "the last one sets the counter back");
    assert_eq!(plain(count(count(cta(2), 0), 1), 0), [Class::RaceShared], "the first one has not seen the second");
    let chain = |p: Program| count(count(count(p, 0), 1), 2);
    assert_eq!(plain(chain(cta(3)), 2), [], "the third has seen the first through the second");
    let synchronised = chain(cta(4)).arrive(2, 1).arrive(3, 1).complete(1, &[3]);
    assert_eq!(plain(synchronised, 3), [], "whoever follows the third");
    let between = count(cta(3), 0).access(at(1, 1), Kind::StrongWrite, rows(512, 0), 4);
    assert_eq!(plain(count(between, 2), 2), [Class::RaceShared], "a store has hidden what the first left");
    let all = |p: Program| p.access(at(1, ALL), Kind::EqualWrite, rows(512, 0), 4).classes();
    let told = count(count(cta(2), 0), 1).then(Event::WarpSync(at(1, ALL)));
    assert_eq!(all(told), [], "all lanes set the counter back");
    assert_eq!(all(count(count(cta(2), 0), 1)), [Class::RaceWarp, Class::RaceShared], "those that were not told");
}

#[test]
fn lanes_of_one_store_may_write_equal_values() {
    let store = |kind| cta(2).access(at(0, ALL), kind, rows(0, 0), 4);
    assert_eq!(store(Kind::Write).classes(), [Class::RaceWarp]);
    assert_eq!(store(Kind::EqualWrite).classes(), []);
    let again = store(Kind::EqualWrite).access(at(0, ALL), Kind::EqualWrite, rows(0, 0), 4);
    assert_eq!(again.classes(), [Class::RaceWarp], "two stores are not one");
    let read = store(Kind::EqualWrite).access(at(1, 1), Kind::Read, rows(0, 0), 4);
    assert_eq!(read.classes(), [Class::RaceShared]);
}

#[test]
fn a_copy_must_be_waited_for_by_the_lane_that_issued_it() {
    let read = |p: Program| p.access(at(0, ALL), Kind::Read, rows(0, 16), 16);
    twins(Class::MissingWait, |right| read(cta(1).copy(0, 0).commit(0).when(right, |p| p.wait(0, 0))));
    twins(Class::MissingWait, |right| read(cta(1).copy(0, 0).when(right, |p| p.commit(0)).wait(0, 0)));
    let other = cta(1).copy(0, 0).commit(0).then(Event::Wait(at(0, 0xffff_fffe), 0));
    assert_eq!(read(other).classes(), [Class::MissingWait]);
}

#[test]
fn wait_all_covers_copies_without_commit() {
    let read = |p: Program| p.access(at(0, ALL), Kind::Read, rows(0, 16), 16);
    assert_eq!(read(cta(1).copy(0, 0).then(Event::WaitAll(at(0, ALL)))).classes(), []);
}

#[test]
fn wait_group_leaves_the_last_groups_open() {
    twins(Class::MissingWait, |right| {
        let two = cta(1).copy(0, 0).commit(0).copy(0, 512).commit(0).wait(0, 1);
        two.access(at(0, ALL), Kind::Read, rows(if right { 0 } else { 512 }, 16), 16)
    });
    twins(Class::MissingWait, |right| {
        let empty = cta(1).copy(0, 0).commit(0).when(right, |p| p.commit(0)).wait(0, 1);
        empty.access(at(0, ALL), Kind::Read, rows(0, 16), 16)
    });
}

#[test]
fn copies_of_other_threads_need_the_wait_and_then_a_barrier() {
    let copied = || cta(2).copy(0, 0).commit(0);
    assert_eq!(copied().wait(0, 0).barrier().read(1, 0).classes(), []);
    assert_eq!(copied().wait(0, 0).read(1, 0).classes(), [Class::RaceShared]);
    assert_eq!(copied().barrier().wait(0, 0).read(1, 0).classes(), [Class::RaceShared]);
    assert_eq!(copied().barrier().read(1, 0).classes(), [Class::MissingWait]);
    assert_eq!(copied().wait(0, 0).read(0, 0).classes(), [Class::RaceWarp]);
}

#[test]
fn a_buffer_is_not_refilled_before_its_readers_are_done() {
    let read = || cta(2).copy(0, 0).commit(0).wait(0, 0).barrier().read(1, 0);
    twins(Class::RaceShared, |right| read().when(right, Program::barrier).copy(0, 0));
}

#[test]
fn a_copy_that_the_other_does_not_know_of_is_a_race_in_either_order() {
    for refill in [|p: Program| p.copy(0, 0), |p: Program| p.copy(0, 0).commit(0).wait(0, 0)] {
        assert_eq!(refill(cta(2)).read(1, 0).classes(), [Class::RaceShared]);
        assert_eq!(refill(cta(2).read(1, 0)).classes(), [Class::RaceShared]);
    }
    let one_word = |p: Program, lane: u32| p.access(at(0, 1 << lane), Kind::Write, rows(0, 0), 4);
    assert_eq!(one_word(cta(1).copy_by(0, 1, 0), 7).classes(), [Class::RaceWarp]);
    assert_eq!(one_word(cta(1), 7).copy_by(0, 1, 0).classes(), [Class::RaceWarp]);
    assert_eq!(one_word(cta(1).copy_by(0, 1, 0), 0).classes(), [Class::EarlyRelease]);
}

/// Which of a wait and an unordered access runs first is luck, and must not change the class.
#[test]
fn a_wait_beside_the_access_is_a_wait_without_a_barrier() {
    let told = || cta(2).copy(0, 0).commit(0).barrier();
    assert_eq!(told().wait(0, 0).read(1, 0).classes(), [Class::RaceShared]);
    assert_eq!(told().read(1, 0).wait(0, 0).classes(), [Class::RaceShared]);
    assert_eq!(told().read(1, 0).barrier().wait(0, 0).classes(), [Class::MissingWait]);
    assert_eq!(told().read(1, 0).wait(0, 1).classes(), [Class::MissingWait]);
    assert_eq!(told().write(1, 0).then(Event::WaitAll(at(0, ALL))).classes(), [Class::RaceShared]);
}

#[test]
fn a_copy_in_flight_owns_its_source_and_destination() {
    let copied = || cta(1).copy(0, 0).commit(0);
    let source = Event::Access {
        at: at(0, 1),
        kind: Kind::Write,
        semantics: RELAXED,
        space: Space::Global,
        addresses: rows(0x7000_0000, 16),
        bytes: 4,
    };
    twins(Class::EarlyRelease, |right| copied().when(right, |p| p.wait(0, 0)).then(source.clone()));
    let destination = |p: Program| p.access(at(0, ALL), Kind::Write, rows(0, 16), 16);
    twins(Class::EarlyRelease, |right| destination(copied().when(right, |p| p.wait(0, 0))));
    assert_eq!(copied().copy(0, 0).classes(), [Class::EarlyRelease]);
}

#[test]
fn a_shorter_source_is_read_no_further_but_the_destination_is_filled() {
    let mut sizes = Box::new([0; 32]);
    sizes[1] = 8;
    let copy = Event::Copy { at: at(0, 3), from: rows(0x7000_0000, 16), from_bytes: sizes, to: rows(0, 16), bytes: 16 };
    let global = |offset: u64| Event::Access {
        at: at(1, 1),
        kind: Kind::Write,
        semantics: RELAXED,
        space: Space::Global,
        addresses: rows(0x7000_0000 + offset, 0),
        bytes: 8,
    };
    let copied = || cta(2).then(copy.clone()).commit(0);
    assert_eq!(copied().then(global(0)).then(global(8)).then(global(24)).classes(), []);
    let told = || copied().barrier();
    assert_eq!(told().then(global(16)).classes(), [Class::EarlyRelease]);
    assert_eq!(told().access(at(1, 1), Kind::Read, rows(8, 0), 4).classes(), [Class::MissingWait]);
    assert_eq!(copied().then(global(16)).classes(), [Class::RaceShared]);
}

#[test]
fn an_exit_releases_nothing() {
    let exited = || cta(2).write(0, 0).exit(0, 0xffff_0000);
    let met = |p: Program| p.arrive(0, 0).arrive(1, 0).complete(0, &[0, 1]);
    assert_eq!(met(exited()).access(at(1, 0xffff), Kind::Read, rows(0, 4), 4).classes(), []);
    assert_eq!(met(exited()).access(at(1, 1), Kind::Read, rows(64, 4), 4).classes(), [Class::RaceShared]);
    let before = cta(2).write(0, 0).barrier().exit(0, 0xffff_0000);
    assert_eq!(met(before).access(at(1, ALL), Kind::Write, rows(0, 4), 4).classes(), []);
}

#[test]
fn partial_warps_are_whole_to_a_barrier() {
    let partial = || with_lanes(&[ALL, 0x7]);
    twins(Class::RaceShared, |right| partial().write(1, 0).when(right, Program::barrier).read(0, 0));
}

#[test]
fn spaces_are_apart() {
    let global = Event::Access {
        at: at(1, ALL),
        kind: Kind::Write,
        semantics: RELAXED,
        space: Space::Global,
        addresses: rows(0, 4),
        bytes: 4,
    };
    assert_eq!(cta(2).write(0, 0).then(global.clone()).classes(), []);
    assert_eq!(cta(3).then(global).then(global_read()).classes(), [Class::RaceShared]);
}

fn global_read() -> Event {
    Event::Access {
        at: at(2, 1),
        kind: Kind::Read,
        semantics: RELAXED,
        space: Space::Global,
        addresses: rows(124, 4),
        bytes: 4,
    }
}

const FLAG: u64 = 512;
const RELAXED: Semantics = Semantics::relaxed(Scope::Cta);
const RELEASE: Semantics = Semantics::release(Scope::Cta);
const ACQUIRE: Semantics = Semantics::acquire(Scope::Cta);
const BOTH: Semantics = Semantics { acquire: true, ..RELEASE };

/// Warp 0 writes and publishes as `publish` does, warp 1 takes as `take` does and reads.
fn handed(publish: impl Fn(Program) -> Program, take: impl Fn(Program) -> Program) -> Vec<Class> {
    let written = publish(cta(3).touch(0, Kind::Write));
    take(written).touch(1, Kind::Read).classes()
}

#[test]
fn a_release_and_an_acquire_of_one_flag_order() {
    let write = |semantics| move |program: Program| program.flag(0, Kind::StrongWrite, semantics);
    let read = |semantics| move |program: Program| program.flag(1, Kind::StrongRead, semantics);
    assert_eq!(handed(write(RELEASE), read(ACQUIRE)), []);
    assert_eq!(handed(write(RELAXED), read(ACQUIRE)), [Class::RaceShared]);
    assert_eq!(handed(write(RELEASE), read(RELAXED)), [Class::Reach]);
}

#[test]
fn fences_order_through_relaxed_accesses() {
    let fenced = |program: Program| program.fence(0, BOTH).flag(0, Kind::StrongWrite, RELAXED);
    let late = |program: Program| program.flag(0, Kind::StrongWrite, RELAXED).fence(0, BOTH);
    let taken = |program: Program| program.flag(1, Kind::StrongRead, RELAXED).fence(1, BOTH);
    let early = |program: Program| program.fence(1, BOTH).flag(1, Kind::StrongRead, RELAXED);
    assert_eq!(handed(fenced, taken), []);
    assert_eq!(handed(late, taken), [Class::RaceShared]);
    assert_eq!(handed(fenced, early), [Class::Reach]);
    let one_way = |program: Program| program.fence(0, ACQUIRE).flag(0, Kind::StrongWrite, RELAXED);
    assert_eq!(handed(one_way, taken), [Class::RaceShared]);
}

#[test]
fn atomics_pass_on_and_stores_do_not() {
    let between = |kind| move |program: Program| program.flag(0, Kind::StrongWrite, RELEASE).flag(2, kind, RELAXED);
    let read = |program: Program| program.flag(1, Kind::StrongRead, ACQUIRE);
    assert_eq!(handed(between(Kind::Atomic), read), []);
    assert_eq!(handed(between(Kind::StrongWrite), read), [Class::RaceShared]);
    let blind = |program: Program| program.flag(1, Kind::Atomic, Semantics { blind: true, ..BOTH });
    assert_eq!(handed(between(Kind::Atomic), blind), [Class::RaceShared]);
    let elsewhere = |program: Program| {
        let (at, addresses) = (at(0, 1), rows(FLAG + 64, 0));
        let other = Event::Access {
            at,
            kind: Kind::StrongWrite,
            semantics: RELEASE,
            space: Space::Shared,
            addresses,
            bytes: 4,
        };
        program.then(other).flag(0, Kind::StrongWrite, RELAXED)
    };
    assert_eq!(handed(elsewhere, read), [Class::RaceShared], "a release to one place publishes nothing at another");
    let again = |program: Program| program.flag(0, Kind::StrongWrite, RELEASE).flag(0, Kind::StrongWrite, RELAXED);
    assert_eq!(handed(again, read), []);
}

#[test]
fn a_release_covers_what_its_lane_did_before_and_nothing_else() {
    let read = |program: Program| program.flag(1, Kind::StrongRead, ACQUIRE);
    let others = |program: Program| program.access(at(0, 2), Kind::Write, rows(0, 0), 4);
    let neighbour = |program: Program| others(program).flag(0, Kind::StrongWrite, RELEASE);
    assert_eq!(handed(neighbour, read), [Class::RaceWarp, Class::RaceShared]);
    let later = |program: Program| program.flag(0, Kind::StrongWrite, RELEASE).touch(0, Kind::Write);
    assert_eq!(handed(later, read), [Class::RaceShared]);
}
