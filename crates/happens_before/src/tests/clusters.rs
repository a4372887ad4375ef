//! Clusters: their barrier, distributed shared memory, scopes, and mbarriers.

use super::Event;
use super::litmus::{Program, cluster, cta, rows};
use super::machine::*;
use crate::{Kind, Lanes, Places, ProxyFence, Scope, Semantics, Space};

const FAR: u64 = 1 << 32;

#[test]
fn the_cluster_barrier_orders_distributed_shared_memory() {
    twins("a relaxed barrier", Missing::Reach, |right| {
        cluster(2, 1).write(0, FAR).cluster_sync(if right { WIDE_RELEASE } else { RELAXED }).read(1, FAR)
    });
    twins("a relaxed barrier after a fence", Missing::Reach, |right| {
        let fence = |p: Program| p.then(Event::Fence(whole(0), Semantics { acquire: true, ..WIDE_RELEASE }));
        cluster(2, 1).write(0, FAR).when(right, fence).cluster_sync(RELAXED).read(1, FAR)
    });
    let arrive = |p: Program, warp| p.then(Event::ClusterArrive(whole(warp), WIDE_RELEASE));
    let complete = |p: Program| p.then(Event::ClusterComplete { cluster: 0, waiters: vec![] });
    twins("an arrival without a wait", Missing::Order, |right| {
        let met = complete(arrive(arrive(cluster(2, 1).write(0, FAR), 0), 1));
        met.when(right, |p| p.then(Event::ClusterWait(whole(1)))).read(1, FAR)
    });
    twins("written between arrival and wait", Missing::Order, |right| {
        let early = arrive(cluster(2, 1).when(right, |p| p.write(0, FAR)), 0);
        let met = complete(arrive(early.when(!right, |p| p.write(0, FAR)), 1));
        met.then(Event::ClusterWait(whole(0))).then(Event::ClusterWait(whole(1))).read(1, FAR)
    });
    twins("bar.sync does not reach another block", Missing::Order, |right| {
        let written = cluster(2, 1).write(0, FAR);
        let apart = |p: Program| p.arrive(0, 0).complete(0, &[0]).arrive(1, 256).complete(256, &[1]);
        if right { written.cluster_sync(WIDE_RELEASE) } else { apart(written) }.read(1, FAR)
    });
}

#[test]
fn a_fence_for_the_own_block_covers_no_other() {
    twins("written there, stored from there", Missing::Fence, |right| {
        let which = if right { ProxyFence::SharedCluster } else { ProxyFence::SharedBlock };
        let written = cluster(2, 1).write(0, FAR).then(Event::ProxyFence(whole(0), which)).cluster_sync(WIDE_RELEASE);
        let (reads, writes) = (vec![stage(FAR)], vec![global(0)]);
        written.then(Event::Store { at: one(1), reads, writes, map: None, element: None })
    });
}

fn flag(program: Program, warp: u32, kind: Kind, semantics: Semantics) -> Program {
    let (at, addresses) = (one(warp), rows(4096, 0));
    program.then(Event::Access { at, kind, semantics, space: Space::Global, addresses, bytes: 4 })
}

#[test]
fn scopes_must_include_each_other() {
    let pass = |release: Semantics, acquire: Semantics| {
        let written = cluster(2, 1).word(0, Kind::Write, Space::Global, 0);
        let told = flag(flag(written, 0, Kind::StrongWrite, release), 1, Kind::StrongRead, acquire);
        told.word(1, Kind::Read, Space::Global, 0).missing()
    };
    assert_eq!(pass(WIDE_RELEASE, WIDE_ACQUIRE), None);
    assert_eq!(pass(WIDE_RELEASE, RELAXED), Some(Missing::Reach));
    assert_eq!(pass(RELEASE, WIDE_ACQUIRE), Some(Missing::Order), "the flag itself races too");
    let fences = |before: Scope, after: Scope| {
        let fence = |p: Program, warp, scope| {
            p.then(Event::Fence(one(warp), Semantics { acquire: true, ..Semantics::release(scope) }))
        };
        let written = fence(cluster(2, 1).word(0, Kind::Write, Space::Global, 0), 0, before);
        let told = flag(flag(written, 0, Kind::StrongWrite, RELAXED), 1, Kind::StrongRead, RELAXED);
        fence(told, 1, after).word(1, Kind::Read, Space::Global, 0).missing()
    };
    assert_eq!(fences(Scope::Cluster, Scope::Cluster), None);
    assert_eq!(fences(Scope::Cta, Scope::Cluster), Some(Missing::Reach));
    assert_eq!(fences(Scope::Cluster, Scope::Cta), Some(Missing::Reach));
    twins("atomics with block scope across blocks", Missing::Order, |right| {
        let scope = if right { Scope::Cluster } else { Scope::Cta };
        let first = flag(cluster(2, 1), 0, Kind::Atomic, Semantics::relaxed(scope));
        flag(first, 1, Kind::Atomic, RELAXED)
    });
}

#[test]
fn mbarriers_hand_over_what_came_before_the_arrival() {
    let written = || cta(2).init(0x4000, 32).write(0, 0);
    twins("no wait", Missing::Order, |right| {
        written().signal_as(whole(0), 0x4000, RELEASE).when(right, |p| p.pass(1, 0x4000, 0)).read(1, 0)
    });
    twins("the wrong parity passes at once", Missing::Order, |right| {
        written().signal_as(whole(0), 0x4000, RELEASE).pass(1, 0x4000, u32::from(!right)).read(1, 0)
    });
    twins("a count too small", Missing::Order, |right| {
        let signalled = written().init(0x4000, if right { 64 } else { 32 }).signal_as(whole(0), 0x4000, RELEASE);
        let second = signalled.write(1, 128).when(right, |p| p.signal_as(whole(1), 0x4000, RELEASE));
        second.pass(0, 0x4000, 0).read(0, 128)
    });
    let word = |warp, kind| move |p: Program| p.word(warp, kind, Space::Shared, 0);
    let [write, read] = [word(0, Kind::Write), word(1, Kind::Read)];
    twins("a relaxed arrival", Missing::Reach, |right| {
        let semantics = if right { RELEASE } else { RELAXED };
        read(write(cta(2)).signal_as(one(0), 0x4000, semantics).pass(1, 0x4000, 0))
    });
    twins("a relaxed arrival after a fence", Missing::Reach, |right| {
        let fence = |p: Program| p.then(Event::Fence(one(0), WIDE_RELEASE));
        read(write(cta(2)).when(right, fence).signal_as(one(0), 0x4000, RELAXED).pass(1, 0x4000, 0))
    });
    twins("a relaxed wait, then a fence", Missing::Reach, |right| {
        let told = write(cta(2)).signal(0, 0x4000).pass_as(one(1), 0x4000, 0, RELAXED);
        read(told.when(right, |p| p.then(Event::Fence(one(1), ACQUIRE))))
    });
    twins("only the lane that waited may read", Missing::Order, |right| {
        let told = write(cta(2)).signal(0, 0x4000).pass_as(one(1), 0x4000, 0, ACQUIRE);
        told.when(right, |p| p.warp_sync(1, u32::MAX)).access(Lanes { warp: 1, mask: 2 }, Kind::Read, rows(0, 0), 4)
    });
    variants("a remote arrival: both scopes must be wide", Missing::Reach, 3, |variant| {
        let arrive = if variant == 1 { RELEASE } else { WIDE_RELEASE };
        let wait = if variant == 2 { ACQUIRE } else { WIDE_ACQUIRE };
        let read = cluster(2, 1).word(1, Kind::Read, Space::Shared, 0).signal_as(one(1), 0x4000, arrive);
        read.pass_as(one(0), 0x4000, 0, wait).word(0, Kind::Write, Space::Shared, 0)
    });
}

#[test]
fn an_initialisation_must_be_known_to_those_who_use_it() {
    let mut detector = crate::Detector::new(&[u32::MAX; 3], 2);
    let site = crate::Site(0);
    let knows = |detector: &crate::Detector, warp| detector.mbarrier_is_initialised(one(warp), 0x4000);
    assert!(!knows(&detector, 0));
    detector.mbarrier_init(one(0), 0x4000);
    assert_eq!([0, 1, 2].map(|warp| knows(&detector, warp)), [true, false, false]);
    [0, 1].iter().for_each(|warp| detector.barrier_arrive(whole(*warp), site, 0));
    detector.barrier_complete(0, &[whole(0), whole(1)]);
    assert_eq!([0, 1, 2].map(|warp| knows(&detector, warp)), [true, true, false]);
    let relaxed_round = |detector: &mut crate::Detector| {
        [0, 1, 2].iter().for_each(|warp| detector.cluster_arrive(whole(*warp), site, RELAXED));
        detector.cluster_complete(&[whole(2)]);
    };
    relaxed_round(&mut detector);
    assert!(!knows(&detector, 2), "a relaxed barrier alone tells nothing");
    detector.fence_mbarrier_init(one(0));
    relaxed_round(&mut detector);
    assert!(knows(&detector, 2));
    detector.mbarrier_invalidate(0x4000);
    assert!(!knows(&detector, 0));
}

#[test]
fn an_object_made_anew_tells_nothing_of_the_old_one() {
    let mut detector = crate::Detector::new(&[u32::MAX; 2], 2);
    let site = crate::Site(7);
    detector.mbarrier_init(one(0), 0x4000);
    let bulk = crate::Bulk { writes: &[stage(0)], ..Default::default() };
    detector.bulk_load(one(0), site, 0x4000, &bulk);
    detector.mbarrier_init(one(0), 0x4000);
    detector.mbarrier_phase_complete(0x4000);
    detector.mbarrier_wait(whole(1), 0x4000, ACQUIRE);
    detector.access(whole(1), site, Kind::Read, Space::Shared, Places::Each(&rows(0, 4)), 4);
    assert_eq!(detector.take_faults().len(), 1);
}
