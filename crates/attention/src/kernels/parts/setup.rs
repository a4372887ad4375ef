//! What a block begins with, whatever multiplies: its parameters, and which rows, keys and values it has.

use super::block::Block;
use super::destination::Destination;
use super::key_share::KeyShare;
use super::masks::{DocumentIds, Documents, Mask};
use super::row_order::{RowOrder, RowsFrom};
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
    sequence: Sequence,
    order: RowOrder,
    /// The first head of its rows, and the one whose keys and values they see.
    head: U32,
    kv_head: U32,
    /// What the softmax multiplies with.
    pub exponent_scale: F32,
    scores: Scores<'a>,
    sinks: Option<Sinks>,
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

        let [place, batch] = [1, 2].map(block_index);
        let sequence = sequences.entry(batch);
        let sinks = parts.sinks.then(Sinks::parameter);
        let documents = parts.documents.then(|| DocumentIds::parameter().of(parts.mask, &sequence));
        let order = RowOrder::new(config.heads, heads_per_kv_head);
        let [head, kv_head] = order.heads_at(place, heads_per_kv_head);
        let destination = order.destination(destination);
        let share = KeyShare::of_block(destination.splits());
        let first_query = order.query(Coordinate::from(0) + share.block * config.rows).value();
        sequence.leave_beyond(first_query);
        check(|| first_query.lt(sequence.of.queries), "the first query of a block exists");
        let (exponent_scale, mask) = (scores.exponent_scale(), parts.mask);
        Setup {
            tensors,
            destination,
            sequence,
            order,
            head,
            kv_head,
            exponent_scale,
            scores,
            sinks,
            mask,
            documents,
            share,
        }
    }

    pub fn block(&self, config: &Config) -> Block<'_> {
        let mask = self.documents.as_ref().map_or(self.mask, |documents| documents);
        Block::ordered(mask, self.sequence.of, self.order, self.share.block, [config.rows, config.keys])
    }

    /// Those of a warp, which has so many from `first` on.
    pub fn rows_from(&self, first: U32) -> RowsFrom<'_> {
        RowsFrom { sequence: &self.sequence, order: self.order, head: self.head, first }
    }

    /// What becomes of the scores of these rows.
    pub fn scored(&self, rows: &RowsFrom, share: Share) -> Scored<'a> {
        self.scores.ordered(self.sequence.of, self.order, self.scores.numbers_of(rows, share))
    }

    pub fn sink(&self, rows: &RowsFrom, share: Share) -> Option<Sink> {
        self.sinks.map(|sinks| sinks.of_rows(rows, share))
    }

    /// Of queries, keys and values.
    pub fn rings(&self, copying: Warps, config: &Config, dims: Dims) -> [CopyRing<E>; 3] {
        let ([q, k, v], sequence, kv_head) = (&self.tensors, &self.sequence, self.kv_head);
        let queries = self.order.matrix(sequence, q, self.head, dims.head);
        [
            CopyRing::filled_by(copying, "queries", 1, config.rows, queries),
            CopyRing::filled_by(copying, "keys", config.stages, config.keys, sequence.keys(k, kv_head, dims.head)),
            CopyRing::filled_by(copying, "values", config.stages, config.keys, sequence.keys(v, kv_head, dims.value)),
        ]
    }
}
