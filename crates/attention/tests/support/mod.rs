//! Inputs from a seed.

use attention::Problem;
use attention::oracle::Inputs;
use attention::problem::DType;
use half::{bf16, f16};

/// Splitmix64: small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, both excluded.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box and Muller's transform.
    pub fn normal(&mut self) -> f32 {
        let (radius, turn) = ((-2.0 * self.uniform().ln()).sqrt(), self.uniform());
        (radius * (std::f64::consts::TAU * turn).cos()) as f32
    }

    pub fn normals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.normal()).collect()
    }
}

pub fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

/// Q, K and V as values.
pub fn draw(problem: &Problem, seed: u64) -> [Vec<f32>; 3] {
    let mut random = Random(seed);
    [problem.q_shape(), problem.k_shape(), problem.v_shape()].map(|shape| random.normals(shape.elements()))
}

pub fn inputs(problem: &Problem, [q, k, v]: &[Vec<f32>; 3]) -> Inputs {
    Inputs::from_values(problem, q, k, v).unwrap()
}

pub fn encode(dtype: DType, value: f32) -> u16 {
    match dtype {
        DType::F16 => f16::from_f32(value).to_bits(),
        DType::Bf16 => bf16::from_f32(value).to_bits(),
        DType::F32 => panic!("no kernel has f32"),
    }
}

pub fn decode(dtype: DType, bits: u16) -> f32 {
    match dtype {
        DType::F16 => f16::from_bits(bits).to_f32(),
        DType::Bf16 => bf16::from_bits(bits).to_f32(),
        DType::F32 => panic!("no kernel has f32"),
    }
}
