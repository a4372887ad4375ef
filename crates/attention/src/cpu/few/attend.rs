//! Few queries and some keys: scores, weights and values with columns in the lanes.

use crate::cpu::Forward;
use crate::cpu::rows::{Strided, narrow, sixteen, widen};
use crate::cpu::simd::{Claim, LANES, Lanes, Number, Simd, flat};
use crate::cpu::softmax::{NOTHING_SEEN, finish};
use std::ops::Range;

/// Keys of a block: of K and V together they fit into a second-level cache.
pub const KEYS: usize = 64;

/// What a group of heads that share K and V finds.
pub struct Few<'a, N> {
    forward: &'a Forward<'a, N>,
    /// Heads that share K and V.
    pub group: usize,
    /// Rows of lanes of a query, and of an output.
    query_lanes: usize,
    output_lanes: usize,
}

impl<'a, N: Number> Few<'a, N> {
    pub fn new(forward: &'a Forward<'a, N>) -> Few<'a, N> {
        let (problem, dims) = (forward.problem, forward.problem.dims());
        Few {
            forward,
            group: (problem.heads() / problem.kv_heads()) as usize,
            query_lanes: (dims.head as usize).div_ceil(LANES),
            output_lanes: (dims.value as usize).div_ceil(LANES),
        }
    }

    pub fn queries(&self) -> usize {
        self.forward.problem.queries() as usize
    }

    pub fn keys(&self) -> usize {
        self.forward.problem.keys() as usize
    }

    pub fn query_rows(&self) -> usize {
        self.group * self.queries() * self.query_lanes
    }

    /// What all queries of a group of heads find among some keys.
    #[inline(always)]
    pub fn attend<S: Simd>(
        &self,
        s: S,
        batch: usize,
        kv_head: usize,
        keys: Range<usize>,
        queries: &mut [Lanes],
        states: &mut [Lanes],
    ) {
        let of = self.forward.problem.lengths();
        for (row, to) in queries.chunks_exact_mut(self.query_lanes).enumerate() {
            let head = kv_head * self.group + row / self.queries();
            widen(s, self.forward.q.row(batch, head, row % self.queries()), flat(to));
        }
        for state in states.chunks_exact_mut(self.output_lanes + 1) {
            state.fill(Lanes::all(0.0));
            state[self.output_lanes].0[0] = NOTHING_SEEN;
        }
        let mut block = keys.start;
        while block < keys.end {
            let end = (block + KEYS).min(keys.end);
            for (row, state) in states.chunks_exact_mut(self.output_lanes + 1).enumerate() {
                let query = row % self.queries();
                let (seen, exact) = self.forward.mask.of(query as u32, of);
                let seen = (seen.start as usize).max(block)..(seen.end as usize).min(end);
                if seen.is_empty() {
                    continue;
                }
                let of_query = &queries[row * self.query_lanes..][..self.query_lanes];
                let head = kv_head * self.group + row / self.queries();
                let mut scores = [Lanes::all(f32::NEG_INFINITY); KEYS / LANES];
                self.products(s, batch, kv_head, of_query, &seen, block, flat(&mut scores));
                self.change(batch, head, query, &seen, exact, block, flat(&mut scores));
                self.weigh(s, batch, kv_head, &seen, block, &mut scores, state);
            }
            block = end;
        }
    }

    /// The products of one query and the keys that it may see.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn products<S: Simd>(
        &self,
        s: S,
        batch: usize,
        kv_head: usize,
        query: &[Lanes],
        seen: &Range<usize>,
        block: usize,
        products: &mut [f32],
    ) {
        const TOGETHER: usize = 4;
        let k = &self.forward.k;
        let mut key = seen.start;
        while key < seen.end {
            // Behind the last key, it is multiplied again, and nobody looks.
            let mut rows: [&[N]; TOGETHER] = [&[]; TOGETHER];
            for (index, row) in rows.iter_mut().enumerate() {
                *row = k.row(batch, kv_head, (key + index).min(seen.end - 1));
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
            let count = TOGETHER.min(seen.end - key);
            for (product, sum) in products[key - block..][..count].iter_mut().zip(sums) {
                *product = s.sum(sum);
            }
            key += TOGETHER;
        }
    }

    /// Scores out of products, −∞ where the query does not see the key.
    #[allow(clippy::too_many_arguments)]
    fn change(
        &self,
        batch: usize,
        head: usize,
        query: usize,
        seen: &Range<usize>,
        exact: bool,
        block: usize,
        scores: &mut [f32],
    ) {
        let Forward { problem, score, mask, documents, .. } = *self.forward;
        let of = problem.lengths();
        for key in seen.clone() {
            let score_of = &mut scores[key - block];
            if !score.is_plain() {
                *score_of = score.one(*score_of * problem.scale(), head, self.forward.number(head), query, key, of);
            }
            let other_document = documents.is_some_and(|[of_queries, of_keys]| {
                of_queries[batch * self.queries() + query] != of_keys[batch * self.keys() + key]
            });
            if other_document || !(exact || mask.sees(query as u32, key as u32, of)) {
                *score_of = f32::NEG_INFINITY;
            }
        }
    }

    /// Weights of the scores, and the values of their keys.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn weigh<S: Simd>(
        &self,
        s: S,
        batch: usize,
        kv_head: usize,
        seen: &Range<usize>,
        block: usize,
        scores: &mut [Lanes; KEYS / LANES],
        state: &mut [Lanes],
    ) {
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
            for row in output.iter_mut() {
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
        let (v, weights) = (&self.forward.v, flat(scores));
        let whole = self.forward.problem.value_dim() as usize / LANES;
        let (groups, rest) = output.as_chunks_mut::<4>();
        let in_groups = groups.len() * 4;
        for (index, output) in groups.iter_mut().enumerate() {
            if (index + 1) * 4 > whole {
                // The last group of all has a row that is not whole.
                for (lane, output) in output.iter_mut().enumerate() {
                    add_values(s, v, [batch, kv_head], seen, weights, block, (index * 4 + lane) * LANES, output);
                }
                continue;
            }
            let mut sums = [s.splat(0.0); 4];
            for key in seen.clone() {
                let (row, weight) = (v.row(batch, kv_head, key), s.splat(weights[key - block]));
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
            add_values(s, v, [batch, kv_head], seen, weights, block, (in_groups + lane) * LANES, output);
        }
    }

    /// What two parts found, as one.
    #[inline(always)]
    pub fn join<S: Simd>(&self, s: S, whole: &mut [Lanes], part: &[Lanes]) {
        let rows = self.output_lanes + 1;
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
        for (row, state) in states.chunks_exact(self.output_lanes + 1).enumerate() {
            let (head, query) = (claim.item.heads.start + row / self.queries(), row % self.queries());
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

/// Adds sixteen columns of the values of the keys that are seen, each times its weight.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn add_values<S: Simd, N: Number>(
    s: S,
    v: &Strided<N>,
    [batch, kv_head]: [usize; 2],
    seen: &Range<usize>,
    weights: &[f32],
    block: usize,
    column: usize,
    output: &mut Lanes,
) {
    let mut sum = s.splat(0.0);
    for key in seen.clone() {
        let numbers = sixteen(v.row(batch, kv_head, key), column);
        sum = s.mul_add(N::widen(s, &numbers), s.splat(weights[key - block]), sum);
    }
    let sum = s.add(s.load(&output.0), sum);
    s.store(&mut output.0, sum);
}
