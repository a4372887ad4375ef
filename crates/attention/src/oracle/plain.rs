//! The plain computation in the problem's dtype: f32 inside, rounded where a kernel rounds, and nothing else.
//!
//! Scores, softmax and sums are f32; the weights exp(score − max), not yet divided by their sum, are rounded to the
//! dtype before they meet V; the output is divided at the end and rounded once. Its distance from the exact result is
//! what the dtype costs.

use super::tensors::{Attended, Forgotten, Inputs, Outputs, Row, for_each_query, round};
use crate::Problem;
use crate::scoring::Scoring;
use crate::visibility::Visibility;

/// What a negative control may change.
#[derive(Clone, Copy)]
pub struct Method<'a> {
    pub scale: f32,
    pub visibility: &'a dyn Visibility,
    pub scoring: &'a dyn Scoring,
    pub forgotten: Forgotten,
    /// Applied to weights after they were rounded to the dtype.
    pub distort_weight: fn(f32) -> f32,
}

impl<'a> Method<'a> {
    pub fn new(problem: &Problem, visibility: &'a dyn Visibility, scoring: &'a dyn Scoring) -> Method<'a> {
        Method {
            scale: problem.scale(),
            visibility,
            scoring,
            forgotten: Forgotten::Nothing,
            distort_weight: |weight| weight,
        }
    }
}

pub fn compute(problem: &Problem, inputs: &Inputs, method: &Method) -> Outputs {
    for_each_query(problem, inputs, |row| attend(problem, method, row.forgetting(method.forgotten)))
}

fn attend(problem: &Problem, method: &Method, row: Row) -> Attended {
    let [head_dim, value_dim] = [problem.head_dim(), problem.value_dim()].map(|count| count as usize);
    let seen = row.seen(method.visibility);
    if seen.is_empty() {
        return (vec![0.0; value_dim], row.sink.map_or(f64::NEG_INFINITY, f64::from));
    }

    let product = |key: usize| dot(row.query, &row.keys[key * head_dim..][..head_dim]);
    let score = |key: &usize| {
        let scaled = f64::from(method.scale * product(*key));
        method.scoring.change(scaled, row.at(*key)) as f32
    };
    let scores: Vec<f32> = seen.iter().map(score).collect();
    let max = scores.iter().copied().chain(row.sink).fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f32 = weights.iter().sum::<f32>() + row.sink.map_or(0.0, |sink| (sink - max).exp());

    let mut output = vec![0f32; value_dim];
    for (key, weight) in seen.iter().zip(&weights) {
        let weight = (method.distort_weight)(round(problem.dtype(), *weight));
        for (output, value) in output.iter_mut().zip(&row.values[key * value_dim..][..value_dim]) {
            *output += weight * value;
        }
    }
    let rounded = output.iter().map(|output| f64::from(round(problem.dtype(), output / sum))).collect();
    (rounded, f64::from(max + sum.ln()))
}

/// Eight sums side by side: one alone would wait for itself at every step.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    for (left, right) in left.iter().zip(right) {
        for lane in 0..8 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    for (sum, (left, right)) in sums.iter_mut().zip(left_rest.iter().zip(right_rest)) {
        *sum += left * right;
    }
    sums.iter().sum()
}
