//! Attention by definition, in float64: no tiling, no tricks.

use super::tensors::{Attended, Inputs, Outputs, Row, for_each_query};
use crate::Problem;
use crate::visibility::Visibility;

pub fn compute(problem: &Problem, inputs: &Inputs, visibility: &dyn Visibility) -> Outputs {
    for_each_query(problem, inputs, |row| attend(problem, visibility, row))
}

fn attend(problem: &Problem, visibility: &dyn Visibility, row: Row) -> Attended {
    let [head_dim, value_dim] = [problem.head_dim(), problem.value_dim()].map(|count| count as usize);
    let sees = |key: &usize| visibility.sees(row.query_index, *key as u32, problem.lengths());
    let seen: Vec<usize> = (0..problem.keys() as usize).filter(sees).collect();
    if seen.is_empty() {
        return (vec![0.0; value_dim], f64::NEG_INFINITY);
    }

    let scale = f64::from(problem.scale());
    let scores: Vec<f64> =
        seen.iter().map(|key| scale * dot(row.query, &row.keys[key * head_dim..][..head_dim])).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = weights.iter().sum();

    let mut output = vec![0.0; value_dim];
    for (key, weight) in seen.iter().zip(&weights) {
        for (output, value) in output.iter_mut().zip(&row.values[key * value_dim..][..value_dim]) {
            *output += weight / sum * f64::from(*value);
        }
    }
    (output, max + sum.ln())
}

/// Eight sums side by side: one alone would wait for itself at every step.
fn dot(left: &[f32], right: &[f32]) -> f64 {
    let mut sums = [0f64; 8];
    for (left, right) in left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0) {
        for lane in 0..8 {
            sums[lane] += f64::from(left[lane]) * f64::from(right[lane]);
        }
    }
    sums.iter().sum()
}
