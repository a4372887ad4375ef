//! Many queries: tiles of sixteen, each in its lane, against blocks of keys.

use super::Forward;
use super::change::Scored;
use super::division::{Item, MOST_TILES, Sequence};
use super::rows::{narrow, sixteen, store, widen};
use super::sight::TileSight;
use super::simd::{CHAIN, Claim, Claims, LANES, Lanes, Number, Product, Simd, Task, Words, flat, scores, values};
use super::softmax::{NOTHING_SEEN, Running, finish};
use super::workspace::room;
use std::ops::Range;

/// Keys of a block. What it is matters little: from 64 to 512 the speed is the same.
const KEYS: usize = 128;

/// Computes items until none is left.
pub struct Tiles<'a, N> {
    pub forward: &'a Forward<'a, N>,
    pub claims: &'a Claims<'a, N>,
    /// Queries of an item at most.
    pub rows: usize,
    pub memory: &'a mut Vec<Lanes>,
}

impl<N: Number> Task for Tiles<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, p: P) {
        let sizes = Sizes::new::<S, P, ROWS>(self.forward, self.rows);
        let mut memory = sizes.divide(room(self.memory, sizes.total()));
        while let Some(mut claim) = self.claims.next() {
            let item = Attended { forward: self.forward, item: claim.item.clone(), sizes };
            item.begin::<S, P>(s, &mut memory);
            item.attend::<S, P, ROWS>(s, p, &mut memory);
            item.finish(s, &mut memory, &mut claim);
        }
    }
}

/// How much memory a thread needs, in rows of lanes.
#[derive(Clone, Copy)]
struct Sizes {
    tiles: usize,
    /// Words of a query or a key.
    words: usize,
    /// Columns of V in whole groups of sums.
    columns: usize,
    /// Rows of words of a block of V.
    value_rows: usize,
}

struct Memory<'a> {
    /// Words of the queries, of each tile: a row has the same word of all sixteen.
    queries: &'a mut [Lanes],
    /// Columns of the outputs, of each tile.
    outputs: &'a mut [Lanes],
    maxima: &'a mut [Lanes],
    sums: &'a mut [Lanes],
    /// Of one tile and one block: scores, then weights.
    scores: &'a mut [Lanes],
    /// Words of a block of K and of V, where they cannot stay where they lie.
    keys: &'a mut [Lanes],
    values: &'a mut [Lanes],
}

impl Sizes {
    #[inline(always)]
    fn new<S: Simd, P: Product<S>, const ROWS: usize>(forward: &Forward<impl Number>, rows: usize) -> Sizes {
        let dims = forward.problem.dims();
        Sizes {
            tiles: rows / LANES,
            words: (dims.head as usize).div_ceil(P::NUMBERS),
            columns: (dims.value as usize).next_multiple_of(ROWS),
            value_rows: KEYS / P::NUMBERS,
        }
    }

    fn parts(&self) -> [usize; 7] {
        let Sizes { tiles, words, columns, value_rows } = *self;
        let packed = |words: usize| words.div_ceil(LANES);
        [tiles * words, tiles * columns, tiles, tiles, KEYS, packed(KEYS * words), packed(value_rows * columns)]
    }

    fn total(&self) -> usize {
        self.parts().iter().sum()
    }

    fn divide(self, mut memory: &mut [Lanes]) -> Memory<'_> {
        let [queries, outputs, maxima, sums, scores, keys, values] = self.parts().map(|rows| {
            let (part, rest) = std::mem::take(&mut memory).split_at_mut(rows);
            memory = rest;
            part
        });
        Memory { queries, outputs, maxima, sums, scores, keys, values }
    }
}

/// One item, of one head.
struct Attended<'a, N> {
    forward: &'a Forward<'a, N>,
    item: Item,
    sizes: Sizes,
}

impl<N: Number> Attended<'_, N> {
    fn head(&self) -> usize {
        self.item.heads.start
    }

    fn kv_head(&self) -> usize {
        self.forward.problem.kv_head(self.head() as u32) as usize
    }

    fn tiles(&self) -> usize {
        self.item.queries.len().div_ceil(LANES)
    }

    /// The queries of a tile.
    #[inline(always)]
    fn queries(&self, tile: usize) -> Range<usize> {
        let first = self.item.queries.start + tile * LANES;
        first..(first + LANES).min(self.item.queries.end)
    }

    /// Queries go into their lanes; nothing is seen yet.
    #[inline(always)]
    fn begin<S: Simd, P: Product<S>>(&self, s: S, memory: &mut Memory) {
        let Sequence { batch, first_query, .. } = self.item.sequence;
        for tile in 0..self.tiles() {
            let words = &mut memory.queries[tile * self.sizes.words..][..self.sizes.words];
            let mut at = 0;
            while at < self.sizes.words {
                let mut block = [Lanes::all(0.0); LANES];
                for (lane, query) in self.queries(tile).enumerate() {
                    let row = self.forward.q.row(batch, self.head(), first_query + query);
                    match N::as_bf16(row).filter(|_| P::NUMBERS == 2) {
                        Some(row) => block[lane].0 = pairs(row, at * 2),
                        None => s.store(&mut block[lane].0, N::widen(s, &sixteen(row, at))),
                    }
                }
                s.transpose(&mut block);
                let count = LANES.min(self.sizes.words - at);
                words[at..at + count].copy_from_slice(&block[..count]);
                at += LANES;
            }
        }
        memory.outputs[..self.tiles() * self.sizes.columns].fill(Lanes::all(0.0));
        memory.maxima[..self.tiles()].fill(Lanes::all(NOTHING_SEEN));
        memory.sums[..self.tiles()].fill(Lanes::all(0.0));
    }

    /// Block by block of the keys that any query sees, and tile by tile.
    #[inline(always)]
    fn attend<S: Simd, P: Product<S>, const ROWS: usize>(&self, s: S, p: P, memory: &mut Memory) {
        let of = self.item.sequence.of;
        let sight = |tile: usize| TileSight::new(self.forward.mask, self.queries(tile), of);
        let mut sights = [const { None }; MOST_TILES];
        let (mut first, mut end) = (usize::MAX, 0);
        for (tile, seen) in sights.iter_mut().enumerate().take(self.tiles()) {
            let seen = seen.insert(sight(tile));
            if !seen.some.is_empty() {
                (first, end) = (first.min(seen.some.start), end.max(seen.some.end));
            }
        }
        let mut block = first / KEYS * KEYS;
        while block < end {
            let keys = block..(block + KEYS).min(of.keys as usize);
            let k = self.key_words::<S, P>(s, &keys, memory.keys);
            let v = self.value_words::<S, P, ROWS>(s, p, &keys, memory.values);
            for (tile, sight) in sights.iter().flatten().enumerate() {
                // Whole groups of keys, so that sums are the same whatever is seen beside.
                let seen = sight.some.start.max(keys.start)..sight.some.end.min(keys.end);
                if seen.is_empty() {
                    continue;
                }
                let rows = (seen.start - block) / ROWS * ROWS..seen.end - block;
                let [queries, output] =
                    [(&mut memory.queries, self.sizes.words), (&mut memory.outputs, self.sizes.columns)]
                        .map(|(of, rows)| &mut of[tile * rows..][..rows]);
                let scale = self.forward.exponent_scale();
                let chain = if N::SHOWS_CHAINS { CHAIN } else { usize::MAX };
                let mut top = scores::<S, P, ROWS>(s, p, queries, k, rows.clone(), chain, memory.scores);
                if self.is_changed(sight, &(block + rows.start..block + rows.end)) {
                    top = self.change(s, sight, tile, block, rows.clone(), memory.scores);
                }
                let mut running = Running { maxima: &mut memory.maxima[tile], sums: &mut memory.sums[tile] };
                running.raise(s, top, scale, output);
                running.weigh(s, p, memory.scores, rows.clone(), scale);
                let rows = rows.start / P::NUMBERS..rows.end.div_ceil(P::NUMBERS);
                values::<S, P, ROWS>(s, p, memory.scores, v, rows, output);
            }
            block += KEYS;
        }
    }

    /// Whether products are not yet what the softmax takes.
    fn is_changed(&self, sight: &TileSight, keys: &Range<usize>) -> bool {
        !sight.all_see(keys) || !self.forward.score.is_plain() || self.forward.documents.is_some()
    }

    /// Scores out of products, −∞ where a query does not see the key; and the largest of each query.
    #[inline(always)]
    fn change<S: Simd>(
        &self,
        s: S,
        sight: &TileSight,
        tile: usize,
        block: usize,
        rows: Range<usize>,
        scores: &mut [Lanes],
    ) -> S::Vector {
        let Forward { problem, score, mask, documents, .. } = *self.forward;
        let Sequence { batch, first_query, first_key, of } = self.item.sequence;
        let queries = self.queries(tile);
        let hidden = s.splat(f32::NEG_INFINITY);
        let [first, end] = sight.relative_to(s, block);
        let (plain, scale) = (score.is_plain(), s.splat(problem.scale()));
        let mut at =
            Scored { head: self.head(), number: self.forward.number(self.head()), key: 0, queries: [0; LANES], of };
        for lane in 0..LANES {
            at.queries[lane] = (queries.start + lane).min(queries.end - 1) as u32;
        }
        let mut of_queries = [0; LANES];
        let mut of_keys: &[u32] = &[];
        if let Some([of_q, of_k]) = documents {
            let of_q = &of_q[batch * problem.q_shape().rows as usize + first_query..];
            for lane in 0..LANES {
                of_queries[lane] = of_q[at.queries[lane] as usize];
            }
            of_keys = &of_k[batch * problem.k_shape().rows as usize + first_key..];
        }
        let mut top = hidden;
        for row in rows {
            at.key = block + row;
            let mut score_of = s.load(&scores[row].0);
            if !plain {
                score_of = score.apply(s, s.mul(score_of, scale), &at);
            }
            let place = s.splat(row as f32);
            score_of = s.if_below(place, first, hidden, score_of);
            score_of = s.if_below(place, end, score_of, hidden);
            if !sight.exact || documents.is_some() {
                let mut lanes = [0.0; LANES];
                s.store(&mut lanes, score_of);
                for lane in 0..LANES {
                    if documents.is_some() && of_queries[lane] != of_keys[at.key] {
                        lanes[lane] = f32::NEG_INFINITY;
                    }
                    if !sight.exact && !mask.sees(at.queries[lane], at.key as u32, of) {
                        lanes[lane] = f32::NEG_INFINITY;
                    }
                }
                score_of = s.load(&lanes);
            }
            s.store(&mut scores[row].0, score_of);
            top = s.max(score_of, top);
        }
        top
    }

    /// K of a block as words: where it lies, or in `memory`.
    #[inline(always)]
    fn key_words<'m, S: Simd, P: Product<S>>(
        &'m self,
        s: S,
        keys: &Range<usize>,
        memory: &'m mut [Lanes],
    ) -> Words<'m> {
        let Sequence { batch, first_key, .. } = self.item.sequence;
        let (k, head, columns) = (&self.forward.k, self.kv_head(), self.forward.problem.head_dim() as usize);
        if let Some(dense) = k.dense(batch, head, first_key + keys.start, keys.len()) {
            if let Some(numbers) = N::as_f32(dense) {
                return Words::singles(numbers, columns);
            }
            if let Some(numbers) = N::as_bf16(dense).filter(|_| P::NUMBERS == 2 && columns.is_multiple_of(2)) {
                return Words::pairs(numbers, columns);
            }
        }
        let words = self.sizes.words;
        let memory = &mut flat(memory)[..keys.len() * words];
        for (key, to) in keys.clone().zip(memory.chunks_exact_mut(words)) {
            let row = k.row(batch, head, first_key + key);
            match N::as_bf16(row).filter(|_| P::NUMBERS == 2) {
                Some(row) => {
                    for (index, to) in to.chunks_mut(LANES).enumerate() {
                        to.copy_from_slice(&pairs(row, index * 2 * LANES)[..to.len()]);
                    }
                }
                None => widen(s, row, to),
            }
        }
        Words::singles(memory, words)
    }

    /// V of a block as words along the keys: where it lies, or in `memory`.
    #[inline(always)]
    fn value_words<'m, S: Simd, P: Product<S>, const ROWS: usize>(
        &'m self,
        s: S,
        p: P,
        keys: &Range<usize>,
        memory: &'m mut [Lanes],
    ) -> Words<'m> {
        let Sequence { batch, first_key, .. } = self.item.sequence;
        let (v, head, columns) = (&self.forward.v, self.kv_head(), self.sizes.columns);
        let dense = v.dense(batch, head, first_key + keys.start, keys.len()).and_then(N::as_f32);
        if let Some(numbers) = dense.filter(|_| columns == self.forward.problem.value_dim() as usize) {
            return Words::singles(numbers, columns);
        }
        let rows = keys.len().div_ceil(P::NUMBERS);
        let memory = &mut flat(memory)[..rows * columns];
        for (index, to) in memory.chunks_exact_mut(columns).enumerate() {
            let key = keys.start + index * P::NUMBERS;
            let row = v.row(batch, head, first_key + key);
            let Some(low) = N::as_bf16(row).filter(|_| P::NUMBERS == 2) else {
                widen(s, row, to);
                continue;
            };
            // An odd last row meets zeros.
            let next = (key + 1 < keys.end).then(|| v.row(batch, head, first_key + key + 1));
            let high = next.and_then(N::as_bf16);
            let mut at = 0;
            while at < low.len() {
                let high = match high {
                    Some(high) => sixteen(high, at),
                    None => [Default::default(); LANES],
                };
                store(s, p.zip(s, &sixteen(low, at), &high), &mut to[at..]);
                at += LANES;
            }
            if at < to.len() {
                to[at..].fill(0.0);
            }
        }
        Words::singles(memory, columns)
    }

    /// Divides by the sums, and writes rows.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, memory: &mut Memory, claim: &mut Claim<N>) {
        let (head, columns) = (self.head(), self.forward.problem.value_dim() as usize);
        let sink = self.forward.sinks.get(head).copied();
        for tile in 0..self.tiles() {
            let mut factors = [0.0; LANES];
            for (lane, query) in self.queries(tile).enumerate() {
                let (factor, lse) =
                    finish(self.forward.scaled(memory.maxima[tile].0[lane]), memory.sums[tile].0[lane], sink);
                factors[lane] = factor;
                *claim.log_sum_exp(head, query) = lse;
            }
            let (factors, output) = (s.load(&factors), &memory.outputs[tile * self.sizes.columns..][..columns]);
            for (index, rows) in output.chunks(LANES).enumerate() {
                let mut block = [Lanes::all(0.0); LANES];
                for (to, row) in block.iter_mut().zip(rows) {
                    s.store(&mut to.0, s.mul(factors, s.load(&row.0)));
                }
                s.transpose(&mut block);
                for (query, row) in self.queries(tile).zip(&block) {
                    narrow(s, s.load(&row.0), &mut claim.row(head, query)[index * LANES..]);
                }
            }
        }
    }
}

/// Sixteen words of pairs from number `at` on, with zeros behind the end of the row.
#[inline(always)]
fn pairs(row: &[half::bf16], at: usize) -> [f32; LANES] {
    let [first, second] = [at, at + LANES].map(|at| sixteen(row, at.min(row.len())));
    let mut words = [0.0; LANES];
    for (index, word) in words.iter_mut().enumerate() {
        let from = if index < LANES / 2 { &first } else { &second };
        let [low, high] = [0, 1].map(|half| u32::from(from[index * 2 % LANES + half].to_bits()));
        *word = f32::from_bits(low | high << 16);
    }
    words
}
