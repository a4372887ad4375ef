//! Where a block leaves its result: in O and the log-sum-exp, or, where it saw a share of the keys, in scratch memory.

use super::epilogue::{store_log_sum_exp, store_output};
use super::key_share::KeyShare;
use super::online_softmax::OnlineSoftmax;
use super::row_order::RowsFrom;
use super::scratch::Scratch;
use super::sequences::LogSumExp;
use tile::prelude::*;

pub enum Destination<E> {
    Result { o: Tensor<E>, lse: LogSumExp },
    Scratch(Scratch),
}

impl<E: Element> Destination<E> {
    /// Parameters of [`Scratch`], or O and `lse`.
    #[track_caller]
    pub fn parameter(split: bool, packed: bool) -> Destination<E> {
        if split {
            return Destination::Scratch(Scratch::parameter());
        }
        let tensor = if packed { Tensor::<E>::unbatched } else { Tensor::<E>::parameter };
        Destination::Result { o: tensor("o"), lse: LogSumExp::parameter(packed) }
    }

    /// Where no dimension of the grid is the heads.
    pub fn of_heads(self, heads: U32) -> Destination<E> {
        match self {
            Destination::Scratch(scratch) => Destination::Scratch(scratch.of_heads(heads)),
            result @ Destination::Result { .. } => result,
        }
    }

    /// Into how many shares keys are split, if they are.
    pub fn splits(&self) -> Option<U32> {
        match self {
            Destination::Result { .. } => None,
            Destination::Scratch(scratch) => Some(scratch.splits),
        }
    }

    /// `columns` of the output, which the softmax is yet to divide.
    pub fn store(
        &self,
        output: &mut Fragment,
        softmax: &OnlineSoftmax,
        columns: u32,
        rows: &RowsFrom,
        keys: &KeyShare,
    ) {
        match self {
            Destination::Result { o, lse } => {
                output.scale_rows(softmax.inverse_sum());
                check(|| output.all(F32::is_finite), "the output is finite");
                store_output(output, &rows.matrix(o, columns), rows.first);
                store_log_sum_exp(softmax.log_sum_exp(), lse, rows);
            }
            Destination::Scratch(scratch) => {
                for row in 0..output.share().rows_per_lane() {
                    let at = output.share().row(row);
                    when(rows.has(at), || {
                        let parts = scratch.row(rows.sequence, rows.query(at), rows.head(at), columns);
                        parts.store(keys.number(), row, output, softmax);
                    });
                }
            }
        }
    }
}
