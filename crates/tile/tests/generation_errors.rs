//! What Rust's compiler cannot see is found while generating, at the author's line.

mod support;

use support::{ring, tiles};
use tile::instructions::{raw, raw_effect};
use tile::prelude::*;

const OPTIONS: Options =
    Options { target: ptx::Target::SM_80, threads: 128, cluster: 1, blocks_per_processor: None, checks: false };

/// Every error is at a line of this file, or of what it calls: never inside of the language.
#[track_caller]
fn error(body: impl FnOnce()) -> BuildError {
    let error = tile::build("wrong", OPTIONS, body).expect_err("an error");
    assert!(error.at.file().contains("/tests/"), "{error}");
    error
}

#[track_caller]
fn wrong(body: impl FnOnce()) -> String {
    error(body).message
}

#[test]
fn value_handed_to_the_next_pass() {
    let message = wrong(|| {
        let x = Slice::<f32>::parameter("x");
        let mut sum = F32::from(0.0);
        for_each(U32::from(0)..parameter::<u32>("n"), |i| {
            sum = sum + x.load(i);
        });
    });
    assert_eq!(message, "this value was made by the previous pass of the loop");
}

#[test]
fn operand_handed_to_the_next_pass() {
    let message = wrong(|| {
        let values = SharedTile::<F16>::new("values", 64, 64);
        let (scores, mut output) = (Accumulator::zero("scores", 16, 64), Accumulator::zero("output", 16, 64));
        let mut weights = scores.to::<F16>("weights");
        for_each(U32::from(0)..parameter::<u32>("tiles"), |_| {
            mma_add(&mut output, &weights, values.view());
            weights = scores.to("weights");
        });
    });
    assert_eq!(message, "this value was made by the previous pass of the loop");
}

/// Both lines, the loop and the cure: what an author needs.
#[test]
fn value_used_after_the_loop() {
    let line = line!();
    let error = error(|| {
        let x = Slice::<f32>::parameter("x");
        let mut last = F32::from(0.0);
        for_each(U32::from(0)..parameter::<u32>("n"), |i| last = x.load(i));
        x.store(0, last);
    });
    assert_eq!(error.message, "this value was made inside a loop and is used after it");
    assert_eq!((error.at.file(), error.at.line()), (file!(), line + 5));
    let notes: Vec<_> = error.notes.iter().map(|note| (note.text.as_str(), note.at.map(|at| at.line()))).collect();
    let expected = [
        ("made here", Some(line + 4)),
        ("inside this loop", Some(line + 4)),
        ("keep it in a `Var` made before the loop", None),
    ];
    assert_eq!(notes, expected);
    let shown = error.to_string();
    assert!(shown.contains("x.store(0, last);") && shown.contains("help: keep it in a `Var`"), "{shown}");
}

#[test]
fn value_used_after_the_branch() {
    let message = wrong(|| {
        let x = Slice::<f32>::parameter("x");
        let mut first = F32::from(0.0);
        when(thread_index().lt(64), || first = x.load(thread_index()));
        x.store(0, first);
    });
    assert_eq!(message, "this value was made inside a branch and is used after it");
}

#[test]
fn value_of_another_kernel() {
    let mut smuggled = None;
    tile::build("first", OPTIONS, || smuggled = Some(thread_index())).unwrap();
    let message = wrong(|| when(smuggled.unwrap().lt(7), || {}));
    assert_eq!(message, "this value belongs to another kernel");
}

#[test]
fn register_without_a_kernel() {
    let mut smuggled = None;
    tile::build("first", OPTIONS, || smuggled = Some(thread_index())).unwrap();
    // Nobody asked for a `BuildError`: it is a panic that says what to do and where.
    static SAID: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match panic.to_string() {
        said if said.contains("no kernel is under construction") => *SAID.lock().unwrap() = said,
        _ => default(panic),
    }));
    let line = line!();
    std::panic::catch_unwind(|| smuggled.unwrap() + 1).unwrap_err();
    let said = SAID.lock().unwrap();
    let place = format!("panicked at {}:{}:", file!(), line + 1);
    assert!(said.contains(&place) && said.contains("help: call this inside the closure of `tile::build`"), "{said}");
}

#[test]
fn barrier_that_some_threads_miss() {
    let message = wrong(|| when(thread_index().lt(64), barrier));
    assert_eq!(message, "`bar.sync` needs every thread of the block, and this branch may split it");
    let message = wrong(|| for_each(U32::from(0)..warp_index(), |_| barrier()));
    assert_eq!(message, "`bar.sync` needs every thread of the block, and this loop may split it");
}

#[test]
fn shuffle_that_some_lanes_miss() {
    let message = wrong(|| {
        when(lane_index().lt(7), || {
            lane_index().shuffle_xor(1);
        })
    });
    assert_eq!(message, "`shfl.sync` needs every thread of the warp, and this branch may split it");
}

#[test]
fn branch_in_a_predicated_block() {
    let message = wrong(|| predicated(lane_index().lt(7), || when(thread_index().lt(9), || {})));
    assert_eq!(message, "a predicated block has branches inside");
}

#[test]
fn stage_never_released() {
    let line = line!();
    let error = error(|| {
        let keys = ring("keys", 2);
        keys.start(0);
        let _key = keys.wait();
    });
    assert_eq!(error.message, "this stage of ring `keys` is never released");
    assert_eq!(error.at.line(), line + 4);
}

#[test]
fn copy_never_waited_for() {
    let message = wrong(|| ring("keys", 2).start(0));
    assert_eq!(message, "this copy of ring `keys` is never waited for");
}

#[test]
fn tiles_never_used() {
    let message = wrong(|| {
        let keys = ring("keys", 2);
        let _tiles = begin(&[&keys], tiles());
    });
    assert_eq!(message, "the tiles of these rings are never used");
}

#[test]
fn two_tiles_in_one_pass() {
    let message = wrong(|| {
        let keys = ring("keys", 2);
        for_each(begin(&[&keys], tiles()), |_| {
            keys.next().release();
            keys.next().release();
        });
    });
    assert_eq!(message, "one pass takes 2 tiles of ring `keys`, expected one");
}

#[test]
fn a_tile_taken_in_a_branch() {
    let message = wrong(|| {
        let keys = ring("keys", 2);
        for_each(begin(&[&keys], tiles()), |tile| when(tile.eq(0), || keys.next().release()));
    });
    assert_eq!(message, "ring `keys` moves on inside a loop or branch of the pass");
}

#[test]
fn ring_without_tiles() {
    for stages in [1, 2] {
        let message = wrong(|| ring("keys", stages).next().release());
        assert_eq!(message, "ring `keys` does not know its tiles");
    }
    let message = wrong(|| ring("keys", 2).wait().release());
    assert_eq!(message, "ring `keys` has no copy in flight to wait for");
}

#[test]
fn stages_released_in_another_order() {
    let message = wrong(|| {
        let keys = ring("keys", 3);
        (0..2).for_each(|tile| keys.start(tile));
        let (first, second) = (keys.wait(), keys.wait());
        second.release();
        first.release();
    });
    assert_eq!(message, "stage 2 of ring `keys` is released before stage 1");
}

#[test]
fn fragments_of_different_heights() {
    let message = wrong(|| {
        let (mut high, low) = (Accumulator::zero("high", 32, 16), Accumulator::zero("low", 16, 16));
        high.scale_rows(low.row_sum_of_lane());
    });
    assert_eq!(message, "rows do not fit: a cell of more rows than these");
    let message = wrong(|| {
        let tile = SharedTile::<F16>::new("keys", 32, 16);
        let mut sums = Accumulator::zero("sums", 32, 32);
        mma_add(&mut sums, tile.rows(0, 16), tile.transposed());
    });
    assert_eq!(message, "shapes do not fit: 32×32 = 16×16 · 16×32");
}

#[test]
fn ring_without_a_free_stage() {
    let message = wrong(|| {
        let keys = ring("keys", 2);
        (0..2).for_each(|tile| keys.start(tile));
        let key = keys.wait();
        keys.start(2);
        key.release();
    });
    assert_eq!(message, "ring `keys` has no free stage of 2");
}

/// A group that is older in the first pass than in the others: no constant is right for its wait.
#[test]
fn wait_counts_that_differ_between_passes() {
    let message = wrong(|| {
        let (keys, values) = (ring("keys", 3), ring("values", 3));
        for ring in [&keys, &values] {
            (0..2).for_each(|tile| ring.start(tile));
        }
        for_each(tiles(), |tile| {
            for ring in [&keys, &values] {
                ring.wait().release();
                ring.start(tile);
            }
        });
    });
    assert_eq!(message, "the loop body does not leave a pipeline as it found it");
}

#[test]
fn copy_started_in_a_branch_and_waited_for_outside() {
    let message = wrong(|| {
        let keys = ring("keys", 2);
        when(block_index(0).eq(0), || keys.start(0));
        keys.wait().release();
    });
    assert_eq!(message, "the branch does not leave a pipeline as it found it");
}

#[test]
fn shapes_that_do_not_fit() {
    let message = wrong(|| {
        let tile = SharedTile::<F16>::new("keys", 64, 128);
        let query = SharedTile::<F16>::new("queries", 16, 64).view().load();
        let mut scores = Accumulator::new("scores", 16, 64);
        mma(&mut scores, &query, tile.transposed());
    });
    assert_eq!(message, "shapes do not fit: 16×64 = 16×64 · 128×64");
    let message = wrong(|| {
        SharedTile::<F16>::new("odd", 12, 64);
    });
    assert_eq!(message, "tile `odd` is 12×64: expected rows and columns in eights");
}

#[test]
fn rows_on_plain_cores_that_do_not_fit() {
    let message = wrong(|| {
        WarpRows::new("scores", 8, 48);
    });
    assert_eq!(message, "`scores` has 48 columns: expected as many for each of 32 lanes");
    let message = wrong(|| {
        let [queries, keys] = [64, 128].map(|columns| SharedTile::<F16>::new("tile", 64, columns));
        dot(&mut WarpRows::new("scores", 8, 64), queries.view(), 0.into(), keys.view());
    });
    assert_eq!(message, "shapes do not fit: 8×64 = 8×64 · 128×64");
    let message = wrong(|| {
        let values = SharedTile::<F16>::new("values", 32, 64);
        let weights = HandedRows::new(4, warp_index(), 8, 64);
        weigh_add(&mut WarpRows::zero_in_pairs("output", 8, 64), &weights, values.view());
    });
    assert_eq!(message, "shapes do not fit: 8×64 = 8×64 · 32×64");
    let message = wrong(|| {
        HandedRows::new(4, warp_index(), 8, 64).set(&WarpRows::new("scores", 8, 32));
    });
    assert_eq!(message, "shapes do not fit: 8×64 = 8×32");
    let message = wrong(|| {
        WarpRows::new("scores", 8, 32).pairs_of_row(0).count();
    });
    assert_eq!(message, "lanes have runs of 1 neighbours here: expected pairs");
}

#[test]
fn shared_memory_taken_in_a_loop() {
    let message = wrong(|| {
        for_each(U32::from(0)..parameter::<u32>("n"), |_| {
            SharedVector::<f32>::new(32);
        })
    });
    assert_eq!(message, "shared memory is allocated once, before loops and branches");
}

#[test]
fn parameter_declared_twice() {
    let message = wrong(|| {
        parameter::<u32>("n");
        parameter::<u64>("n");
    });
    assert_eq!(message, "parameter `n` is declared twice");
}

#[test]
fn a_block_leaves_as_a_whole_and_first_of_all() {
    let expected = "a block leaves as a whole, and first of all";
    assert_eq!(wrong(|| leave_when(lane_index().ge(parameter::<u32>("n")))), expected);
    let inside = || when(block_index(0).lt(3), || leave_when(block_index(1).ge(parameter::<u32>("n"))));
    assert_eq!(wrong(inside), expected);
    let options = Options { threads: 32, ..OPTIONS };
    let built = tile::build("right", options, || leave_when(block_index(0).ge(parameter::<u32>("n")))).unwrap();
    assert!(ptx::print(&built.module).contains(" ret;"));
}

/// Behind the loop its register has gone one too far.
#[test]
fn trip_used_after_the_loop() {
    let message = wrong(|| {
        let x = Slice::<f32>::parameter("x");
        let mut last = U32::from(0);
        for_each(U32::from(0)..parameter::<u32>("count"), |trip| last = trip);
        x.store(last, 1.0.into());
    });
    assert_eq!(message, "this value was made inside a loop and is used after it");
}

#[test]
fn predicate_made_in_a_branch() {
    let message = wrong(|| {
        let x = Slice::<f32>::parameter("x");
        let mut small = Pred::from(true);
        when(thread_index().lt(64), || small = x.load(thread_index()).lt(3.0));
        predicated(small, || x.store(0, 1.0.into()));
    });
    assert_eq!(message, "this value was made inside a branch and is used after it");
}

/// Lanes that skip it have a group less: no count of younger groups is right for all.
#[test]
fn copy_started_by_some_lanes() {
    let message = wrong(|| {
        let ring = ring("keys", 2);
        predicated(thread_index().lt(64), || ring.start(0));
    });
    assert_eq!(message, "ring `keys` needs every thread of the block, and this branch may split it");
    let message = wrong(|| {
        let ring = ring("keys", 2);
        ring.start(0);
        let key = ring.wait();
        predicated(thread_index().lt(64), || key.release());
    });
    assert_eq!(message, "the predicated block does not leave a pipeline as it found it");
}

#[test]
fn products_of_eight_columns() {
    let message = wrong(|| {
        let (queries, keys) = (SharedTile::<F16>::new("queries", 16, 64), SharedTile::<F16>::new("keys", 24, 64));
        let mut scores = Accumulator::new("scores", 16, 24);
        mma(&mut scores, queries.view(), keys.transposed());
    });
    assert_eq!(message, "the right side of a product is 64×24: expected both in sixteens");
}

#[test]
fn rows_that_the_tile_does_not_have() {
    let rows = |first: u32| wrong(|| drop(SharedTile::<F16>::new("tile", 64, 64).rows(first, 16).load()));
    assert_eq!(rows(56), "rows 56 to 72 of a tile of 64");
    assert_eq!(rows(4), "rows 4 to 20 of a tile of 64");
}

#[test]
fn every_block_leaves() {
    assert_eq!(wrong(|| leave_when(true.into())), "every block leaves here: the condition is known to hold");
}

#[test]
fn threads_that_are_no_whole_warps() {
    for threads in [0, 48, 2048] {
        let options =
            Options { target: ptx::Target::SM_80, threads, cluster: 1, blocks_per_processor: None, checks: false };
        let error = tile::build("kernel", options, || {}).unwrap_err();
        assert_eq!(error.message, format!("a block of {threads} threads: expected whole warps, up to 1024"));
    }
}

#[test]
fn instructions_that_the_form_table_does_not_know() {
    let line = line!();
    let error = error(|| {
        raw::<u32>("frobnicate.b32", &[thread_index().operand()]);
    });
    assert!(error.message.contains("frobnicate"), "{error}");
    assert_eq!((error.at.file(), error.at.line()), (file!(), line + 2));
    let message = wrong(|| raw_effect("wgmma.fence.sync.aligned", &[]));
    assert_eq!(message, "`wgmma.fence.sync.aligned` needs sm_90a, and this kernel is for sm_80");
}

/// The form table does not know the type of this operand.
#[test]
fn what_the_form_table_does_not_know() {
    let message = wrong(|| {
        Slice::<u64>::parameter("x").store(0, thread_index().to_u64().shuffle_xor(1));
    });
    assert!(message.starts_with("the kernel is not sound\n") && message.contains("shfl.sync.bfly.b32"), "{message}");
}

/// The message, and that the error is at the line of the caller.
#[track_caller]
fn here<T>(body: impl FnOnce() -> T, line: u32) -> String {
    let error = error(|| _ = body());
    assert_eq!((error.at.file(), error.at.line()), (file!(), line), "{error}");
    error.message
}

fn matrix(columns: u32) -> Matrix<F16> {
    Tensor::<F16>::parameter("k").matrix(0.into(), 0.into(), 64.into(), columns)
}

/// Nothing would be declared, and nothing to point to.
#[test]
fn no_shared_memory_at_all() {
    let none = "the kernel has no shared memory that this could point to";
    assert_eq!(here(|| SharedVector::<f32>::new(0), line!()), none);
    let ring = |stages, rows, columns| move || drop(CopyRing::new("keys", stages, rows, matrix(columns)));
    for (stages, rows, columns) in [(0, 64, 64), (2, 0, 64), (2, 64, 0)] {
        let found = format!("tile `keys` is {rows}×{columns} in {stages} stages");
        let message = wrong(ring(stages, rows, columns));
        assert_eq!(message, format!("{found}: expected at least one of each"));
    }
    assert_eq!(here(|| tile::instructions::shared_base() + 16, line!()), none);
}

/// In 32 bits these would be small numbers, or none.
#[test]
fn more_shared_memory_than_any_gpu_has() {
    let message = here(|| CopyRing::new("keys", 1 << 20, 64, matrix(64)), line!());
    assert_eq!(message, "8589934592 bytes of shared memory with what is allocated here");
    let message = here(|| SharedVector::<f32>::new(1 << 30), line!());
    assert_eq!(message, "4294967296 bytes of shared memory with what is allocated here");
    let message = here(|| [50_000, 20_000].map(SharedVector::<f32>::new), line!());
    assert_eq!(message, "280000 bytes of shared memory with what is allocated here");
    let message = here(|| ring("keys", 2).retire::<f32, 2>([1 << 31, 1 << 31]), line!());
    assert_eq!(message, "ring `keys` has 16384 bytes, and 17179869184 are asked for");
}

#[test]
fn processors_without_a_block() {
    let error = tile::build("kernel", Options { blocks_per_processor: Some(0), ..OPTIONS }, || {}).unwrap_err();
    assert_eq!(error.message, "a processor that holds no block of the kernel");
}

#[test]
fn divisions_by_zero() {
    let expected = "an integer is divided by zero";
    assert_eq!(here(|| thread_index() / 0, line!()), expected);
    assert_eq!(here(|| thread_index().signed() % 0, line!()), expected);
    assert_eq!(here(|| U32::from(4) / 0, line!()), expected);
    assert_eq!(here(|| thread_index().div_ceil(0), line!()), expected);
    tile::build("fine", OPTIONS, || _ = F32::from(1.0) / 0.0).unwrap();
}

/// The line that gives the name is at fault, and which names there are is said.
#[test]
fn names_that_ptx_cannot_spell() {
    assert_eq!(here(|| parameter::<u32>("x y"), line!()), "a parameter cannot be called `x y`");
    assert_eq!(here(|| Slice::<f32>::parameter("1st"), line!()), "a parameter cannot be called `1st`");
    assert_eq!(here(|| Var::<f32>::new("row max", 0.0), line!()), "a register cannot be called `row max`");
    assert_eq!(here(|| thread_index().named("größe"), line!()), "a register cannot be called `größe`");
    assert_eq!(here(|| Accumulator::zero("row sums", 16, 64), line!()), "a register cannot be called `row sums_0`");
    let error = tile::build("", OPTIONS, || {}).unwrap_err();
    assert_eq!(error.message, "a kernel cannot be called ``");
    let help = error.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>();
    assert_eq!(help, ["names have ASCII letters, digits, `_` and `$`, and no digit at the start"]);
}
