//! Where the output goes: as tiles, through the memory that its queries had, or row by row.

use super::super::parts::destination::Destination;
use super::super::parts::epilogue::store_log_sum_exp;
use super::super::parts::key_share::KeyShare;
use super::super::parts::online_softmax::OnlineSoftmax;
use super::super::parts::row_order::{RowOrder, RowsFrom};
use super::super::parts::sequences::LogSumExp;
use super::query::Query;
use super::schedule::OutputTile;
use super::{Setup, stores_tiles};
use crate::configs::Config;
use crate::problem::Dims;
use tile::prelude::*;

pub enum Output<E> {
    Tiles { o: TensorMap<E>, lse: LogSumExp },
    Rows(Destination<E>),
}

impl<E: Element> Output<E> {
    #[track_caller]
    pub fn parameter(config: &Config, dims: Dims, packed: bool) -> Output<E> {
        if stores_tiles(config, dims, packed) {
            Output::Tiles { o: TensorMap::parameter("o", dims.value), lse: LogSumExp::parameter(false) }
        } else {
            Output::Rows(Destination::parameter(config.splits > 1, packed))
        }
    }

    pub fn of_heads(self, heads: U32) -> Output<E> {
        match self {
            Output::Rows(destination) => Output::Rows(destination.of_heads(heads)),
            tiles @ Output::Tiles { .. } => tiles,
        }
    }

    /// Into how many shares keys are split, if they are.
    pub fn splits(&self) -> Option<U32> {
        match self {
            Output::Rows(destination) => destination.splits(),
            Output::Tiles { .. } => None,
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
        let OutputTile { block, head, batch, share } = tile;
        let sequence = setup.sequences.entry(batch);
        let own = RowsFrom { sequence: &sequence, order: RowOrder::OneHead, head, first: first_query };
        softmax.gather();
        setup.sinks.iter().for_each(|sinks| sinks.of(head).join(softmax, sums));
        match self {
            Output::Tiles { o, lse } => {
                sums.scale_rows(softmax.inverse_sum());
                check(|| sums.all(F32::is_finite), "the output is finite");
                let rows = query.rows_before().with_columns(sums.columns());
                rows.store(sums);
                o.store(rows, TileAt { row: first_query, head, batch });
                store_log_sum_exp(softmax.log_sum_exp(), lse, &own);
            }
            Output::Rows(destination) => {
                let part = |splits| KeyShare::part(block, share, splits);
                let share = destination.splits().map_or_else(|| KeyShare::whole(block), part);
                let write = |rows: &Fragment, to: &Matrix<E>, first| to.store_in_chunks(rows, first);
                destination.store_by(write, sums, softmax, setup.dims.value, &own, &share);
            }
        }
        query.is_done_with_rows_before();
    }
}
