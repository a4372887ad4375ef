//! FlashAttention forward for sm_90a. One warpgroup starts copies of whole tiles (TMA), the others multiply (wgmma) and take exponentials.
//!
//! A block stays on its processor and takes tile after tile of the output. For its warpgroups all key tiles of all these are one row of
//! items: while the product of weights and values of one item goes on, the scores of the next are computed, across the ends of tiles, too.

mod consumer;
mod copies;
mod ended;
mod position;
mod query;
mod recipe;
mod result;
mod schedule;

pub use consumer::WARP_ROWS;
pub use recipe::{BOX_COLUMNS, section};
pub(super) use recipe::{PROCESSORS, counter, forward};

use super::Parts;
use super::parts::Lengths;
use super::parts::block::Block;
use super::parts::key_share::KeyShare;
use super::parts::masks::{DocumentIds, Mask};
use super::parts::scores::Scores;
use super::parts::sequences::{Sequence, Sequences};
use super::parts::sink::Sinks;
use crate::configs::Config;
use crate::problem::Dims;
use consumer::{Rings, consume};
use copies::{Copies, pass_on};
use result::Output;
use schedule::{NextTile, Order, OutputTile, Schedule};
use tile::prelude::*;

/// What both roles know.
struct Setup<'a, E> {
    config: &'a Config,
    dims: Dims,
    /// Whether roles keep more in mind than usual.
    crowded: bool,
    mask: &'a dyn Mask,
    documents: Option<DocumentIds>,
    sequences: Sequences,
    heads_per_kv_head: U32,
    scores: Scores<'a>,
    sinks: Option<Sinks>,
    schedule: Schedule,
    output: Output<E>,
    turns: Turns,
}

pub fn body<E: Element>(config: &Config, dims: Dims, parts: &Parts) {
    let [q, k, v] = [("q", dims.head), ("k", dims.head), ("v", dims.value)]
        .map(|(name, columns)| TensorMap::<E>::parameter(name, columns));
    let value_rows = parts.packed.then(|| TensorMap::<E>::parameter(VALUE_ROWS, dims.value));
    let setup = Setup::<E>::parameter(config, dims, parts);
    let order = Order::parameter(counts(parts.mask, parts.packed));
    let warpgroups = config.warpgroups();

    let (query_stages, query_rows) = config.query_tiles();
    let readers = if config.queries_leave_early() { 1 } else { warpgroups };
    let (load_queries, queries) = noted_ring("queries", query_stages, query_rows, q, readers);
    let (load_keys, keys, keys_relay) = cluster_ring("keys", config.stages, config.keys, k, warpgroups);
    let (load_values, values, values_relay) = cluster_ring("values", config.stages, config.keys, v, warpgroups);
    let rings = Rings { queries, keys, values };
    let copies = Copies { queries: load_queries, keys: load_keys, values: load_values, value_rows };

    let [copying, computing] = config.role_registers(setup.crowded);
    let mut first = NextTile::default();
    // While another warp initialises the barriers.
    when(thread_index().eq(0), || {
        [q, k].iter().chain([&v]).for_each(TensorMap::prefetch);
        first.set(setup.schedule.tile(setup.schedule.first()));
    });
    let relays = keys_relay.into_iter().chain(values_relay);
    let copying = relays.fold(producer(copying, || copies.produce(&setup, &order, first)), |producer, relay| {
        producer.helped_by(|| pass_on(&setup, &order, relay))
    });
    roles(copying, consumers(warpgroups, computing, |warpgroup| consume(&setup, warpgroup, rings)));
}

/// The map of V by single rows, for packed sequences.
const VALUE_ROWS: &str = "v_rows";

/// Whether blocks share their tiles by a counter: they do if some are longer than others.
pub fn counts(mask: &dyn Mask, packed: bool) -> bool {
    packed || !mask.is_even()
}

/// Whether the output goes out as tiles: it does if it has room where its queries were, and no row of a tile belongs to another sequence.
pub fn stores_tiles(config: &Config, dims: Dims, packed: bool) -> bool {
    let has_room = !config.queries_leave_early() && dims.value.div_ceil(64) <= dims.head.div_ceil(64);
    has_room && !packed && config.splits == 1
}

impl<'a, E: Element> Setup<'a, E> {
    fn parameter(config: &'a Config, dims: Dims, parts: &Parts<'a>) -> Setup<'a, E> {
        let output = Output::<E>::parameter(config, dims, parts.packed);
        let sequences = Sequences::parameter(parts.packed);
        let heads_per_kv_head = parameter("heads_per_kv_head");
        let scores = Scores::parameter(parts.score);
        let sinks = parts.sinks.then(Sinks::parameter);
        let documents = parts.documents.then(DocumentIds::parameter);
        let longest = match &sequences {
            Sequences::Even(of) => of.queries,
            Sequences::Packed { .. } => parameter("longest"),
        };
        let schedule = Schedule::parameter(longest, config, output.splits(), !counts(parts.mask, parts.packed));
        let output = output.of_heads(schedule.heads);
        let turns = Turns::new(if config.turns { config.warpgroups() } else { 1 });
        let (mask, crowded) = (parts.mask, parts.packed || parts.documents);
        Setup {
            config,
            dims,
            crowded,
            mask,
            documents,
            sequences,
            heads_per_kv_head,
            scores,
            sinks,
            schedule,
            output,
            turns,
        }
    }

    /// There are tiles for the longest sequence: of others, the last may have no query.
    fn when_it_exists(&self, sequence: &Sequence, block: U32, body: impl FnOnce()) {
        match self.sequences {
            Sequences::Even(_) => body(),
            Sequences::Packed { .. } => when((block * self.config.rows).lt(sequence.of.queries), body),
        }
    }

    /// The key tiles of a tile of the output. One that sees no key gets a tile all the same, of which nothing is seen: every tile of the output
    /// has an item.
    fn key_tiles(&self, of: Lengths, tile: OutputTile) -> std::ops::Range<U32> {
        let seen = Block::new(self.mask, of, tile.block, self.config.rows, self.config.keys).tiles;
        let Some(splits) = self.output.splits() else { return seen.start..seen.end.max(seen.start + 1) };
        let own = KeyShare::part(tile.block, tile.share, splits).tiles(seen.clone());
        // Behind the last tile nobody sees anything.
        let start = select(own.start.lt(own.end), own.start, seen.end.max(seen.start));
        start..own.end.max(start + 1)
    }
}
