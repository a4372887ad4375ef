//! An attention sink: a logit that the sum of the softmax counts, and that has no value.

use super::online_softmax::OnlineSoftmax;
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
        Sink { logit: self.logits.load(head) }
    }
}

pub struct Sink {
    logit: F32,
}

impl Sink {
    /// The maximum of a part that has seen nothing else, as [`OnlineSoftmax`] has it: its sum is one.
    #[track_caller]
    pub fn max(&self) -> F32 {
        self.logit * LOG2_E
    }

    /// As if every row had seen one more key, with this score and a value of zeros.
    pub fn join(&self, softmax: &mut OnlineSoftmax, output: &mut Fragment) {
        let max = softmax.max().map(|_| self.max());
        let [mine, _] = softmax.join(max, max.map(|_| 1.0.into()));
        output.scale_rows(mine);
    }
}
