//! Numbers that arithmetic treats apart.

use ptx::Type;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    NotANumber,
    Infinity,
    NegativeInfinity,
    Zero,
    NegativeZero,
    Subnormal,
}

const ALL: [Special; 6] = [
    Special::NotANumber,
    Special::Infinity,
    Special::NegativeInfinity,
    Special::Zero,
    Special::NegativeZero,
    Special::Subnormal,
];

impl Special {
    /// Those that a type has: none unless it is a single floating-point number.
    pub fn of_type(ty: Type) -> impl Iterator<Item = Special> {
        let is_float = fields(ty).is_some();
        // e4m3 has no infinities.
        let finite = |special: &Special| matches!(special, Special::Infinity | Special::NegativeInfinity);
        ALL.into_iter().filter(move |special| is_float && !(ty == Type::E4m3 && finite(special)))
    }

    /// What is special about the low bits of a register that holds a number of this type.
    pub fn of(ty: Type, bits: u64) -> Option<Special> {
        let (exponent_bits, fraction_bits) = fields(ty)?;
        // The low bits of a tf32 are not read.
        let bits = bits >> (ty.bits() - 1 - exponent_bits - fraction_bits);
        let fraction = bits & ((1 << fraction_bits) - 1);
        let largest = (1 << exponent_bits) - 1;
        let exponent = bits >> fraction_bits & largest;
        let negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
        match (exponent, fraction) {
            (0, 0) => Some(if negative { Special::NegativeZero } else { Special::Zero }),
            (0, _) => Some(Special::Subnormal),
            (one, _) if one != largest => None,
            (_, 7) if ty == Type::E4m3 => Some(Special::NotANumber),
            _ if ty == Type::E4m3 => None,
            (_, 0) => Some(if negative { Special::NegativeInfinity } else { Special::Infinity }),
            _ => Some(Special::NotANumber),
        }
    }
}

/// Bits of the exponent and of the fraction.
fn fields(ty: Type) -> Option<(u32, u32)> {
    Some(match ty {
        Type::F64 => (11, 52),
        Type::F32 => (8, 23),
        Type::Tf32 => (8, 10),
        Type::F16 => (5, 10),
        Type::Bf16 => (8, 7),
        Type::E4m3 => (4, 3),
        Type::E5m2 => (5, 2),
        _ => return None,
    })
}

/// The type of the numbers in a register of a packed type.
pub fn single(ty: Type) -> Type {
    match ty {
        Type::F16x2 => Type::F16,
        Type::Bf16x2 => Type::Bf16,
        Type::E4m3x2 | Type::E4m3x4 => Type::E4m3,
        Type::E5m2x2 => Type::E5m2,
        other => other,
    }
}

impl std::fmt::Display for Special {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Special::NotANumber => "NaN",
            Special::Infinity => "inf",
            Special::NegativeInfinity => "-inf",
            Special::Zero => "0",
            Special::NegativeZero => "-0",
            Special::Subnormal => "a subnormal",
        })
    }
}
