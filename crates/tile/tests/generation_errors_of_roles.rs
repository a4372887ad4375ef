//! What Rust's compiler cannot see of roles, rings of tiles and products in flight: found while generating, at the author's line.

use tile::prelude::*;

const OPTIONS: Options =
    Options { target: ptx::Target::SM_90A, threads: 384, cluster: 1, blocks_per_processor: Some(1), checks: false };

#[track_caller]
fn wrong(body: impl FnOnce()) -> String {
    let error = tile::build("wrong", OPTIONS, body).expect_err("an error");
    assert!(error.at.file().contains("/tests/"), "{error}");
    error.message
}

fn keys() -> (Loads<F16>, Tiles<F16>) {
    tile_ring("keys", 2, 64, TensorMap::parameter("k", 64), 2)
}

fn operands() -> (Accumulator, RowOperand<F16>) {
    (Accumulator::new("scores", 16, 64), RowOperand::new("queries", 16, 64))
}

/// A block whose consumers do that.
fn consume(body: impl FnOnce(&Warpgroup)) {
    roles(producer(24, || {}), consumers(2, 240, body));
}

#[test]
fn product_that_is_never_finished() {
    let message = wrong(|| {
        let (_, mut keys) = keys();
        consume(|warpgroup| {
            let (mut scores, queries) = operands();
            let key = keys.next();
            let _product = warpgroup.mma(&mut scores, &queries, key.transposed());
        });
    });
    assert_eq!(message, "this product is never finished");
}

#[test]
fn tile_that_is_never_released() {
    let message = wrong(|| {
        let (_, mut keys) = keys();
        consume(|_| {
            let _key = keys.next();
        });
    });
    assert_eq!(message, "this tile of ring `keys` is never released");
}

/// A warpgroup that waited for them would wait for ever.
#[test]
fn roles_that_ask_for_too_many_registers() {
    let message = wrong(|| roles(producer(40, || {}), consumers(2, 240, |_| {})));
    assert_eq!(message, "roles ask for 66560 registers, and the block is launched with 64512");
    let message = wrong(|| roles(producer(24, || {}), consumers(3, 160, |_| {})));
    assert_eq!(message, "a block of 384 threads has not one producer and 3 consumers");
}

#[test]
fn barrier_inside_of_a_role() {
    let message = wrong(|| consume(|_| barrier()));
    assert_eq!(message, "`bar.sync` needs every thread of the block, and this branch may split it");
}

#[test]
fn note_of_a_ring_without_notes() {
    let message = wrong(|| {
        let (mut loads, _) = keys();
        roles(producer(24, || loads.note([1, 2, 3, 4].map(U32::from))), consumers(2, 240, |_| {}));
    });
    assert_eq!(message, "this ring has no notes");
    let message = wrong(|| {
        let (_, keys) = keys();
        consume(|_| {
            keys.keep().note();
        });
    });
    assert_eq!(message, "this ring has no notes");
}

#[test]
fn more_barriers_than_a_block_has() {
    let message = wrong(|| {
        Turns::new(8);
        Meeting::new(8);
    });
    assert_eq!(message, "a block has 15 barriers beside its own: these are more");
}

/// Products of a warpgroup have 64 rows, and sums shapes of their own.
#[test]
fn product_of_other_shapes() {
    let message = wrong(|| {
        let (_, mut keys) = keys();
        consume(|warpgroup| {
            let (mut scores, queries) = (Accumulator::new("scores", 16, 32), RowOperand::<F16>::new("queries", 16, 64));
            let key = keys.next();
            warpgroup.mma(&mut scores, &queries, key.transposed()).finish();
            key.release();
        });
    });
    assert!(message.contains("shapes do not fit"), "{message}");
}

#[test]
fn output_wider_than_its_panels() {
    let message = wrong(|| {
        let tile = SharedTile::<F16>::new("queries", 64, 64);
        tile.rows(0, 16).with_columns(80);
    });
    assert_eq!(message, "80 columns in the panels of 64");
}

fn of_cluster(target: ptx::Target, cluster: u32, rows: u32) -> Option<String> {
    let body = || {
        cluster_ring("keys", 2, rows, TensorMap::<F16>::parameter("k", 64), 2);
        consume(|_| {});
    };
    tile::build("wrong", Options { target, cluster, ..OPTIONS }, body).err().map(|error| error.message)
}

#[test]
fn clusters_that_no_gpu_has() {
    assert_eq!(of_cluster(ptx::Target::SM_90A, 2, 64), None);
    assert_eq!(of_cluster(ptx::Target::SM_90A, 9, 144).unwrap(), "a cluster of 9 blocks on sm_90a");
    assert_eq!(of_cluster(ptx::Target::SM_90A, 0, 64).unwrap(), "a cluster of 0 blocks on sm_90a");
    assert_eq!(of_cluster(ptx::Target::SM_80, 2, 64).unwrap(), "a cluster of 2 blocks on sm_80");
}

/// A part begins where the swizzle does.
#[test]
fn rows_that_blocks_of_a_cluster_cannot_share() {
    assert_eq!(of_cluster(ptx::Target::SM_90A, 3, 48), None);
    let message = of_cluster(ptx::Target::SM_90A, 2, 72).unwrap();
    assert_eq!(message, "2 blocks cannot share 72 rows of a tile of ring `keys`");
}

#[test]
fn more_helpers_than_a_warpgroup_has_warps() {
    let helped = || (0..4).fold(producer(24, || {}), |producer, _| producer.helped_by(|| {}));
    let message = wrong(|| roles(helped(), consumers(2, 240, |_| {})));
    assert_eq!(message, "a warpgroup has three warps beside the one that copies");
}
