//! An attention sink: a logit that the sum of the softmax counts, and that has no value.

use super::online_softmax::OnlineSoftmax;
use std::f32::consts::LOG2_E;
use tile::prelude::*;

pub struct Sink {
    logit: F32,
}

impl Sink {
    /// That of the head, of the parameter `sinks`.
    #[track_caller]
    pub fn parameter(head: U32) -> Sink {
        Sink { logit: Slice::parameter("sinks").load(head) }
    }

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
