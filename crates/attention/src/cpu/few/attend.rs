//! Few queries and some keys: scores, weights and values with columns in the lanes.

use crate::cpu::Forward;
use crate::cpu::division::{Item, Sequence};
use crate::cpu::rows::{narrow, widen};
use crate::cpu::simd::{Claim, LANES, Lanes, Number, Rows, Simd, add_values, flat, products};
use crate::cpu::softmax::{NOTHING_SEEN, SLACK, finish};
use std::ops::Range;

/// Keys of a block: enough to make up for what is done once for each, and their K and V fit into a second-level cache.
pub const KEYS: usize = 128;

/// An item: all queries of heads that share K and V, one head behind the other.
pub struct Few<'a, N> {
    forward: &'a Forward<'a, N>,
    item: Item,
    /// Rows of lanes of a query, and of an output.
    query_lanes: usize,
    output_lanes: usize,
    /// What the softmax multiplies with before it takes powers of two.
    scale: f32,
    /// Whether products are scores, but for keys that a query does not see.
    plain: bool,
}

/// A block of keys.
struct Block<'a, N> {
    keys: Range<usize>,
    /// What is fetched while products are computed, and while values are added.
    soon: [&'a [N]; 2],
}

impl<'a, N: Number> Few<'a, N> {
    pub fn new(forward: &'a Forward<'a, N>, item: Item) -> Few<'a, N> {
        let dims = forward.problem.dims();
        let [query_lanes, output_lanes] = [dims.head, dims.value].map(|columns| (columns as usize).div_ceil(LANES));
        let plain = forward.score.is_plain() && forward.documents.is_none();
        Few { forward, item, query_lanes, output_lanes, scale: forward.exponent_scale(), plain }
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

    /// Some of the keys.
    #[inline(always)]
    fn keys_in(&self, keys: &Range<usize>) -> Rows<'a, N> {
        let Sequence { batch, first_key, .. } = self.item.sequence;
        self.forward.k.rows(batch, self.kv_head(), first_key + keys.start, keys.len())
    }

    /// Their values.
    #[inline(always)]
    fn values_of(&self, keys: &Range<usize>) -> Rows<'a, N> {
        let Sequence { batch, first_key, .. } = self.item.sequence;
        self.forward.v.rows(batch, self.kv_head(), first_key + keys.start, keys.len())
    }

    /// The values of a block, and the keys of the next one, as far as nothing is between their rows.
    #[inline(always)]
    fn soon(&self, block: Range<usize>, next: Range<usize>) -> [&'a [N]; 2] {
        let Forward { k, v, .. } = self.forward;
        let Sequence { batch, first_key, .. } = self.item.sequence;
        let values = v.dense(batch, self.kv_head(), first_key + block.start, block.len());
        let keys =
            if next.is_empty() { None } else { k.dense(batch, self.kv_head(), first_key + next.start, next.len()) };
        [values, keys].map(Option::unwrap_or_default)
    }

    /// What all queries find among some keys. `room` is for the queries as f32, and for the scores of a block.
    #[inline(always)]
    pub fn attend<S: Simd>(&self, s: S, keys: Range<usize>, room: &mut [Lanes], states: &mut [Lanes]) {
        let (queries, scores) = room.split_at_mut(self.rows() * self.query_lanes);
        let states = &mut states[..self.rows() * (self.output_lanes + 1)];
        self.begin(s, queries, states);
        let mut block = keys.start;
        while block < keys.end {
            let end = (block + KEYS).min(keys.end);
            let soon = self.soon(block..end, end..(end + KEYS).min(keys.end));
            let states = states.chunks_exact_mut(self.output_lanes + 1);
            for (row, (query, state)) in queries.chunks_exact(self.query_lanes).zip(states).enumerate() {
                // All heads and queries share what the first one has fetched.
                let block = Block { keys: block..end, soon: if row == 0 { soon } else { [&[]; 2] } };
                self.attend_block(s, row, &block, query, scores, state);
            }
            block = end;
        }
    }

    /// Queries as f32, and states in which nothing was seen.
    #[inline(always)]
    fn begin<S: Simd>(&self, s: S, queries: &mut [Lanes], states: &mut [Lanes]) {
        let Sequence { batch, first_query, .. } = self.item.sequence;
        for (row, to) in queries.chunks_exact_mut(self.query_lanes).enumerate() {
            let (head, query) = self.of_row(row);
            widen(s, self.forward.q.row(batch, head, first_query + query), flat(to));
        }
        for state in states.chunks_exact_mut(self.output_lanes + 1) {
            state.fill(Lanes::all(0.0));
            state[self.output_lanes].0[0] = NOTHING_SEEN;
        }
    }

    /// What one query finds in a block.
    #[inline(always)]
    fn attend_block<S: Simd>(
        &self,
        s: S,
        row: usize,
        block: &Block<N>,
        query: &[Lanes],
        scores: &mut [Lanes],
        state: &mut [Lanes],
    ) {
        let (_, index) = self.of_row(row);
        let (some, exact) = self.forward.mask.of(index as u32, self.item.sequence.of);
        let keys = (some.start as usize).max(block.keys.start)..(some.end as usize).min(block.keys.end);
        if keys.is_empty() {
            return;
        }
        let scores = &mut scores[..keys.len().div_ceil(LANES)];
        // Lanes behind the last key have no weight.
        if let Some(last) = scores.last_mut() {
            *last = Lanes::all(f32::NEG_INFINITY);
        }
        products(s, query, self.keys_in(&keys), block.soon[0], &mut flat(scores)[..keys.len()]);
        if !(exact && self.plain) {
            self.change(row, exact, keys.clone(), &mut flat(scores)[..keys.len()]);
        }
        self.weigh(s, scores, state);
        add_values(
            s,
            &flat(scores)[..keys.len()],
            self.values_of(&keys),
            block.soon[1],
            &mut state[..self.output_lanes],
        );
    }

    /// Scores out of products, −∞ where the query does not see the key.
    fn change(&self, row: usize, exact: bool, keys_seen: Range<usize>, scores: &mut [f32]) {
        let (head, query) = self.of_row(row);
        let Forward { problem, score, mask, documents, .. } = *self.forward;
        let Sequence { batch, first_query, first_key, of } = self.item.sequence;
        let [queries, keys] = [problem.queries(), problem.keys()].map(|rows| batch * rows as usize);
        for (key, score_of) in keys_seen.zip(scores) {
            if !score.is_plain() {
                *score_of = score.one(*score_of * problem.scale(), head, self.forward.number(head), query, key, of);
            }
            let other_document = documents.is_some_and(|[of_queries, of_keys]| {
                of_queries[queries + first_query + query] != of_keys[keys + first_key + key]
            });
            if other_document || !(exact || mask.sees(query as u32, key as u32, of)) {
                *score_of = f32::NEG_INFINITY;
            }
        }
    }

    /// Weights in place of the scores of a block, and what they do to maximum, sum and output.
    #[inline(always)]
    fn weigh<S: Simd>(&self, s: S, scores: &mut [Lanes], state: &mut [Lanes]) {
        let scale = self.scale;
        let (output, statistics) = state.split_at_mut(self.output_lanes);
        let [maximum, sum, ..] = &mut statistics[0].0;
        let mut top = s.splat(f32::NEG_INFINITY);
        for row in scores.iter() {
            top = s.max(s.load(&row.0), top);
        }
        // As long as no weight can grow large, nothing is rescaled.
        if s.any_above(s.mul(s.sub(top, s.splat(*maximum)), s.splat(scale)), s.splat(SLACK)) {
            let mut lanes = [0.0; LANES];
            s.store(&mut lanes, top);
            let new = lanes.iter().fold(*maximum, |most, lane| most.max(*lane));
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

    /// What two parts found, as one.
    #[inline(always)]
    pub fn join<S: Simd>(&self, s: S, whole: &mut [Lanes], part: &[Lanes]) {
        let rows = self.output_lanes + 1;
        let whole = &mut whole[..self.rows() * rows];
        for (whole, part) in whole.chunks_exact_mut(rows).zip(part.chunks_exact(rows)) {
            let [of_whole, of_part] = [whole[self.output_lanes].0, part[self.output_lanes].0];
            let (top, scale) = (of_whole[0].max(of_part[0]), self.scale);
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
