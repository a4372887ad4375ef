//! f32 and f64 arithmetic, to the bit of an H200.

use super::convert::rounding;
use super::lower::Chosen;
use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why};
use crate::numerics::arithmetic::{self, Mode, NanOperand};
use crate::numerics::format::Rounding;
use crate::numerics::{double, special, special_double};
use crate::simd::Kernel;
use ptx::forms::Float;
use ptx::{Instruction, Type};
use std::num::FpCategory;

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Float,
    ty: Type,
    mode: Mode,
    saturate: bool,
    nan: NanOperand,
    /// `.xorsign.abs`
    product_sign: bool,
    property: Property,
}

/// What `testp` asks.
#[derive(Clone, Copy, Debug)]
enum Property {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

pub fn decode(op: Float, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    let rounding = rounding(instruction).unwrap_or(Rounding::Nearest);
    let lane = Lane {
        op,
        ty: instruction.ty().unwrap_or(Type::F32),
        mode: Mode { rounding, flush: instruction.has("ftz") },
        saturate: instruction.has("sat"),
        nan: if instruction.has("NaN") { NanOperand::Kept } else { NanOperand::Ignored },
        product_sign: instruction.has("xorsign"),
        property: match instruction.choice(&["finite", "infinite", "number", "notanumber", "normal"]) {
            Some("finite") => Property::Finite,
            Some("infinite") => Property::Infinite,
            Some("number") => Property::Number,
            Some("notanumber") => Property::NotANumber,
            Some(_) => Property::Normal,
            None => Property::Subnormal,
        },
    };
    decoder.compute(instruction, Lanewise::Float(lane))
}

impl Lane {
    pub fn evaluate(self, operands: [u64; 3]) -> u64 {
        let rounding = self.mode.rounding;
        let [a, b, c] = operands;
        match self.op {
            Float::CopySign => self.copy_sign(a, b),
            Float::TestProperty => u64::from(self.property.holds(self.category(a))),
            Float::AddDouble => double::add(a, b, rounding),
            Float::SubtractDouble => double::subtract(a, b, rounding),
            Float::MultiplyDouble => double::multiply(a, b, rounding),
            Float::FusedMultiplyAddDouble | Float::MultiplyAddDouble => double::fused_multiply_add(a, b, c, rounding),
            Float::DivideDouble => double::divide(a, b, rounding),
            Float::MinimumDouble => double::minimum(a, b),
            Float::MaximumDouble => double::maximum(a, b),
            Float::NegateDouble => double::negate(a),
            Float::AbsoluteDouble => double::absolute(a),
            Float::ReciprocalDouble => double::reciprocal(a, rounding),
            Float::ReciprocalDoubleApproximate => special_double::unit_reciprocal(a),
            Float::ReciprocalRootDouble if self.mode.flush => special_double::unit_reciprocal_root(a),
            Float::ReciprocalRootDouble => special_double::reciprocal_root(a),
            Float::SquareRootDouble => double::square_root(a, rounding),
            _ => u64::from(self.single(operands.map(|value| value as u32))),
        }
    }

    /// The whole-warp kernel that computes the same.
    pub fn kernel(self) -> Option<Chosen> {
        let plain = self.mode.rounding == Rounding::Nearest && !self.saturate && !self.product_sign;
        let (keep, flush) = (self.nan == NanOperand::Kept, self.mode.flush);
        let by_flush = |kept, flushed| if flush { flushed } else { kept };
        let kernel = match self.op {
            _ if !plain => return None,
            Float::Add => by_flush(Kernel::FloatAdd, Kernel::FloatAddFlush),
            Float::Subtract => by_flush(Kernel::FloatSubtract, Kernel::FloatSubtractFlush),
            Float::Multiply => by_flush(Kernel::FloatMultiply, Kernel::FloatMultiplyFlush),
            Float::Divide => by_flush(Kernel::FloatDivide, Kernel::FloatDivideFlush),
            Float::DivideFull if !flush => Kernel::FloatDivideFull,
            Float::ReciprocalExact => by_flush(Kernel::FloatReciprocal, Kernel::FloatReciprocalFlush),
            Float::SquareRoot => by_flush(Kernel::FloatRoot, Kernel::FloatRootFlush),
            Float::FusedMultiplyAdd | Float::MultiplyAdd => by_flush(Kernel::FloatFuse, Kernel::FloatFuseFlush),
            Float::Minimum | Float::Maximum if keep && flush => return None,
            Float::Minimum if keep => Kernel::FloatMinimumKeep,
            Float::Minimum => by_flush(Kernel::FloatMinimum, Kernel::FloatMinimumFlush),
            Float::Maximum if keep => Kernel::FloatMaximumKeep,
            Float::Maximum => by_flush(Kernel::FloatMaximum, Kernel::FloatMaximumFlush),
            Float::Negate => by_flush(Kernel::FloatNegate, Kernel::FloatNegateFlush),
            Float::Absolute => by_flush(Kernel::FloatAbsolute, Kernel::FloatAbsoluteFlush),
            Float::PowerOfTwo => by_flush(Kernel::Exponential, Kernel::ExponentialFlush),
            Float::LogarithmOfTwo => by_flush(Kernel::Logarithm, Kernel::LogarithmFlush),
            Float::Reciprocal => by_flush(Kernel::Reciprocal, Kernel::ReciprocalFlush),
            Float::SquareRootApproximate => by_flush(Kernel::SquareRoot, Kernel::SquareRootFlush),
            Float::ReciprocalRoot => by_flush(Kernel::ReciprocalRoot, Kernel::ReciprocalRootFlush),
            _ => return None,
        };
        Some(Chosen::new(kernel))
    }

    fn single(self, [a, b, c]: [u32; 3]) -> u32 {
        let mode = self.mode;
        let flush = mode.flush;
        let flushed = |bits| if flush { arithmetic::flush(bits) } else { bits };
        let result = match self.op {
            Float::Add => arithmetic::add(a, b, mode),
            Float::Subtract => arithmetic::subtract(a, b, mode),
            Float::Multiply => arithmetic::multiply(a, b, mode),
            Float::FusedMultiplyAdd | Float::MultiplyAdd => arithmetic::fused_multiply_add(a, b, c, mode),
            Float::Divide => arithmetic::divide(a, b, mode),
            Float::DivideFull if flush => special::divide_full_flush(a, b),
            Float::DivideFull => special::divide_full(a, b),
            Float::DivideApproximate if flush => special::divide_flush(a, b),
            Float::DivideApproximate => special::divide(a, b),
            Float::Minimum => self.chosen(flushed(a), flushed(b), arithmetic::minimum),
            Float::Maximum => self.chosen(flushed(a), flushed(b), arithmetic::maximum),
            Float::Negate => arithmetic::negate(flushed(a)),
            Float::Absolute => arithmetic::absolute(flushed(a)),
            Float::PowerOfTwo if flush => special::unit_exponential(a),
            Float::PowerOfTwo => special::exponential(a),
            Float::LogarithmOfTwo if flush => special::unit_logarithm(a),
            Float::LogarithmOfTwo => special::logarithm(a),
            Float::Sine => special::sine(flushed(a)),
            Float::Cosine => special::cosine(flushed(a)),
            Float::HyperbolicTangent => special::hyperbolic_tangent(a),
            Float::Reciprocal if flush => special::unit_reciprocal(a),
            Float::Reciprocal => special::reciprocal(a),
            Float::ReciprocalExact => arithmetic::reciprocal(a, mode),
            Float::SquareRoot => arithmetic::square_root(a, mode),
            Float::SquareRootApproximate if flush => special::unit_root(a),
            Float::SquareRootApproximate => special::root(a),
            Float::ReciprocalRoot if flush => special::unit_reciprocal_root(a),
            Float::ReciprocalRoot => special::reciprocal_root(a),
            // f64, above, or refused by `decode`.
            Float::CopySign
            | Float::TestProperty
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
        };
        if self.saturate { arithmetic::saturate(result) } else { result }
    }

    fn chosen(self, a: u32, b: u32, choose: fn(u32, u32, NanOperand) -> u32) -> u32 {
        if self.product_sign {
            return arithmetic::with_product_sign(a, b, |a, b| choose(a, b, self.nan));
        }
        choose(a, b, self.nan)
    }

    /// The sign of the first operand with the magnitude of the second.
    fn copy_sign(self, a: u64, b: u64) -> u64 {
        let sign = 1u64 << (self.ty.bits() - 1);
        a & sign | b & (sign - 1)
    }

    fn category(self, a: u64) -> FpCategory {
        if self.ty == Type::F64 { f64::from_bits(a).classify() } else { f32::from_bits(a as u32).classify() }
    }
}

impl Property {
    /// Zero is finite, a number, and counts as normal (PTX ISA, "testp").
    fn holds(self, category: FpCategory) -> bool {
        match self {
            Property::Finite => !matches!(category, FpCategory::Nan | FpCategory::Infinite),
            Property::Infinite => category == FpCategory::Infinite,
            Property::Number => category != FpCategory::Nan,
            Property::NotANumber => category == FpCategory::Nan,
            Property::Normal => matches!(category, FpCategory::Normal | FpCategory::Zero),
            Property::Subnormal => category == FpCategory::Subnormal,
        }
    }
}
