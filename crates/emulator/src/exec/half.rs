//! f16 and bf16 arithmetic, one or two to a register.

use super::lower::Chosen;
use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why};
use crate::numerics::arithmetic::{self, NanOperand};
use crate::numerics::half::{self, Bound, Mode};
use crate::simd::Kernel;
use ptx::forms::Half;
use ptx::{Instruction, Type};

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Half,
    /// Two to a register.
    packed: bool,
    mode: Mode,
    nan: NanOperand,
    /// `.xorsign.abs`
    product_sign: bool,
}

pub fn decode(op: Half, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    let ty = instruction.ty().unwrap_or(Type::F16x2);
    let format = if matches!(ty, Type::Bf16 | Type::Bf16x2) { Mode::BF16 } else { Mode::F16 };
    let bound = match instruction.choice(&["sat", "relu"]) {
        Some("sat") => Bound::Saturate,
        Some(_) => Bound::Relu,
        None => Bound::None,
    };
    let lane = Lane {
        op,
        packed: ty.is_packed(),
        mode: Mode { flush: instruction.has("ftz"), bound, ..format },
        nan: if instruction.has("NaN") { NanOperand::Kept } else { NanOperand::Ignored },
        product_sign: instruction.has("xorsign"),
    };
    decoder.compute(instruction, Lanewise::Half(lane))
}

impl Lane {
    pub fn evaluate(self, operands: [u64; 3]) -> u64 {
        if self.packed {
            return u64::from(half::on_halves(operands.map(|bits| bits as u32), |halves| self.one(halves)));
        }
        u64::from(self.one(operands.map(|bits| bits as u16)))
    }

    /// The whole-warp kernel that computes the same.
    pub fn kernel(self) -> Option<Chosen> {
        let plain = self.mode.bound == Bound::None && !self.mode.flush && self.mode.format == Mode::F16.format;
        let kernel = match self.op {
            _ if !plain || !self.packed => return None,
            Half::Add => Kernel::HalvesAdd,
            Half::Subtract => Kernel::HalvesSubtract,
            Half::Multiply => Kernel::HalvesMultiply,
            _ => return None,
        };
        Some(Chosen::new(kernel))
    }

    fn one(self, [a, b, c]: [u16; 3]) -> u16 {
        let mode = self.mode;
        match self.op {
            Half::Add | Half::AddBrain16 => half::add(a, b, mode),
            Half::Subtract | Half::SubtractBrain16 => half::subtract(a, b, mode),
            Half::Multiply | Half::MultiplyBrain16 => half::multiply(a, b, mode),
            Half::FusedMultiplyAdd | Half::FusedMultiplyAddRelu | Half::FusedMultiplyAddBrain16 => {
                half::fused_multiply_add(a, b, c, mode)
            }
            Half::Negate | Half::NegateBrain16 => half::negate(a, mode),
            Half::Absolute | Half::AbsoluteBrain16 => half::absolute(a, mode),
            Half::Minimum | Half::MinimumBrain16 => self.chosen(a, b, arithmetic::minimum),
            Half::Maximum | Half::MaximumBrain16 => self.chosen(a, b, arithmetic::maximum),
            Half::PowerOfTwo | Half::PowerOfTwoBrain16 => half::exponential(a, mode),
            Half::HyperbolicTangent | Half::HyperbolicTangentBrain16 => half::tangent(a, mode),
        }
    }

    fn chosen(self, a: u16, b: u16, choose: fn(u32, u32, NanOperand) -> u32) -> u16 {
        let plain = |a, b| half::select(a, b, self.mode, |a, b| choose(a, b, self.nan));
        if self.product_sign { half::with_product_sign(a, b, plain) } else { plain(a, b) }
    }
}
