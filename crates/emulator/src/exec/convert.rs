//! Conversions between types.

use super::lower::Chosen;
use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why, truncate};
use crate::numerics::arithmetic::{self, Mode};
use crate::numerics::convert::{self, Integers};
use crate::numerics::double::Exact;
use crate::numerics::format::{Format, Rounding};
use crate::numerics::half::on_halves;
use crate::simd::Kernel;
use ptx::forms::Convert;
use ptx::{Instruction, Operand, Type};

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Convert,
    to: Type,
    from: Type,
    /// None: the mnemonic has no rounding.
    rounding: Option<Rounding>,
    flush: bool,
    saturate: bool,
    /// `.satfinite`, for the conversion that may go without.
    finite: bool,
    relu: bool,
    /// Bits of the destination register, which may be wider than the type.
    width: u32,
}

pub fn decode(op: Convert, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    let mut types = instruction.types();
    let to = types.next().unwrap_or(Type::B32);
    let from = types.next().unwrap_or(to);
    let width = match instruction.operands[0] {
        Operand::Register(register) => decoder.bits(register),
        _ => to.bits(),
    };
    let lane = Lane {
        op,
        to,
        from,
        rounding: rounding(instruction),
        flush: instruction.has("ftz"),
        saturate: instruction.has("sat"),
        finite: instruction.has("satfinite"),
        relu: instruction.has("relu"),
        width,
    };
    decoder.compute(instruction, Lanewise::Convert(lane))
}

/// The rounding in a mnemonic.
pub fn rounding(instruction: &Instruction) -> Option<Rounding> {
    Some(match instruction.choice(&["rn", "rni", "rz", "rzi", "rm", "rmi", "rp", "rpi"])? {
        "rz" | "rzi" => Rounding::Zero,
        "rm" | "rmi" => Rounding::Down,
        "rp" | "rpi" => Rounding::Up,
        _ => Rounding::Nearest,
    })
}

impl Lane {
    pub fn evaluate(self, [a, b, c]: [u64; 3]) -> u64 {
        let (x, y) = (a as u32, b as u32);
        let rounding = self.rounding();
        match self.op {
            Convert::Integer => self.integer(a),
            Convert::SaturateToU8
            | Convert::SaturateToS8
            | Convert::SaturateToU16
            | Convert::SaturateToS16
            | Convert::SaturateToU32
            | Convert::SaturateToS32
            | Convert::SaturateToU64
            | Convert::SaturateToS64 => self.register(integers(self.to).clamp(self.operand(a))),
            Convert::ToFloat => self.single(Format::F32.round(convert::integer_to_odd(self.operand(a)), rounding)),
            Convert::ToDouble => self.double(Exact::integer(self.operand(a)).round(rounding)),
            Convert::ToHalf => self.half(convert::integer_to_odd(self.operand(a))),
            Convert::ToInteger | Convert::DoubleToInteger | Convert::HalfToInteger => self.to_integer(self.float(a)),
            Convert::RoundToIntegral => self.integral_single(x),
            Convert::RoundDoubleToIntegral => self.integral_double(a),
            Convert::RoundHalfToIntegral => self.integral_half(a as u16),
            Convert::WidenToDouble => self.double(convert::f32_to_f64(self.flushed(x))),
            Convert::WidenHalfToDouble => self.double(convert::f32_to_f64(convert::f16_to_f32(a as u16))),
            Convert::NarrowToFloat => self.single(convert::f64_to_f32(a, Mode { rounding, flush: self.flush })),
            Convert::Widen => self.single(convert::f16_to_f32(a as u16)),
            Convert::WidenBrain16 => u64::from(convert::bf16_to_f32(a as u16)),
            // An H200 does not flush the operand of a conversion to f16, whatever `.ftz` says.
            Convert::Narrow
            | Convert::NarrowHalf
            | Convert::NarrowHalfFlushed
            | Convert::NarrowHalfSaturated
            | Convert::NarrowHalfRelu => self.half(Lane { flush: false, ..self }.float(a)),
            Convert::NarrowDoubleToHalf if f64::from_bits(a).is_nan() && !self.saturate => {
                convert::shortened_nan(a, 16, 10)
            }
            Convert::NarrowDoubleToHalf => self.half(self.float(a)),
            Convert::NarrowBrain16 | Convert::NarrowBrain16Relu => {
                u64::from(convert::f32_to_bf16(self.without_negatives(x), rounding))
            }
            Convert::NarrowPair | Convert::NarrowPairRelu => self.pair(x, y),
            Convert::NarrowTensor32 => u64::from(convert::f32_to_tf32_away(x, self.finite)),
            Convert::NarrowTensor32Rounded => u64::from(convert::f32_to_tf32(self.without_negatives(x), rounding)),
            Convert::NarrowPairTo8 => self.pair_of_bytes(x, y),
            Convert::NarrowHalvesTo8 => {
                self.pair_of_bytes(convert::f16_to_f32((x >> 16) as u16), convert::f16_to_f32(x as u16))
            }
            Convert::WidenFrom8 => self.widened_bytes(a as u16),
            Convert::Pack | Convert::PackBytes => self.pack(x, y, c as u32),
        }
    }

    /// The whole-warp kernel that computes the same.
    pub fn kernel(self) -> Option<Chosen> {
        let (nearest, single) = (self.rounding() == Rounding::Nearest, self.from == Type::F32);
        let plain = !self.saturate && !self.relu;
        let kernel = match self.op {
            Convert::Integer => return self.kernel_of_integers(),
            _ if !plain => return None,
            Convert::Widen => Kernel::FromHalf,
            Convert::WidenBrain16 => Kernel::FromBrain16,
            Convert::Narrow | Convert::NarrowHalf | Convert::NarrowHalfFlushed if nearest && single => Kernel::ToHalf,
            Convert::NarrowBrain16 if nearest && single => Kernel::ToBrain16,
            Convert::NarrowPair if nearest && self.to == Type::F16x2 => Kernel::ToHalves,
            Convert::NarrowPair if nearest && self.to == Type::Bf16x2 => Kernel::ToBrain16s,
            Convert::ToFloat if nearest && self.from == Type::S32 => Kernel::SignedToFloat,
            Convert::ToFloat if nearest && self.from == Type::U32 => Kernel::UnsignedToFloat,
            Convert::ToInteger if single && self.to == Type::S32 => match self.rounding() {
                Rounding::Zero => Kernel::FloatToSigned,
                Rounding::Nearest => Kernel::FloatToSignedNearest,
                _ => return None,
            },
            Convert::ToInteger if single && self.to == Type::U32 && self.rounding() == Rounding::Zero => {
                Kernel::FloatToUnsigned
            }
            _ => return None,
        };
        Some(Chosen::new(kernel))
    }

    fn kernel_of_integers(self) -> Option<Chosen> {
        let (from, to) = (self.from.bits(), self.to.bits());
        if to == 64 {
            return Some(Chosen::new(match (from, self.from.is_signed()) {
                (64, _) => Kernel::WideCopy,
                (32, true) => Kernel::WidenSigned,
                (32, false) => Kernel::WidenUnsigned,
                _ => return None,
            }));
        }
        if self.width > 32 {
            return None;
        }
        if from >= 32 && to == 32 && self.width == 32 {
            return Some(Chosen::new(Kernel::Copy));
        }
        let unused = |bits: u32| 32 - bits.min(32);
        let signs = u32::from(self.from.is_signed()) << 30 | u32::from(self.to.is_signed()) << 31;
        let extra = signs | unused(self.width) << 10 | unused(to) << 5 | unused(from);
        Some(Chosen { extra, ..Chosen::new(Kernel::Extend) })
    }

    fn rounding(self) -> Rounding {
        self.rounding.unwrap_or(Rounding::Nearest)
    }

    /// Cuts to the narrower type, extends with the sign of the source type, and again to the register's width.
    fn integer(self, a: u64) -> u64 {
        let value = sign_extend(truncate(a, self.from.bits()), self.from);
        truncate(sign_extend(truncate(value, self.to.bits()), self.to), self.width)
    }

    /// The integer operand.
    fn operand(self, a: u64) -> i128 {
        let value = sign_extend(truncate(a, self.from.bits()), self.from);
        if self.from.is_signed() { i128::from(value as i64) } else { i128::from(value) }
    }

    /// An integer result; signed ones fill a wider register with their sign.
    fn register(self, value: i128) -> u64 {
        truncate(value as u64, self.width)
    }

    fn flushed(self, bits: u32) -> u32 {
        if self.flush { arithmetic::flush(bits) } else { bits }
    }

    fn without_negatives(self, bits: u32) -> u32 {
        if self.relu { convert::relu(bits) } else { bits }
    }

    /// The float operand.
    fn float(self, a: u64) -> f64 {
        let single = |bits| f64::from(f32::from_bits(self.without_negatives(self.flushed(bits))));
        match self.from {
            Type::F64 => f64::from_bits(a),
            Type::F16 => single(convert::f16_to_f32(a as u16)),
            _ => single(a as u32),
        }
    }

    fn to_integer(self, value: f64) -> u64 {
        let wide = self.from == Type::F64 || self.to.bits() == 64;
        self.register(convert::to_integer(value, self.rounding(), integers(self.to), wide))
    }

    fn single(self, bits: u32) -> u64 {
        u64::from(if self.saturate { arithmetic::saturate(bits) } else { bits })
    }

    fn double(self, bits: u64) -> u64 {
        let value = f64::from_bits(bits);
        match self.saturate {
            true if value > 0.0 => value.min(1.0).to_bits(),
            true => 0,
            false => bits,
        }
    }

    fn half(self, value: f64) -> u64 {
        let value = match self.saturate {
            true if value > 0.0 => value.min(1.0),
            true => 0.0,
            false => value,
        };
        u64::from(Format::F16.round(value, self.rounding()))
    }

    /// A conversion to its own type without a rounding only flushes and saturates.
    fn integral_single(self, bits: u32) -> u64 {
        let bits = self.flushed(bits);
        match self.rounding {
            Some(rounding) => {
                let integral = convert::to_integral(f64::from(f32::from_bits(bits)), rounding);
                self.single(Format::F32.round(integral, rounding))
            }
            None => self.single(bits),
        }
    }

    fn integral_double(self, bits: u64) -> u64 {
        match self.rounding {
            Some(rounding) if !f64::from_bits(bits).is_nan() => {
                self.double(convert::to_integral(f64::from_bits(bits), rounding).to_bits())
            }
            _ => self.double(bits),
        }
    }

    fn integral_half(self, bits: u16) -> u64 {
        let value = f64::from(f32::from_bits(convert::f16_to_f32(bits)));
        match self.rounding {
            Some(rounding) => self.half(convert::to_integral(value, rounding)),
            None if self.saturate => self.half(value),
            None => u64::from(bits),
        }
    }

    /// The first operand is the high half.
    fn pair(self, high: u32, low: u32) -> u64 {
        let (high, low) = (self.without_negatives(high), self.without_negatives(low));
        u64::from(match self.to {
            Type::Bf16x2 => convert::f32_to_bf16x2(high, low, self.rounding()),
            _ => convert::f32_to_f16x2(high, low, self.rounding()),
        })
    }

    fn pair_of_bytes(self, high: u32, low: u32) -> u64 {
        let format = if self.to == Type::E4m3x2 { Format::E4M3 } else { Format::E5M2 };
        let [high, low] = [high, low].map(|bits| convert::f32_to_8(self.without_negatives(bits), format));
        u64::from(high) << 8 | u64::from(low)
    }

    fn widened_bytes(self, bytes: u16) -> u64 {
        let format = if self.from == Type::E4m3x2 { Format::E4M3 } else { Format::E5M2 };
        let halves = u32::from(bytes >> 8) << 16 | u32::from(bytes & 0xff);
        u64::from(on_halves([halves], |[byte]| {
            let half = convert::f8_to_f16(byte as u8, format);
            let negative = half & 0x8000 != 0;
            if self.relu && negative { 0 } else { half }
        }))
    }

    /// `cvt.pack`: two saturated integers, the first above the second; behind bytes comes what was there.
    fn pack(self, a: u32, b: u32, c: u32) -> u64 {
        let bits = self.to.bits();
        let [high, low] = [a, b].map(|value| {
            let clamped = integers(self.to).clamp(i128::from(value as i32));
            truncate(clamped as u64, bits)
        });
        truncate(u64::from(c) << (2 * bits) | high << bits | low, 32)
    }
}

fn integers(ty: Type) -> Integers {
    Integers { bits: ty.bits(), signed: ty.is_signed() }
}

fn sign_extend(value: u64, ty: Type) -> u64 {
    let unused = 64 - ty.bits();
    if ty.is_signed() { ((value << unused) as i64 >> unused) as u64 } else { value }
}
