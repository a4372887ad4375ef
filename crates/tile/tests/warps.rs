//! Warps with a task of their own: what they print, what they may use, and what rings that some of them fill refuse.

mod support;

use support::{ring, tiles};
use tile::prelude::*;

/// Four warps.
const OPTIONS: Options =
    Options { target: ptx::Target::SM_80, threads: 128, cluster: 1, blocks_per_processor: None, checks: false };

fn text(body: impl FnOnce()) -> String {
    let built = tile::build("kernel", OPTIONS, body).unwrap_or_else(|error| panic!("{error}"));
    ptx::print(&built.module)
}

fn wrong(body: impl FnOnce()) -> String {
    tile::build("wrong", OPTIONS, body).expect_err("an error").message
}

/// The lines that start with one of these words, or jump.
fn lines(text: &str, words: &[&str]) -> Vec<String> {
    let kept = |line: &&str| line.contains(" bra ") || words.iter().any(|word| line.starts_with(word));
    text.lines().map(str::trim).filter(kept).map(|line| line.trim_end_matches(';').to_owned()).collect()
}

/// As in `support`, filled by the last two of four warps.
fn ring_of_two(name: &str, stages: u32) -> CopyRing<F16> {
    let k = Tensor::<F16>::parameter(name);
    let source = k.matrix(0.into(), 0.into(), 64.into(), 64);
    CopyRing::filled_by(Warps::numbered(2..4), name, stages, 64, source)
}

#[test]
fn all_warps_run_without_a_branch() {
    let x = || Slice::<u32>::parameter("x");
    let plain = text(|| x().store(thread_index(), 7.into()));
    for warps in [Warps::all as fn() -> Warps, || Warps::numbered(0..4)] {
        let found = text(|| {
            let (x, warps) = (x(), warps());
            warps.run(|| x.store(thread_index(), 7.into()));
        });
        assert_eq!(lines(&found, &["st."]), lines(&plain, &["st."]));
    }
}

#[test]
fn what_some_warps_made_they_may_use_later() {
    let found = text(|| {
        let (x, some) = (Slice::<u32>::parameter("x"), Warps::numbered(1..3));
        let loaded = some.run(|| x.load(thread_index()));
        barrier();
        for_each(tiles(), |tile| some.run(|| x.store(tile, loaded)));
    });
    assert!(found.contains("sub.u32") && found.contains("setp.lt.u32"), "warps 1 and 2 of four:\n{found}");
    let expected =
        ["@!%p0 bra $end_1", "$end_1:", "bar.sync 0", "@!%p1 bra $loop_end_3", "@!%p0 bra $end_4", "$end_4:"];
    assert_eq!(lines(&found, &["$end", "bar.sync"])[..6], expected);
}

#[test]
fn what_some_warps_made_others_may_not_use() {
    let expected = "this value was made inside a branch and is used after it";
    let x = || Slice::<u32>::parameter("x");
    let message = wrong(|| {
        let (x, some) = (x(), Warps::numbered(0..2));
        let loaded = some.run(|| x.load(thread_index()));
        x.store(0, loaded);
    });
    assert_eq!(message, expected);
    let message = wrong(|| {
        let (x, some, others) = (x(), Warps::numbered(0..2), Warps::numbered(2..4));
        let loaded = some.run(|| x.load(thread_index()));
        others.run(|| x.store(0, loaded));
    });
    assert_eq!(message, expected);
    let message = wrong(|| {
        let (x, some) = (x(), Warps::numbered(0..2));
        let mut loaded = U32::from(0);
        for_each(tiles(), |tile| loaded = some.run(|| x.load(tile)));
        some.run(|| x.store(0, loaded));
    });
    assert_eq!(message, "this value was made inside a loop and is used after it");
}

#[test]
fn warps_that_a_block_does_not_have() {
    assert_eq!(wrong(|| Warps::numbered(3..5).run(|| {})), "there are no warps 3..5 in a block of 4");
    assert_eq!(wrong(|| Warps::numbered(2..2).run(|| {})), "there are no warps 2..2 in a block of 4");
}

/// Copies, commits and waits stand in branches of the warps that fill the ring; all threads meet at the barriers.
#[test]
fn two_warps_copy_and_all_meet() {
    let found = text(|| {
        let keys = ring_of_two("keys", 2);
        for_each(begin(&[&keys], tiles()), |_| keys.next().release());
    });
    let mut inside = vec![];
    for line in lines(&found, &["$end", "cp.async", "bar.sync"]) {
        match line.split_once(" bra ") {
            Some(("@!%p0", label)) => inside.push(format!("{label}:")),
            Some(_) => {}
            None if line.starts_with("$end") => inside.retain(|label| *label != line),
            None => assert_eq!(inside.is_empty(), line.starts_with("bar.sync"), "{line}\n{found}"),
        }
    }
    // A first tile and one in the loop, of 64 rows each: 64 threads move eight at once.
    assert_eq!(found.matches("cp.async.cg").count(), 16, "{found}");
}

#[test]
fn a_ring_is_filled_and_waited_for_by_the_whole_block() {
    let message = wrong(|| {
        let (keys, some) = (ring("keys", 2), Warps::numbered(0..2));
        some.run(|| keys.start(0));
    });
    assert_eq!(message, "ring `keys` needs every thread of the block, and this branch may split it");
    let message = wrong(|| {
        let (keys, some) = (ring("keys", 2), Warps::numbered(0..2));
        keys.start(0);
        some.run(|| keys.wait().release());
    });
    assert_eq!(message, "`bar.sync` needs every thread of the block, and this branch may split it");
}

/// A thread that fills one ring and not the other would count other groups than the threads that fill both.
#[test]
fn rings_that_different_warps_fill() {
    let message = wrong(|| {
        let _rings = (ring("keys", 2), ring_of_two("values", 2));
    });
    assert_eq!(message, "ring `values` is filled by warps 2..4, and ring `keys` by warps 0..4");
}

/// One barrier for the last wait, and one for the readers of the last stage.
#[test]
fn a_retired_ring_leaves_its_memory_behind_a_barrier() {
    let retired = |before: fn()| {
        let found = text(|| {
            let keys = ring("keys", 1);
            keys.start(0);
            keys.wait().release();
            before();
            let [first, second] = keys.retire::<f32, 2>([32, 32]);
            first.store(lane_index(), 0, 1.0.into());
            second.store(lane_index(), 0, 2.0.into());
        });
        let words = lines(&found, &["bar.sync", "st.shared"]).into_iter();
        words.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(retired(|| {}), ["bar.sync", "bar.sync", "st.shared.f32", "st.shared.f32"]);
    assert_eq!(retired(barrier), retired(|| {}), "a barrier that passed anyway is not repeated");
}

#[test]
fn a_ring_retires_when_it_is_done() {
    let message = wrong(|| {
        let keys = ring("keys", 2);
        keys.start(0);
        let key = keys.wait();
        keys.retire::<f32, 1>([32]);
        key.release();
    });
    assert_eq!(message, "ring `keys` retires while a stage is in use");
    let message = wrong(|| {
        let keys = ring("keys", 2);
        keys.start(0);
        keys.retire::<f32, 1>([32]);
    });
    assert_eq!(message, "ring `keys` retires while a copy is in flight");
    let message = wrong(|| {
        ring("keys", 2).retire::<f32, 2>([4096, 1]);
    });
    assert_eq!(message, "ring `keys` has 16384 bytes, and 16388 are asked for");
}
