//! An attention sink: a logit that the sum of the softmax counts, and that has no value.

use super::online_softmax::OnlineSoftmax;
use super::row_order::{OfHeads, RowsFrom};
use std::f32::consts::LOG2_E;
use tile::prelude::*;

/// One for each head.
#[derive(Clone, Copy)]
pub struct Sinks {
    logits: Slice<f32>,
}

impl Sinks {
    /// Parameter `sinks`.
    #[track_caller]
    pub fn parameter() -> Sinks {
        Sinks { logits: Slice::parameter("sinks") }
    }

    #[track_caller]
    pub fn of(&self, head: U32) -> Sink {
        Sink { logits: OfHeads::Same(self.logits.load(head)) }
    }

    /// Of the heads of such rows.
    #[track_caller]
    pub fn of_rows(&self, rows: &RowsFrom, share: Share) -> Sink {
        Sink { logits: rows.of_heads(share, |head| self.logits.load(head)) }
    }

    /// The maximum of a part that has seen nothing but this head's, as [`OnlineSoftmax`] has it: its sum is one.
    #[track_caller]
    pub fn max(&self, head: U32) -> F32 {
        self.logits.load(head) * LOG2_E
    }
}

pub struct Sink {
    logits: OfHeads,
}

impl Sink {
    /// As if every row had seen one more key, with this score and a value of zeros.
    pub fn join(&self, softmax: &mut OnlineSoftmax, output: &mut Fragment) {
        output.scale_rows(self.join_softmax(softmax));
    }

    /// The same before there is an output; returns by what it is then to shrink.
    pub fn join_softmax(&self, softmax: &mut OnlineSoftmax) -> Rows {
        let max = self.logits.rows(softmax.max().share()) * LOG2_E;
        let [mine, _] = softmax.join(max, max.map(|_| 1.0.into()));
        mine
    }
}
