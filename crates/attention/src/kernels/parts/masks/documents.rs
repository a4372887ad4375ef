//! A query sees only keys of its own document, and of those the ones that another mask shows.

use super::super::sequences::Sequence;
use super::{Lengths, Mask};
use std::ops::Range;
use tile::prelude::*;

pub struct Documents<'a> {
    within: &'a dyn Mask,
    /// The document of each query and of each key.
    of_queries: Slice<u32>,
    of_keys: Slice<u32>,
}

/// Of all sequences.
#[derive(Clone, Copy)]
pub struct DocumentIds {
    queries: Slice<u32>,
    keys: Slice<u32>,
}

impl DocumentIds {
    /// Parameters `q_ids` and `k_ids`: a number for each query and each key of each sequence, contiguous.
    #[track_caller]
    pub fn parameter() -> DocumentIds {
        DocumentIds { queries: Slice::parameter("q_ids"), keys: Slice::parameter("k_ids") }
    }

    #[track_caller]
    pub fn of<'a>(&self, within: &'a dyn Mask, sequence: &Sequence) -> Documents<'a> {
        let [of_queries, of_keys] = sequence.numbers(self.queries, self.keys);
        Documents { within, of_queries, of_keys }
    }
}

impl Mask for Documents<'_> {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        self.within.seen_by_some(queries, of)
    }

    /// Where documents end is known only score by score.
    fn seen_by_all(&self, _: Range<U32>, _: Lengths) -> Range<U32> {
        0.into()..0.into()
    }

    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred {
        // Rows and columns of a tile that do not exist have the document of the last that does.
        let query_id = self.of_queries.fetch(query.value().min(of.queries - 1));
        let key_id = self.of_keys.fetch(key.value().min(of.keys - 1));
        query_id.eq(key_id) & self.within.sees(query, key, of)
    }

    fn knows_the_end(&self) -> bool {
        self.within.knows_the_end()
    }
}
