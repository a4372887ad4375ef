//! f32 arithmetic, to the bit of an H200.

use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why};
use crate::numerics::arithmetic::{self, Mode, NanOperand};
use crate::numerics::special;
use ptx::Instruction;
use ptx::forms::Float;

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Float,
    flush: bool,
}

pub fn decode(op: Float, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    decoder.compute(instruction, Lanewise::Float(Lane { op, flush: instruction.has("ftz") }))
}

impl Lane {
    pub fn evaluate(self, operands: [u64; 3]) -> u64 {
        let [a, b, c] = operands.map(|value| value as u32);
        let mode = if self.flush { Mode::NEAREST_FLUSH } else { Mode::NEAREST };
        let flushed = |bits| if self.flush { arithmetic::flush(bits) } else { bits };
        u64::from(match self.op {
            Float::Add => arithmetic::add(a, b, mode),
            Float::Subtract => arithmetic::subtract(a, b, mode),
            Float::Multiply => arithmetic::multiply(a, b, mode),
            Float::FusedMultiplyAdd => arithmetic::fused_multiply_add(a, b, c, mode),
            Float::Divide => arithmetic::divide(a, b),
            Float::DivideFull if self.flush => special::divide_full_flush(a, b),
            Float::DivideFull => special::divide_full(a, b),
            Float::Minimum => arithmetic::minimum(flushed(a), flushed(b), NanOperand::Ignored),
            Float::Maximum => arithmetic::maximum(flushed(a), flushed(b), NanOperand::Ignored),
            Float::Negate => arithmetic::negate(flushed(a)),
            Float::Absolute => arithmetic::absolute(flushed(a)),
            Float::PowerOfTwo if self.flush => special::unit_exponential(a),
            Float::PowerOfTwo => special::exponential(a),
            Float::LogarithmOfTwo if self.flush => special::unit_logarithm(a),
            Float::LogarithmOfTwo => special::logarithm(a),
            Float::Reciprocal if self.flush => special::unit_reciprocal(a),
            Float::Reciprocal => special::reciprocal(a),
            Float::ReciprocalExact => arithmetic::reciprocal(a),
            Float::SquareRoot => arithmetic::square_root(a),
            Float::ReciprocalRoot if self.flush => special::unit_reciprocal_root(a),
            Float::ReciprocalRoot => special::reciprocal_root(a),
            // Refused by `decode`.
            Float::MultiplyAdd
            | Float::DivideApproximate
            | Float::CopySign
            | Float::TestProperty
            | Float::Sine
            | Float::Cosine
            | Float::HyperbolicTangent
            | Float::SquareRootApproximate
            | Float::AddDouble
            | Float::SubtractDouble
            | Float::MultiplyDouble
            | Float::FusedMultiplyAddDouble
            | Float::MultiplyAddDouble
            | Float::DivideDouble
            | Float::MinimumDouble
            | Float::MaximumDouble
            | Float::NegateDouble
            | Float::AbsoluteDouble
            | Float::ReciprocalDouble
            | Float::ReciprocalDoubleApproximate
            | Float::SquareRootDouble
            | Float::ReciprocalRootDouble => 0,
        })
    }
}
