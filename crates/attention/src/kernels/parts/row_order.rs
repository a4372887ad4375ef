//! Which query of which head each row of a tile is.

use super::destination::Destination;
use super::sequences::Sequence;
use crate::configs::Heads;
use std::ops::Range;
use tile::prelude::*;

/// Where heads take their place in the order of the rows.
#[derive(Clone, Copy)]
pub enum RowOrder {
    /// Rows are the queries of one head.
    OneHead,
    /// Of the first query all heads that share its keys, so many, then of the second: a tile of few queries is full, and keys are read once
    /// for all these heads. Queries still grow along the rows, so that those of a block are an interval.
    ///
    /// How many heads there are is a parameter: one kernel serves all groups, and a lane divides few numbers by it.
    HeadsOfQuery(U32),
}

impl RowOrder {
    pub fn new(heads: Heads, heads_per_kv_head: U32) -> RowOrder {
        match heads {
            Heads::Apart => RowOrder::OneHead,
            Heads::Together => RowOrder::HeadsOfQuery(heads_per_kv_head),
        }
    }

    /// How many rows so many queries are.
    #[track_caller]
    pub fn rows(self, queries: U32) -> U32 {
        match self {
            RowOrder::OneHead => queries,
            RowOrder::HeadsOfQuery(heads) => queries * heads,
        }
    }

    #[track_caller]
    pub fn query(self, row: Coordinate) -> Coordinate {
        match self {
            RowOrder::OneHead => row,
            RowOrder::HeadsOfQuery(heads) => Coordinate::from(0) + row.value() / heads,
        }
    }

    /// The queries of some rows.
    #[track_caller]
    pub fn queries(self, rows: Range<U32>) -> Range<U32> {
        match self {
            RowOrder::OneHead => rows,
            RowOrder::HeadsOfQuery(heads) => rows.start / heads..(rows.end + (heads - 1)) / heads,
        }
    }

    /// The number of a row's head behind the first one.
    #[track_caller]
    fn head(self, row: Coordinate) -> U32 {
        match self {
            RowOrder::OneHead => 0.into(),
            RowOrder::HeadsOfQuery(heads) => row.value() - row.value() / heads * heads,
        }
    }

    /// Of the grid's place along the heads: the first head whose rows a block has, and whose keys it reads.
    #[track_caller]
    pub fn heads_at(self, place: U32, heads_per_kv_head: U32) -> [U32; 2] {
        match self {
            RowOrder::OneHead => [place, place / heads_per_kv_head],
            RowOrder::HeadsOfQuery(heads) => [place * heads, place],
        }
    }

    /// Where results go, if no dimension of the grid is the heads.
    #[track_caller]
    pub fn destination<E: Element>(self, of: Destination<E>) -> Destination<E> {
        match self {
            RowOrder::OneHead => of,
            RowOrder::HeadsOfQuery(heads) => of.of_heads(grid_size(1) * heads),
        }
    }

    /// The rows of a sequence's queries in Q or O, from the first head on.
    #[track_caller]
    pub fn matrix<E: Element>(self, sequence: &Sequence, of: &Tensor<E>, head: U32, columns: u32) -> Matrix<E> {
        let first = sequence.queries(of, head, columns);
        match self {
            RowOrder::OneHead => first,
            RowOrder::HeadsOfQuery(heads) => of.rows_of_heads(first, heads),
        }
    }
}

/// Rows of a sequence, from a first one on: of one head, or of all those that share keys.
#[derive(Clone, Copy)]
pub struct RowsFrom<'a> {
    pub sequence: &'a Sequence,
    pub order: RowOrder,
    /// The first of the heads.
    pub head: U32,
    pub first: U32,
}

impl RowsFrom<'_> {
    /// Whether it is the row of a query.
    #[track_caller]
    pub fn has(&self, row: Coordinate) -> Pred {
        (row + self.first).lt(self.order.rows(self.sequence.of.queries))
    }

    #[track_caller]
    pub fn query(&self, row: Coordinate) -> U32 {
        self.order.query(row + self.first).value()
    }

    #[track_caller]
    pub fn head(&self, row: Coordinate) -> U32 {
        self.head + self.order.head(row + self.first)
    }

    /// They all, in O or another tensor of all heads.
    #[track_caller]
    pub fn matrix<E: Element>(&self, of: &Tensor<E>, columns: u32) -> Matrix<E> {
        self.order.matrix(self.sequence, of, self.head, columns)
    }

    /// What `number` has for the head of each row that a lane has a part of.
    #[track_caller]
    pub fn of_heads(&self, share: Share, number: impl Fn(U32) -> F32) -> OfHeads {
        match self.order {
            RowOrder::OneHead => OfHeads::Same(number(self.head)),
            RowOrder::HeadsOfQuery(_) => {
                let rows = 0..share.rows_per_lane();
                OfHeads::EachRow(Rows::new(share, rows.map(|row| number(self.head(share.row(row))))))
            }
        }
    }
}

/// A number that rows have by their head.
#[derive(Clone, Copy)]
pub enum OfHeads {
    Same(F32),
    EachRow(Rows),
}

impl OfHeads {
    #[track_caller]
    pub fn of(self, cell: Cell) -> F32 {
        match self {
            OfHeads::Same(number) => number,
            OfHeads::EachRow(rows) => rows.of(cell),
        }
    }

    /// For rows that lanes share in this way.
    #[track_caller]
    pub fn rows(self, share: Share) -> Rows {
        match self {
            OfHeads::Same(number) => Rows::new(share, std::iter::repeat(number)),
            OfHeads::EachRow(rows) => rows,
        }
    }
}
