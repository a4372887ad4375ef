//! A ring that copies of whole tiles fill. One thread starts them, and warpgroups read what they bring.
//!
//! Each stage has two barriers in shared memory: `full` counts the bytes that have arrived, `empty` the warps that have read them. Stage and
//! parity are the ring's business; its two ends each go round by themselves.

use crate::builder::{Reach, here, with};
use crate::control::{Rolled, either, for_each, predicated, select, when};
use crate::error::{BuildError, Place};
use crate::instructions::{
    Pointer, SharedPointer, bar_warp_sync, cp_async_bulk_wait_group_read, fence_proxy_async_shared, lane_index,
    ld_shared_v4, mapa, mbarrier_arrive, mbarrier_arrive_expect_tx, mbarrier_arrive_in_cluster, mbarrier_wait_parity,
    mbarrier_wait_parity_of_cluster, st_shared_v4_u32,
};
use crate::roles::Warpgroup;
use crate::values::{Element, SharedTile, TensorMap, TileAt, U32, Var, View, allocate};
use std::ops::Deref;

const BARRIER_BYTES: u32 = 8;
const WARPS_OF_GROUP: u32 = 4;
const NOTE_BYTES: u32 = 16;
/// The swizzle repeats after so many: where a part of a tile may begin.
const SWIZZLE_ROWS: u32 = 8;

/// `stages` tiles of `rows`, read by so many warpgroups: the end that loads, and the one that reads.
#[track_caller]
pub fn tile_ring<E: Element>(
    name: &str,
    stages: u32,
    rows: u32,
    map: TensorMap<E>,
    warpgroups: u32,
) -> (Loads<E>, Tiles<E>) {
    let (loads, tiles, _) = ring(name, stages, rows, map, warpgroups, 1);
    (loads, tiles)
}

/// The same for all blocks of a cluster, which read the same tiles: each brings its part of the rows of each tile to all of them. The map has
/// boxes of as many rows as such a part. A stage is free once the warpgroups of every block have released it, which a [`Relay`] of each block tells the
/// others. A single block needs none.
#[track_caller]
pub fn cluster_ring<E: Element>(
    name: &str,
    stages: u32,
    rows: u32,
    map: TensorMap<E>,
    warpgroups: u32,
) -> (Loads<E>, Tiles<E>, Option<Relay>) {
    let (at, blocks) = (here(), with(|b| b.options.cluster));
    if !rows.is_multiple_of(blocks * SWIZZLE_ROWS) {
        let message = format!("{blocks} blocks cannot share {rows} rows of a tile of ring `{name}`");
        BuildError::new(message, at).help("expected a multiple of eight for each").raise()
    }
    ring(name, stages, rows, map, warpgroups, blocks)
}

#[track_caller]
fn ring<E: Element>(
    name: &str,
    stages: u32,
    rows: u32,
    map: TensorMap<E>,
    warpgroups: u32,
    blocks: u32,
) -> (Loads<E>, Tiles<E>, Option<Relay>) {
    let first = SharedTile::stages(name, stages, rows, map.columns);
    let barriers = |arrivals: u32| {
        let barriers = allocate((stages * BARRIER_BYTES).into(), BARRIER_BYTES);
        for stage in 0..stages {
            let place = barriers + stage * BARRIER_BYTES;
            with(|b| b.barriers.push((place, arrivals)));
        }
        barriers
    };
    let (full, empty) = (barriers(1), barriers(warpgroups * WARPS_OF_GROUP));
    let shared = (blocks > 1).then(|| Shared { blocks, free: barriers(blocks) });
    let relay = shared.map(|shared| Relay { empty, shared, turn: Turn::new(&format!("{name}_relayed"), stages) });
    let stage = Stages { first, full, empty, notes: None, shared };
    let [filled, read] = ["filled", "read"].map(|end| Turn::new(&format!("{name}_{end}"), stages));
    let loads = Loads { stages: stage.again(), map, turn: filled };
    (loads, Tiles { stages: stage, turn: read, name: name.into() }, relay)
}

/// The same with four words beside each tile, which the end that loads says to the one that reads.
#[track_caller]
pub fn noted_ring<E: Element>(
    name: &str,
    stages: u32,
    rows: u32,
    map: TensorMap<E>,
    warpgroups: u32,
) -> (Loads<E>, Tiles<E>) {
    let (mut loads, mut tiles) = tile_ring(name, stages, rows, map, warpgroups);
    let notes = allocate((stages * NOTE_BYTES).into(), NOTE_BYTES);
    (loads.stages.notes, tiles.stages.notes) = (Some(notes), Some(notes));
    (loads, tiles)
}

/// Where the stages and their barriers are.
struct Stages<E> {
    first: SharedTile<E>,
    full: U32,
    empty: U32,
    notes: Option<U32>,
    shared: Option<Shared>,
}

/// Blocks of a cluster that bring tiles for each other, and the barriers that count those that have read a stage.
#[derive(Clone, Copy)]
struct Shared {
    blocks: u32,
    free: U32,
}

impl<E: Element> Stages<E> {
    /// For the other end. Its tile is the copies' to write, not to be read.
    fn again(&self) -> Stages<E> {
        Stages { first: self.first.shifted(0.into()), ..*self }
    }

    #[track_caller]
    fn tile(&self, stage: U32) -> SharedTile<E> {
        self.first.shifted(stage * self.first.bytes())
    }

    #[track_caller]
    fn full(&self, stage: U32) -> SharedPointer {
        Pointer::new(self.full + stage * BARRIER_BYTES)
    }

    #[track_caller]
    fn empty(&self, stage: U32) -> SharedPointer {
        Pointer::new(self.empty + stage * BARRIER_BYTES)
    }

    #[track_caller]
    fn note(&self, stage: U32) -> SharedPointer {
        let at = here();
        let Some(notes) = self.notes else {
            BuildError::new("this ring has no notes", at).help("make it with `noted_ring`").raise()
        };
        Pointer::new(notes + stage * NOTE_BYTES)
    }
}

/// Which stage is next, and the parity of its phase: it changes whenever the ring has gone round.
struct Turn {
    stage: Var<u32>,
    parity: Var<u32>,
    count: u32,
    /// How many stages further the next one is.
    step: u32,
}

impl Turn {
    #[track_caller]
    fn new(name: &str, count: u32) -> Turn {
        let [stage, parity] = ["stage", "parity"].map(|word| Var::new(format!("{name}_{word}"), 0));
        Turn { stage, parity, count, step: 1 }
    }

    /// Of one stage in `step`, from `first` on.
    #[track_caller]
    fn of_every(step: u32, first: U32, name: &str, count: u32) -> Turn {
        let var = |word: &str, value: U32| Var::new(format!("{name}_{word}"), value).reaching(Reach::Warpgroup);
        Turn { stage: var("stage", first), parity: var("parity", 0.into()), count, step }
    }

    /// Stage and parity now; then on to the next.
    #[track_caller]
    fn advance(&mut self) -> (U32, U32) {
        let (stage, parity) = (self.stage.get(), self.parity.get());
        let next = stage + self.step;
        let (is_round, again) = match self.step {
            1 => (next.eq(self.count), 0.into()),
            _ => (next.ge(self.count), next - self.count),
        };
        self.stage.set(select(is_round, again, next));
        self.parity.set(select(is_round, parity ^ 1, parity));
        (stage, parity)
    }
}

/// The end that fills the ring, for one thread.
pub struct Loads<E> {
    stages: Stages<E>,
    map: TensorMap<E>,
    turn: Turn,
}

impl<E: Element> Loads<E> {
    /// Waits until a stage is free, and starts copying the tile into it.
    #[track_caller]
    pub fn load(&mut self, at: TileAt) {
        let stage = self.wait();
        self.start(stage, at);
    }

    /// The same of a tile of which only the first `count` rows count: the others become zeros, whatever the tensor has there. `rows` is the
    /// tensor in boxes of one row.
    #[track_caller]
    pub fn load_first(&mut self, at: TileAt, count: U32, rows: &TensorMap<E>) {
        let stage = self.wait();
        let (tile, full) = (self.stages.tile(stage), self.stages.full(stage));
        mbarrier_arrive_expect_tx(full, tile.bytes());
        either(
            count.ge(tile.rows),
            || self.map.load(&tile, at, full),
            || {
                for_each(Rolled(U32::from(0)..tile.rows.into()), |row| {
                    // No tensor has that row, and copies bring zeros for it.
                    let from = select(row.lt(count), at.row + row, u32::MAX);
                    rows.load_row(&tile, row, TileAt { row: from, ..at }, full);
                });
            },
        );
    }

    /// The same, with a note.
    #[track_caller]
    pub fn load_noted(&mut self, at: TileAt, note: [U32; 4]) {
        let stage = self.wait();
        st_shared_v4_u32(self.stages.note(stage), note);
        self.start(stage, at);
    }

    /// A note without a tile.
    #[track_caller]
    pub fn note(&mut self, note: [U32; 4]) {
        let stage = self.wait();
        st_shared_v4_u32(self.stages.note(stage), note);
        mbarrier_arrive(self.stages.full(stage));
    }

    #[track_caller]
    fn wait(&mut self) -> U32 {
        let (stage, parity) = self.turn.advance();
        // The first time round nobody has read anything: the phase before the first counts as complete.
        let parity = parity ^ 1;
        match self.stages.shared {
            None => mbarrier_wait_parity(self.stages.empty(stage), parity),
            Some(shared) => mbarrier_wait_parity_of_cluster(shared.free(stage), parity),
        }
        stage
    }

    #[track_caller]
    fn start(&self, stage: U32, at: TileAt) {
        let (tile, full) = (self.stages.tile(stage), self.stages.full(stage));
        mbarrier_arrive_expect_tx(full, tile.bytes());
        match self.stages.shared {
            None => self.map.load(&tile, at, full),
            Some(Shared { blocks, .. }) => self.map.load_part(&tile, at, full, blocks),
        }
    }
}

/// Tells all blocks of a cluster which stages this one has read, for one warp.
///
/// What one block tells another it must release to the cluster, and that waits for memory (ptxas: MEMBAR.ALL.GPU). The warps that multiply would
/// stand still for it, twice in every pass; they tell the relay, which has nothing else to do.
pub struct Relay {
    empty: U32,
    shared: Shared,
    turn: Turn,
}

impl Shared {
    #[track_caller]
    fn free(&self, stage: U32) -> SharedPointer {
        Pointer::new(self.free + stage * BARRIER_BYTES)
    }
}

impl Relay {
    /// Of the next `count` tiles. A lane tells each block.
    #[track_caller]
    pub fn pass_on(&mut self, count: U32) {
        let lane = lane_index();
        when(lane.lt(self.shared.blocks), || {
            for_each(Rolled(U32::from(0)..count), |_| {
                let (stage, parity) = self.turn.advance();
                mbarrier_wait_parity(Pointer::new(self.empty + stage * BARRIER_BYTES), parity);
                mbarrier_arrive_in_cluster(mapa(self.shared.free(stage), lane));
            });
        });
    }
}

/// The end that reads, for all warpgroups.
pub struct Tiles<E> {
    stages: Stages<E>,
    turn: Turn,
    name: String,
}

impl<E: Element> Tiles<E> {
    /// Waits for the next tile.
    #[expect(clippy::should_implement_trait, reason = "tiles never end, and must be released")]
    #[track_caller]
    pub fn next(&mut self) -> Arrived<E> {
        let at = here();
        let stage = self.wait();
        let (tile, empty) = (self.stages.tile(stage), self.stages.empty(stage));
        Arrived { tile: Some(tile), empty, name: self.name.clone(), at }
    }

    /// Leaves the next tiles to the other warpgroups.
    #[track_caller]
    pub fn skip(&mut self, count: U32) {
        for_each(U32::from(0)..count, |_| {
            let stage = self.wait();
            arrive(self.stages.empty(stage));
        });
    }

    /// Waits for the first tile, and keeps one at a time from pass to pass of a loop.
    #[track_caller]
    pub fn keep(self) -> Kept<E> {
        self.kept()
    }

    /// The same of a ring whose tiles have one reader each: they go to the warpgroups in turn, and this one keeps its own.
    #[track_caller]
    pub fn keep_own(mut self, warpgroup: &Warpgroup) -> Kept<E> {
        let at = here();
        let count = self.turn.count;
        if !count.is_multiple_of(warpgroup.count) {
            let message = format!("{} warpgroups cannot share {count} stages of ring `{}`", warpgroup.count, self.name);
            BuildError::new(message, at).help("expected as many for each").raise()
        }
        self.turn = Turn::of_every(warpgroup.count, warpgroup.number, &format!("{}_read", self.name), count);
        self.kept()
    }

    #[track_caller]
    fn kept(mut self) -> Kept<E> {
        let stage = self.wait();
        let var = |end: &str, value: U32| Var::new(format!("{}_{end}", self.name), value).reaching(Reach::Warpgroup);
        Kept { held: var("held", stage), before: var("before", stage), is_due: var("due", 0.into()), tiles: self }
    }

    #[track_caller]
    fn wait(&mut self) -> U32 {
        let (stage, parity) = self.turn.advance();
        mbarrier_wait_parity(self.stages.full(stage), parity);
        stage
    }
}

/// To be called between reads of a tile by lanes themselves, and not by products of warpgroups, and its release: the first lane, which tells
/// the copies, speaks for all, and copies go another way to memory than lanes do.
#[track_caller]
pub fn lanes_have_read() {
    fence_proxy_async_shared();
    bar_warp_sync();
}

/// The warp has read the stage: its first lane says so.
#[track_caller]
fn arrive(empty: SharedPointer) {
    predicated(lane_index().eq(0), || mbarrier_arrive(empty));
}

/// A tile whose bytes are there.
#[must_use = "a tile that has arrived must be released"]
pub struct Arrived<E> {
    tile: Option<SharedTile<E>>,
    empty: SharedPointer,
    name: String,
    at: Place,
}

impl<E: Element> Arrived<E> {
    /// Its warps have read it: the stage may be filled again.
    #[track_caller]
    pub fn release(mut self) {
        self.tile = None;
        arrive(self.empty);
    }
}

impl<E> Deref for Arrived<E> {
    type Target = SharedTile<E>;
    fn deref(&self) -> &SharedTile<E> {
        let Some(tile) = &self.tile else { unreachable!("it is there until it is released") };
        tile
    }
}

impl<E> Drop for Arrived<E> {
    fn drop(&mut self) {
        if self.tile.is_some() && !std::thread::panicking() {
            BuildError::new(format!("this tile of ring `{}` is never released", self.name), self.at)
                .help("call `.release()` after the last read")
                .raise()
        }
    }
}

/// A tile that stays over several passes of a loop, and after it for as long as its memory is used.
pub struct Kept<E> {
    tiles: Tiles<E>,
    /// Its stage, and that of the one before it.
    held: Var<u32>,
    before: Var<u32>,
    /// Whether the one before may be released.
    is_due: Var<u32>,
}

impl<E: Element> Kept<E> {
    #[track_caller]
    pub fn tile(&self) -> SharedTile<E> {
        self.tiles.stages.tile(self.held.get())
    }

    /// `count` rows from `first`, a multiple of eight.
    #[track_caller]
    pub fn rows(&self, first: impl Into<U32>, count: u32) -> View<'_, E> {
        self.tile().rows(first, count).of_owner(self)
    }

    /// The same of the tile before, until it is released.
    #[track_caller]
    pub fn rows_before(&self, first: impl Into<U32>, count: u32) -> View<'_, E> {
        self.tiles.stages.tile(self.before.get()).rows(first, count).of_owner(self)
    }

    /// What was said with the tile. All lanes have read it when they go on.
    #[track_caller]
    pub fn note(&self) -> [U32; 4] {
        self.note_of(self.held.get())
    }

    /// The same of the tile before, until it is released.
    #[track_caller]
    pub fn note_before(&self) -> [U32; 4] {
        self.note_of(self.before.get())
    }

    #[track_caller]
    fn note_of(&self, stage: U32) -> [U32; 4] {
        let note = ld_shared_v4::<u32>(self.tiles.stages.note(stage));
        bar_warp_sync();
        note.map(|word| word.reaching(Reach::Warpgroup))
    }

    /// On to the next tile, which is waited for. The one before stays until it is released.
    #[track_caller]
    pub fn take_next(&mut self) {
        self.before.set(self.held.get());
        let stage = self.tiles.wait();
        self.held.set(stage);
    }

    /// The warp has read the tile: its memory may be filled again, and is not read until the next one is taken.
    #[track_caller]
    pub fn release(&mut self) {
        arrive(self.tiles.stages.empty(self.held.get()));
    }

    /// The warp needs the memory of the tile before no more, once its copies out of there have read it.
    #[track_caller]
    pub fn is_done_with_before(&mut self) {
        self.is_due.set(1);
    }

    /// Releases the tile before, if that is due.
    #[track_caller]
    pub fn release_before(&mut self) {
        when(self.is_due.get().ne(0), || {
            cp_async_bulk_wait_group_read(0);
            arrive(self.tiles.stages.empty(self.before.get()));
            self.is_due.set(0);
        });
    }
}
