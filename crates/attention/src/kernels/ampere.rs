//! FlashAttention forward for sm_80 and later: mma.sync, ldmatrix, cp.async.

use super::parts::Lengths;
use super::parts::block::Block;
use super::parts::epilogue::{store_log_sum_exp, store_output};
use super::parts::masks::Mask;
use super::parts::merge::{Merge, WarpPlace};
use super::parts::online_softmax::OnlineSoftmax;
use super::parts::query::Query;
use crate::configs::{Config, product_columns};
use crate::problem::Dims;
use tile::Built;
use tile::prelude::*;

pub const ENTRY: &str = "attention_forward";

/// The kernel of one configuration, for matrices of `E` with as many columns as `dims` says.
pub fn forward<E: Element>(config: &Config, dims: Dims, mask: &dyn Mask) -> Result<Built, BuildError> {
    let blocks_per_processor = Some(config.blocks_per_processor(dims));
    let options = Options { target: ptx::Target::SM_80, threads: config.threads(), blocks_per_processor };
    tile::build(ENTRY, options, || body::<E>(config, dims, mask))
}

/// One block: `config.rows` queries of one head against every key tile they see.
fn body<E: Element>(config: &Config, dims: Dims, mask: &dyn Mask) {
    let [q, k, v, o] = ["q", "k", "v", "o"].map(Tensor::<E>::parameter);
    let lse = LogSumExp::parameter();
    let of = Lengths::parameter();
    let heads_per_kv_head = parameter::<u32>("heads_per_kv_head");
    let scale = parameter("scale_log2");

    let [head, batch] = [1, 2].map(block_index);
    let kv_head = head / heads_per_kv_head;
    let number = block_number();
    let block = Block::new(mask, of, number, config.rows, config.keys);
    let place = WarpPlace::new(config.row_groups(), config.key_groups());
    let (first_row, warp_keys) = (place.row_group * config.warp_rows, config.warp_keys());
    let columns = product_columns(dims.value);

    let queries = CopyRing::new("queries", 1, config.rows, q.matrix(batch, head, of.queries, dims.head));
    let keys = CopyRing::new("keys", config.stages, config.keys, k.matrix(batch, kv_head, of.keys, dims.head));
    let values = CopyRing::new("values", config.stages, config.keys, v.matrix(batch, kv_head, of.keys, dims.value));
    let merge = Merge::new(&place, config.warp_rows, columns);

    queries.start(number);
    let tiles = begin(&[&keys, &values], block.tiles.clone());
    let query = Query::new(queries.wait(), first_row, config.warp_rows, config.holds_queries(dims));

    let first_query = block.first_query + first_row;
    let mut softmax = OnlineSoftmax::new(config.warp_rows, scale);
    let mut output = Accumulator::zero("output", config.warp_rows, columns);
    for_each(tiles, |tile| {
        // S = Q Kᵀ
        let key = keys.next();
        let mut scores = Accumulator::new("scores", config.warp_rows, warp_keys);
        query.multiply(&mut scores, key.rows(place.key_group * warp_keys, warp_keys).transposed());
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
    query.release();

    let place = WarpPlace::new(config.row_groups(), config.key_groups());
    let first_query = block_number() * config.rows + place.row_group * config.warp_rows;
    softmax.gather();
    merge.join(&place, &mut softmax, &mut output);
    when(place.key_group.eq(0), || {
        output.scale_rows(softmax.inverse_sum());
        store_output(&output, &o.matrix(batch, head, of.queries, dims.value), first_query);
        store_log_sum_exp(softmax.log_sum_exp(), &lse.row(batch, head), first_query, of.queries);
    });
}

/// Which queries the block computes. The last see the most keys, where the mask is causal: they go first, and short blocks
/// fill the end.
fn block_number() -> U32 {
    grid_size(0) - 1 - block_index(0)
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
