//! Where the rows of a batch entry are: every sequence as long as the others, or packed one behind the other.

use super::Lengths;
use tile::prelude::*;

/// Of all batch entries, as the launch passes them.
pub enum Sequences {
    Even(Lengths),
    /// Where each sequence begins, and where the last one ends; and how many rows there are of all together.
    Packed {
        queries: Slice<u32>,
        keys: Slice<u32>,
        rows: Lengths,
    },
}

impl Sequences {
    /// Parameters `queries` and `keys`, and for packed sequences `cu_q` and `cu_k` (batch + 1).
    #[track_caller]
    pub fn parameter(packed: bool) -> Sequences {
        let rows = Lengths::parameter();
        if !packed {
            return Sequences::Even(rows);
        }
        Sequences::Packed { queries: Slice::parameter("cu_q"), keys: Slice::parameter("cu_k"), rows }
    }

    #[track_caller]
    pub fn entry(&self, batch: U32) -> Sequence {
        match self {
            Sequences::Even(of) => Sequence { of: *of, place: Place::Batch(batch) },
            Sequences::Packed { queries, keys, rows } => {
                // Nobody on the host may have read the places: whatever they are, no row outside of the tensors is touched.
                let place = |places: &Slice<u32>, index, most| places.fetch(index).reaching(Reach::Block).min(most);
                let [end_query, end_key] =
                    [(queries, rows.queries), (keys, rows.keys)].map(|(places, rows)| place(places, batch + 1, rows));
                let [first_query, first_key] =
                    [(queries, end_query), (keys, end_key)].map(|(places, end)| place(places, batch, end));
                let of = Lengths { queries: end_query - first_query, keys: end_key - first_key };
                Sequence { of, place: Place::Rows { first_query, first_key } }
            }
        }
    }
}

/// One batch entry.
#[derive(Clone, Copy)]
pub struct Sequence {
    pub of: Lengths,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    Batch(U32),
    Rows { first_query: U32, first_key: U32 },
}

impl Sequence {
    /// One that is packed behind others: how many rows of queries and keys there are before it.
    pub fn packed(of: Lengths, [first_query, first_key]: [U32; 2]) -> Sequence {
        Sequence { of, place: Place::Rows { first_query, first_key } }
    }

    /// The same numbers, of one that is packed.
    pub fn rows_before(&self) -> Option<[U32; 2]> {
        match self.place {
            Place::Batch(_) => None,
            Place::Rows { first_query, first_key } => Some([first_query, first_key]),
        }
    }

    /// Where a tile of its queries begins, for copies.
    #[track_caller]
    pub fn query_tile(&self, row: U32, head: U32) -> TileAt {
        match self.place {
            Place::Batch(batch) => TileAt { row, head, batch },
            Place::Rows { first_query, .. } => TileAt { row: first_query + row, head, batch: 0.into() },
        }
    }

    /// The same of its keys and values.
    #[track_caller]
    pub fn key_tile(&self, row: U32, head: U32) -> TileAt {
        match self.place {
            Place::Batch(batch) => TileAt { row, head, batch },
            Place::Rows { first_key, .. } => TileAt { row: first_key + row, head, batch: 0.into() },
        }
    }

    /// A grid has blocks for the longest sequence: those whose first query does not exist have nothing to do.
    #[track_caller]
    pub fn leave_beyond(&self, first_query: U32) {
        if let Place::Rows { .. } = self.place {
            leave_when(first_query.ge(self.of.queries));
        }
    }

    /// The rows of its queries in Q or O.
    #[track_caller]
    pub fn queries<E: Element>(&self, of: &Tensor<E>, head: U32, columns: u32) -> Matrix<E> {
        match self.place {
            Place::Batch(batch) => of.matrix(batch, head, self.of.queries, columns),
            Place::Rows { first_query, .. } => {
                of.matrix(0.into(), head, self.of.queries, columns).from_row(first_query)
            }
        }
    }

    /// The rows of its keys in K or V.
    #[track_caller]
    pub fn keys<E: Element>(&self, of: &Tensor<E>, head: U32, columns: u32) -> Matrix<E> {
        match self.place {
            Place::Batch(batch) => of.matrix(batch, head, self.of.keys, columns),
            Place::Rows { first_key, .. } => of.matrix(0.into(), head, self.of.keys, columns).from_row(first_key),
        }
    }

    /// The number of its first query among those of all sequences.
    #[track_caller]
    pub fn first_query(&self) -> U64 {
        match self.place {
            Place::Batch(batch) => batch.widening_mul(self.of.queries),
            Place::Rows { first_query, .. } => first_query.to_u64(),
        }
    }

    /// What an array of one number for each query of each sequence has for its own, and the same for keys.
    #[track_caller]
    pub fn numbers(&self, of_queries: Slice<u32>, of_keys: Slice<u32>) -> [Slice<u32>; 2] {
        let [queries, keys] = match self.place {
            Place::Batch(batch) => [self.of.queries, self.of.keys].map(|length| batch.widening_mul(length)),
            Place::Rows { first_query, first_key } => [first_query, first_key].map(U32::to_u64),
        };
        [of_queries.skip(queries), of_keys.skip(keys)]
    }
}

/// `lse[batch, head, query]`, or `lse[head, query]` of packed sequences; queries contiguous.
pub struct LogSumExp {
    base: Slice<f32>,
    /// In elements.
    batch_stride: U64,
    head_stride: U64,
}

impl LogSumExp {
    #[track_caller]
    pub fn parameter(packed: bool) -> LogSumExp {
        let base = Slice::parameter("lse");
        let batch_stride = if packed { 0.into() } else { parameter("lse_batch_stride") };
        LogSumExp { base, batch_stride, head_stride: parameter("lse_head_stride") }
    }

    #[track_caller]
    pub fn row(&self, sequence: &Sequence, head: U32) -> Slice<f32> {
        match sequence.place {
            Place::Batch(batch) => {
                self.base.skip(batch.to_u64() * self.batch_stride + head.to_u64() * self.head_stride)
            }
            Place::Rows { first_query, .. } => self.base.skip(head.to_u64() * self.head_stride + first_query.to_u64()),
        }
    }
}
