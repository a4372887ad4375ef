//! Recorded launches: the definition agrees with what was found, and with nothing else.

use crate::definition::{Launch, Recorder, begin_launch, record};
use crate::{Commons, Kind, Lanes, Places, Scope, Semantics, Site, Space, Touches};
use std::sync::Arc;

const FLAG: u64 = 0x100;

fn lane(warp: u32) -> Lanes {
    Lanes { warp, mask: 1 }
}

fn touch(detector: &mut Recorder, site: u32, warp: u32, kind: Kind, space: Space) {
    detector.access(lane(warp), Site(site), kind, space, Places::Same(0), 4);
}

/// One launch of clusters of two warps.
fn launch(clusters: u32, run: impl FnOnce(&mut [Recorder])) -> Launch {
    let (_, mut launches) = record(|| {
        begin_launch(&[]);
        let mut all: Vec<Recorder> = (0..clusters).map(|number| Recorder::watching(number, &[1, 1], 2, true)).collect();
        run(&mut all);
    });
    launches.pop().expect("a launch was recorded")
}

fn passed_on(detector: &mut Recorder) {
    touch(detector, 0, 0, Kind::Write, Space::Shared);
    [0, 1].iter().for_each(|warp| detector.barrier_arrive(lane(*warp), Site(1), 0));
    detector.barrier_complete(0, &[lane(0), lane(1)]);
    touch(detector, 2, 1, Kind::Read, Space::Shared);
}

#[test]
fn an_edge_that_only_the_detector_knows_is_a_difference() {
    let mut heard = launch(1, |all| passed_on(&mut all[0]));
    assert_eq!(heard.compare().map(|compared| (compared.events, compared.faulty)), Ok((5, [0; 3])));
    heard.notes_mut(0).remove(3);
    assert!(heard.compare().is_err(), "nobody told the definition that the barrier was complete");
}

#[test]
fn an_edge_that_only_the_definition_knows_is_a_difference() {
    let mut missed = launch(1, |all| {
        touch(&mut all[0], 0, 0, Kind::Write, Space::Shared);
        touch(&mut all[0], 2, 1, Kind::Read, Space::Shared);
    });
    assert_eq!(missed.compare().map(|compared| compared.faulty), Ok([0, 0, 4]));
    let mut whole = launch(1, |all| passed_on(&mut all[0]));
    let raced = missed.notes_mut(0).remove(1);
    whole.notes_mut(0).push(raced);
    assert!(whole.compare().is_err(), "found is a race that is none");
}

#[test]
fn clusters_apart_clash_in_global_memory() {
    let [raced, read] = [Kind::Write, Kind::Read].map(|kind| {
        let heard = launch(2, |all| all.iter_mut().for_each(|one| touch(one, 0, 0, kind, Space::Global)));
        heard.compare().map(|compared| compared.crossed)
    });
    assert_eq!((raced, read), (Ok(4), Ok(0)));
}

#[test]
fn clusters_in_turns_are_judged_together() {
    let judged = |scope| {
        let heard = launch(2, |all| {
            let mut commons = Commons::default();
            let semantics = [Semantics::release(scope), Semantics::acquire(scope)];
            let flags = [(Kind::StrongWrite, semantics[0]), (Kind::StrongRead, semantics[1])];
            for (one, flag) in all.iter_mut().zip(flags) {
                one.exchange(&mut commons);
                let pass = |one: &mut Recorder| {
                    one.ordered_access(lane(0), Site(1), flag, Space::Global, Places::Same(FLAG), 4);
                };
                if flag.0 == Kind::StrongRead {
                    pass(one);
                    touch(one, 2, 0, Kind::Read, Space::Global);
                } else {
                    touch(one, 0, 0, Kind::Write, Space::Global);
                    pass(one);
                }
                one.exchange(&mut commons);
            }
        });
        heard.compare().map(|compared| compared.faulty)
    };
    assert_eq!(judged(Scope::Gpu), Ok([0; 3]));
    assert_eq!(judged(Scope::Cluster), Ok([0, 4, 4]), "the flag is raced for, and reaches nobody");
}

/// A launch that reads what the one before it wrote, and may overlap with that one.
fn overlapping(waits: bool) -> Launch {
    let (_, mut launches) = record(|| {
        let mut touches = Touches::default();
        begin_launch(&[]);
        let mut before = Recorder::watching(0, &[1, 1], 2, true);
        touch(&mut before, 0, 0, Kind::Write, Space::Global);
        touches.add(&before.summary());
        drop(before);
        begin_launch(&[true]);
        let mut detector = Recorder::watching(0, &[1, 1], 2, true);
        detector.begin_behind(vec![Arc::new(touches)]);
        if waits {
            detector.wait_for_grids(lane(0));
        }
        touch(&mut detector, 1, 0, Kind::Read, Space::Global);
    });
    launches.pop().expect("two launches were recorded")
}

#[test]
fn a_grid_that_may_still_run_must_be_waited_for() {
    let judged = |waits| overlapping(waits).compare().map(|compared| (compared.events, compared.early));
    assert_eq!((judged(false), judged(true)), (Ok((1, 4)), Ok((2, 0))));
    let [mut waited, mut missed] = [true, false].map(overlapping);
    let wait = waited.notes_mut(0).remove(0);
    assert!(waited.compare().is_err(), "nobody told the definition of the wait");
    missed.notes_mut(0).insert(0, wait);
    assert!(missed.compare().is_err(), "found is a race that is none");
}
