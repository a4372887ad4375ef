//! Timelines: what they show, and what holds of every one.

use emulator::Emulator;
use launch::backend::{Backend, Options, Trace};
use launch::{Kernel, Memory};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Pipelines with every way to wait: barriers, groups, phases, clusters, products, and two that never end.
const CASES: [&str; 9] = [
    "filetests/pass/double_buffered_pipeline.ptx",
    "filetests/pass/ring_of_boxes.ptx",
    "filetests/pass/producer_and_consumer.ptx",
    "filetests/run/kernels/ring_through_a_cluster.ptx",
    "filetests/run/kernels/two_launches.ptx",
    "filetests/run/kernels/warpgroups_with_their_registers.ptx",
    "filetests/fail/deadlock/crossed_barriers.ptx",
    "filetests/fail/deadlock/blocks_wait_for_each_other.ptx",
    "corpus/tri_fa_fwd_tma_ws.sm_90a.toml",
];

fn traced(path: &str, options: Options) -> Trace {
    let mut kernel = Kernel::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a case of ours");
    // The name of the machine's folder does not belong into a trace that is compared.
    kernel.parsed.source.name = path.into();
    let mut loaded = Emulator.load(&kernel).expect("it loads");
    let mut memory = Memory::new(loaded.resolved(), 0).expect("it fits");
    let run = Emulator.run(&mut loaded, &mut memory, &options).expect("it runs");
    run.trace.expect("a trace was asked for")
}

fn options(seed: u64) -> Options {
    Options { seed, traced_blocks: 4, ..Options::default() }
}

fn events(trace: &Trace) -> Vec<Value> {
    let file: Value = serde_json::from_str(&trace.json).expect("JSON");
    file["traceEvents"].as_array().expect("events").clone()
}

/// Times are written in microseconds and are whole nanoseconds.
fn nanoseconds(value: &Value) -> u64 {
    let time = value.as_f64().expect("a time") * 1000.0;
    assert!((time - time.round()).abs() < 1e-6, "{time}");
    time.round() as u64
}

type Tracks = BTreeMap<(u64, u64), Vec<(u64, u64)>>;

fn place(event: &Value) -> (u64, u64) {
    (event["pid"].as_u64().expect("a process"), event["tid"].as_u64().expect("a thread"))
}

/// From when until when something is drawn on each track, in the order of the file.
fn tracks(events: &[Value]) -> Tracks {
    let mut tracks = Tracks::new();
    for slice in events.iter().filter(|event| event["ph"] == "X") {
        let start = nanoseconds(&slice["ts"]);
        tracks.entry(place(slice)).or_default().push((start, start + nanoseconds(&slice["dur"])));
    }
    tracks
}

#[test]
fn slices_of_a_track_follow_each_other() {
    for (case, seed) in CASES.iter().flat_map(|case| (0..8).map(move |seed| (case, seed))) {
        for (track, slices) in tracks(&events(&traced(case, options(seed)))) {
            assert!(slices.iter().all(|(start, end)| start < end), "{case} {seed} {track:?}");
            assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{case} {seed} {track:?}: {slices:?}");
        }
    }
}

#[test]
fn arrows_begin_and_end_inside_of_slices() {
    for (case, seed) in CASES.iter().flat_map(|case| (0..8).map(move |seed| (case, seed))) {
        let events = events(&traced(case, options(seed)));
        let tracks = tracks(&events);
        let inside = |event: &Value| {
            let time = nanoseconds(&event["ts"]);
            assert!(tracks[&place(event)].iter().any(|(start, end)| (*start..*end).contains(&time)), "{case} {event}");
            time
        };
        let ends = |kind: &str| events.iter().filter(move |event| event["ph"] == kind).collect::<Vec<_>>();
        let (from, to) = (ends("s"), ends("f"));
        assert_eq!(from.len(), to.len(), "{case} {seed}");
        for (from, to) in from.into_iter().zip(to) {
            assert_eq!(from["id"], to["id"], "{case} {seed}");
            assert!(inside(from) <= inside(to), "{case} {seed}: {from} {to}");
        }
    }
}

#[test]
fn every_track_and_every_block_has_a_name() {
    for case in CASES {
        let events = events(&traced(case, options(4)));
        let named = |kind: &str| events.iter().filter(|event| event["name"] == kind).collect::<Vec<_>>();
        let threads: Vec<_> = named("thread_name").into_iter().map(place).collect();
        assert_eq!(threads, tracks(&events).into_keys().collect::<Vec<_>>(), "{case}");
        let processes: Vec<_> = named("process_name").iter().map(|event| event["pid"].as_u64()).collect();
        assert!(threads.iter().all(|(process, _)| processes.contains(&Some(*process))), "{case}");
    }
}

#[test]
fn a_seed_fixes_the_trace() {
    for case in CASES {
        let trace = traced(case, options(5));
        assert_eq!(trace, traced(case, options(5)), "{case}");
    }
    assert_ne!(traced(CASES[1], options(4)).json, traced(CASES[1], options(5)).json);
}

#[test]
fn so_many_blocks_are_traced_as_were_asked_for() {
    let trace =
        |blocks| traced("corpus/tri_fa_fwd_tma_ws.sm_90a.toml", Options { traced_blocks: blocks, ..options(0) });
    assert_eq!([1, 3, 100].map(|blocks| trace(blocks).blocks), [1, 3, 4]);
}

#[test]
fn whoever_waits_for_ever_is_seen_to() {
    let events = events(&traced("filetests/fail/deadlock/crossed_barriers.ptx", options(0)));
    let unfinished = events.iter().filter(|event| event["args"]["unfinished"] == true);
    let names: Vec<_> = unfinished.map(|event| event["name"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["wait barrier 1", "wait barrier 2"]);
}

#[test]
fn nobody_who_does_not_ask_gets_a_trace() {
    let kernel = Kernel::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES[0])).expect("a case of ours");
    let mut loaded = Emulator.load(&kernel).expect("it loads");
    let mut memory = Memory::new(loaded.resolved(), 0).expect("it fits");
    assert_eq!(Emulator.run(&mut loaded, &mut memory, &Options::default()).expect("it runs").trace, None);
}

#[test]
fn copies_between_barriers() {
    insta::assert_snapshot!(traced("filetests/pass/double_buffered_pipeline.ptx", options(0)).json);
}

#[test]
fn a_ring_of_boxes() {
    insta::assert_snapshot!(traced("filetests/pass/ring_of_boxes.ptx", options(5)).json);
}
