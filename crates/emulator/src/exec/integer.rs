//! Integer and bit arithmetic.

use super::bits::{self, Excess, Selection};
use super::lower::Chosen;
use super::packed::{self, After, Bytes};
use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why, truncate};
use crate::simd::Kernel;
use ptx::forms::Integer;
use ptx::{Immediate, Instruction, Operand, Type};

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Integer,
    ty: Type,
    variant: Variant,
}

/// What a form's modifiers choose.
#[derive(Clone, Copy, Debug)]
enum Variant {
    Plain,
    /// `.hi`, `.sat`, `.relu`, `.shiftamt`: of two behaviours the second.
    Other,
    Shift {
        left: bool,
        excess: Excess,
    },
    Select(Selection),
    /// The table of `lop3`.
    Table(u8),
    Bytes(Bytes),
}

pub fn decode(op: Integer, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    let ty = instruction.ty().unwrap_or(Type::B32);
    let lane = Lane { op, ty, variant: variant(op, instruction)? };
    decoder.compute(instruction, Lanewise::Integer(lane))
}

fn variant(op: Integer, instruction: &Instruction) -> Result<Variant, Why> {
    let excess = if instruction.has("wrap") { Excess::Wrap } else { Excess::Clamp };
    let types: Vec<Type> = instruction.types().collect();
    Ok(match op {
        Integer::FunnelShift | Integer::BitFieldMask | Integer::SignExtend => {
            Variant::Shift { left: instruction.has("l"), excess }
        }
        Integer::Permute => {
            Variant::Select(Selection::of_mode(instruction.choice(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])))
        }
        Integer::LogicOfThree => match instruction.operands.last() {
            Some(Operand::Immediate(Immediate::Integer(table))) => Variant::Table(*table as u8),
            _ => return Err("a table that is no constant".into()),
        },
        Integer::DotOfFour | Integer::DotOfTwo => {
            let after = if instruction.has("hi") { After::Add } else { After::Cut };
            Variant::Bytes(Bytes { result_signed: false, signed: packed::signs(&types), after })
        }
        Integer::AddFour
        | Integer::SubtractFour
        | Integer::AverageFour
        | Integer::AbsoluteDifferenceFour
        | Integer::MinimumFour
        | Integer::MaximumFour => {
            let after = match instruction.choice(&["sat", "add"]) {
                Some("sat") => After::Saturate,
                Some(_) => After::Add,
                None => After::Cut,
            };
            let result_signed = types.first().is_some_and(|ty| ty.is_signed());
            Variant::Bytes(Bytes { result_signed, signed: packed::signs(types.get(1..).unwrap_or_default()), after })
        }
        Integer::MultiplyAddHigh if !instruction.has("sat") => Variant::Plain,
        _ if instruction.choice(&["hi", "sat", "relu", "shiftamt"]).is_some() => Variant::Other,
        _ => Variant::Plain,
    })
}

impl Lane {
    pub fn evaluate(self, [a, b, c]: [u64; 3]) -> u64 {
        let bits = self.ty.bits();
        // Sign- or zero-extended to 128 bits, every product and sum is exact before it is cut.
        let [x, y, z] = [a, b, c].map(|value| extend(value, self.ty));
        let result = match self.op {
            Integer::Add => x + y,
            Integer::Subtract => x - y,
            Integer::AddSaturated => saturated(x + y),
            Integer::SubtractSaturated => saturated(x - y),
            Integer::MultiplyLow => x.wrapping_mul(y),
            Integer::MultiplyHigh => x.wrapping_mul(y) >> bits,
            Integer::MultiplyWide => return truncate((x * y) as u64, bits * 2),
            Integer::Multiply24 => self.product_of_24(a, b),
            Integer::MultiplyAddLow => x.wrapping_mul(y).wrapping_add(z),
            Integer::MultiplyAddHigh if self.is_other() => saturated((x.wrapping_mul(y) >> bits) + z),
            Integer::MultiplyAddHigh => (x.wrapping_mul(y) >> bits).wrapping_add(z),
            Integer::MultiplyAddWide => return truncate((x * y).wrapping_add(i128::from(c)) as u64, bits * 2),
            Integer::MultiplyAdd24 => self.product_of_24(a, b) + z,
            Integer::Divide => quotient(x, y),
            Integer::Remainder => remainder(x, y),
            Integer::Minimum => x.min(y),
            Integer::Maximum => x.max(y),
            Integer::MinimumRelu => x.min(y).max(0),
            Integer::MaximumRelu => x.max(y).max(0),
            Integer::Negate => -x,
            Integer::Absolute => x.abs(),
            Integer::AbsoluteDifference => (x - y).abs() + z,
            Integer::And => i128::from(a & b),
            Integer::Or => i128::from(a | b),
            Integer::Xor => i128::from(a ^ b),
            Integer::Not => i128::from(!a),
            Integer::LogicalNot => i128::from(truncate(a, bits) == 0),
            Integer::ShiftLeft => shift_left(a, b),
            Integer::ShiftRight => x >> b.min(127), // Amounts of the width and above leave only sign bits.
            Integer::BitFieldExtract => extract(a, b, c, self.ty),
            Integer::CountOnes => i128::from(truncate(a, bits).count_ones()),
            Integer::CountLeadingZeros => i128::from(truncate(a, bits).leading_zeros() - (64 - bits)),
            Integer::FindLeadingOne => {
                return u64::from(bits::find_leading(a, bits, self.ty.is_signed(), self.is_other()));
            }
            Integer::ReverseBits => i128::from(a.reverse_bits() >> (64 - bits)),
            _ => i128::from(self.word(a as u32, b as u32, c as u32)),
        };
        truncate(result as u64, bits)
    }

    /// The whole-warp kernel that computes the same.
    pub fn kernel(self) -> Option<Chosen> {
        let kernel = match self.ty.bits() {
            1 => self.kernel_of_predicates()?,
            32 => self.kernel_of_words()?,
            64 => self.kernel_of_pairs()?,
            _ => return None,
        };
        let extra = if let Variant::Table(table) = self.variant { table.into() } else { 0 };
        Some(Chosen { extra, ..Chosen::new(kernel) })
    }

    fn kernel_of_predicates(self) -> Option<Kernel> {
        Some(match self.op {
            Integer::And => Kernel::PredicateAnd,
            Integer::Or => Kernel::PredicateOr,
            Integer::Xor => Kernel::PredicateXor,
            Integer::Not => Kernel::PredicateNot,
            _ => return None,
        })
    }

    fn kernel_of_words(self) -> Option<Kernel> {
        let signed = self.ty.is_signed();
        let by_sign = |of_signed, of_unsigned| if signed { of_signed } else { of_unsigned };
        Some(match (self.op, self.variant) {
            (Integer::Add, _) => Kernel::Add,
            (Integer::Subtract, _) => Kernel::Subtract,
            (Integer::MultiplyLow, _) => Kernel::MultiplyLow,
            (Integer::MultiplyHigh, _) => by_sign(Kernel::MultiplyHighSigned, Kernel::MultiplyHighUnsigned),
            (Integer::MultiplyWide, _) => by_sign(Kernel::MultiplyWideSigned, Kernel::MultiplyWideUnsigned),
            (Integer::MultiplyAddLow, _) => Kernel::MultiplyAddLow,
            (Integer::MultiplyAddWide, _) => by_sign(Kernel::MultiplyAddWideSigned, Kernel::MultiplyAddWideUnsigned),
            (Integer::Divide, _) => by_sign(Kernel::DivideSigned, Kernel::DivideUnsigned),
            (Integer::Remainder, _) => by_sign(Kernel::RemainderSigned, Kernel::RemainderUnsigned),
            (Integer::Minimum, _) => by_sign(Kernel::MinimumSigned, Kernel::MinimumUnsigned),
            (Integer::Maximum, _) => by_sign(Kernel::MaximumSigned, Kernel::MaximumUnsigned),
            (Integer::Negate, _) => Kernel::Negate,
            (Integer::Absolute, _) => Kernel::Absolute,
            (Integer::And, _) => Kernel::And,
            (Integer::Or, _) => Kernel::Or,
            (Integer::Xor, _) => Kernel::Xor,
            (Integer::Not, _) => Kernel::Not,
            (Integer::ShiftLeft, _) => Kernel::ShiftLeft,
            (Integer::ShiftRight, _) => by_sign(Kernel::ShiftRightSigned, Kernel::ShiftRightUnsigned),
            (Integer::BitFieldExtract, _) => by_sign(Kernel::ExtractSigned, Kernel::ExtractUnsigned),
            (Integer::CountOnes, _) => Kernel::CountOnes,
            (Integer::CountLeadingZeros, _) => Kernel::CountLeadingZeros,
            (Integer::ReverseBits, _) => Kernel::ReverseBits,
            (Integer::LogicOfThree, Variant::Table(_)) => Kernel::LogicOfThree,
            (Integer::Permute, Variant::Select(Selection::General)) => Kernel::Permute,
            (Integer::FunnelShift, Variant::Shift { left, excess }) => match (left, excess) {
                (true, Excess::Clamp) => Kernel::FunnelLeftClamp,
                (true, Excess::Wrap) => Kernel::FunnelLeftWrap,
                (false, Excess::Clamp) => Kernel::FunnelRightClamp,
                (false, Excess::Wrap) => Kernel::FunnelRightWrap,
            },
            _ => return None,
        })
    }

    fn kernel_of_pairs(self) -> Option<Kernel> {
        Some(match self.op {
            Integer::Add => Kernel::WideAdd,
            Integer::Subtract => Kernel::WideSubtract,
            Integer::And => Kernel::WideAnd,
            Integer::Or => Kernel::WideOr,
            Integer::Xor => Kernel::WideXor,
            Integer::ShiftLeft => Kernel::WideShiftLeft,
            Integer::ShiftRight if self.ty.is_signed() => Kernel::WideShiftRightSigned,
            Integer::ShiftRight => Kernel::WideShiftRightUnsigned,
            Integer::MultiplyLow => Kernel::WideMultiplyLow,
            Integer::MultiplyAddLow => Kernel::WideMultiplyAddLow,
            _ => return None,
        })
    }

    fn is_other(self) -> bool {
        matches!(self.variant, Variant::Other)
    }

    /// `mul24`: 48 bits of a product of 24 each; `.hi` are the upper 32.
    fn product_of_24(self, a: u64, b: u64) -> i128 {
        let [x, y] = [a, b].map(|value| {
            let low = i128::from(value & 0xff_ffff);
            if self.ty.is_signed() && low >> 23 == 1 { low - (1 << 24) } else { low }
        });
        if self.is_other() { (x * y) >> 16 } else { x * y }
    }

    /// Forms of 32-bit words.
    fn word(self, a: u32, b: u32, c: u32) -> u32 {
        let signed = self.ty == Type::S16x2;
        let floor = if self.is_other() { 0 } else { i64::MIN };
        match (self.op, self.variant) {
            (Integer::AddPacked, _) => packed::on_halves(a, b, false, |x, y| x + y),
            (Integer::MinimumPacked, _) => packed::on_halves(a, b, true, |x, y| x.min(y).max(floor)),
            (Integer::MaximumPacked, _) => packed::on_halves(a, b, true, |x, y| x.max(y).max(floor)),
            (Integer::MinimumPackedUnsigned, _) => packed::on_halves(a, b, signed, i64::min),
            (Integer::MaximumPackedUnsigned, _) => packed::on_halves(a, b, signed, i64::max),
            (Integer::LogicOfThree, Variant::Table(table)) => bits::logic_of_three(a, b, c, table),
            (Integer::FunnelShift, Variant::Shift { left, excess }) => bits::funnel(a, b, c, left, excess),
            (Integer::BitFieldMask, Variant::Shift { excess, .. }) => bits::mask(a, b, excess),
            (Integer::SignExtend, Variant::Shift { excess, .. }) => {
                bits::extend_field(a, b, self.ty.is_signed(), excess)
            }
            (Integer::FindNthOne, _) => bits::find_nth(a, b, c as i32),
            (Integer::Permute, Variant::Select(selection)) => bits::permute(a, b, c, selection),
            (Integer::DotOfFour, Variant::Bytes(bytes)) => packed::dot(a, b, c, bytes.signed, 8, 0),
            (Integer::DotOfTwo, Variant::Bytes(bytes)) => {
                packed::dot(a, b, c, bytes.signed, 16, if bytes.after == After::Add { 2 } else { 0 })
            }
            (op, Variant::Bytes(bytes)) => packed::on_bytes(op, a, b, c, bytes),
            _ => 0,
        }
    }
}

fn saturated(value: i128) -> i128 {
    value.clamp(i128::from(i32::MIN), i128::from(i32::MAX))
}

/// The number that the low bits of a register mean.
pub fn extend(value: u64, ty: Type) -> i128 {
    let value = truncate(value, ty.bits());
    let negative = ty.is_signed() && value >> (ty.bits() - 1) & 1 == 1;
    i128::from(value) - if negative { 1 << ty.bits() } else { 0 }
}

/// Division by zero gives all ones on sm_90; the manual leaves it open.
fn quotient(x: i128, y: i128) -> i128 {
    if y == 0 { -1 } else { x / y }
}

/// The remainder of a division by zero is all ones on sm_90, too.
fn remainder(x: i128, y: i128) -> i128 {
    if y == 0 { -1 } else { x % y }
}

fn shift_left(a: u64, amount: u64) -> i128 {
    if amount > 63 { 0 } else { i128::from(a << amount) }
}

/// `length` bits from `position` on, as PTX ISA, "bfe", has it: bits behind the end are copies of the sign, or zero.
fn extract(a: u64, position: u64, length: u64, ty: Type) -> i128 {
    let (position, length) = ((position & 0xff) as u32, (length & 0xff) as u32);
    if length == 0 {
        return 0;
    }
    let last = (position + length - 1).min(ty.bits() - 1);
    let sign = ty.is_signed() && a >> last & 1 == 1;
    let field = if position > 63 { 0 } else { i128::from(truncate(a, ty.bits()) >> position) };
    let mask = (1i128 << length.min(64)) - 1;
    // Where the field reaches behind the register, and above its length, the sign fills.
    let known = mask & ((1i128 << (ty.bits().saturating_sub(position))) - 1);
    if sign { (field & known) | !known } else { field & known }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(op: Integer, ty: Type, operands: [u64; 3]) -> u64 {
        Lane { op, ty, variant: Variant::Plain }.evaluate(operands)
    }

    #[test]
    fn signs_matter_where_they_should() {
        let minus = |value: u64| value.wrapping_neg() & 0xffff_ffff;
        assert_eq!(lane(Integer::Divide, Type::S32, [minus(7), 2, 0]), minus(3));
        assert_eq!(lane(Integer::Divide, Type::U32, [minus(7), 2, 0]), (0xffff_fff9u64) / 2);
        assert_eq!(lane(Integer::Remainder, Type::S32, [minus(7), 2, 0]), minus(1));
        assert_eq!(lane(Integer::MultiplyHigh, Type::S32, [minus(1), minus(1), 0]), 0);
        assert_eq!(lane(Integer::MultiplyHigh, Type::U32, [minus(1), minus(1), 0]), 0xffff_fffe);
        assert_eq!(lane(Integer::MultiplyWide, Type::S32, [minus(3), 5, 0]), 15u64.wrapping_neg());
        assert_eq!(lane(Integer::ShiftRight, Type::S32, [minus(8), 1, 0]), minus(4));
        assert_eq!(lane(Integer::ShiftRight, Type::S32, [minus(8), 99, 0]), minus(1));
        assert_eq!(lane(Integer::ShiftRight, Type::U32, [minus(8), 32, 0]), 0);
        assert_eq!(lane(Integer::Minimum, Type::S32, [minus(1), 1, 0]), minus(1));
        assert_eq!(lane(Integer::Minimum, Type::U32, [minus(1), 1, 0]), 1);
    }

    #[test]
    fn fields_are_extracted_with_their_sign() {
        assert_eq!(lane(Integer::BitFieldExtract, Type::U32, [0xabcd, 4, 8]), 0xbc);
        assert_eq!(lane(Integer::BitFieldExtract, Type::S32, [0xabcd, 4, 8]), 0xffff_ffbc);
        assert_eq!(lane(Integer::BitFieldExtract, Type::S32, [0x8000_0000, 28, 8]), 0xffff_fff8);
        assert_eq!(lane(Integer::BitFieldExtract, Type::U32, [0xabcd, 4, 0]), 0);
    }
}
