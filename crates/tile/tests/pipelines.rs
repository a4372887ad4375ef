//! Waits and barriers that rings derive, read from the printed text.

mod support;

use support::{ring, tiles};
use tile::prelude::*;

/// The lines that order something, and the loop's labels.
fn synchronisation(body: impl FnOnce()) -> Vec<String> {
    let options =
        Options { target: ptx::Target::SM_80, threads: 128, cluster: 1, blocks_per_processor: None, checks: false };
    let built = tile::build("kernel", options, body).unwrap_or_else(|error| panic!("{error}"));
    let text = ptx::print(&built.module);
    let kept = ["bar.sync", "cp.async.wait", "cp.async.commit", "$loop"];
    let lines = text.lines().map(str::trim).filter(|line| kept.iter().any(|start| line.starts_with(start)));
    lines.map(|line| line.trim_end_matches(';').replace("cp.async.", "")).collect()
}

#[test]
fn one_stage_needs_a_barrier_before_it_is_filled_again() {
    let found = synchronisation(|| {
        let keys = ring("keys", 1);
        for_each(begin(&[&keys], tiles()), |_| keys.next().release());
    });
    assert_eq!(found, ["$loop_1:", "bar.sync 0", "commit_group", "wait_group 0", "bar.sync 0", "$loop_end_2:"]);
}

/// With two rings, the barrier after the wait for one protects the other.
#[test]
fn a_barrier_that_passed_anyway_is_not_repeated() {
    let found = synchronisation(|| {
        let (keys, values) = (ring("keys", 1), ring("values", 1));
        for_each(begin(&[&keys, &values], tiles()), |_| {
            keys.next().release();
            values.next().release();
        });
    });
    let pass = ["commit_group", "wait_group 0", "bar.sync 0"];
    assert_eq!(found, [&["$loop_1:"][..], &pass, &pass, &["$loop_end_2:"]].concat());
}

#[test]
fn three_stages_leave_the_younger_copies_in_flight() {
    let found = synchronisation(|| {
        let (keys, values) = (ring("keys", 3), ring("values", 3));
        for_each(begin(&[&keys, &values], tiles()), |_| {
            keys.next().release();
            values.next().release();
        });
    });
    let pass = ["wait_group 3", "bar.sync 0", "commit_group"];
    assert_eq!(found[..4], ["commit_group"; 4]);
    let body: Vec<&str> = found.iter().map(String::as_str).filter(|line| !line.starts_with('$')).skip(4).collect();
    assert_eq!(body, [pass, pass].concat());
}

/// A barrier inside a loop that may run no pass at all protects nothing after it.
#[test]
fn a_barrier_in_a_loop_does_not_count_behind_it() {
    let found = synchronisation(|| {
        let keys = ring("keys", 1);
        keys.start(0);
        keys.wait().release();
        for_each(tiles(), |_| barrier());
        keys.start(1);
        keys.wait().release();
    });
    assert_eq!(
        found[3..],
        ["$loop_1:", "bar.sync 0", "$loop_end_2:", "bar.sync 0", "commit_group", "wait_group 0", "bar.sync 0"]
    );
}
