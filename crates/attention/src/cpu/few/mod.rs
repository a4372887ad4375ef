//! Few queries: lanes are columns, so that none is idle, and K and V are read once for all heads that share them.
//!
//! Where there are few heads, too, keys are split: each part finds what it would if there were no other, and the parts are
//! joined in their order.

mod attend;

use super::division::{Cut, Division};
use super::simd::{self, Chunks, Claims, InstructionSet, LANES, Lanes, Number, Product, Simd, Task};
use super::workspace::{self, room};
use super::{Forward, threads};
use attend::{Few, KEYS};

/// More queries fill the lanes of a tile well enough.
pub const MOST_QUERIES: u32 = 4;
/// Keys of a part at least, and parts of all heads together that are enough for any number of threads.
const LEAST_PART: usize = 256;
const ENOUGH_PARTS: usize = 64;

/// Rows of lanes that all parts of a call may take together, and that the heads of an item may: 1 MiB.
const MOST_ROWS: usize = 1 << 14;

/// How keys are split. The same for any number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    /// Keys of a part.
    each: usize,
    parts: usize,
}

impl Split {
    /// Of the keys of so many items, where a part finds `state` rows of lanes.
    fn new(keys: usize, items: usize, state: usize) -> Split {
        let room = MOST_ROWS / (items * state);
        let parts = ENOUGH_PARTS.div_ceil(items).min(keys / LEAST_PART).min(room).max(1);
        let each = keys.div_ceil(parts).next_multiple_of(KEYS).max(KEYS);
        Split { each, parts: keys.div_ceil(each).max(1) }
    }
}

/// Rows of lanes that an item needs at most.
#[derive(Clone, Copy)]
struct Sizes {
    /// Of what is found.
    states: usize,
    /// Of queries, and of the scores of a block.
    room: usize,
}

/// What items are: heads that share K and V, as many as fit, with all their queries.
fn cut<N>(forward: &Forward<N>) -> (Cut, Sizes) {
    let (problem, dims) = (forward.problem, forward.problem.dims());
    let rows = problem.queries().min(MOST_QUERIES) as usize;
    let [state, query] = [state_rows(dims.value as usize), (dims.head as usize).div_ceil(LANES)];
    let group = (problem.heads() / problem.kv_heads()) as usize;
    let together = (MOST_ROWS / (rows * (state + query))).clamp(1, group);
    let sizes = Sizes { states: together * rows * state, room: together * rows * query + KEYS / LANES };
    (Cut { group, together, rows, of_lengths: 0..=MOST_QUERIES }, sizes)
}

/// All sequences that have few queries.
pub fn run<N: Number>(forward: &Forward<N>, set: InstructionSet, o: &mut [N], o_strides: [usize; 3], lse: &mut [f32]) {
    let (problem, (cut, sizes)) = (forward.problem, cut(forward));
    let [batch, heads, keys, columns] =
        [problem.batch(), problem.heads(), problem.keys(), problem.value_dim()].map(|extent| extent as usize);
    workspace::with_blocks(|blocks| {
        let division = Division::new([batch, heads], cut, problem.lengths(), forward.packed, blocks);
        let items = division.items();
        if items == 0 {
            return;
        }
        let claims = Claims::new(&division, o, o_strides, columns, lse);
        let threads = threads::worth(forward, set);
        // Of packed sequences each has its own number of keys: they are not split.
        let keys = if forward.packed.is_some() { 0 } else { keys };
        let split = Split::new(keys, items, sizes.states);
        if split.parts == 1 {
            threads::fan_out(threads, &|| {
                workspace::with(|memory| simd::run(set, Whole { forward, claims: &claims, sizes, memory }));
            });
            return;
        }
        workspace::with_parts(|memory| {
            let states = room(memory, items * split.parts * sizes.states);
            let chunks = Chunks::new(states, sizes.states);
            threads::fan_out(threads, &|| {
                workspace::with(|memory| {
                    simd::run(set, Parts { forward, division: &division, chunks: &chunks, split, sizes, memory });
                });
            });
            simd::run(set, Join { forward, claims: &claims, states, sizes, split });
        });
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
    sizes: Sizes,
    memory: &'a mut Vec<Lanes>,
}

impl<N: Number> Task for Whole<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        let (states, room) = room(self.memory, self.sizes.states + self.sizes.room).split_at_mut(self.sizes.states);
        while let Some(mut claim) = self.claims.next() {
            let few = Few::new(self.forward, claim.item.clone());
            few.attend(s, 0..few.keys(), room, states);
            few.finish(s, states, &mut claim);
        }
    }
}

/// Parts of the keys of items.
struct Parts<'a, N> {
    forward: &'a Forward<'a, N>,
    division: &'a Division<'a>,
    chunks: &'a Chunks<'a, Lanes>,
    split: Split,
    sizes: Sizes,
    memory: &'a mut Vec<Lanes>,
}

impl<N: Number> Task for Parts<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        let room = room(self.memory, self.sizes.room);
        while let Some((index, states)) = self.chunks.next() {
            let few = Few::new(self.forward, self.division.item(index / self.split.parts));
            let first = index % self.split.parts * self.split.each;
            let keys = first..(first + self.split.each).min(few.keys());
            few.attend(s, keys, room, states);
        }
    }
}

/// The parts of each item become one, in their order.
struct Join<'a, N> {
    forward: &'a Forward<'a, N>,
    /// Nobody else takes of them: they come in their order.
    claims: &'a Claims<'a, N>,
    states: &'a mut [Lanes],
    sizes: Sizes,
    split: Split,
}

impl<N: Number> Task for Join<'_, N> {
    #[inline(always)]
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, _: P) {
        for states in self.states.chunks_exact_mut(self.split.parts * self.sizes.states) {
            let Some(mut claim) = self.claims.next() else { return };
            let few = Few::new(self.forward, claim.item.clone());
            let (whole, parts) = states.split_at_mut(self.sizes.states);
            for part in parts.chunks_exact(self.sizes.states) {
                few.join(s, whole, part);
            }
            few.finish(s, whole, &mut claim);
        }
    }
}
