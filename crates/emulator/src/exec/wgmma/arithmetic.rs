//! What the products of each form compute.

use crate::numerics::format::Format;
use crate::numerics::product::{Arithmetic, Digit};
use crate::numerics::tensor_core::Rule;
use ptx::Type;

/// The arithmetic of a product into `d` of elements of types `a` and `b`; nothing if there is none.
pub fn arithmetic([d, a, b]: [Type; 3], saturate: bool) -> Option<Arithmetic> {
    Some(match (d, a, b) {
        (Type::F32, Type::F16, Type::F16) => Arithmetic::Fused(Rule::F16_K16),
        (Type::F16, Type::F16, Type::F16) => Arithmetic::Fused(Rule::F16_K16_F16),
        (Type::F32, Type::Bf16, Type::Bf16) => Arithmetic::Fused(Rule::BF16_K16),
        (Type::F32, Type::Tf32, Type::Tf32) => Arithmetic::Fused(Rule::TF32_K8),
        (Type::F32, Type::E4m3, Type::E4m3) => Arithmetic::Fused(Rule::E4M3_K32),
        (Type::F32, Type::E5m2, Type::E5m2) => Arithmetic::Fused(Rule::E5M2_K32),
        (Type::F16, Type::E4m3, Type::E4m3) => Arithmetic::Fused(Rule::E4M3_K32_F16),
        (Type::F16, Type::E5m2, Type::E5m2) => Arithmetic::Fused(Rule::E5M2_K32_F16),
        (Type::F32, left, right) => mixed(left, right, Rule::E4M3_K32)?,
        (Type::F16, left, right) => mixed(left, right, Rule::E4M3_K32_F16)?,
        (Type::S32, Type::B1, Type::B1) => Arithmetic::Bits { exclusive: false },
        (Type::S32, left, right) => Arithmetic::Integer { left: digit(left)?, right: digit(right)?, saturate },
        _ => return None,
    })
}

/// The bit that `imm-scale-a` or `imm-scale-b` of -1 flips in every element.
pub fn sign(ty: Type) -> u32 {
    1 << (ty.bits() - 1)
}

fn mixed(left: Type, right: Type, sum: Rule) -> Option<Arithmetic> {
    let format = |ty| match ty {
        Type::E4m3 => Some(Format::E4M3),
        Type::E5m2 => Some(Format::E5M2),
        _ => None,
    };
    Some(Arithmetic::Mixed { left: format(left)?, right: format(right)?, sum })
}

fn digit(ty: Type) -> Option<Digit> {
    match ty {
        Type::S8 => Some(Digit { bits: 8, signed: true }),
        Type::U8 => Some(Digit { bits: 8, signed: false }),
        _ => None,
    }
}
