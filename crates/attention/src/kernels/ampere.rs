//! FlashAttention forward for sm_80 and later: mma.sync, ldmatrix, cp.async.

use super::parts::key_share::KeyShare;
use super::parts::merge::{Merge, WarpPlace};
use super::parts::online_softmax::OnlineSoftmax;
use super::parts::query::Query;
use super::parts::setup::Setup;
use super::{Parts, roles};
use crate::configs::{Config, product_columns};
use crate::problem::Dims;
use tile::prelude::*;

/// One block: `config.rows` rows, queries of one head or of heads that share keys, against every key tile they see, or against a share of those.
pub fn body<E: Element>(config: &Config, dims: Dims, parts: &Parts) {
    let setup = Setup::<E>::new(config, parts);
    let Setup { destination, exponent_scale, share, .. } = &setup;
    let block = setup.block(config);
    let place = WarpPlace::new(config.row_groups(), config.key_groups());
    let [computing, copying] = roles(config);
    let (first_row, warp_keys) = (place.row_group * config.warp_rows, config.warp_keys());
    let columns = product_columns(dims.value);

    let [queries, keys, values] = setup.rings(copying, config, dims);
    let merge = (!config.merges_in_values).then(|| Merge::new(&place, config.warp_rows, columns));

    queries.start(share.block);
    let tiles = begin(&[&keys, &values], share.tiles(block.tiles.clone()));
    let arrived = queries.wait();
    let query = computing.run(|| Query::new(arrived, first_row, config.warp_rows, config.holds_queries(dims)));

    let first_row = block.first_row + first_row;
    let lanes = Share::of_product(config.warp_rows);
    let scored = setup.scored(&setup.rows_from(first_row), lanes);
    let mut softmax = OnlineSoftmax::new(lanes, *exponent_scale);
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
            scored.apply(&mut scores, first_row, first_key);
            block.hide(&mut scores, tile, first_row, first_key);
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
    let rows = setup.rows_from(share.block * config.rows + place.row_group * config.warp_rows);
    let merge = merge.unwrap_or_else(|| Merge::over(values, &place, config.warp_rows, columns));
    computing.run(|| softmax.gather());
    merge.join(computing, &place, &mut softmax, &mut output);
    when(place.key_group.eq(0), || {
        setup.sink(&rows, lanes).iter().for_each(|sink| sink.join(&mut softmax, &mut output));
        destination.store(&mut output, &softmax, dims.value, &rows, &share);
    });
}
