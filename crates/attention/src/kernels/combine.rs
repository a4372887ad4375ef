//! Joins what blocks have found that shared the keys of their queries. It is launched behind them, in the same stream.

use super::parts::online_softmax::{base, inverse};
use super::parts::scratch::Scratch;
use super::parts::sequences::{LogSumExp, Sequences};
use super::parts::sink::Sinks;
use std::f32::consts::LN_2;
use tile::Built;
use tile::prelude::*;

pub const ENTRY: &str = "attention_combine";

/// Each lane knows the statistics of one share.
pub const MAX_SPLITS: u32 = 32;

/// Columns of one warp, two of each lane.
const WARP_COLUMNS: u32 = 64;

/// Shares whose outputs are read at once, so that a row waits for memory once or twice.
const AT_ONCE: u32 = 16;

/// Of one block, for an output of so many columns.
pub fn threads(columns: u32) -> u32 {
    columns.div_ceil(WARP_COLUMNS) * 32
}

/// The kernel for outputs of `E` with so many columns.
pub fn combine<E: Element>(columns: u32, sinks: bool, packed: bool) -> Result<Built, BuildError> {
    // Else ptxas spares registers for more blocks, and waits for memory four times as often.
    let blocks_per_processor = Some(8);
    let options = Options {
        target: ptx::Target::SM_80,
        threads: threads(columns),
        cluster: 1,
        blocks_per_processor,
        checks: false,
    };
    tile::build(ENTRY, options, || body::<E>(columns, sinks, packed))
}

/// One block: one query of one head.
fn body<E: Element>(columns: u32, sinks: bool, packed: bool) {
    let tensor = if packed { Tensor::<E>::unbatched } else { Tensor::<E>::parameter };
    let (o, lse) = (tensor("o"), LogSumExp::parameter(packed));
    let scratch = Scratch::parameter();
    let sequences = Sequences::parameter(packed);

    let [query, head, batch] = [0, 1, 2].map(block_index);
    let sequence = sequences.entry(batch);
    sequence.leave_beyond(query);
    let sink = sinks.then(|| Sinks::parameter().max(head));
    let parts = scratch.row(&sequence, query, head, columns);

    // Lanes beyond the last share repeat it, with a weight of zero.
    let last = scratch.splits - 1;
    let [max, sum] = parts.statistics(lane_index().min(last));
    let max = select(lane_index().le(last), max, f32::NEG_INFINITY);
    let joint = over_lanes(max, |a, b| a.max(b));
    let joint = sink.iter().fold(joint, |joint, sink| joint.max(*sink));
    let weight = (max - base(joint)).exp2();
    let total = over_lanes(sum * weight, |a, b| a + b);
    let total = sink.iter().fold(total, |total, sink| total + (*sink - base(joint)).exp2());

    // O = Σ weight · output / Σ weight · sum
    let column = warp_index() * WARP_COLUMNS + lane_index() * 2;
    let exists = column.lt(columns);
    let column = column.min(columns - 2);
    let mut output = ["left", "right"].map(|name| Var::new(name, 0.0));
    for_each(U32::from(0)..scratch.splits.div_ceil(AT_ONCE), |round| {
        // All are under way before the first is waited for.
        let mut under_way = vec![];
        for step in 0..AT_ONCE {
            let share = round * AT_ONCE + step;
            under_way.push((share, parts.output(share.min(last), column)));
        }
        for (share, found) in under_way {
            let (weight, exists) = (weight.of_lane(share), share.le(last));
            for (sum, part) in output.iter_mut().zip(found) {
                // What is repeated may be infinite, and nothing times that is no number.
                sum.set(select(exists, part, 0.0).mul_add(weight, sum.get()));
            }
        }
    });
    let [left, right] = output.map(|sum| sum.get() * inverse(total));
    when(exists, || {
        sequence.queries(&o, head, columns).store_pair(query, Coordinate::from(0) + column, left.pack(right));
    });
    let log_sum_exp = (base(joint) + total.log2()) * LN_2;
    when(thread_index().eq(0), || lse.row(&sequence, head).store(query, log_sum_exp));
}

/// All lanes of the warp together, in a fixed order; every lane has the result.
fn over_lanes(value: F32, join: impl Fn(F32, F32) -> F32) -> F32 {
    [16, 8, 4, 2, 1].into_iter().fold(value, |value, distance| join(value, value.shuffle_xor(distance)))
}
