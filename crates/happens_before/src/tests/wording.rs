//! What a fault tells: the two accesses, the state of a copy, and the release that did not reach the second party.

use super::litmus::{Program, cta, rows};
use super::machine::whole;
use super::{ALL, Event};
use crate::{
    Agent, Batch, Class, Fault, Kind, Lanes, Means, Published, Reach, Release, Site, Space, Unfinished, Waitable,
};

fn only(mut program: Program) -> Fault {
    let faults = program.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].clone()
}

fn lane(warp: u32, lane: u32) -> Lanes {
    Lanes { warp, mask: 1 << lane }
}

fn by(site: u32, means: Means, reach: Reach) -> Published {
    Published::By(Release { site: Site(site), means, reach })
}

#[test]
fn both_accesses_and_the_bytes_they_share_are_named() {
    let program = cta(2).access(lane(0, 3), Kind::Write, rows(20, 0), 16);
    let fault = only(program.access(lane(1, 9), Kind::Read, rows(28, 0), 16));
    assert_eq!((fault.class, fault.space, fault.address, fault.bytes), (Class::RaceShared, Space::Shared, 28, 8));
    let party = |party: crate::Party| (party.warp, party.lane, party.site, party.write, party.agent);
    assert_eq!(party(fault.first), (0, 3, Site(0), true, Agent::Thread));
    assert_eq!(party(fault.second), (1, 9, Site(1), false, Agent::Thread));
    assert_eq!(fault.count, 1);
}

#[test]
fn equal_faults_are_counted_and_others_kept_apart() {
    let mut program = cta(2);
    for _ in 0..3 {
        program.sites = 0;
        program = program.write(0, 0).read(1, 0);
    }
    let faults = program.faults();
    let pairs: Vec<_> = faults.iter().map(|fault| (fault.first.site.0, fault.second.site.0)).collect();
    assert_eq!(pairs, [(0, 1), (1, 0)]);
    assert_eq!(faults.iter().map(|fault| fault.count).collect::<Vec<_>>(), [96, 64]);
    assert_eq!(program.faults(), []);
}

#[test]
fn the_barrier_that_the_reader_did_not_join() {
    let fault = only(cta(3).write(0, 0).arrive(0, 5).arrive(1, 5).complete(5, &[0, 1]).read(2, 0));
    assert_eq!(fault.published, by(1, Means::Barrier { id: 5 }, Reach::NotJoined));
}

#[test]
fn the_barrier_at_which_the_reader_only_arrived() {
    let fault = only(cta(2).write(0, 0).arrive(0, 5).arrive(1, 5).complete(5, &[0]).read(1, 0));
    assert_eq!(fault.published, by(1, Means::Barrier { id: 5 }, Reach::ArrivedOnly));
}

#[test]
fn the_next_generation_of_a_barrier_is_another_one() {
    let first = cta(2).arrive(1, 5).complete(5, &[1]);
    assert_eq!(
        only(first.write(0, 0).arrive(0, 5).read(1, 0)).published,
        by(3, Means::Barrier { id: 5 }, Reach::NotJoined)
    );
}

#[test]
fn a_release_after_the_second_access_came_too_late() {
    let fault = only(cta(2).write(0, 0).read(1, 0).barrier());
    assert_eq!(fault.published, by(2, Means::Barrier { id: 0 }, Reach::TooLate));
    assert_eq!(only(cta(2).write(0, 0).read(1, 0)).published, Published::Never);
}

#[test]
fn the_warp_synchronisation_without_one_of_the_lanes() {
    let written = || cta(1).access(lane(0, 0), Kind::Write, rows(0, 0), 4);
    let read = |p: Program| only(p.access(lane(0, 1), Kind::Read, rows(0, 0), 4)).published;
    assert_eq!(read(written().warp_sync(0, 0b0101)), by(1, Means::WarpSync { mask: 0b0101 }, Reach::NotJoined));
    assert_eq!(read(written().warp_sync(0, 0b0110)), by(1, Means::WarpSync { mask: 0b0110 }, Reach::FirstAbsent));
    assert_eq!(read(written().warp_sync(0, 0b1100)), Published::Never);
}

#[test]
fn releases_are_forgotten_and_not_guessed() {
    let mut program = cta(2).write(0, 0);
    for _ in 0..300 {
        program = program.warp_sync(0, ALL);
    }
    assert_eq!(only(program.read(1, 0)).published, Published::Forgotten);
}

#[test]
fn a_copy_tells_the_wait_that_would_do() {
    let read = |p: Program| {
        let fault = only(p.access(lane(0, 0), Kind::Read, rows(0, 0), 4));
        assert_eq!((fault.class, fault.published), (Class::MissingWait, Published::InFlight));
        fault.first.agent
    };
    let one = || cta(1).copy_by(0, 1, 0);
    assert_eq!(read(one()), Agent::Copy(Batch::Open));
    assert_eq!(read(one().commit(0)), Agent::Copy(Batch::Committed { wait_group: 0 }));
    let three = || one().commit(0).copy_by(0, 1, 512).commit(0).commit(0);
    assert_eq!(read(three()), Agent::Copy(Batch::Committed { wait_group: 2 }));
    assert_eq!(read(three().wait(0, 3)), Agent::Copy(Batch::Committed { wait_group: 2 }));
    let others = one().commit(0).then(Event::Commit(lane(0, 4)));
    assert_eq!(read(others), Agent::Copy(Batch::Committed { wait_group: 0 }));
}

#[test]
fn a_copy_that_was_waited_for_names_the_wait_and_the_barrier_before_it_does_not_count() {
    let waited = || cta(2).copy_by(0, 1, 0).commit(0).barrier().wait(0, 0);
    let fault = only(waited().access(lane(1, 0), Kind::Read, rows(0, 0), 4));
    assert_eq!(fault.class, Class::RaceShared);
    assert_eq!(fault.first.agent, Agent::Copy(Batch::Waited { site: Some(Site(5)) }));
    assert_eq!(fault.published, Published::Never);
    let arrived = only(waited().arrive(0, 1).access(lane(1, 0), Kind::Read, rows(0, 0), 4));
    assert_eq!(arrived.published, by(6, Means::Barrier { id: 1 }, Reach::NotJoined));
}

#[test]
fn a_copy_is_named_as_the_second_party_too() {
    let fault = only(cta(2).access(lane(1, 0), Kind::Read, rows(0, 0), 4).copy_by(0, 1, 0));
    assert_eq!((fault.first.agent, fault.second.agent), (Agent::Thread, Agent::Copy(Batch::Unseen)));
    assert_eq!((fault.class, fault.second.write), (Class::RaceShared, true));
}

#[test]
fn a_wait_after_the_access_is_named_as_if_it_had_come_before() {
    let read = |p: Program| p.access(lane(1, 0), Kind::Read, rows(0, 0), 4);
    let fault = only(read(cta(2).copy_by(0, 1, 0).commit(0).barrier()).wait(0, 0).arrive(0, 1));
    assert_eq!(fault.first.agent, Agent::Copy(Batch::Waited { site: Some(Site(6)) }));
    assert_eq!(fault.published, by(7, Means::Barrier { id: 1 }, Reach::TooLate));
}

#[test]
fn copies_left_at_exit_are_listed() {
    let left = |p: Program| p.exit(0, ALL).detector().unfinished_copies();
    let copied = || cta(1).copy(0, 0).commit(0).copy_by(0, 3, 512);
    let unfinished =
        |mask, site, committed| Unfinished { warp: 0, mask, site: Site(site), by: Waitable::Copies { committed } };
    assert_eq!(left(copied()), [unfinished(ALL, 0, true), unfinished(3, 2, false)]);
    assert_eq!(left(copied().wait(0, 0)), [unfinished(3, 2, false)]);
    assert_eq!(
        left(copied().then(Event::Commit(lane(0, 1)))),
        [unfinished(ALL, 0, true), unfinished(2, 2, true), unfinished(1, 2, false)]
    );
    assert_eq!(left(copied().then(Event::WaitAll(Lanes { warp: 0, mask: ALL }))), []);
}

/// Whoever comes to a barrier without knowing that the meeting before is over might have joined that.
#[test]
fn a_stranger_at_a_barrier_is_named() {
    let met = || cta(4).arrive(0, 5).arrive(1, 5).complete(5, &[0, 1]);
    let stranger = |p: Program, warp: u32| p.detector().stranger_at_barrier(whole(warp), Site(9), 5);
    assert_eq!(stranger(met(), 2), Some((whole(0), Site(0))));
    assert_eq!(stranger(met(), 1), None);
    assert_eq!(stranger(met().barrier(), 2), None);
    assert_eq!(stranger(cta(4).arrive(0, 5).arrive(1, 5), 2), None);
}

#[test]
fn the_writer_of_bytes_is_remembered() {
    let written = || cta(2).write(0, 0).barrier().read(1, 0).word(1, Kind::Write, Space::Shared, 64);
    let writer = |bytes: std::ops::Range<u64>| written().detector().writer(&bytes);
    assert_eq!(writer(64..68), Some((lane(1, 0), Site(written().sites - 1))));
    assert_eq!(writer(8..12), Some((lane(0, 2), Site(0))));
    assert_eq!(writer(4096..4104), None);
}
