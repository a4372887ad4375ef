//! Attention on exact numbers, as the formula has it: no tiles, no maximum, one row after the other.

use attention::Problem;
use attention::problem::Shape;
use attention::visibility::Visibility;
use emulator::algebra::{Payload, decode, encode};
use launch::Memory;
use ptx::Type;
use std::fmt;

pub struct Formula {
    problem: Problem,
    pub buffers: Buffers,
    /// What scores are multiplied with, one after the other: log2 e is among it.
    pub scales: Vec<f32>,
}

/// Names of the tensors in a recipe.
#[derive(Clone, Copy)]
pub struct Buffers {
    pub q: &'static str,
    pub k: &'static str,
    pub v: &'static str,
    pub o: &'static str,
    /// None where the kernel computes no logarithm that obeys the laws.
    pub lse: Option<&'static str>,
}

impl Buffers {
    pub const LOWER: Buffers = Buffers { q: "q", k: "k", v: "v", o: "o", lse: Some("lse") };
    pub const UPPER: Buffers = Buffers { q: "Q", k: "K", v: "V", o: "O", lse: Some("L") };
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl Formula {
    pub fn of(problem: &Problem, buffers: Buffers) -> Formula {
        let scale = (f64::from(problem.scale()) * std::f64::consts::LOG2_E) as f32;
        Formula { problem: problem.clone(), buffers, scales: vec![scale] }
    }

    /// Elements of the output and of the log-sum-exp that are not those of the formula.
    pub fn differences(&self, memory: &Memory) -> usize {
        let problem = &self.problem;
        let [q, k, v, o] =
            [self.buffers.q, self.buffers.k, self.buffers.v, self.buffers.o].map(|name| halves(memory, name));
        let lse = self.buffers.lse.map(|name| words(memory, name));
        let mut differences = 0;
        for (batch, head) in (0..problem.batch()).flat_map(|batch| (0..problem.heads()).map(move |head| (batch, head)))
        {
            let kv_head = head / (problem.heads() / problem.kv_heads());
            let rows = |all: &[Payload], shape: Shape, head: u32, count: u32| -> Vec<Vec<Payload>> {
                let [batch_stride, head_stride, row_stride] = shape.strides();
                let start = batch as usize * batch_stride + head as usize * head_stride;
                let row = |row: u32| all[start + row as usize * row_stride..][..shape.columns as usize].to_vec();
                (0..count).map(row).collect()
            };
            let queries = rows(&q, problem.q_shape(), head, problem.queries());
            let outputs = rows(&o, problem.o_shape(), head, problem.queries());
            let keys = rows(&k, problem.k_shape(), kv_head, problem.keys());
            let values = rows(&v, problem.v_shape(), kv_head, problem.keys());
            for (query, (row, output)) in (0..).zip(queries.iter().zip(&outputs)) {
                let (expected, log_sum_exp) = self.row(query, row, &keys, &values);
                differences += expected.iter().zip(output).filter(|(expected, found)| expected != found).count();
                let place = (batch * problem.heads() + head) * problem.queries() + query;
                differences += usize::from(lse.as_ref().is_some_and(|lse| lse[place as usize] != log_sum_exp));
            }
        }
        differences
    }

    /// `O = Σ 2^(scale · q·k) v / Σ 2^(scale · q·k)`, over the keys that the query sees, and the logarithm of the sum.
    fn row(&self, query: u32, row: &[Payload], keys: &[Vec<Payload>], values: &[Vec<Payload>]) -> (Vec<Payload>, u64) {
        let scales = self.scales.iter().map(|scale| Payload::of(f64::from(*scale)));
        let scale = scales.fold(Payload::integer(1), Payload::times);
        let mut sum = Payload::default();
        let mut output = vec![Payload::default(); self.problem.value_dim() as usize];
        for (key, value) in (0..).zip(values).filter(|(key, _)| self.sees(query, *key)) {
            let products = row.iter().zip(&keys[key as usize]).map(|(a, b)| a.times(*b));
            let weight = products.fold(Payload::default(), Payload::plus).times(scale).power_of_two();
            sum = sum.plus(weight);
            output.iter_mut().zip(value).for_each(|(output, value)| *output = output.plus(weight.times(*value)));
        }
        let natural = sum.logarithm().times(Payload::of(f64::from(std::f32::consts::LN_2)));
        (output.into_iter().map(|output| output.over(sum)).collect(), encode(Type::F32, natural))
    }

    fn sees(&self, query: u32, key: u32) -> bool {
        self.problem.mask().sees(query, key, self.problem.lengths())
    }
}

fn halves(memory: &Memory, name: &str) -> Vec<Payload> {
    let bytes = memory.buffer(name).unwrap().contents.to_vec();
    bytes.as_chunks().0.iter().map(|pair| decode(Type::F16, u16::from_le_bytes(*pair).into())).collect()
}

fn words(memory: &Memory, name: &str) -> Vec<u64> {
    let bytes = memory.buffer(name).unwrap().contents.to_vec();
    bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four).into()).collect()
}
