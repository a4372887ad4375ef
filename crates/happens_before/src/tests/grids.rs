//! Clusters that meet in global memory: litmus programs, and random ones against the definition. Each cluster is one block.

use super::differential::Dice;
use super::{Before, Event, Faulty, shaped};
use crate::actor::Gap;
use crate::definition::{Early, Found, Oracle, Shift, agree, agree_early};
use crate::{Bulk, Commons, Detector, Kind, Lanes, ProxyFence, Scope, Semantics, Site, Space, Told};

const CLUSTERS: u32 = 3;
/// Warps of a cluster.
const WARPS: u32 = 2;
/// Lanes of a warp.
const LIVE: u32 = 3;
const FLAG: u64 = 0x100;

/// Detectors that take turns, and the definition.
#[derive(Clone)]
struct Grid {
    detectors: Vec<Detector>,
    commons: Commons,
    oracle: Oracle,
}

impl Grid {
    fn new() -> Grid {
        let detector = |number| Detector::numbered(number, &[LIVE; WARPS as usize], WARPS);
        let oracle = Oracle::grid(&[LIVE; (CLUSTERS * WARPS) as usize], WARPS, 1);
        Grid { detectors: (0..CLUSTERS).map(detector).collect(), commons: Commons::default(), oracle }
    }

    /// Executes an event on both; returns the faulty bytes, or how they disagree.
    fn step(&mut self, event: &Event, site: Site) -> Result<Faulty, String> {
        let races = self.oracle.step(event, site);
        let (found, early) = self.run(event, site);
        let mut faulty = agree(&races, &found)?;
        faulty.extend(agree_early(&self.oracle.early, &early)?);
        Ok(faulty)
    }

    /// What the detector finds.
    fn run(&mut self, event: &Event, site: Site) -> (Vec<Found>, Vec<Early>) {
        let home = |at: &Lanes| ((at.warp / WARPS) as usize, Lanes { warp: at.warp % WARPS, mask: at.mask });
        let (cluster, at) = match event {
            Event::Access { at, .. } | Event::Fence(at, _) | Event::ProxyFence(at, _) | Event::WarpSync(at) => home(at),
            Event::Arrive { at, .. } | Event::Store { at, .. } | Event::BulkCommit(at) => home(at),
            Event::BulkWait { at, .. } | Event::GridWait(at) => home(at),
            Event::Complete { waiters, .. } => home(&waiters[0]),
            event => unreachable!("{event:?}"),
        };
        let detector = &mut self.detectors[cluster];
        detector.exchange(&mut self.commons);
        match event {
            Event::Access { kind, semantics, space, addresses, bytes, .. } => {
                detector.ordered_access(
                    at,
                    site,
                    (*kind, *semantics),
                    *space,
                    shaped(at.mask, addresses, *bytes),
                    *bytes,
                );
            }
            Event::Fence(_, semantics) => detector.fence(at, site, *semantics),
            Event::ProxyFence(_, which) => detector.fence_proxy_async(at, *which),
            Event::WarpSync(_) => detector.warp_sync(at, site),
            Event::Arrive { id, .. } => detector.barrier_arrive(at, site, *id),
            Event::Complete { id, waiters } => {
                let waiters: Vec<Lanes> = waiters.iter().map(|at| home(at).1).collect();
                detector.barrier_complete(*id, &waiters);
            }
            Event::Store { reads, writes, element, .. } => {
                detector.bulk_store(at, site, &Bulk { reads, writes, map: None, element: *element });
            }
            Event::BulkCommit(_) => detector.bulk_commit(at),
            Event::GridWait(_) => detector.wait_for_grids(at),
            Event::BulkWait { pending, read, .. } => detector.bulk_wait(at, site, *pending, *read),
            event => unreachable!("{event:?}"),
        }
        let shift = |cluster: u32| Shift { cluster, warps: cluster * WARPS, blocks: cluster };
        let found = Found::by(detector, &local(event, at), site);
        let found = found.iter().map(|one| one.shifted(shift(cluster as u32), shift(one.cluster))).collect();
        detector.exchange(&mut self.commons);
        (found, Early::by(detector, event))
    }

    fn begin_behind(&mut self, grids: &[Before]) {
        Before::begin_behind(grids, &mut self.detectors, &mut self.oracle);
    }

    /// What it did, for one that starts before it is complete.
    fn before(mut self, early: bool) -> Before {
        let mut nobody = Detector::numbered(u32::MAX, &[LIVE; WARPS as usize], WARPS);
        nobody.exchange(&mut self.commons);
        Before::new(&nobody.summary(), &self.oracle, early)
    }
}

/// An access by the same lanes as their own cluster counts them.
fn local(event: &Event, at: Lanes) -> Event {
    let mut event = event.clone();
    if let Event::Access { at: here, .. } | Event::Store { at: here, .. } = &mut event {
        *here = at;
    }
    event
}

fn access(at: Lanes, kind: Kind, semantics: Semantics, start: u64, bytes: u32) -> Event {
    let addresses = std::array::from_fn(|lane| start + lane as u64 * u64::from(bytes));
    Event::Access { at, kind, semantics, space: Space::Global, addresses: Box::new(addresses), bytes }
}

fn thread(warp: u32) -> Lanes {
    Lanes { warp, mask: 1 }
}

fn weak(warp: u32, kind: Kind) -> Event {
    access(thread(warp), kind, Semantics::default(), 0, 4)
}

fn flag(warp: u32, kind: Kind, semantics: Semantics) -> Event {
    access(thread(warp), kind, semantics, FLAG, 4)
}

/// What lies between the last access and those before it.
fn judged(events: &[Event]) -> Option<Gap> {
    let mut grid = Grid::new();
    let faults = events.iter().zip(0..).map(|(event, site)| grid.step(event, Site(site)).expect("they agree"));
    faults.last().and_then(|faulty| faulty.values().max().copied())
}

const GPU: Scope = Scope::Gpu;

#[test]
fn a_flag_of_the_grid_needs_a_release_an_acquire_and_wide_scopes() {
    let pass = |release: Semantics, acquire: Semantics| {
        let told = [flag(0, Kind::StrongWrite, release), flag(2, Kind::StrongRead, acquire)];
        judged(&[vec![weak(0, Kind::Write)], told.to_vec(), vec![weak(2, Kind::Read)]].concat())
    };
    assert_eq!(pass(Semantics::release(GPU), Semantics::acquire(GPU)), None);
    assert_eq!(pass(Semantics::relaxed(GPU), Semantics::acquire(GPU)), Some(Gap::Order));
    assert_eq!(pass(Semantics::release(GPU), Semantics::relaxed(GPU)), Some(Gap::Reach));
    assert_eq!(pass(Semantics::release(Scope::Cta), Semantics::acquire(GPU)), Some(Gap::Reach));
    assert_eq!(pass(Semantics::release(GPU), Semantics::acquire(Scope::Cta)), Some(Gap::Reach));
}

#[test]
fn order_composes_through_a_third_cluster_and_back() {
    let pass = |from: u32, to: u32, place: u64| {
        let word = |warp, kind, semantics| access(thread(warp), kind, semantics, FLAG + place, 4);
        [word(from, Kind::StrongWrite, Semantics::release(GPU)), word(to, Kind::StrongRead, Semantics::acquire(GPU))]
    };
    let round = [&[weak(0, Kind::Write)][..], &pass(0, 2, 0), &pass(2, 4, 4), &pass(4, 1, 8)].concat();
    assert_eq!(judged(&[round.clone(), vec![weak(1, Kind::Write)]].concat()), None, "back to the other warp");
    assert_eq!(judged(&[round, vec![weak(5, Kind::Read)]].concat()), Some(Gap::Order), "a warp that was not told");
}

#[test]
fn atomics_of_two_clusters_are_strong_to_each_other_with_wide_scopes_only() {
    let both =
        |scope| [0, 2].map(|warp| flag(warp, Kind::Atomic, Semantics { blind: true, ..Semantics::relaxed(scope) }));
    assert_eq!((judged(&both(GPU)), judged(&both(Scope::Cta))), (None, Some(Gap::Order)));
    assert_eq!(judged(&both(Scope::Cluster)), Some(Gap::Order));
}

/// From warp 1 to warp 3: every thread fences, a barrier, one counts for all; behind the counter the same again.
fn through_a_counter(sequential: bool, counted: bool) -> Vec<Event> {
    let fence = |at| Event::Fence(at, Semantics { acquire: true, sequential, ..Semantics::release(GPU) });
    let whole = |warp| Lanes { warp, mask: LIVE };
    let barrier = |first: u32| {
        let all = [whole(first), whole(first + 1)];
        let arrive = all.map(|at| Event::Arrive { at, id: first });
        [arrive.to_vec(), vec![Event::Complete { id: first, waiters: all.to_vec() }]].concat()
    };
    let count = |warp| flag(warp, Kind::Atomic, Semantics::relaxed(GPU));
    let writer = [vec![fence(whole(1)), fence(whole(0))], barrier(0), vec![count(0)]].concat();
    let counter = if counted { vec![count(2)] } else { vec![] };
    [writer, counter, barrier(2), vec![fence(whole(3))]].concat()
}

#[test]
fn what_came_before_a_sequential_fence_is_known_behind_the_next_one() {
    let idiom = |sequential: bool, counted: bool| {
        let between = through_a_counter(sequential, counted);
        judged(&[vec![weak(1, Kind::Write)], between, vec![weak(3, Kind::Read)]].concat())
    };
    assert_eq!(idiom(true, true), None);
    assert_eq!(idiom(true, false), Some(Gap::Order), "an order of fences that nothing fixes is luck");
    assert!(idiom(false, true).is_some(), "other fences publish what their own thread writes");
}

#[test]
fn a_wait_for_the_grid_before_is_passed_on_like_everything_else() {
    let mut earlier = Grid::new();
    earlier.step(&weak(0, Kind::Write), Site(0)).expect("they agree");
    let before = earlier.before(true);
    let is_early = |between: &[Event]| {
        let mut grid = Grid::new();
        grid.begin_behind(std::slice::from_ref(&before));
        let events = [&[Event::GridWait(thread(1))], between, &[weak(3, Kind::Read)]].concat();
        let faults = events.iter().zip(0..).map(|(event, site)| grid.step(event, Site(site)).expect("they agree"));
        faults.last().is_some_and(|faulty| faulty.keys().any(|(grid, ..)| grid.is_some()))
    };
    let pass = |scope| {
        let told =
            [(1, Kind::StrongWrite, Semantics::release(scope)), (3, Kind::StrongRead, Semantics::acquire(scope))];
        told.map(|(warp, kind, semantics)| flag(warp, kind, semantics))
    };
    assert!(is_early(&[]) && !is_early(&[Event::GridWait(thread(3))]));
    assert!(is_early(&pass(Scope::Cta)) && !is_early(&pass(GPU)));
    assert!(!is_early(&through_a_counter(true, true)));
    assert!(is_early(&through_a_counter(true, false)) && is_early(&through_a_counter(false, true)));
}

#[test]
fn a_race_says_what_the_other_cluster_had_published() {
    let mut grid = Grid::new();
    let events = [
        weak(0, Kind::Write),
        flag(0, Kind::StrongWrite, Semantics::release(GPU)),
        flag(2, Kind::StrongRead, Semantics::relaxed(GPU)),
        weak(2, Kind::Read),
        weak(4, Kind::Read),
    ];
    events.iter().zip(0..).for_each(|(event, site)| drop(grid.run(event, Site(site))));
    let told = |cluster: usize| grid.detectors[cluster].clone().take_crossings()[0].told;
    assert!(matches!(told(1), Told::Missed(miss) if (miss.release, miss.read) == (Site(1), Site(2))));
    assert_eq!(told(2), Told::At { release: Site(1), address: FLAG });
}

fn random(dice: &mut Dice) -> Vec<Event> {
    let warp = dice.roll(CLUSTERS * WARPS);
    let at = Lanes { warp, mask: dice.pick(&[1, 2, 3]) };
    let one = Lanes { warp, mask: dice.pick(&[1, 2]) };
    let scope = dice.pick(&[Scope::Cta, Scope::Cluster, GPU, GPU, GPU, GPU]);
    let place = u64::from(dice.roll(4)) * 4;
    match dice.roll(21) {
        0..7 => {
            let (kind, bytes) = (dice.pick(&[Kind::Read, Kind::Read, Kind::Write]), dice.pick(&[4, 4, 8, 16]));
            vec![access(at, kind, Semantics::default(), if bytes > 4 { 0 } else { place }, bytes)]
        }
        7..12 => {
            let kind = dice.pick(&[Kind::StrongRead, Kind::StrongWrite, Kind::Atomic]);
            let blind = kind == Kind::Atomic && dice.roll(4) == 0;
            let release = kind.writes() && dice.roll(2) == 0;
            let acquire = kind != Kind::StrongWrite && !blind && dice.roll(2) == 0;
            let semantics = Semantics { release, acquire, blind, ..Semantics::relaxed(scope) };
            vec![access(one, kind, semantics, FLAG + u64::from(dice.roll(2)) * 16, 4)]
        }
        12..14 => {
            let sequential = dice.roll(2) == 0;
            vec![Event::Fence(at, Semantics { acquire: true, sequential, ..Semantics::release(scope) })]
        }
        14..16 => vec![Event::WarpSync(Lanes { warp, mask: LIVE })],
        16..18 => {
            let (id, first) = (warp / WARPS, warp / WARPS * WARPS);
            let all = [first, first + 1].map(|warp| Lanes { warp, mask: LIVE });
            let arrivals = all.map(|at| Event::Arrive { at, id });
            [arrivals.to_vec(), vec![Event::Complete { id, waiters: all.to_vec() }]].concat()
        }
        18 => vec![Event::ProxyFence(at, ProxyFence::All)],
        19 => vec![Event::GridWait(one)],
        _ => {
            let writes = vec![(Space::Global, 0..16)];
            let wait = Event::BulkWait { at: one, pending: 0, read: dice.roll(3) == 0 };
            vec![
                Event::Store { at: one, reads: vec![], writes, map: None, element: None },
                Event::BulkCommit(one),
                wait,
            ]
        }
    }
}

/// A grid of random events that may still run.
fn before(seed: u64) -> Before {
    let (mut dice, mut grid) = (Dice::new(seed), Grid::new());
    for (event, site) in std::iter::repeat_with(|| random(&mut dice)).take(10).flatten().zip(0..) {
        grid.step(&event, Site(site)).expect("they agree");
    }
    grid.before(seed.is_multiple_of(2))
}

/// `HAPPENS_BEFORE_SEQUENCES` and `HAPPENS_BEFORE_START` choose how many seeds, and which.
#[test]
fn clusters_agree_with_the_definition() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, start) = (number("HAPPENS_BEFORE_SEQUENCES", 4000u64), number("HAPPENS_BEFORE_START", 1));
    /// Behind the gaps: bytes of earlier grids.
    const EARLY: usize = 3;
    let (mut faulty, mut clean) = ([0; 4], 0);
    for seed in start..start + count {
        let (mut dice, mut grid, mut log) = (Dice::new(seed), Grid::new(), Vec::new());
        grid.begin_behind(&(0..seed / 2 % 3).map(|number| before(seed * 3 + number)).collect::<Vec<_>>());
        let mut here = 0;
        for event in std::iter::repeat_with(|| random(&mut dice)).take(40).flatten().collect::<Vec<_>>() {
            let saved = (!seed.is_multiple_of(4) && event.accessing().is_some()).then(|| grid.clone());
            log.push(event);
            let bytes = grid.step(&log[log.len() - 1], Site(log.len() as u32 - 1));
            let bytes = bytes.unwrap_or_else(|difference| {
                log.iter().enumerate().for_each(|(site, event)| eprintln!("{site:3} {event:x?}"));
                panic!("seed {seed}, step {}: {difference}", log.len() - 1)
            });
            match saved.filter(|_| !bytes.is_empty()) {
                // Most sequences take back what is faulty, so that long ordered runs arise.
                Some(before) => grid = before,
                None => bytes.iter().for_each(|((grid, ..), gap)| {
                    faulty[if grid.is_some() { EARLY } else { *gap as usize }] += 1;
                    here += 1;
                }),
            }
        }
        clean += usize::from(here == 0);
    }
    println!("{count} sequences, {clean} without fault, {faulty:?} faulty bytes, the last of earlier grids");
    assert!(clean > 0 && faulty.iter().all(|bytes| *bytes > 0), "{clean} {faulty:?}");
}
