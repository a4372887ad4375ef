//! A ring that copies of whole tiles fill. One thread starts them, and warpgroups read what they bring.
//!
//! Each stage has two barriers in shared memory: `full` counts the bytes that have arrived, `empty` the warps that have read them. Stage and
//! parity are the ring's business; its two ends each go round by themselves.

use crate::builder::{here, with};
use crate::control::{predicated, select};
use crate::error::{BuildError, Place};
use crate::instructions::{
    Pointer, SharedPointer, bar_warp_sync, fence_proxy_async_shared, lane_index, mbarrier_arrive,
    mbarrier_arrive_expect_tx, mbarrier_wait_parity,
};
use crate::values::{Element, SharedTile, TensorMap, TileAt, U32, Var, View, allocate};
use std::ops::Deref;

const BARRIER_BYTES: u32 = 8;
const WARPS_OF_GROUP: u32 = 4;

/// `stages` tiles of `rows`, read by so many warpgroups: the end that loads, and the one that reads.
#[track_caller]
pub fn tile_ring<E: Element>(
    name: &str,
    stages: u32,
    rows: u32,
    map: TensorMap<E>,
    warpgroups: u32,
) -> (Loads<E>, Tiles<E>) {
    let first = SharedTile::stages(name, stages, rows, map.columns);
    let barriers = |arrivals: u32| {
        let barriers = allocate((stages * BARRIER_BYTES).into(), BARRIER_BYTES);
        for stage in 0..stages {
            let place = barriers + stage * BARRIER_BYTES;
            with(|b| b.barriers.push((place, arrivals)));
        }
        barriers
    };
    let stage = Stages { first, full: barriers(1), empty: barriers(warpgroups * WARPS_OF_GROUP), count: stages };
    let [filled, read] = ["filled", "read"].map(|end| Turn::new(&format!("{name}_{end}"), stages));
    (Loads { stages: stage.again(), map, turn: filled }, Tiles { stages: stage, turn: read, name: name.into() })
}

/// Where the stages and their barriers are.
struct Stages<E> {
    first: SharedTile<E>,
    full: U32,
    empty: U32,
    count: u32,
}

impl<E: Element> Stages<E> {
    /// For the other end. Its tile is the copies' to write, not to be read.
    fn again(&self) -> Stages<E> {
        Stages { first: self.first.shifted(0.into()), full: self.full, empty: self.empty, count: self.count }
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
}

/// Which stage is next, and the parity of its phase: it changes whenever the ring has gone round.
struct Turn {
    stage: Var<u32>,
    parity: Var<u32>,
    count: u32,
}

impl Turn {
    #[track_caller]
    fn new(name: &str, count: u32) -> Turn {
        Turn { stage: Var::new(format!("{name}_stage"), 0), parity: Var::new(format!("{name}_parity"), 0), count }
    }

    /// Stage and parity now; then on to the next.
    #[track_caller]
    fn advance(&mut self) -> (U32, U32) {
        let (stage, parity) = (self.stage.get(), self.parity.get());
        let next = stage + 1;
        let is_round = next.eq(self.count);
        self.stage.set(select(is_round, 0, next));
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
        let (stage, parity) = self.turn.advance();
        // The first time round nobody has read anything: the phase before the first counts as complete.
        mbarrier_wait_parity(self.stages.empty(stage), parity ^ 1);
        let (tile, full) = (self.stages.tile(stage), self.stages.full(stage));
        mbarrier_arrive_expect_tx(full, tile.bytes());
        self.map.load(&tile, at, full);
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
    #[track_caller]
    pub fn next(&mut self) -> Arrived<E> {
        let at = here();
        let stage = self.wait();
        let (tile, empty) = (self.stages.tile(stage), self.stages.empty(stage));
        Arrived { tile: Some(tile), empty, name: self.name.clone(), at }
    }

    /// Waits for the first tile, and keeps one at a time from pass to pass of a loop.
    #[track_caller]
    pub fn keep(mut self) -> Kept<E> {
        let stage = self.wait();
        Kept { held: Var::new(format!("{}_held", self.name), stage), tiles: self }
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

/// A tile that stays over several passes of a loop.
pub struct Kept<E> {
    tiles: Tiles<E>,
    held: Var<u32>,
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

    /// Its warps have read it: on to the next one, which is waited for.
    #[track_caller]
    pub fn exchange(&mut self) {
        arrive(self.tiles.stages.empty(self.held.get()));
        let stage = self.tiles.wait();
        self.held.set(stage);
    }
}
