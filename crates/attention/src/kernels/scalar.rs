//! FlashAttention forward on plain cores: the baseline. Each warp has queries of its own; its lanes split the keys of
//! a tile for Q·K, and the columns of the values for P·V.

use super::ampere::{ENTRY, Parts, roles};
use super::parts::block::Block;
use super::parts::destination::{Destination, Place};
use super::parts::key_share::KeyShare;
use super::parts::masks::Documents;
use super::parts::online_softmax::OnlineSoftmax;
use super::parts::scores::{Scored, scale_parameter};
use super::parts::sequences::Sequences;
use super::parts::sink::Sink;
use crate::configs::Config;
use crate::problem::Dims;
use tile::Built;
use tile::prelude::*;

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
    let [computing, copying] = roles(config);
    let (warp, rows) = (warp_index(), config.warp_rows);
    let first_row = warp * rows;

    let queries = CopyRing::filled_by(copying, "queries", 1, config.rows, sequence.queries(&q, head, dims.head));
    let keys = CopyRing::filled_by(copying, "keys", config.stages, config.keys, sequence.keys(&k, kv_head, dims.head));
    let values =
        CopyRing::filled_by(copying, "values", config.stages, config.keys, sequence.keys(&v, kv_head, dims.value));
    let weights = HandedRows::new(config.computing_warps(), warp, rows, config.keys);

    queries.start(share.block);
    let tiles = begin(&[&keys, &values], share.tiles(block.tiles.clone()));
    let query = queries.wait();

    let first_query = block.first_query + first_row;
    let mut softmax = OnlineSoftmax::new(Share::whole(rows), scored.exponent_scale());
    let mut output = WarpRows::zero_in_pairs("output", rows, dims.value);
    for_each(tiles, |tile| {
        let key = keys.next();
        let scores = computing.run(|| {
            // S = Q Kᵀ
            let mut scores = WarpRows::new("scores", rows, config.keys);
            dot(&mut scores, query.view(), first_row, key.view());
            key.release();
            check(|| scores.all(F32::is_finite), "scores are finite");

            // P = exp(S - max); O shrinks to the new maximum
            let first_key = tile * config.keys;
            scored.apply(&mut scores, first_query, first_key);
            block.hide(&mut scores, tile, first_query, first_key);
            let shrink = softmax.update(&mut scores);
            output.scale_rows(shrink);
            scores
        });

        // O += P V
        let value = values.next();
        computing.run(|| {
            weights.set(&scores);
            weigh_add(&mut output, &weights, value.view());
        });
        value.release();
    });
    query.release();

    computing.run(|| {
        softmax.gather();
        sink.iter().for_each(|sink| sink.join(&mut softmax, &mut output));
        let at = Place { sequence: &sequence, head, first_query, share: &share };
        destination.store(&mut output, &softmax, dims.value, &at);
    });
}
