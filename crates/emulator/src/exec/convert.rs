//! Conversions between types.

use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why, truncate};
use crate::numerics::format::Rounding;
use crate::numerics::{arithmetic, convert};
use ptx::forms::Convert;
use ptx::{Instruction, Operand, Type};

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Convert,
    to: Type,
    from: Type,
    rounding: Rounding,
    flush: bool,
    /// Bits of the destination register, which may be wider than the type.
    width: u32,
}

pub fn decode(op: Convert, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    let mut types = instruction.types();
    let to = types.next().unwrap_or(Type::B32);
    let from = types.next().unwrap_or(to);
    let rounding = match instruction.choice(&["rn", "rni", "rz", "rzi", "rm", "rmi", "rp", "rpi"]) {
        Some("rz" | "rzi") => Rounding::Zero,
        Some("rm" | "rmi") => Rounding::Down,
        Some("rp" | "rpi") => Rounding::Up,
        _ => Rounding::Nearest,
    };
    let width = match instruction.operands[0] {
        Operand::Register(register) => decoder.bits(register),
        _ => to.bits(),
    };
    let lane = Lane { op, to, from, rounding, flush: instruction.has("ftz"), width };
    decoder.compute(instruction, Lanewise::Convert(lane))
}

impl Lane {
    pub fn evaluate(self, [a, b, _]: [u64; 3]) -> u64 {
        let (x, y) = (a as u32, b as u32);
        match self.op {
            Convert::Integer => self.integer(a),
            Convert::ToFloat if self.from == Type::S32 => u64::from(convert::s32_to_f32(x as i32)),
            Convert::ToFloat => u64::from(convert::u32_to_f32(x)),
            Convert::ToInteger => {
                let x = if self.flush { arithmetic::flush(x) } else { x };
                match self.to {
                    Type::S32 => u64::from(convert::f32_to_s32(x, self.rounding) as u32),
                    _ => u64::from(convert::f32_to_u32(x, self.rounding)),
                }
            }
            Convert::WidenBrain16 => u64::from(convert::bf16_to_f32(a as u16)),
            Convert::Widen => u64::from(convert::f16_to_f32(a as u16)),
            Convert::NarrowBrain16 => u64::from(convert::f32_to_bf16(x, self.rounding)),
            Convert::Narrow => u64::from(convert::f32_to_f16(x, self.rounding)),
            Convert::NarrowPair if self.to == Type::Bf16x2 => u64::from(convert::f32_to_bf16x2(x, y, self.rounding)),
            Convert::NarrowPair => u64::from(convert::f32_to_f16x2(x, y, self.rounding)),
            // Refused by `decode`.
            Convert::SaturateToU8
            | Convert::SaturateToS8
            | Convert::SaturateToU16
            | Convert::SaturateToS16
            | Convert::SaturateToU32
            | Convert::SaturateToS32
            | Convert::SaturateToU64
            | Convert::SaturateToS64
            | Convert::ToDouble
            | Convert::ToHalf
            | Convert::DoubleToInteger
            | Convert::HalfToInteger
            | Convert::RoundToIntegral
            | Convert::RoundDoubleToIntegral
            | Convert::RoundHalfToIntegral
            | Convert::WidenToDouble
            | Convert::NarrowToFloat
            | Convert::WidenHalfToDouble
            | Convert::NarrowHalf
            | Convert::NarrowHalfFlushed
            | Convert::NarrowHalfSaturated
            | Convert::NarrowHalfRelu
            | Convert::NarrowDoubleToHalf
            | Convert::NarrowBrain16Relu
            | Convert::NarrowPairRelu
            | Convert::NarrowTensor32
            | Convert::NarrowTensor32Rounded
            | Convert::NarrowPairTo8
            | Convert::NarrowHalvesTo8
            | Convert::WidenFrom8
            | Convert::Pack
            | Convert::PackBytes => 0,
        }
    }

    /// Cuts to the narrower type, extends with the sign of the source type, and again to the register's width.
    fn integer(self, a: u64) -> u64 {
        let value = sign_extend(truncate(a, self.from.bits()), self.from);
        truncate(sign_extend(truncate(value, self.to.bits()), self.to), self.width)
    }
}

fn sign_extend(value: u64, ty: Type) -> u64 {
    let unused = 64 - ty.bits();
    if ty.is_signed() { ((value << unused) as i64 >> unused) as u64 } else { value }
}
