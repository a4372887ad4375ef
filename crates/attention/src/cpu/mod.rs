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
use division::{Cut, Division};
use simd::Claims;
use std::f32::consts::LOG2_E;

/// What is computed, and of what. What does not go together panics before anything is computed, and nothing is read outside of
/// the slices.
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
        self.check();
        // Packed sequences have lengths of their own: some may have few queries, and others many.
        if self.packed.is_some() || self.problem.queries() <= few::MOST_QUERIES {
            few::run(self, set, o, o_strides, lse);
        }
        if self.packed.is_some() || self.problem.queries() > few::MOST_QUERIES {
            self.run_tiles(set, o, o_strides, lse);
        }
    }

    /// All sequences that have many queries.
    fn run_tiles(&self, set: InstructionSet, o: &mut [N], o_strides: [usize; 3], lse: &mut [f32]) {
        let [batch, queries, heads, columns] =
            [self.problem.batch(), self.problem.queries(), self.problem.heads(), self.problem.value_dim()]
                .map(|extent| extent as usize);
        let threads = threads::worth(self, set);
        let rows = Division::rows_for(queries * batch, heads, threads);
        workspace::with_blocks(|blocks| {
            let cut = Cut { rows, of_lengths: few::MOST_QUERIES + 1..=u32::MAX, ..Cut::TILE };
            let division = Division::new([batch, heads], cut, self.problem.lengths(), self.packed, blocks);
            if division.items() == 0 {
                return;
            }
            let claims = Claims::new(&division, o, o_strides, columns, lse);
            threads::fan_out(threads, &|| {
                workspace::with(|memory| N::run(set, tiles::Tiles { forward: self, claims: &claims, rows, memory }));
            });
        });
    }

    /// Whether all belongs to the problem.
    fn check(&self) {
        let problem = self.problem;
        for (tensor, shape) in
            [(&self.q, problem.q_shape()), (&self.k, problem.k_shape()), (&self.v, problem.v_shape())]
        {
            assert!(tensor.has(shape), "a tensor of another shape than the problem has");
        }
        let heads = problem.heads() as usize;
        assert!(!self.score.reads_numbers() || self.numbers.len() == heads, "a number for each head");
        assert!(self.sinks.is_empty() || self.sinks.len() == heads, "a sink for each head, or none");
        if let Some(documents) = self.documents {
            let rows = [problem.queries(), problem.keys()].map(|rows| problem.batch() as usize * rows as usize);
            assert_eq!(documents.map(<[u32]>::len), rows, "a document for each query and each key");
        }
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
