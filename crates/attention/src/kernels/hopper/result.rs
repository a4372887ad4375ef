//! Where the output goes: as tiles, through the memory that its queries had, or row by row.

use super::super::parts::destination::{Destination, Place};
use super::super::parts::epilogue::store_log_sum_exp;
use super::super::parts::key_share::KeyShare;
use super::super::parts::online_softmax::OnlineSoftmax;
use super::super::parts::sequences::{LogSumExp, Sequence};
use super::Setup;
use super::query::Query;
use super::schedule::OutputTile;
use tile::prelude::*;

pub enum Output<E> {
    Tiles { o: TensorMap<E>, lse: LogSumExp },
    Rows(Destination<E>),
}

impl<E: Element> Output<E> {
    #[track_caller]
    pub fn parameter(in_tiles: bool, columns: u32) -> Output<E> {
        if in_tiles {
            Output::Tiles { o: TensorMap::parameter("o", columns), lse: LogSumExp::parameter(false) }
        } else {
            Output::Rows(Destination::parameter(false, false))
        }
    }

    /// A warp's rows, from `first_query` on; the softmax is yet to be gathered and to divide them.
    pub fn store(
        &self,
        setup: &Setup<E>,
        sums: &mut Accumulator,
        softmax: &mut OnlineSoftmax,
        query: &mut Query<E>,
        tile: OutputTile,
        first_query: U32,
    ) {
        let OutputTile { block, head, batch } = tile;
        let sequence = Sequence::even(setup.of, batch);
        softmax.gather();
        match self {
            Output::Tiles { o, lse } => {
                sums.scale_rows(softmax.inverse_sum());
                check(|| sums.all(F32::is_finite), "the output is finite");
                let rows = query.rows_before();
                rows.store(sums);
                o.store(rows, TileAt { row: first_query, head, batch });
                let to = lse.row(&sequence, head);
                store_log_sum_exp(softmax.log_sum_exp(), &to, first_query, setup.of.queries);
            }
            Output::Rows(destination) => {
                let share = KeyShare::whole(block);
                let at = Place { sequence: &sequence, head, first_query, share: &share };
                destination.store(sums, softmax, setup.dims.value, &at);
            }
        }
        query.is_done_with_rows_before();
    }
}
