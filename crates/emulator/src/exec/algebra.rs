//! What instructions on floats do to payloads (`--algebra`). Rounding, flushing and the widths of types have no meaning.

use super::{Compute, Lanewise};
use crate::algebra::{Payload, decode as read, encode as write};
use crate::machine::{Decoder, Why, truncate};
use crate::numerics::half::on_halves;
use crate::numerics::update::Operation;
use ptx::forms::{Convert, Field, Float, Half, Integer};
use ptx::{Function as Code, Immediate, Instruction, Op, Operand, RegisterId, Type};

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    function: Function,
    from: Type,
    to: Type,
    bound: Bound,
    /// `.NaN`
    keep: bool,
    /// Bits of the destination register, which may be wider than the type.
    width: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    Divide,
    Minimum,
    Maximum,
    Negate,
    Absolute,
    CopySign,
    PowerOfTwo,
    Logarithm,
    Reciprocal,
    /// Nothing is known of it but its number.
    Unknown(u64),
    IsFinite,
    IsInfinite,
    IsNumber,
    IsNotANumber,
    Never,
    Convert,
    /// Two operands into the halves of the result, the first into the high one.
    ConvertPair,
    /// Two bytes into two halves.
    ConvertBytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    None,
    Saturate,
    Relu,
}

/// A lanewise instruction that computes with floats; nothing for all others.
pub fn decode(instruction: &Instruction, decoder: &Decoder) -> Result<Option<Compute>, Why> {
    if widens_by_hand(instruction, decoder) {
        return Err("with `--algebra`: it widens a bf16, and an exact number does not survive that; use `cvt`".into());
    }
    let function = match instruction.op() {
        Op::Float(op) => of_float(op, instruction),
        Op::Half(op) => of_half(op),
        Op::Convert(op) => match of_conversion(op, instruction)? {
            Some(function) => function,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let mut types = instruction.types();
    let to = types.next().unwrap_or(Type::F32);
    let bound = match instruction.choice(&["sat", "relu"]) {
        Some("sat") => Bound::Saturate,
        Some(_) => Bound::Relu,
        None => Bound::None,
    };
    if instruction.has("xorsign") {
        return Err("with `--algebra`: `.xorsign`".into());
    }
    let width = match instruction.operands[0] {
        Operand::Register(register) => decoder.bits(register),
        _ => to.bits(),
    };
    let lane = Lane { function, from: types.next().unwrap_or(to), to, bound, keep: instruction.has("NaN"), width };
    decoder.compute(instruction, Lanewise::Algebra(lane)).map(Some)
}

/// bf16 to f32 without a conversion: the half goes to the upper 16 bits, and zeros below it.
fn widens_by_hand(instruction: &Instruction, decoder: &Decoder) -> bool {
    let [Operand::Register(to), from @ ..] = instruction.operands.as_slice() else { return false };
    let shifted = match (instruction.op(), from) {
        (Op::Integer(Integer::ShiftLeft), [_, amount]) => is(amount, &[16]),
        (Op::Integer(Integer::And), [_, mask]) => is(mask, &[0xffff_0000, -0x1_0000]),
        (Op::Movement(_), [Operand::Vector(halves)]) => halves.len() == 2 && is(&halves[0], &[0]),
        _ => false,
    };
    shifted && decoder.bits(*to) == 32 && is_float(decoder.function, *to)
}

fn is(operand: &Operand, values: &[i64]) -> bool {
    matches!(operand, Operand::Immediate(Immediate::Integer(value)) if values.contains(&(*value as i64)))
}

/// Is a register an f32, or read or moved as one?
fn is_float(function: &Code, register: RegisterId) -> bool {
    let is_declared = |operand: &Operand| matches!(operand, Operand::Register(one) if function[*one].ty == Type::F32);
    let is_it = |operand: &Operand| matches!(operand, Operand::Register(one) if *one == register);
    let reads = |instruction: &Instruction| {
        let specs = instruction.form.operands.all.iter().zip(&instruction.operands);
        let mut sources = specs.filter(|(spec, operand)| !spec.defines && is_it(operand));
        sources.any(|(spec, _)| match spec.field {
            Field::Value(ty, _) => ty.of(instruction) == Some(Type::F32),
            _ => false,
        })
    };
    let moves = |instruction: &Instruction| match instruction.operands.as_slice() {
        [to, from] => is_it(from) && is_declared(to),
        _ => false,
    };
    let mut instructions = function.instructions();
    is_declared(&Operand::Register(register)) || instructions.any(|(_, one)| reads(one) || moves(one))
}

fn of_float(op: Float, instruction: &Instruction) -> Function {
    match op {
        Float::Add | Float::AddDouble => Function::Add,
        Float::Subtract | Float::SubtractDouble => Function::Subtract,
        Float::Multiply | Float::MultiplyDouble => Function::Multiply,
        Float::FusedMultiplyAdd | Float::MultiplyAdd => Function::MultiplyAdd,
        Float::FusedMultiplyAddDouble | Float::MultiplyAddDouble => Function::MultiplyAdd,
        Float::Divide | Float::DivideFull | Float::DivideApproximate | Float::DivideDouble => Function::Divide,
        Float::Minimum | Float::MinimumDouble => Function::Minimum,
        Float::Maximum | Float::MaximumDouble => Function::Maximum,
        Float::Negate | Float::NegateDouble => Function::Negate,
        Float::Absolute | Float::AbsoluteDouble => Function::Absolute,
        Float::CopySign => Function::CopySign,
        Float::TestProperty => match instruction.choice(&["finite", "infinite", "number", "notanumber", "normal"]) {
            Some("finite" | "normal") => Function::IsFinite,
            Some("infinite") => Function::IsInfinite,
            Some("number") => Function::IsNumber,
            Some(_) => Function::IsNotANumber,
            // Subnormal.
            None => Function::Never,
        },
        Float::PowerOfTwo => Function::PowerOfTwo,
        Float::LogarithmOfTwo => Function::Logarithm,
        Float::Reciprocal | Float::ReciprocalExact | Float::ReciprocalDouble | Float::ReciprocalDoubleApproximate => {
            Function::Reciprocal
        }
        Float::Sine => Function::Unknown(1),
        Float::Cosine => Function::Unknown(2),
        Float::HyperbolicTangent => TANGENT,
        Float::SquareRoot | Float::SquareRootApproximate | Float::SquareRootDouble => Function::Unknown(4),
        Float::ReciprocalRoot | Float::ReciprocalRootDouble => Function::Unknown(5),
    }
}

const TANGENT: Function = Function::Unknown(3);
const ROUND: Function = Function::Unknown(6);

fn of_half(op: Half) -> Function {
    match op {
        Half::Add | Half::AddBrain16 => Function::Add,
        Half::Subtract | Half::SubtractBrain16 => Function::Subtract,
        Half::Multiply | Half::MultiplyBrain16 => Function::Multiply,
        Half::FusedMultiplyAdd | Half::FusedMultiplyAddRelu | Half::FusedMultiplyAddBrain16 => Function::MultiplyAdd,
        Half::Negate | Half::NegateBrain16 => Function::Negate,
        Half::Absolute | Half::AbsoluteBrain16 => Function::Absolute,
        Half::Minimum | Half::MinimumBrain16 => Function::Minimum,
        Half::Maximum | Half::MaximumBrain16 => Function::Maximum,
        Half::PowerOfTwo | Half::PowerOfTwoBrain16 => Function::PowerOfTwo,
        Half::HyperbolicTangent | Half::HyperbolicTangentBrain16 => TANGENT,
    }
}

/// Nothing for conversions between integers.
fn of_conversion(op: Convert, instruction: &Instruction) -> Result<Option<Function>, Why> {
    Ok(Some(match op {
        Convert::Integer
        | Convert::SaturateToU8
        | Convert::SaturateToS8
        | Convert::SaturateToU16
        | Convert::SaturateToS16
        | Convert::SaturateToU32
        | Convert::SaturateToS32
        | Convert::SaturateToU64
        | Convert::SaturateToS64
        | Convert::Pack
        | Convert::PackBytes => return Ok(None),
        Convert::RoundToIntegral | Convert::RoundDoubleToIntegral | Convert::RoundHalfToIntegral
            if instruction.choice(&["rni", "rzi", "rmi", "rpi"]).is_some() =>
        {
            ROUND
        }
        Convert::NarrowPair | Convert::NarrowPairRelu => Function::ConvertPair,
        Convert::WidenFrom8 => Function::ConvertBytes,
        Convert::NarrowPairTo8 | Convert::NarrowHalvesTo8 => {
            return Err("with `--algebra`, whose numbers need 16 bits".into());
        }
        Convert::RoundToIntegral
        | Convert::RoundDoubleToIntegral
        | Convert::RoundHalfToIntegral
        | Convert::ToFloat
        | Convert::ToDouble
        | Convert::ToHalf
        | Convert::ToInteger
        | Convert::DoubleToInteger
        | Convert::HalfToInteger
        | Convert::WidenToDouble
        | Convert::NarrowToFloat
        | Convert::Widen
        | Convert::WidenHalfToDouble
        | Convert::WidenBrain16
        | Convert::Narrow
        | Convert::NarrowHalf
        | Convert::NarrowHalfFlushed
        | Convert::NarrowHalfSaturated
        | Convert::NarrowHalfRelu
        | Convert::NarrowDoubleToHalf
        | Convert::NarrowBrain16
        | Convert::NarrowBrain16Relu
        | Convert::NarrowTensor32
        | Convert::NarrowTensor32Rounded => Function::Convert,
    }))
}

impl Lane {
    pub fn evaluate(self, operands: [u64; 3]) -> u64 {
        let [high, low, _] = operands;
        match self.function {
            Function::ConvertPair => self.converted(high) << 16 | self.converted(low),
            Function::ConvertBytes => {
                let byte = if self.from == Type::E4m3x2 { Type::E4m3 } else { Type::E5m2 };
                let lane = Lane { from: byte, ..self };
                lane.converted(high >> 8) << 16 | lane.converted(high)
            }
            _ if self.from.is_packed() => {
                let half = |halves: [u16; 3]| write(self.to, self.number(halves.map(u64::from))) as u16;
                on_halves(operands.map(|bits| bits as u32), half).into()
            }
            _ => match self.property(operands[0]) {
                Some(holds) => u64::from(holds),
                None => truncate(write(self.to, self.number(operands)), self.width),
            },
        }
    }

    fn converted(self, bits: u64) -> u64 {
        write(self.to, self.bounded(read(self.from, bits)))
    }

    /// What `testp` asks, if it asks.
    fn property(self, bits: u64) -> Option<bool> {
        let payload = read(self.from, bits);
        Some(match self.function {
            Function::IsFinite => matches!(payload, Payload::Number { .. }),
            Function::IsInfinite => matches!(payload, Payload::Infinite { .. }),
            Function::IsNumber => payload != Payload::NotANumber,
            Function::IsNotANumber => payload == Payload::NotANumber,
            Function::Never => false,
            _ => return None,
        })
    }

    fn number(self, operands: [u64; 3]) -> Payload {
        let [a, b, c] = operands.map(|bits| read(self.from, bits));
        self.bounded(match self.function {
            Function::Add => a.plus(b),
            Function::Subtract => a.minus(b),
            Function::Multiply => a.times(b),
            Function::MultiplyAdd => a.times(b).plus(c),
            Function::Divide => a.over(b),
            Function::Minimum => a.minimum(b, self.keep),
            Function::Maximum => a.maximum(b, self.keep),
            Function::Negate => a.negated(),
            Function::Absolute => a.absolute(),
            Function::CopySign if a.is_negative() => b.absolute().negated(),
            Function::CopySign => b.absolute(),
            Function::PowerOfTwo => a.power_of_two(),
            Function::Logarithm => a.logarithm(),
            Function::Reciprocal => a.reciprocal(),
            Function::Unknown(function) => a.hashed(function),
            // A conversion; the others have been dealt with.
            _ => a,
        })
    }

    fn bounded(self, payload: Payload) -> Payload {
        let [zero, one] = [0, 1].map(Payload::integer);
        match self.bound {
            // `.sat` of an integer result is its type's.
            Bound::Saturate if self.to.is_float() => payload.maximum(zero, false).minimum(one, false),
            Bound::Relu => payload.maximum(zero, true),
            _ => payload,
        }
    }
}

/// What an atomic makes of floats: their sum, the smaller or the larger one.
pub fn update(operation: Operation, ty: Type, old: u64, operand: u64) -> u64 {
    let one = |old, operand| {
        let [a, b] = [old, operand].map(|bits| read(ty, bits));
        write(
            ty,
            match operation {
                Operation::Minimum => a.minimum(b, false),
                Operation::Maximum => a.maximum(b, false),
                _ => a.plus(b),
            },
        )
    };
    match ty.is_packed() {
        true => on_halves([old as u32, operand as u32], |[a, b]| one(a.into(), b.into()) as u16).into(),
        false => one(old, operand),
    }
}
