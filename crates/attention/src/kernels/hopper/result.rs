//! Where the output goes: as tiles, through the memory that its queries had, or row by row.

use super::super::parts::destination::Destination;
use super::super::parts::epilogue::store_log_sum_exp;
use super::super::parts::online_softmax::OnlineSoftmax;
use super::super::parts::row_order::{RowOrder, RowsFrom};
use super::super::parts::sequences::{LogSumExp, Sequence};
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

/// A warp's rows of a tile of the output, from the first query on.
#[derive(Clone, Copy)]
pub struct WarpRows {
    pub tile: OutputTile,
    pub first_query: U32,
}

impl WarpRows {
    fn of<'s>(&self, sequence: &'s Sequence) -> RowsFrom<'s> {
        RowsFrom { sequence, order: RowOrder::OneHead, head: self.tile.head, first: self.first_query }
    }
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

    /// Whether the output is multiplied when it is complete. Shares of the keys are divided by who joins them.
    pub fn is_divided(&self) -> bool {
        self.splits().is_none()
    }

    /// Completes the softmax of a warp's rows. Returns by what their output is to be multiplied.
    pub fn complete(&self, setup: &Setup<E>, softmax: &mut OnlineSoftmax, rows: WarpRows) -> Option<Rows> {
        softmax.gather();
        let shrink = setup.sinks.map(|sinks| sinks.of(rows.tile.head).join_softmax(softmax));
        let inverse = || softmax.inverse_sum();
        self.is_divided().then(|| shrink.map_or_else(inverse, |shrink| shrink * inverse()))
    }

    /// Stores what the complete softmax says of its rows.
    pub fn store_softmax(&self, setup: &Setup<E>, softmax: &OnlineSoftmax, rows: WarpRows) {
        let sequence = setup.sequences.entry(rows.tile.batch);
        let own = rows.of(&sequence);
        match self {
            Output::Tiles { lse, .. } | Output::Rows(Destination::Result { lse, .. }) => {
                store_log_sum_exp(softmax.log_sum_exp(), lse, &own);
            }
            Output::Rows(Destination::Scratch(scratch)) => {
                let share = softmax.max().share();
                for row in 0..share.rows_per_lane() {
                    when(own.has(share.row(row)), || {
                        let query = own.query(share.row(row));
                        let parts = scratch.row(&sequence, query, own.head, setup.dims.value);
                        parts.store_statistics(rows.tile.share, row, softmax);
                    });
                }
            }
        }
    }

    /// Stores the output, multiplied by `factors`. Who holds the queries is to say that their memory is needed no more.
    pub fn store(
        &self,
        setup: &Setup<E>,
        sums: &mut Accumulator,
        factors: Option<Rows>,
        query: &Query<E>,
        rows: WarpRows,
    ) {
        let sequence = setup.sequences.entry(rows.tile.batch);
        let (own, columns) = (rows.of(&sequence), setup.dims.value);
        factors.into_iter().for_each(|factors| sums.scale_rows(factors));
        check(|| sums.all(F32::is_finite), "the output is finite");
        match self {
            Output::Tiles { o, .. } => {
                let OutputTile { head, batch, .. } = rows.tile;
                let place = query.rows_before().with_columns(sums.columns());
                place.store(sums);
                o.store(place, TileAt { row: rows.first_query, head, batch });
            }
            Output::Rows(Destination::Result { o, .. }) => {
                own.matrix(o, columns).store_in_chunks(sums, rows.first_query);
            }
            Output::Rows(Destination::Scratch(scratch)) => {
                let share = sums.share();
                for row in 0..share.rows_per_lane() {
                    when(own.has(share.row(row)), || {
                        let parts = scratch.row(&sequence, own.query(share.row(row)), own.head, columns);
                        parts.store_output(rows.tile.share, row, sums);
                    });
                }
            }
        }
    }
}
