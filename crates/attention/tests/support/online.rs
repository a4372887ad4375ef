//! A kernel of our own to be judged.

use attention::Problem;
use attention::oracle::Outputs;

use crate::support::{decode, encode};

/// Attention as a kernel does it: tiles of 64 keys, online softmax in base 2, sums truncated as tensor cores do.
/// For problems in the layout `bhsd` and values that the dtype holds.
pub fn online(problem: &Problem, [q, k, v]: &[Vec<f32>; 3]) -> Outputs {
    let (mut output, mut log_sum_exp) = (Vec::new(), Vec::new());
    let [queries, keys] = [problem.queries(), problem.keys()].map(|count| count as usize);
    let [head_dim, value_dim] = [problem.head_dim(), problem.value_dim()].map(|count| count as usize);
    for row in 0..problem.batch() as usize * problem.heads() as usize * queries {
        let (batch, head) = (row / queries / problem.heads() as usize, row / queries % problem.heads() as usize);
        let kv = batch * problem.kv_heads() as usize + problem.kv_head(head as u32) as usize;
        let key = |key: usize| &k[(kv * keys + key) * head_dim..][..head_dim];
        let value = |key: usize| &v[(kv * keys + key) * value_dim..][..value_dim];
        let (bits, lse) = online_row(problem, row % queries, &q[row * head_dim..][..head_dim], key, value);
        output.extend(bits);
        log_sum_exp.push(lse);
    }
    Outputs::from_bits(problem, &output, &log_sum_exp).unwrap()
}

fn online_row<'a>(
    problem: &Problem,
    query_index: usize,
    query: &[f32],
    key: impl Fn(usize) -> &'a [f32],
    value: impl Fn(usize) -> &'a [f32],
) -> (Vec<u16>, f32) {
    let round = |value| decode(problem.dtype(), encode(problem.dtype(), value));
    let scale = problem.scale() * std::f32::consts::LOG2_E;
    let (mut max, mut sum) = (f32::NEG_INFINITY, 0f32);
    let mut output = vec![0f32; problem.value_dim() as usize];
    for first in (0..problem.keys() as usize).step_by(64) {
        let tile: Vec<usize> = (first..(first + 64).min(problem.keys() as usize))
            .filter(|&key| problem.visibility().sees(query_index as u32, key as u32, problem.lengths()))
            .collect();
        if tile.is_empty() {
            continue;
        }
        let scores: Vec<f32> = tile.iter().map(|&at| product(query, key(at))).collect();
        let new = scores.iter().copied().fold(max, f32::max);
        let shrink = max.mul_add(scale, -(new * scale)).exp2();
        let weights: Vec<f32> = scores.iter().map(|score| score.mul_add(scale, -(new * scale)).exp2()).collect();
        sum = sum * shrink + weights.iter().sum::<f32>();
        output.iter_mut().for_each(|output| *output *= shrink);
        for (at, weight) in tile.iter().zip(&weights) {
            let terms = output.iter_mut().zip(value(*at));
            terms
                .for_each(|(output, value)| *output = truncate(f64::from(*output) + f64::from(round(*weight) * value)));
        }
        max = new;
    }
    if max == f32::NEG_INFINITY {
        return (output.iter().map(|_| 0).collect(), max);
    }
    let bits = output.iter().map(|output| encode(problem.dtype(), output * (1.0 / sum))).collect();
    (bits, (max * scale + sum.log2()) * std::f32::consts::LN_2)
}

/// Sixteen products at a time are summed exactly and then truncated.
fn product(left: &[f32], right: &[f32]) -> f32 {
    let steps = left.chunks(16).zip(right.chunks(16));
    steps.fold(0f32, |sum, (left, right)| {
        let terms = left.iter().zip(right).map(|(left, right)| f64::from(*left) * f64::from(*right));
        truncate(terms.fold(f64::from(sum), |sum, term| sum + term))
    })
}

fn truncate(value: f64) -> f32 {
    let nearest = value as f32;
    let too_far = f64::from(nearest).abs() > value.abs();
    if too_far { f32::from_bits(nearest.to_bits() - 1) } else { nearest }
}
