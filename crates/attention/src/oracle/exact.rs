//! Attention by definition, in float64: no tiling, no tricks.

use super::tensors::{Attended, Inputs, Outputs, Row, for_each_query};
use crate::Problem;
use crate::scoring::Scoring;
use crate::visibility::Visibility;

pub fn compute(problem: &Problem, inputs: &Inputs, visibility: &dyn Visibility, scoring: &dyn Scoring) -> Outputs {
    for_each_query(problem, inputs, |row| attend(problem, visibility, scoring, row))
}

fn attend(problem: &Problem, visibility: &dyn Visibility, scoring: &dyn Scoring, row: Row) -> Attended {
    let [head_dim, value_dim] = [problem.head_dim(), problem.value_dim()].map(|count| count as usize);
    let seen = row.seen(visibility);
    let sink = row.sink.map(f64::from);
    if seen.is_empty() {
        return (vec![0.0; value_dim], sink.unwrap_or(f64::NEG_INFINITY));
    }

    let scale = f64::from(problem.scale());
    let product = |key: usize| dot(row.query, &row.keys[key * head_dim..][..head_dim]);
    let score = |key: &usize| scoring.change(scale * product(*key), row.at(*key));
    let scores: Vec<f64> = seen.iter().map(score).collect();
    let max = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let sum: f64 = weights.iter().sum::<f64>() + sink.map_or(0.0, |sink| (sink - max).exp());

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
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<8>(), right.as_chunks::<8>());
    for (left, right) in left.iter().zip(right) {
        for lane in 0..8 {
            sums[lane] += f64::from(left[lane]) * f64::from(right[lane]);
        }
    }
    for (sum, (left, right)) in sums.iter_mut().zip(left_rest.iter().zip(right_rest)) {
        *sum += f64::from(*left) * f64::from(*right);
    }
    sums.iter().sum()
}
