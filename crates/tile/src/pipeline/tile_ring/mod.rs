//! A ring that copies of whole tiles fill. One thread starts them, and warpgroups read what they bring.
//!
//! Each stage has two barriers in shared memory: `full` counts the bytes that have arrived, `empty` the warps that have read them. Stage and
//! parity are the ring's business; its two ends each go round by themselves.

mod kept;
mod loads;
mod relay;
mod tiles;

pub use kept::Kept;
pub use loads::Loads;
pub use relay::Relay;
pub use tiles::{Arrived, Tiles, lanes_have_read};

use crate::builder::{Reach, here, with};
use crate::control::select;
use crate::error::BuildError;
use crate::instructions::{Pointer, SharedPointer};
use crate::values::{Element, SharedTile, TensorMap, U32, Var, allocate};

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

impl Shared {
    #[track_caller]
    fn free(&self, stage: U32) -> SharedPointer {
        Pointer::new(self.free + stage * BARRIER_BYTES)
    }
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
