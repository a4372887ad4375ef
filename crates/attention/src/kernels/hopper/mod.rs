//! FlashAttention forward for sm_90a. One warpgroup starts copies of whole tiles (TMA), the others multiply (wgmma) and take exponentials.
//!
//! A block stays on its processor and takes tile after tile of the output. For its warpgroups all key tiles of all these are one row of
//! items: while the product of weights and values of one item goes on, the scores of the next are computed, across the ends of tiles, too.

mod consumer;
mod position;
mod query;
mod recipe;
mod result;
mod schedule;

pub use consumer::WARP_ROWS;
pub use recipe::{BOX_COLUMNS, section};
pub(super) use recipe::{counter, forward};

use super::Parts;
use super::parts::Lengths;
use super::parts::block::Block;
use super::parts::masks::Mask;
use super::parts::scores::scale_parameter;
use crate::configs::{Config, product_columns};
use crate::problem::Dims;
use consumer::{Rings, consume};
use result::Output;
use schedule::{Order, OutputTile, Schedule};
use tile::prelude::*;

/// Tiles of queries in shared memory: the next one is copied while products read the one before.
pub const QUERY_STAGES: u32 = 2;

/// What both roles know.
struct Setup<'a, E> {
    config: &'a Config,
    dims: Dims,
    mask: &'a dyn Mask,
    of: Lengths,
    schedule: Schedule,
    scale: F32,
    output: Output<E>,
    turns: Turns,
}

pub fn body<E: Element>(config: &Config, dims: Dims, parts: &Parts) {
    let [q, k, v] = [("q", dims.head), ("k", dims.head), ("v", dims.value)]
        .map(|(name, columns)| TensorMap::<E>::parameter(name, columns));
    let output = Output::<E>::parameter(stores_tiles(dims), dims.value);
    let of = Lengths::parameter();
    let heads_per_kv_head = parameter::<u32>("heads_per_kv_head");
    let scale = parameter(scale_parameter(parts.score));
    let schedule = Schedule::parameter(of.queries.div_ceil(config.rows));
    let order = Order::parameter(counts(parts.mask));
    let warpgroups = config.warpgroups();
    let setup = Setup {
        config,
        dims,
        mask: parts.mask,
        of,
        schedule,
        scale,
        output,
        turns: Turns::new(if config.turns { warpgroups } else { 1 }),
    };

    let (mut load_queries, queries) = noted_ring("queries", QUERY_STAGES, config.rows, q, warpgroups);
    let (mut load_keys, keys) = tile_ring("keys", config.stages, config.keys, k, warpgroups);
    let (mut load_values, values) = tile_ring("values", config.stages, config.keys, v, warpgroups);
    let rings = Rings { queries, keys, values };

    let [copying, computing] = config.role_registers();
    roles(
        producer(copying, || {
            [q, k].iter().chain([&v]).for_each(TensorMap::prefetch);
            let mut number = Var::new("number", block_index(0));
            let count = setup.schedule.count();
            repeat_while(number.get().lt(count), || {
                let OutputTile { block, head, batch } = setup.schedule.tile(number.get());
                let next = order.next(number.get(), count);
                load_queries
                    .load_noted(TileAt { row: block * config.rows, head, batch }, [block, head, batch, 1.into()]);
                let head = head / heads_per_kv_head;
                for_each(setup.key_tiles(block), |tile| {
                    let at = TileAt { row: tile * config.keys, head, batch };
                    load_keys.load(at);
                    load_values.load(at);
                });
                number.set(next);
                next.lt(count)
            });
            load_queries.note([0; 4].map(U32::from));
        }),
        consumers(warpgroups, computing, |warpgroup| consume(&setup, warpgroup, rings)),
    );
}

/// Whether blocks share their tiles by a counter: they do if some are longer than others.
pub fn counts(mask: &dyn Mask) -> bool {
    !mask.is_even()
}

/// Whether the output goes out as tiles: it does if its rows are as wide as those of the queries, whose place they take.
pub fn stores_tiles(dims: Dims) -> bool {
    product_columns(dims.value) == product_columns(dims.head)
}

impl<E: Element> Setup<'_, E> {
    fn block(&self, number: U32) -> Block<'_> {
        Block::new(self.mask, self.of, number, self.config.rows, self.config.keys)
    }

    /// The key tiles of a block of queries. One that sees no key gets a tile all the same, of which nothing is seen: every tile of the output
    /// has an item.
    fn key_tiles(&self, block: U32) -> std::ops::Range<U32> {
        let tiles = self.block(block).tiles;
        tiles.start..tiles.end.max(tiles.start + 1)
    }
}
