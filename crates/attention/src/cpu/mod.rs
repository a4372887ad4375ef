//! Attention on plain cores: the answer where there is no GPU, and a second opinion everywhere.
//!
//! Lanes are queries. Sixteen queries lie side by side in a vector, whatever the instruction set; a word of K or V is taken from
//! where it lies and multiplied with all of them (`simd/product.rs`). Nothing is ever added across lanes: maxima and sums of the
//! softmax are vectors, too. Only Q and O are transposed, once for each tile. Few queries would leave lanes idle: there the
//! lanes are columns (`few/`), and keys are split where there are few heads.
//!
//! A result depends on the instruction set, never on the number of threads.

mod change;
mod division;
mod few;
mod rows;
mod sight;
mod simd;
mod softmax;
mod threads;
mod tiles;
mod workspace;

pub use change::Change;
pub use division::Places;
pub use rows::Strided;
pub use sight::Sight;
pub use simd::{InstructionSet, Number};

use crate::Problem;
use division::Division;
use simd::Claims;
use std::f32::consts::LOG2_E;

/// What is computed, and of what. Shapes were checked by whoever made it; a wrong one panics, and nothing is read outside.
#[derive(Clone, Copy)]
pub struct Forward<'a, N> {
    /// Of packed sequences, that of one batch entry with all their rows.
    pub problem: &'a Problem,
    pub q: Strided<'a, N>,
    pub k: Strided<'a, N>,
    pub v: Strided<'a, N>,
    pub mask: Sight<'a>,
    pub score: Change<'a>,
    /// What the score reads, one for each head; empty where it reads nothing.
    pub numbers: &'a [f32],
    /// A logit for each head that only the sum counts, or nothing.
    pub sinks: &'a [f32],
    /// The documents of queries and of keys, as (batch, rows).
    pub documents: Option<[&'a [u32]; 2]>,
    pub packed: Option<Places<'a>>,
}

impl<N: Number> Forward<'_, N> {
    /// Computes with the best instructions of this processor, on the threads of the current rayon pool: O with elements from one
    /// batch entry, head and row to the next, and the log-sum-exp as (batch, heads, queries).
    pub fn run(&self, o: &mut [N], o_strides: [usize; 3], lse: &mut [f32]) {
        self.run_with(InstructionSet::best(), o, o_strides, lse);
    }

    /// The same with chosen instructions, as far as this processor has them.
    pub fn run_with(&self, set: InstructionSet, o: &mut [N], o_strides: [usize; 3], lse: &mut [f32]) {
        if self.packed.is_none() && self.problem.queries() <= few::MOST_QUERIES {
            return few::run(self, set, o, o_strides, lse);
        }
        let [queries, heads, columns] =
            [self.problem.queries(), self.problem.heads(), self.problem.value_dim()].map(|extent| extent as usize);
        let threads = threads::worth(self, set);
        let rows = Division::rows_for(queries * self.problem.batch() as usize, heads, threads);
        workspace::with_blocks(|blocks| {
            let extents = [self.problem.batch() as usize, heads, 1];
            let division = Division::new(extents, rows, self.problem.lengths(), self.packed, blocks);
            let claims = Claims::new(&division, o, o_strides, columns, lse);
            threads::fan_out(threads, &|| {
                workspace::with(|memory| N::run(set, tiles::Tiles { forward: self, claims: &claims, rows, memory }));
            });
        });
    }

    /// What the softmax multiplies with before it takes powers of two.
    fn exponent_scale(&self) -> f32 {
        if self.score.is_plain() { self.problem.scale() * LOG2_E } else { LOG2_E }
    }

    /// A score as it goes into the softmax.
    fn scaled(&self, score: f32) -> f32 {
        if self.score.is_plain() { self.problem.scale() * score } else { score }
    }

    fn number(&self, head: usize) -> f32 {
        self.numbers.get(head).copied().unwrap_or_default()
    }
}
