//! What a block begins with, whatever multiplies: its parameters, and which queries, keys and values it has.

use super::block::Block;
use super::destination::Destination;
use super::key_share::KeyShare;
use super::masks::{DocumentIds, Documents, Mask};
use super::scores::{Scored, Scores};
use super::sequences::{Sequence, Sequences};
use super::sink::{Sink, Sinks};
use crate::configs::Config;
use crate::kernels::Parts;
use crate::problem::Dims;
use tile::prelude::*;

pub struct Setup<'a, E> {
    tensors: [Tensor<E>; 3],
    pub destination: Destination<E>,
    pub sequence: Sequence,
    pub head: U32,
    kv_head: U32,
    /// What the softmax multiplies with.
    pub exponent_scale: F32,
    pub scored: Scored<'a>,
    pub sink: Option<Sink>,
    mask: &'a dyn Mask,
    documents: Option<Documents<'a>>,
    pub share: KeyShare,
}

impl<'a, E: Element> Setup<'a, E> {
    pub fn new(config: &Config, parts: &Parts<'a>) -> Setup<'a, E> {
        let tensor = if parts.packed { Tensor::<E>::unbatched } else { Tensor::<E>::parameter };
        let tensors = ["q", "k", "v"].map(tensor);
        let destination = Destination::<E>::parameter(config.splits > 1, parts.packed);
        let sequences = Sequences::parameter(parts.packed);
        let heads_per_kv_head = parameter::<u32>("heads_per_kv_head");
        let scores = Scores::parameter(parts.score);

        let [head, batch] = [1, 2].map(block_index);
        let sequence = sequences.entry(batch);
        let scored = scores.of(sequence.of, scores.number(head));
        let sink = parts.sinks.then(|| Sinks::parameter().of(head));
        let documents = parts.documents.then(|| DocumentIds::parameter().of(parts.mask, &sequence));
        let kv_head = head / heads_per_kv_head;
        let share = KeyShare::of_block(destination.splits());
        sequence.leave_beyond(share.block * config.rows);
        check(|| (share.block * config.rows).lt(sequence.of.queries), "the first query of a block exists");
        let (exponent_scale, mask) = (scores.exponent_scale(), parts.mask);
        Setup { tensors, destination, sequence, head, kv_head, exponent_scale, scored, sink, mask, documents, share }
    }

    pub fn block(&self, config: &Config) -> Block<'_> {
        let mask = self.documents.as_ref().map_or(self.mask, |documents| documents);
        Block::new(mask, self.sequence.of, self.share.block, config.rows, config.keys)
    }

    /// Of queries, keys and values.
    pub fn rings(&self, copying: Warps, config: &Config, dims: Dims) -> [CopyRing<E>; 3] {
        let ([q, k, v], sequence, head, kv_head) = (&self.tensors, &self.sequence, self.head, self.kv_head);
        [
            CopyRing::filled_by(copying, "queries", 1, config.rows, sequence.queries(q, head, dims.head)),
            CopyRing::filled_by(copying, "keys", config.stages, config.keys, sequence.keys(k, kv_head, dims.head)),
            CopyRing::filled_by(copying, "values", config.stages, config.keys, sequence.keys(v, kv_head, dims.value)),
        ]
    }
}
