//! Bulk loads into stages of shared memory, and the products that read them.
//!
//! Stages 0 and 256; full mbarriers at 0x4000 and 0x4008, empty ones at 0x4010 and 0x4018. Warp 0 produces, warp 1
//! consumes.

use super::litmus::{Program, cluster, cta, rows};
use super::machine::*;
use super::{ALL, Event};
use crate::{Agent, Batch, Class, Fault, Kind, Lanes, Published, Site, Space, Unfinished, Waitable};

const FULL: u64 = 0x4000;
const NEXT: u64 = 0x4008;
const EMPTY: u64 = 0x4010;

#[test]
fn a_load_is_known_to_those_who_waited_for_its_phase() {
    twins("no wait", Missing::Order, |right| cta(2).load(0, 0, FULL).when(right, |p| p.pass(1, FULL, 0)).read(1, 0));
    twins("the wrong parity", Missing::Order, |right| {
        cta(2).load(0, 0, FULL).pass(1, FULL, u32::from(!right)).read(1, 0)
    });
    twins("the other stage", Missing::Order, |right| {
        let both = cta(2).load(0, 0, FULL).load(0, 256, NEXT);
        both.pass(1, if right { NEXT } else { FULL }, 0).read(1, 256)
    });
    twins("two loads into one stage in one phase", Missing::Order, |right| {
        let first = cta(1).expect(0, FULL, 256).issue(0, stage(0), FULL);
        first.issue(0, stage(if right { 256 } else { 0 }), FULL)
    });
    twins("a completion tells of the copy, not of its issuer", Missing::Order, |right| {
        let header = |p: Program| p.word(0, Kind::Write, Space::Shared, 512);
        let issued = cta(2).when(right, header).expect(0, FULL, 128).when(!right, header).issue(0, stage(0), FULL);
        issued.land(FULL).pass(1, FULL, 0).read(1, 0).word(1, Kind::Read, Space::Shared, 512)
    });
}

#[test]
fn a_missing_wait_names_the_mbarrier_and_the_phase() {
    for first in [true, false] {
        let program = cta(2).when(first, |p| p.word(1, Kind::Read, Space::Shared, 0)).load(0, 0, FULL);
        let fault = program.when(!first, |p| p.word(1, Kind::Read, Space::Shared, 0)).faults().remove(0);
        let load = Agent::Load { barrier: FULL, phase: 0, rushed: false };
        assert_eq!((fault.class, fault.first.agent), (Class::MissingWait, load), "read first: {first}");
    }
}

/// A lap without a wait, or a copy that starts a lap too early: the order does not tell.
#[test]
fn who_takes_phases_races_with_the_next_copy() {
    let once = cta(2).load(0, 0, FULL).pass(1, FULL, 0).word(1, Kind::Read, Space::Shared, 0);
    let fenced = once.proxy_fence(one(1)).signal(1, EMPTY).pass(0, EMPTY, 0).load(0, 0, FULL);
    let fault = fenced.word(1, Kind::Read, Space::Shared, 0).faults().remove(0);
    assert_eq!(
        (fault.class, fault.first.agent),
        (Class::RaceShared, Agent::Load { barrier: FULL, phase: 1, rushed: true })
    );
    assert_eq!((fault.first.warp, fault.first.lane), (0, 0));
}

#[test]
fn a_stage_goes_back_when_its_products_are_done() {
    let read = |p: Program| p.load(0, 0, FULL).pass(1, FULL, 0).product(1, 0);
    variants("empty not waited, handed back early, wait too high, wrong parity", Missing::Order, 5, |variant| {
        let read = read(cta(2)).product_commit(1);
        let back = match variant {
            2 => read.signal(1, EMPTY).product_wait(1, 0),
            3 => read.product_wait(1, 1).signal(1, EMPTY),
            _ => read.product_wait(1, 0).signal(1, EMPTY),
        };
        let free = back.when(variant != 1, |p| p.pass(0, EMPTY, u32::from(variant == 4)));
        free.load(0, 0, FULL).pass(1, FULL, 1).product(1, 0)
    });
    twins("no commit", Missing::Order, |right| {
        let read = read(cta(2)).when(right, |p| p.product_commit(1)).product_wait(1, 0);
        read.signal(1, EMPTY).pass(0, EMPTY, 0).load(0, 0, FULL)
    });
    twins("read a lap late", Missing::Order, |right| {
        let lap = read(cta(2)).product_commit(1).product_wait(1, 0).signal(1, EMPTY).pass(0, EMPTY, 0).load(0, 0, FULL);
        lap.pass(1, FULL, u32::from(right)).product(1, 0).product_commit(1)
    });
    twins("one thread signals for the warpgroup", Missing::Order, |right| {
        let loaded = cta(8).load(0, 0, FULL);
        let read = (4..8).fold(loaded, |p, warp| p.pass(warp, FULL, 0).product(warp, 0).product_commit(warp));
        read.product_wait(4, u32::from(!right)).signal(4, EMPTY).pass(0, EMPTY, 0).load(0, 0, FULL)
    });
}

#[test]
fn threads_that_read_a_stage_fence_before_it_is_refilled() {
    let read = || cta(2).load(0, 0, FULL).pass(1, FULL, 0).read(1, 0);
    let refill = |p: Program| p.load(0, 0, FULL);
    twins("at the reader", Missing::Fence, |right| {
        let fenced = read().when(right, |p| p.proxy_fence(whole(1))).warp_sync(1, u32::MAX);
        refill(fenced.signal(1, EMPTY).pass(0, EMPTY, 0))
    });
    twins("at the producer", Missing::Fence, |right| {
        let told = read().warp_sync(1, u32::MAX).signal(1, EMPTY).pass(0, EMPTY, 0);
        refill(told.when(right, |p| p.proxy_fence(one(0))))
    });
    twins("one lane fences what it does not know yet", Missing::Fence, |right| {
        let fenced = match right {
            true => read().warp_sync(1, u32::MAX).proxy_fence(one(1)),
            false => read().proxy_fence(one(1)).warp_sync(1, u32::MAX),
        };
        refill(fenced.signal(1, EMPTY).pass(0, EMPTY, 0))
    });
    twins("a completion needs no fence for threads, the next load does", Missing::Fence, |right| {
        let used = cta(1).load(0, 0, FULL).pass(0, FULL, 0).read(0, 0).write(0, 0).warp_sync(0, u32::MAX);
        refill(used.when(right, |p| p.proxy_fence(one(0))))
    });
}

#[test]
fn a_multicast_is_told_by_the_mbarrier_of_each_block() {
    let there = |offset| in_block(1, offset);
    variants("the other block did not wait, was not waited for", Missing::Order, 3, |variant| {
        let start = cluster(2, 1).init(EMPTY, 2);
        let load = |p: Program| p.issue(0, stage(0), FULL).issue(0, stage(there(0)), there(FULL));
        let expect = |p: Program| p.expect(0, FULL, 128).expect(1, there(FULL), 128);
        let landed = load(expect(start)).land(FULL).land(there(FULL)).pass(0, FULL, 0);
        let read = landed.when(variant != 1, |p| p.pass(1, there(FULL), 0)).product(0, 0).product(1, there(0));
        let done = [0, 1].into_iter().fold(read, |p, warp| p.product_commit(warp).product_wait(warp, 0));
        let second = one(if variant == 2 { 0 } else { 1 });
        let back = done.signal_as(one(0), EMPTY, WIDE_RELEASE).signal_as(second, EMPTY, WIDE_RELEASE);
        load(expect(back.pass_as(one(0), EMPTY, 0, WIDE_ACQUIRE)))
    });
}

#[test]
fn copies_may_be_told_by_an_mbarrier() {
    let copied = || cta(2).init(FULL, 32).copy(0, 0);
    let read = |p: Program| p.access(whole(1), Kind::Read, rows(0, 16), 16);
    twins("an ordinary arrival does not track copies", Missing::Order, |right| {
        let told = match right {
            true => copied().copy_signal(0, FULL),
            false => copied().signal_as(whole(0), FULL, RELEASE),
        };
        read(told.pass(1, FULL, 0))
    });
    twins("nothing but copies is tracked", Missing::Order, |right| {
        let written = cta(2).init(FULL, if right { 64 } else { 32 }).write(0, 1024).copy(0, 0).copy_signal(0, FULL);
        read(written.when(right, |p| p.signal_as(whole(0), FULL, RELEASE)).pass(1, FULL, 0)).read(1, 1024)
    });
    let told = || copied().copy_signal(0, FULL);
    assert_eq!(told().detector().unfinished_copies(), []);
    let by = Waitable::Phase { barrier: FULL, phase: 0 };
    assert_eq!(told().detector().unfinished_loads(), [Unfinished { warp: 0, mask: ALL, site: Site(0), by }]);
    assert_eq!(told().pass(1, FULL, 0).detector().unfinished_loads(), []);
    assert_eq!(told().then(Event::WaitAll(whole(0))).detector().unfinished_loads(), []);
    let stored =
        || cluster(2, 1).then(Event::RemoteStore { at: one(0), barrier: in_block(1, FULL), to: stage(1 << 32) });
    twins("a remote store", Missing::Order, |right| {
        stored()
            .signal_as(one(1), in_block(1, FULL), RELEASE)
            .when(right, |p| p.pass(1, in_block(1, FULL), 0))
            .read(1, 1 << 32)
    });
}

/// Whether the warpgroup waits for its products before or after the refill is luck: the stage was given back early.
#[test]
fn a_stage_given_back_early_is_told_by_the_release() {
    let read = || cta(5).load(0, 0, FULL).pass(4, FULL, 0).product(4, 0).product_commit(4);
    for late in [false, true] {
        let release = read().sites;
        let given = read().signal(4, EMPTY).when(!late, |p| p.product_wait(4, 0)).pass(0, EMPTY, 0);
        let faults = given.load(0, 0, FULL).when(late, |p| p.product_wait(4, 0)).faults();
        let told = |fault: &Fault| (fault.class, fault.first.agent, fault.published);
        let agent = Agent::Product(Batch::Committed { wait_group: 0 });
        let expected = (Class::EarlyRelease, agent, Published::TooEarly(Site(release)));
        assert_eq!(faults.iter().map(told).collect::<Vec<_>>(), [expected]);
    }
}

/// Nobody waits until the stage is given back.
#[test]
fn a_refill_that_knows_nothing_of_a_product_is_a_race() {
    let read = cta(5).load(0, 0, FULL).pass(0, FULL, 0).pass(4, FULL, 0).product(4, 0).product_commit(4);
    let faults = read.load(0, 0, FULL).faults();
    let told: Vec<_> = faults.iter().map(|fault| (fault.class, fault.first.agent)).collect();
    assert_eq!(told, [(Class::RaceShared, Agent::Product(Batch::Unseen))]);
}

#[test]
fn a_product_asks_every_lane_of_its_warp() {
    twins("one lane waited", Missing::Order, |right| {
        let loaded = cta(2).load(0, 0, FULL).pass_as(one(1), FULL, 0, ACQUIRE);
        loaded.when(right, |p| p.warp_sync(1, u32::MAX)).product(1, 0)
    });
    twins("the warp's own stores without bar.warp.sync", Missing::Order, |right| {
        cta(1).write(0, 0).proxy_fence(whole(0)).when(right, |p| p.warp_sync(0, u32::MAX)).product(0, 0)
    });
    twins("operands overwritten", Missing::Order, |right| {
        let read = cta(1).load(0, 0, FULL).pass(0, FULL, 0).product(0, 0).product_commit(0);
        read.when(right, |p| p.product_wait(0, 0)).write(0, 0)
    });
    let gone = cta(1).exit(0, 0xffff_0000).access(Lanes { warp: 0, mask: 0xffff }, Kind::Write, rows(0, 4), 4);
    let fenced = gone.proxy_fence(Lanes { warp: 0, mask: 0xffff }).warp_sync(0, 0xffff);
    assert_eq!(fenced.product(0, 0).missing(), None, "lanes that have exited are not asked");
}
