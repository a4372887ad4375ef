//! Sequences of different lengths, one behind the other in each tensor.

use super::Problem;
use crate::Error;
use crate::visibility::Lengths;

/// Where each sequence begins, and behind the last entry where the last one ends: one number more than sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    queries: Vec<u32>,
    keys: Vec<u32>,
}

impl Packed {
    /// From cumulative lengths of queries (`cu_q`) and of keys (`cu_k`).
    pub fn new(queries: Vec<u32>, keys: Vec<u32>) -> Result<Packed, Error> {
        Packed::check(&queries, &keys)?;
        Ok(Packed { queries, keys })
    }

    /// Whether sequences begin and end there. Allocates nothing where they do.
    pub fn check(queries: &[u32], keys: &[u32]) -> Result<(), Error> {
        let wrong = |argument, found| Err(Error::Cumulative { argument, found });
        for (argument, places) in [("cu_q", queries), ("cu_k", keys)] {
            if places.len() < 2 {
                return wrong(argument, format!("has {} numbers", places.len()));
            }
            if places[0] != 0 {
                return wrong(argument, format!("begins with {}", places[0]));
            }
            if let Some(at) = places.windows(2).position(|pair| pair[1] < pair[0]) {
                return wrong(argument, format!("goes from {} to {} at entry {}", places[at], places[at + 1], at + 1));
            }
        }
        if queries.len() != keys.len() {
            return wrong("cu_k", format!("has {} numbers, and `cu_q` {}", keys.len(), queries.len()));
        }
        Ok(())
    }

    pub fn batch(&self) -> u32 {
        self.queries.len() as u32 - 1
    }

    /// Cumulative lengths of the queries.
    pub fn queries(&self) -> &[u32] {
        &self.queries
    }

    /// Cumulative lengths of the keys.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Of all sequences together.
    pub fn totals(&self) -> Lengths {
        let last = |places: &[u32]| places.last().copied().unwrap_or_default();
        Lengths { queries: last(&self.queries), keys: last(&self.keys) }
    }

    /// The longest of each.
    pub fn longest(&self) -> Lengths {
        let longest = |places: &[u32]| lengths(places).max().unwrap_or_default();
        Lengths { queries: longest(&self.queries), keys: longest(&self.keys) }
    }
}

/// How long each sequence is.
pub fn lengths(places: &[u32]) -> impl Iterator<Item = u32> + '_ {
    places.windows(2).map(|pair| pair[1] - pair[0])
}

/// One query of one head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    pub batch: usize,
    pub head: usize,
    /// In its sequence.
    pub query: usize,
    /// Of its sequence.
    pub of: Lengths,
    /// Rows of Q and of K before its sequence, whatever the head.
    pub queries_before: usize,
    pub keys_before: usize,
}

impl Problem {
    /// Of each sequence; one pair stands for all where they are even.
    pub fn sequence_lengths(&self) -> impl Iterator<Item = Lengths> + '_ {
        let packed = self.packed.as_ref();
        let each = packed.map(|packed| lengths(&packed.queries).zip(lengths(&packed.keys)));
        let even = packed.is_none().then_some(self.lengths);
        each.into_iter().flatten().map(|(queries, keys)| Lengths { queries, keys }).chain(even)
    }

    /// The query whose row this is, where rows are counted as (batch, heads, queries), or (heads, queries) of packed sequences.
    pub fn locate(&self, row: usize) -> Located {
        let [heads, rows] = [self.heads, self.q_shape().rows].map(|count| count as usize);
        let (outer, head, place) = (row / rows / heads, row / rows % heads, row % rows);
        let Some(Packed { queries, keys }) = &self.packed else {
            let of = self.lengths;
            let [queries_before, keys_before] = [of.queries, of.keys].map(|count| outer * count as usize);
            return Located { batch: outer, head, query: place, of, queries_before, keys_before };
        };
        let batch = queries.partition_point(|&first| first as usize <= place) - 1;
        let of = Lengths { queries: queries[batch + 1] - queries[batch], keys: keys[batch + 1] - keys[batch] };
        let [queries_before, keys_before] = [queries, keys].map(|places| places[batch] as usize);
        Located { batch, head, query: place - queries_before, of, queries_before, keys_before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_belong_to_the_sequence_around_them() {
        let problem: Problem = "H2 Sq3,0,2 Sk1,4,5".parse().unwrap();
        let located = |row| {
            let Located { batch, head, query, of, keys_before, .. } = problem.locate(row);
            (batch, head, query, of.queries, of.keys, keys_before)
        };
        assert_eq!(
            [0, 2, 3, 4].map(located),
            [(0, 0, 0, 3, 1, 0), (0, 0, 2, 3, 1, 0), (2, 0, 0, 2, 5, 5), (2, 0, 1, 2, 5, 5)]
        );
        assert_eq!(located(5), (0, 1, 0, 3, 1, 0));
        let even: Problem = "B2 H2 Sq3 Sk4".parse().unwrap();
        assert_eq!((even.locate(10).batch, even.locate(10).head, even.locate(10).query), (1, 1, 1));
        assert_eq!((even.locate(10).queries_before, even.locate(10).keys_before), (3, 4));
    }

    #[test]
    fn impossible_places_are_refused_by_name() {
        let refused = |queries: &[u32], keys: &[u32]| Packed::new(queries.into(), keys.into()).unwrap_err().to_string();
        let expected = "expected where each sequence begins and the last one ends, from 0 on and never backwards";
        assert_eq!(refused(&[0, 5, 3], &[0, 5, 9]), format!("`cu_q` goes from 5 to 3 at entry 2: {expected}"));
        assert_eq!(refused(&[0, 5, 7], &[0, 5, 4]), format!("`cu_k` goes from 5 to 4 at entry 2: {expected}"));
        assert_eq!(refused(&[1, 5], &[0, 5]), format!("`cu_q` begins with 1: {expected}"));
        assert_eq!(refused(&[0], &[0]), format!("`cu_q` has 1 numbers: {expected}"));
        assert_eq!(refused(&[0, 5], &[0, 5, 9]), format!("`cu_k` has 3 numbers, and `cu_q` 2: {expected}"));
    }
}
