//! FlashAttention forward on plain cores: the baseline. Each warp has queries of its own; its lanes split the keys of
//! a tile for Q·K, and the columns of the values for P·V.

use super::parts::online_softmax::OnlineSoftmax;
use super::parts::setup::Setup;
use super::{Parts, roles};
use crate::configs::Config;
use crate::problem::Dims;
use tile::prelude::*;

/// One block: `config.rows` queries of one head against every key tile they see, or against a share of those.
pub fn body<E: Element>(config: &Config, dims: Dims, parts: &Parts) {
    let setup = Setup::<E>::new(config, parts);
    let Setup { destination, exponent_scale, share, .. } = &setup;
    let block = setup.block(config);
    let [computing, copying] = roles(config);
    let (warp, rows) = (warp_index(), config.warp_rows);
    let first_row = warp * rows;

    let [queries, keys, values] = setup.rings(copying, config, dims);
    let weights = HandedRows::new(config.computing_warps(), warp, rows, config.keys);

    queries.start(share.block);
    let tiles = begin(&[&keys, &values], share.tiles(block.tiles.clone()));
    let query = queries.wait();

    let (own, lanes) = (setup.rows_from(block.first_row + first_row), Share::whole(rows));
    let scored = setup.scored(&own, lanes);
    let mut softmax = OnlineSoftmax::new(lanes, *exponent_scale);
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
            scored.apply(&mut scores, own.first, first_key);
            block.hide(&mut scores, tile, own.first, first_key);
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
        setup.sink(&own, lanes).iter().for_each(|sink| sink.join(&mut softmax, &mut output));
        destination.store(&mut output, &softmax, dims.value, &own, share);
    });
}
