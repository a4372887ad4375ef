//! Few queries and some keys: scores, weights and values with columns in the lanes.

use crate::cpu::Forward;
use crate::cpu::division::{Item, Sequence};
use crate::cpu::rows::{narrow, sixteen, widen};
use crate::cpu::simd::{Claim, LANES, Lanes, Number, Simd, flat};
use crate::cpu::softmax::{NOTHING_SEEN, finish};
use std::ops::Range;

/// Keys of a block: of K and V together they fit into a second-level cache.
pub const KEYS: usize = 64;

/// An item: all queries of heads that share K and V, one head behind the other.
pub struct Few<'a, N> {
    forward: &'a Forward<'a, N>,
    item: Item,
    /// Rows of lanes of a query, and of an output.
    query_lanes: usize,
    output_lanes: usize,
}

/// Keys of a block that a query may see, counted in its sequence.
#[derive(Clone)]
struct Seen {
    keys: Range<usize>,
    /// Whether it sees all of them.
    exact: bool,
    /// The first key of the block.
    block: usize,
}

impl<'a, N: Number> Few<'a, N> {
    pub fn new(forward: &'a Forward<'a, N>, item: Item) -> Few<'a, N> {
        let dims = forward.problem.dims();
        let [query_lanes, output_lanes] = [dims.head, dims.value].map(|columns| (columns as usize).div_ceil(LANES));
        Few { forward, item, query_lanes, output_lanes }
    }

    /// Of its sequence.
    pub fn keys(&self) -> usize {
        self.item.sequence.of.keys as usize
    }

    fn queries(&self) -> usize {
        self.item.queries.len()
    }

    /// Queries of all heads.
    fn rows(&self) -> usize {
        self.item.heads.len() * self.queries()
    }

    /// Head and query of a row.
    fn of_row(&self, row: usize) -> (usize, usize) {
        (self.item.heads.start + row / self.queries(), row % self.queries())
    }

    fn kv_head(&self) -> usize {
        self.forward.problem.kv_head(self.item.heads.start as u32) as usize
    }

    #[inline(always)]
    fn key(&self, key: usize) -> &'a [N] {
        let Sequence { batch, first_key, .. } = self.item.sequence;
        self.forward.k.row(batch, self.kv_head(), first_key + key)
    }

    #[inline(always)]
    fn value(&self, key: usize) -> &'a [N] {
        let Sequence { batch, first_key, .. } = self.item.sequence;
        self.forward.v.row(batch, self.kv_head(), first_key + key)
    }

    /// What all queries find among some keys.
    #[inline(always)]
    pub fn attend<S: Simd>(&self, s: S, keys: Range<usize>, queries: &mut [Lanes], states: &mut [Lanes]) {
        let Sequence { batch, first_query, of, .. } = self.item.sequence;
        let queries = &mut queries[..self.rows() * self.query_lanes];
        let states = &mut states[..self.rows() * (self.output_lanes + 1)];
        for (row, to) in queries.chunks_exact_mut(self.query_lanes).enumerate() {
            let (head, query) = self.of_row(row);
            widen(s, self.forward.q.row(batch, head, first_query + query), flat(to));
        }
        for state in states.chunks_exact_mut(self.output_lanes + 1) {
            state.fill(Lanes::all(0.0));
            state[self.output_lanes].0[0] = NOTHING_SEEN;
        }
        let mut block = keys.start;
        while block < keys.end {
            let end = (block + KEYS).min(keys.end);
            for (row, state) in states.chunks_exact_mut(self.output_lanes + 1).enumerate() {
                let (head, query) = self.of_row(row);
                let (some, exact) = self.forward.mask.of(query as u32, of);
                let keys = (some.start as usize).max(block)..(some.end as usize).min(end);
                if keys.is_empty() {
                    continue;
                }
                let seen = Seen { keys, exact, block };
                let mut scores = [Lanes::all(f32::NEG_INFINITY); KEYS / LANES];
                self.products(s, &queries[row * self.query_lanes..][..self.query_lanes], &seen, flat(&mut scores));
                self.change(head, query, &seen, flat(&mut scores));
                self.weigh(s, &mut scores, state);
                self.add_values(s, &seen, flat(&mut scores), &mut state[..self.output_lanes]);
            }
            block = end;
        }
    }

    /// The products of one query and the keys that it may see.
    #[inline(always)]
    fn products<S: Simd>(&self, s: S, query: &[Lanes], seen: &Seen, products: &mut [f32]) {
        const TOGETHER: usize = 4; // Keys for which a word of the query is loaded once.
        let Seen { ref keys, block, .. } = *seen;
        let mut key = keys.start;
        while key < keys.end {
            // Behind the last key, it is multiplied again, and nobody looks.
            let mut rows: [&[N]; TOGETHER] = [&[]; TOGETHER];
            for (index, row) in rows.iter_mut().enumerate() {
                *row = self.key((key + index).min(keys.end - 1));
            }
            let [first, second, third, fourth] = rows.map(|row| row.as_chunks::<LANES>().0);
            let mut sums = [s.splat(0.0); TOGETHER];
            let whole = first.iter().zip(second).zip(third).zip(fourth);
            for (words, (((first, second), third), fourth)) in query.iter().zip(whole) {
                let words = s.load(&words.0);
                sums[0] = s.mul_add(N::widen(s, first), words, sums[0]);
                sums[1] = s.mul_add(N::widen(s, second), words, sums[1]);
                sums[2] = s.mul_add(N::widen(s, third), words, sums[2]);
                sums[3] = s.mul_add(N::widen(s, fourth), words, sums[3]);
            }
            if let Some(words) = query.get(first.len()) {
                let words = s.load(&words.0);
                for (sum, row) in sums.iter_mut().zip(&rows) {
                    *sum = s.mul_add(N::widen(s, &sixteen(row, first.len() * LANES)), words, *sum);
                }
            }
            let count = TOGETHER.min(keys.end - key);
            for (product, sum) in products[key - block..][..count].iter_mut().zip(sums) {
                *product = s.sum(sum);
            }
            key += TOGETHER;
        }
    }

    /// Scores out of products, −∞ where the query does not see the key.
    fn change(&self, head: usize, query: usize, seen: &Seen, scores: &mut [f32]) {
        let Forward { problem, score, mask, documents, .. } = *self.forward;
        let Sequence { batch, first_query, first_key, of } = self.item.sequence;
        let [queries, keys] = [problem.queries(), problem.keys()].map(|rows| batch * rows as usize);
        for key in seen.keys.clone() {
            let score_of = &mut scores[key - seen.block];
            if !score.is_plain() {
                *score_of = score.one(*score_of * problem.scale(), head, self.forward.number(head), query, key, of);
            }
            let other_document = documents.is_some_and(|[of_queries, of_keys]| {
                of_queries[queries + first_query + query] != of_keys[keys + first_key + key]
            });
            if other_document || !(seen.exact || mask.sees(query as u32, key as u32, of)) {
                *score_of = f32::NEG_INFINITY;
            }
        }
    }

    /// Weights in place of the scores of a block, and what they do to maximum, sum and output.
    #[inline(always)]
    fn weigh<S: Simd>(&self, s: S, scores: &mut [Lanes; KEYS / LANES], state: &mut [Lanes]) {
        let scale = self.forward.exponent_scale();
        let (output, statistics) = state.split_at_mut(self.output_lanes);
        let [maximum, sum, ..] = &mut statistics[0].0;
        let mut top = s.splat(f32::NEG_INFINITY);
        for row in scores.iter() {
            top = s.max(s.load(&row.0), top);
        }
        let mut lanes = [0.0; LANES];
        s.store(&mut lanes, top);
        let new = lanes.iter().fold(*maximum, |most, lane| most.max(*lane));
        if new > *maximum {
            let factor = ((*maximum - new) * scale).exp2();
            *sum *= factor;
            for row in output {
                let scaled = s.mul(s.load(&row.0), s.splat(factor));
                s.store(&mut row.0, scaled);
            }
            *maximum = new;
        }
        let mut total = s.splat(0.0);
        for row in scores.iter_mut() {
            let weight = s.exp2(s.mul(s.sub(s.load(&row.0), s.splat(*maximum)), s.splat(scale)));
            total = s.add(total, weight);
            s.store(&mut row.0, weight);
        }
        *sum += s.sum(total);
    }

    /// Adds the values of the keys, each times its weight: four rows of lanes at once, as far as they are whole.
    #[inline(always)]
    fn add_values<S: Simd>(&self, s: S, seen: &Seen, weights: &[f32], output: &mut [Lanes]) {
        let whole = self.forward.problem.value_dim() as usize / LANES;
        let (groups, rest) = output.as_chunks_mut::<4>();
        let in_groups = groups.len() * 4;
        for (index, output) in groups.iter_mut().enumerate() {
            if (index + 1) * 4 > whole {
                // The last group of all has a row that is not whole.
                for (lane, output) in output.iter_mut().enumerate() {
                    self.add_columns(s, seen, weights, (index * 4 + lane) * LANES, output);
                }
                continue;
            }
            let mut sums = [s.splat(0.0); 4];
            for key in seen.keys.clone() {
                let (row, weight) = (self.value(key), s.splat(weights[key - seen.block]));
                if let Some([first, second, third, fourth]) = row.as_chunks::<LANES>().0.get(index * 4..index * 4 + 4) {
                    sums[0] = s.mul_add(N::widen(s, first), weight, sums[0]);
                    sums[1] = s.mul_add(N::widen(s, second), weight, sums[1]);
                    sums[2] = s.mul_add(N::widen(s, third), weight, sums[2]);
                    sums[3] = s.mul_add(N::widen(s, fourth), weight, sums[3]);
                }
            }
            for (output, sum) in output.iter_mut().zip(sums) {
                let sum = s.add(s.load(&output.0), sum);
                s.store(&mut output.0, sum);
            }
        }
        for (lane, output) in rest.iter_mut().enumerate() {
            self.add_columns(s, seen, weights, (in_groups + lane) * LANES, output);
        }
    }

    /// The same for sixteen columns.
    #[inline(always)]
    fn add_columns<S: Simd>(&self, s: S, seen: &Seen, weights: &[f32], column: usize, output: &mut Lanes) {
        let mut sum = s.splat(0.0);
        for key in seen.keys.clone() {
            let numbers = sixteen(self.value(key), column);
            sum = s.mul_add(N::widen(s, &numbers), s.splat(weights[key - seen.block]), sum);
        }
        let sum = s.add(s.load(&output.0), sum);
        s.store(&mut output.0, sum);
    }

    /// What two parts found, as one.
    #[inline(always)]
    pub fn join<S: Simd>(&self, s: S, whole: &mut [Lanes], part: &[Lanes]) {
        let rows = self.output_lanes + 1;
        let whole = &mut whole[..self.rows() * rows];
        for (whole, part) in whole.chunks_exact_mut(rows).zip(part.chunks_exact(rows)) {
            let [of_whole, of_part] = [whole[self.output_lanes].0, part[self.output_lanes].0];
            let (top, scale) = (of_whole[0].max(of_part[0]), self.forward.exponent_scale());
            let [left, right] = [of_whole, of_part].map(|statistics| ((statistics[0] - top) * scale).exp2());
            for (whole, part) in whole.iter_mut().zip(part) {
                let scaled = s.mul(s.load(&whole.0), s.splat(left));
                let joined = s.mul_add(s.load(&part.0), s.splat(right), scaled);
                s.store(&mut whole.0, joined);
            }
            whole[self.output_lanes].0[0] = top;
        }
    }

    /// Divides by the sums, and writes rows.
    #[inline(always)]
    pub fn finish<S: Simd>(&self, s: S, states: &[Lanes], claim: &mut Claim<N>) {
        let states = &states[..self.rows() * (self.output_lanes + 1)];
        for (row, state) in states.chunks_exact(self.output_lanes + 1).enumerate() {
            let (head, query) = self.of_row(row);
            let [maximum, sum, ..] = state[self.output_lanes].0;
            let (factor, lse) = finish(self.forward.scaled(maximum), sum, self.forward.sinks.get(head).copied());
            *claim.log_sum_exp(head, query) = lse;
            let to = claim.row(head, query);
            for (index, output) in state[..self.output_lanes].iter().enumerate() {
                narrow(s, s.mul(s.load(&output.0), s.splat(factor)), &mut to[index * LANES..]);
            }
        }
    }
}
