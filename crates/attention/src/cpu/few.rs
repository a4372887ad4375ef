//! Few queries: lanes are columns, so that none is idle, and K and V are read once for all heads that share them.
//!
//! Where there are few heads, too, keys are split: each part finds what it would if there were no other, and the parts are
//! joined in their order.

use super::division::{Division, Item};
use super::rows::{Strided, narrow, sixteen, widen};
use super::simd::{self, Chunks, Claim, Claims, InstructionSet, LANES, Lanes, Number, Product, Simd, Task, flat};
use super::softmax::{NOTHING_SEEN, finish};
use super::workspace::{self, room};
use super::{Forward, threads};
use std::ops::Range;

/// More queries fill the lanes of a tile well enough.
pub const MOST_QUERIES: u32 = 4;
/// Keys of a block: of K and V together they fit into a second-level cache.
const KEYS: usize = 64;
/// Keys of a part at least, and parts of all heads together that are enough for any number of threads.
const LEAST_PART: usize = 256;
const ENOUGH_PARTS: usize = 64;

/// Rows of lanes that all parts of a call may take together: 1 MiB.
const MOST_STATES: usize = 1 << 14;

/// How keys are split. The same for any number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    /// Keys of a part.
    each: usize,
    parts: usize,
}

impl Split {
    /// Of the keys of so many heads, where a part finds `state` rows of lanes.
    fn new(keys: usize, heads: usize, state: usize) -> Split {
        let room = MOST_STATES / (heads * state);
        let parts = ENOUGH_PARTS.div_ceil(heads).min(keys / LEAST_PART).min(room).max(1);
        let each = keys.div_ceil(parts).next_multiple_of(KEYS).max(KEYS);
        Split { each, parts: keys.div_ceil(each).max(1) }
    }
}

pub fn run<N: Number>(forward: &Forward<N>, set: InstructionSet, o: &mut [N], o_strides: [usize; 3], lse: &mut [f32]) {
    let problem = forward.problem;
    let [batch, heads, kv_heads, queries, keys, columns] =
        [problem.batch(), problem.heads(), problem.kv_heads(), problem.queries(), problem.keys(), problem.value_dim()]
            .map(|extent| extent as usize);
    let group = heads / kv_heads;
    let size = group * queries * state_rows(columns);
    let split = Split::new(keys, batch * kv_heads, size);
    let mut no_blocks = vec![];
    let division = Division::new([batch, heads, group], queries, problem.lengths(), None, &mut no_blocks);
    let claims = Claims::new(&division, o, o_strides, columns, lse);
    let threads = threads::worth(forward, set);
    if split.parts == 1 {
        threads::fan_out(threads, &|| {
            workspace::with(|memory| simd::run(set, Whole { forward, claims: &claims, size, memory }));
        });
        return;
    }
    workspace::with_parts(|memory| {
        let states = room(memory, batch * kv_heads * split.parts * size);
        let chunks = Chunks::new(states, size);
        threads::fan_out(threads, &|| {
            workspace::with(|memory| simd::run(set, Parts { forward, chunks: &chunks, split, memory }));
        });
        simd::run(set, Join { forward, claims: &claims, states, size, split });
    });
}

/// What is found for a query of a head: its output, not divided yet; and in the last row its maximum and its sum.
fn state_rows(columns: usize) -> usize {
    columns.div_ceil(LANES) + 1
}

/// Heads whose keys are not split.
struct Whole<'a, N> {
    forward: &'a Forward<'a, N>,
    claims: &'a Claims<'a, N>,
    size: usize,
    memory: &'a mut Vec<Lanes>,
}

impl<N: Number> Task for Whole<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        let few = Few::new(self.forward);
        let (states, queries) = room(self.memory, self.size + few.query_rows()).split_at_mut(self.size);
        while let Some(mut claim) = self.claims.next() {
            let Item { sequence, heads, .. } = claim.item.clone();
            few.attend(s, sequence.batch, heads.start / few.group, 0..few.keys(), queries, states);
            few.finish(s, states, &mut claim);
        }
    }
}

/// Parts of the keys of a head.
struct Parts<'a, N> {
    forward: &'a Forward<'a, N>,
    chunks: &'a Chunks<'a, Lanes>,
    split: Split,
    memory: &'a mut Vec<Lanes>,
}

impl<N: Number> Task for Parts<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        let few = Few::new(self.forward);
        let queries = room(self.memory, few.query_rows());
        let kv_heads = self.forward.problem.kv_heads() as usize;
        while let Some((index, states)) = self.chunks.next() {
            let (head, part) = (index / self.split.parts, index % self.split.parts);
            let first = part * self.split.each;
            let keys = first..(first + self.split.each).min(few.keys());
            few.attend(s, head / kv_heads, head % kv_heads, keys, queries, states);
        }
    }
}

/// The parts of each head become one, in their order.
struct Join<'a, N> {
    forward: &'a Forward<'a, N>,
    claims: &'a Claims<'a, N>,
    states: &'a mut [Lanes],
    size: usize,
    split: Split,
}

impl<N: Number> Task for Join<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        let few = Few::new(self.forward);
        let kv_heads = self.forward.problem.kv_heads() as usize;
        while let Some(mut claim) = self.claims.next() {
            let head = claim.item.sequence.batch * kv_heads + claim.item.heads.start / few.group;
            let states = &mut self.states[head * self.split.parts * self.size..][..self.split.parts * self.size];
            let (whole, parts) = states.split_at_mut(self.size);
            for part in parts.chunks_exact(self.size) {
                few.join(s, whole, part);
            }
            few.finish(s, whole, &mut claim);
        }
    }
}

struct Few<'a, N> {
    forward: &'a Forward<'a, N>,
    /// Heads that share K and V.
    group: usize,
    /// Rows of lanes of a query, and of an output.
    query_lanes: usize,
    output_lanes: usize,
}

impl<'a, N: Number> Few<'a, N> {
    fn new(forward: &'a Forward<'a, N>) -> Few<'a, N> {
        let (problem, dims) = (forward.problem, forward.problem.dims());
        Few {
            forward,
            group: (problem.heads() / problem.kv_heads()) as usize,
            query_lanes: (dims.head as usize).div_ceil(LANES),
            output_lanes: (dims.value as usize).div_ceil(LANES),
        }
    }

    fn queries(&self) -> usize {
        self.forward.problem.queries() as usize
    }

    fn keys(&self) -> usize {
        self.forward.problem.keys() as usize
    }

    fn query_rows(&self) -> usize {
        self.group * self.queries() * self.query_lanes
    }

    /// What all queries of a group of heads find among some keys.
    #[inline(always)]
    fn attend<S: Simd>(
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
    fn join<S: Simd>(&self, s: S, whole: &mut [Lanes], part: &[Lanes]) {
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
    fn finish<S: Simd>(&self, s: S, states: &[Lanes], claim: &mut Claim<N>) {
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
