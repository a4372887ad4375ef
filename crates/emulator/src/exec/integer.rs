//! Integer and bit arithmetic.

use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why, truncate};
use ptx::forms::Integer;
use ptx::{Instruction, Type};

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Integer,
    ty: Type,
}

pub fn decode(op: Integer, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    let ty = instruction.ty().unwrap_or(Type::B32);
    decoder.compute(instruction, Lanewise::Integer(Lane { op, ty }))
}

impl Lane {
    pub fn evaluate(self, [a, b, c]: [u64; 3]) -> u64 {
        let bits = self.ty.bits();
        // Sign- or zero-extended to 128 bits, every product and sum is exact before it is cut.
        let [x, y, z] = [a, b, c].map(|value| extend(value, self.ty));
        let result = match self.op {
            Integer::Add => x + y,
            Integer::Subtract => x - y,
            Integer::MultiplyLow => x.wrapping_mul(y),
            Integer::MultiplyHigh => x.wrapping_mul(y) >> bits,
            Integer::MultiplyWide => return truncate((x * y) as u64, bits * 2),
            Integer::MultiplyAddLow => x.wrapping_mul(y).wrapping_add(z),
            Integer::MultiplyAddWide => return truncate((x * y).wrapping_add(i128::from(c)) as u64, bits * 2),
            Integer::Divide => quotient(x, y),
            Integer::Remainder => remainder(x, y),
            Integer::Minimum => x.min(y),
            Integer::Maximum => x.max(y),
            Integer::Negate => -x,
            Integer::And => i128::from(a & b),
            Integer::Or => i128::from(a | b),
            Integer::Xor => i128::from(a ^ b),
            Integer::Not => i128::from(!a),
            Integer::ShiftLeft => shift_left(a, b),
            Integer::ShiftRight => x >> b.min(127), // Amounts of the width and above leave only sign bits.
            Integer::BitFieldExtract => extract(a, b, c, self.ty),
            Integer::CountOnes => i128::from(truncate(a, bits).count_ones()),
            // Refused by `decode`.
            Integer::AddSaturated
            | Integer::SubtractSaturated
            | Integer::AddPacked
            | Integer::AddCarryOut
            | Integer::AddCarry
            | Integer::SubtractCarryOut
            | Integer::SubtractCarry
            | Integer::Multiply24
            | Integer::MultiplyAddHigh
            | Integer::MultiplyAdd24
            | Integer::MultiplyAddCarryOut
            | Integer::MultiplyAddCarry
            | Integer::MinimumRelu
            | Integer::MaximumRelu
            | Integer::MinimumPacked
            | Integer::MaximumPacked
            | Integer::MinimumPackedUnsigned
            | Integer::MaximumPackedUnsigned
            | Integer::Absolute
            | Integer::AbsoluteDifference
            | Integer::LogicalNot
            | Integer::LogicOfThree
            | Integer::LogicOfThreePredicate
            | Integer::FunnelShift
            | Integer::BitFieldInsert
            | Integer::BitFieldMask
            | Integer::SignExtend
            | Integer::CountLeadingZeros
            | Integer::FindLeadingOne
            | Integer::FindNthOne
            | Integer::ReverseBits
            | Integer::Permute
            | Integer::DotOfFour
            | Integer::DotOfTwo
            | Integer::AddFour
            | Integer::SubtractFour
            | Integer::AverageFour
            | Integer::AbsoluteDifferenceFour
            | Integer::MinimumFour
            | Integer::MaximumFour => 0,
        };
        truncate(result as u64, bits)
    }
}

/// The number that the low bits of a register mean.
fn extend(value: u64, ty: Type) -> i128 {
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
        Lane { op, ty }.evaluate(operands)
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
