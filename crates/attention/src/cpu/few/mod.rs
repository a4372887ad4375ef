//! Few queries: lanes are columns, so that none is idle, and K and V are read once for all heads that share them.
//!
//! Where there are few heads, too, keys are split: each part finds what it would if there were no other, and the parts are
//! joined in their order.

mod attend;

use super::division::{Division, Item};
use super::simd::{self, Chunks, Claims, InstructionSet, LANES, Lanes, Number, Product, Simd, Task};
use super::workspace::{self, room};
use super::{Forward, threads};
use attend::{Few, KEYS};

/// More queries fill the lanes of a tile well enough.
pub const MOST_QUERIES: u32 = 4;
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
