//! FlashAttention forward for sm_80 and later: mma.sync, ldmatrix, cp.async.

use super::parts::Lengths;
use super::parts::block::Block;
use super::parts::epilogue::{store_log_sum_exp, store_output};
use super::parts::masks::Mask;
use super::parts::merge::{Merge, WarpPlace};
use super::parts::online_softmax::OnlineSoftmax;
use crate::configs::{Config, product_columns};
use tile::Built;
use tile::prelude::*;

pub const ENTRY: &str = "attention_forward";

/// The kernel of one configuration, for matrices of `E` with `head_dim` columns.
pub fn forward<E: Element>(config: &Config, head_dim: u32, mask: &dyn Mask) -> Result<Built, BuildError> {
    let blocks_per_processor = Some(config.blocks_per_processor(head_dim));
    let options = Options { target: ptx::Target::SM_80, threads: config.threads(), blocks_per_processor };
    tile::build(ENTRY, options, || body::<E>(config, head_dim, mask))
}

/// One block: `config.rows` queries of one head against every key tile they see.
fn body<E: Element>(config: &Config, head_dim: u32, mask: &dyn Mask) {
    let [q, k, v, o] = ["q", "k", "v", "o"].map(Tensor::<E>::parameter);
    let lse = LogSumExp::parameter();
    let of = Lengths::parameter();
    let heads_per_kv_head = parameter::<u32>("heads_per_kv_head");
    let scale = parameter("scale_log2");

    let [number, head, batch] = [0, 1, 2].map(block_index);
    let kv_head = head / heads_per_kv_head;
    let block = Block::new(mask, of, number, config.rows, config.keys);
    let place = WarpPlace::new(config.row_groups(), config.key_groups());
    let warp_keys = config.keys / config.key_groups();
    let columns = product_columns(head_dim);

    let queries = CopyRing::new("queries", 1, config.rows, q.matrix(batch, head, of.queries, head_dim));
    let keys = CopyRing::new("keys", config.stages, config.keys, k.matrix(batch, kv_head, of.keys, head_dim));
    let values = CopyRing::new("values", config.stages, config.keys, v.matrix(batch, kv_head, of.keys, head_dim));
    let merge = Merge::new(&place, columns);

    queries.start(number);
    let tiles = begin(&[&keys, &values], block.tiles.clone());
    let tile = queries.wait();
    let query = tile.rows(place.row_group * 16, 16).load();
    tile.release();

    let first_query = block.first_query + place.row_group * 16;
    let mut softmax = OnlineSoftmax::new(scale);
    let mut output = Accumulator::zero("output", columns);
    for_each(tiles, |tile| {
        // S = Q Kᵀ
        let key = keys.next();
        let mut scores = Accumulator::new("scores", warp_keys);
        mma(&mut scores, &query, key.rows(place.key_group * warp_keys, warp_keys).transposed());
        key.release();

        // P = exp(S - max); O shrinks to the new maximum
        block.hide(&mut scores, tile, first_query, tile * config.keys + place.key_group * warp_keys);
        let shrink = softmax.update(&mut scores);
        output.scale_rows(shrink);
        let weights = scores.to::<E>("weights");

        // O += P V
        let value = values.next();
        mma_add(&mut output, &weights, value.rows(place.key_group * warp_keys, warp_keys));
        value.release();
    });

    softmax.gather();
    merge.join(&place, &mut softmax, &mut output);
    when(place.key_group.eq(0), || {
        output.scale_rows(softmax.inverse_sum());
        store_output(&output, &o.matrix(batch, head, of.queries, head_dim), first_query);
        store_log_sum_exp(softmax.log_sum_exp(), &lse.row(batch, head), first_query, of.queries);
    });
}

/// `lse[batch, head, query]`, queries contiguous.
struct LogSumExp {
    base: Slice<f32>,
    /// In elements.
    batch_stride: U64,
    head_stride: U64,
}

impl LogSumExp {
    fn parameter() -> LogSumExp {
        let base = Slice::parameter("lse");
        LogSumExp { base, batch_stride: parameter("lse_batch_stride"), head_stride: parameter("lse_head_stride") }
    }

    fn row(&self, batch: U32, head: U32) -> Slice<f32> {
        self.base.skip(batch.to_u64() * self.batch_stride + head.to_u64() * self.head_stride)
    }
}
