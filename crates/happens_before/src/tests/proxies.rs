//! Proxy fences, bulk stores and tensor maps.

use super::Event;
use super::litmus::{Program, cta, rows};
use super::machine::*;
use crate::{Agent, Batch, Bulk, Class, Detector, Kind, Lanes, Places, ProxyFence, Semantics, Site, Space};

#[test]
fn a_fence_lies_on_the_way_from_the_thread_to_the_unit() {
    variants("missing, wrong threads, early, one lane for all, wrong space", Missing::Fence, 6, |variant| {
        let written = cta(2).when(variant == 3, |p| p.proxy_fence(whole(0))).write(0, 0);
        let met = match variant {
            0 => written.proxy_fence(whole(0)).barrier(),
            2 => written.barrier().proxy_fence(whole(0)),
            4 => written.proxy_fence(one(0)).barrier(),
            5 => written.then(Event::ProxyFence(whole(0), ProxyFence::Global)).barrier(),
            _ => written.barrier(),
        };
        met.store(1, 0, 0)
    });
    twins("by the issuer after the barrier", Missing::Fence, |right| {
        cta(2).write(0, 0).barrier().when(right, |p| p.proxy_fence(one(1))).store(1, 0, 0)
    });
    twins("by a third thread", Missing::Fence, |right| {
        let there = cta(3).write(0, 0).arrive(0, 1).arrive(1, 1).complete(1, &[1]);
        there.when(right, |p| p.proxy_fence(whole(1))).arrive(1, 2).arrive(2, 2).complete(2, &[2]).store(2, 0, 0)
    });
    twins("a fence is no barrier", Missing::Order, |right| {
        cta(2).write(0, 0).proxy_fence(whole(0)).when(right, Program::barrier).store(1, 0, 0)
    });
    twins("one lane stores what others wrote", Missing::Order, |right| {
        cta(1).write(0, 0).when(right, |p| p.warp_sync(0, u32::MAX)).proxy_fence(one(0)).store(0, 0, 0)
    });
    twins("global data", Missing::Fence, |right| {
        let which = if right { ProxyFence::Global } else { ProxyFence::SharedBlock };
        let written = cta(1).word(0, Kind::Write, Space::Global, 0).then(Event::ProxyFence(whole(0), which));
        written.load(0, 0, 0x4000)
    });
}

#[test]
fn products_read_what_threads_wrote_behind_a_fence() {
    twins("stores of another warp", Missing::Fence, |right| {
        cta(2).write(0, 0).when(right, |p| p.proxy_fence(whole(0))).barrier().product(1, 0)
    });
    twins("the warp's own stores", Missing::Fence, |right| {
        cta(1).write(0, 0).when(right, |p| p.proxy_fence(whole(0))).warp_sync(0, u32::MAX).product(0, 0)
    });
    let copied = || cta(2).copy(0, 0).commit(0);
    twins("copies", Missing::Fence, |right| {
        copied().wait(0, 0).when(right, |p| p.proxy_fence(whole(0))).barrier().product(1, 0)
    });
    twins("fenced before the copies were waited for", Missing::Fence, |right| {
        let fenced = match right {
            true => copied().wait(0, 0).proxy_fence(whole(0)),
            false => copied().proxy_fence(whole(0)).wait(0, 0),
        };
        fenced.barrier().product(1, 0)
    });
}

#[test]
fn a_bulk_store_is_told_by_its_group() {
    let stored = || cta(2).write(0, 0).proxy_fence(whole(0)).barrier().store(1, 0, 0);
    variants("no wait, wait too high, no commit, no barrier", Missing::Order, 5, |variant| {
        let committed = stored().when(variant != 3, |p| p.store_commit(1));
        let waited = committed.when(variant != 1, |p| p.store_wait(1, u32::from(variant == 2), true));
        waited.when(variant != 4, Program::barrier).write(0, 0)
    });
    twins("the wait of another thread", Missing::Order, |right| {
        stored().store_commit(1).store_wait(u32::from(right), 0, true).barrier().write(0, 0)
    });
    twins("the result, after the sources were read", Missing::Order, |right| {
        let waited = cta(1).store(0, 0, 256).store_commit(0).store_wait(0, 0, !right);
        waited.word(0, Kind::Read, Space::Global, 256)
    });
    twins("two stores to one place", Missing::Order, |right| {
        let first = cta(2).store(0, 0, 256).store_commit(0).when(right, |p| p.store_wait(0, 0, false));
        first.barrier().store(1, 128, 256)
    });
    let fault = stored().store_commit(1).barrier().write(0, 0).faults().remove(0);
    assert_eq!(fault.class, Class::EarlyRelease);
    assert_eq!(fault.first.agent, Agent::Store(Batch::Committed { wait_group: 0 }));
}

#[test]
fn reductions_are_strong_among_themselves() {
    let reduce = |p: Program, warp, element| {
        p.then(Event::Store { at: one(warp), reads: vec![stage(0)], writes: vec![global(0)], map: None, element })
    };
    twins("with a plain store", Missing::Order, |right| {
        reduce(reduce(cta(2), 0, Some(4)), 1, if right { Some(4) } else { None })
    });
    let atomic = reduce(cta(2), 0, Some(4)).word(1, Kind::Atomic, Space::Global, 0);
    assert_eq!(atomic.missing(), Some(Missing::Order), "a thread's atomic is in another proxy");
}

/// Lane 0 of warp 0 starts a store at `site` and commits it.
fn committed_store(detector: &mut Detector, site: u32, to: u64) {
    let (reads, writes) = ([stage(0)], [global(to)]);
    detector.bulk_store(one(0), Site(site), &Bulk { reads: &reads, writes: &writes, ..Bulk::default() });
    detector.bulk_commit(one(0));
}

fn faulty_accesses(detector: &mut Detector) -> u64 {
    detector.take_faults().iter().map(|fault| fault.count).sum()
}

#[test]
fn a_place_that_is_raced_for_all_the_time_is_quiet_until_it_is_in_order_again() {
    let mut detector = Detector::new(&[u32::MAX; 2], 2);
    (0..2000).for_each(|site| committed_store(&mut detector, site, 0));
    let found = faulty_accesses(&mut detector);
    assert!((256..300).contains(&found), "{found} of the two million pairs of stores");
    let write = |detector: &mut Detector, warp| {
        detector.access(one(warp), Site(3000 + warp), Kind::Write, Space::Global, Places::Each(&rows(0, 4)), 4);
        faulty_accesses(detector)
    };
    detector.bulk_wait(one(0), Site(2000), 0, false);
    assert_eq!([0, 1].map(|warp| write(&mut detector, warp)), [0, 1], "after the wait, and by a stranger");
}

#[test]
fn the_last_of_a_statements_copies_stands_for_those_before_it() {
    let mut detector = Detector::new(&[u32::MAX; 2], 2);
    (0..500).for_each(|round| committed_store(&mut detector, 1, 4096 * round));
    detector.access(one(1), Site(2), Kind::Write, Space::Shared, Places::Each(&rows(0, 4)), 4);
    assert_eq!(faulty_accesses(&mut detector), 1);
}

const MAP: u64 = 0x1000;

impl Program {
    fn write_map(self, at: Lanes) -> Program {
        let (kind, semantics, space, addresses) = (Kind::Write, Semantics::default(), Space::Global, rows(MAP, 4));
        self.then(Event::Access { at, kind, semantics, space, addresses, bytes: 4 })
    }

    fn load_through_map(self, warp: u32) -> Program {
        let (reads, writes) = (vec![global(0)], vec![stage(0)]);
        self.then(Event::Load { at: one(warp), barrier: 0x4000, reads, writes, map: Some(MAP) })
    }

    fn acquire_map(self, warp: u32, map: u64) -> Program {
        self.then(Event::MapAcquire { at: one(warp), map })
    }
}

/// Writes a map, releases it or not, takes further steps, and loads through it.
fn through_map(released: bool, steps: impl Fn(Program) -> Program) -> Option<Missing> {
    let written = cta(2).write_map(whole(0)).warp_sync(0, u32::MAX);
    let written = written.when(released, |program| program.then(Event::MapRelease(one(0))));
    steps(written).load_through_map(1).missing()
}

#[test]
fn a_tensor_map_is_released_ordered_and_acquired() {
    assert_eq!(through_map(true, |program| program.barrier().acquire_map(1, MAP)), None);
    assert_eq!(through_map(false, |program| program.barrier().acquire_map(1, MAP)), Some(Missing::Fence));
    assert_eq!(through_map(true, Program::barrier), Some(Missing::Fence));
    assert_eq!(through_map(true, |program| program.barrier().acquire_map(1, 0x2000)), Some(Missing::Fence));
    assert_eq!(through_map(true, |program| program), Some(Missing::Order));
    let elsewhere = |program: Program| program.barrier().acquire_map(0, MAP).barrier();
    assert_eq!(through_map(true, elsewhere), None, "any thread on the way may acquire");
}

#[test]
fn a_tensor_map_in_use_is_not_rewritten() {
    let rewritten = |waits: bool| {
        let loaded = cta(1).load_through_map(0).then(Event::MbarrierComplete(0x4000));
        let wait = Event::MbarrierWait { at: one(0), barrier: 0x4000, semantics: ACQUIRE };
        loaded.when(waits, |program| program.then(wait.clone())).write_map(one(0)).missing()
    };
    assert_eq!((rewritten(true), rewritten(false)), (None, Some(Missing::Order)));
}

#[test]
fn lanes_of_a_fence_fence_for_themselves() {
    let half = Lanes { warp: 0, mask: 0xffff };
    let written = |p: Program| p.proxy_fence(half).warp_sync(0, u32::MAX).store(0, 0, 0);
    assert_eq!(written(cta(1).access(half, Kind::Write, rows(0, 4), 4)).missing(), None);
    assert_eq!(written(cta(1).write(0, 0)).missing(), Some(Missing::Fence));
}
