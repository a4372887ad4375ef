//! FlashAttention forward for sm_80 and later: mma.sync, ldmatrix, cp.async.

use super::parts::block::Block;
use super::parts::destination::{Destination, Place};
use super::parts::key_share::KeyShare;
use super::parts::masks::{Documents, Mask};
use super::parts::merge::{Merge, WarpPlace};
use super::parts::online_softmax::OnlineSoftmax;
use super::parts::query::Query;
use super::parts::scores::{Score, Scored, scale_parameter};
use super::parts::sequences::Sequences;
use super::parts::sink::Sink;
use crate::configs::{Config, product_columns};
use crate::problem::Dims;
use tile::Built;
use tile::prelude::*;

pub const ENTRY: &str = "attention_forward";

/// What a kernel is built with.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    pub mask: &'a dyn Mask,
    pub score: &'a dyn Score,
    /// Whether each head has a logit that only the sum counts.
    pub sinks: bool,
    /// Whether queries see only keys of their own document.
    pub documents: bool,
    /// Whether sequences have lengths of their own and lie one behind the other.
    pub packed: bool,
}

/// The kernel of one configuration, for matrices of `E` with as many columns as `dims` says.
pub fn forward<E: Element>(config: &Config, dims: Dims, parts: &Parts) -> Result<Built, BuildError> {
    let blocks_per_processor = Some(config.blocks_per_processor(dims));
    let (target, threads, checks) = (ptx::Target::SM_80, config.threads(), config.debug);
    let options = Options { target, threads, blocks_per_processor, checks };
    tile::build(ENTRY, options, || body::<E>(config, dims, parts))
}

/// One block: `config.rows` queries of one head against every key tile they see, or against a share of those.
fn body<E: Element>(config: &Config, dims: Dims, parts: &Parts) {
    let tensor = if parts.packed { Tensor::<E>::unbatched } else { Tensor::<E>::parameter };
    let [q, k, v] = ["q", "k", "v"].map(tensor);
    let destination = Destination::<E>::parameter(config.splits > 1, parts.packed);
    let sequences = Sequences::parameter(parts.packed);
    let heads_per_kv_head = parameter::<u32>("heads_per_kv_head");
    let scale = parameter(scale_parameter(parts.score));

    let [head, batch] = [1, 2].map(block_index);
    let sequence = sequences.entry(batch);
    let of = sequence.of;
    let scored = Scored::new(parts.score, scale, of, head);
    let sink = parts.sinks.then(|| Sink::parameter(head));
    let documents = parts.documents.then(|| Documents::parameter(parts.mask, &sequence));
    let mask = documents.as_ref().map_or(parts.mask, |documents| documents);
    let kv_head = head / heads_per_kv_head;
    let share = KeyShare::of_block(destination.splits());
    sequence.leave_beyond(share.block * config.rows);
    check(|| (share.block * config.rows).lt(of.queries), "the first query of a block exists");
    let block = Block::new(mask, of, share.block, config.rows, config.keys);
    let place = WarpPlace::new(config.row_groups(), config.key_groups());
    let [computing, copying] = roles(config);
    let (first_row, warp_keys) = (place.row_group * config.warp_rows, config.warp_keys());
    let columns = product_columns(dims.value);

    let queries = CopyRing::filled_by(copying, "queries", 1, config.rows, sequence.queries(&q, head, dims.head));
    let keys = CopyRing::filled_by(copying, "keys", config.stages, config.keys, sequence.keys(&k, kv_head, dims.head));
    let values =
        CopyRing::filled_by(copying, "values", config.stages, config.keys, sequence.keys(&v, kv_head, dims.value));
    let merge = (!config.merges_in_values).then(|| Merge::new(&place, config.warp_rows, columns));

    queries.start(share.block);
    let tiles = begin(&[&keys, &values], share.tiles(block.tiles.clone()));
    let arrived = queries.wait();
    let query = computing.run(|| Query::new(arrived, first_row, config.warp_rows, config.holds_queries(dims)));

    let first_query = block.first_query + first_row;
    let mut softmax = OnlineSoftmax::new(Share::of_product(config.warp_rows), scored.exponent_scale());
    let mut output = Accumulator::zero("output", config.warp_rows, columns);
    for_each(tiles, |tile| {
        let key = keys.next();
        let weights = computing.run(|| {
            // S = Q Kᵀ
            let mut scores = Accumulator::new("scores", config.warp_rows, warp_keys);
            query.multiply(&mut scores, key.rows(place.key_group * warp_keys, warp_keys).transposed());
            key.release();
            check(|| scores.all(F32::is_finite), "scores are finite");

            // P = exp(S - max); O shrinks to the new maximum
            let first_key = tile * config.keys + place.key_group * warp_keys;
            scored.apply(&mut scores, first_query, first_key);
            block.hide(&mut scores, tile, first_query, first_key);
            let shrink = softmax.update(&mut scores);
            output.scale_rows(shrink);
            scores.to::<E>("weights")
        });

        // O += P V
        let value = values.next();
        computing.run(|| mma_add(&mut output, &weights, value.rows(place.key_group * warp_keys, warp_keys)));
        value.release();
    });
    query.release();

    let place = WarpPlace::new(config.row_groups(), config.key_groups());
    let share = KeyShare::of_block(destination.splits());
    let first_query = share.block * config.rows + place.row_group * config.warp_rows;
    let merge = merge.unwrap_or_else(|| Merge::over(values, &place, config.warp_rows, columns));
    computing.run(|| softmax.gather());
    merge.join(computing, &place, &mut softmax, &mut output);
    when(place.key_group.eq(0), || {
        sink.iter().for_each(|sink| sink.join(&mut softmax, &mut output));
        let at = Place { sequence: &sequence, head, first_query, share: &share };
        destination.store(&mut output, &softmax, dims.value, &at);
    });
}

/// Who computes, and who copies: every warp does both, or the last ones copy for the others.
pub(super) fn roles(config: &Config) -> [Warps; 2] {
    if config.copy_warps == 0 {
        return [Warps::all(); 2];
    }
    let computing = config.computing_warps();
    [Warps::numbered(0..computing), Warps::numbered(computing..config.warps)]
}
