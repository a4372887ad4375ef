//! Which register and which constant may stand for an operand of a type.
//! PTX ISA, "Operand type checking" and "Operand size exceeding instruction-type size".

use crate::ir::Immediate;
use crate::types::Type;

/// May a register of type `register` stand where `expected` is asked for? `wider`: also a larger one.
pub fn fits(register: Type, expected: Type, wider: bool) -> bool {
    if register == Type::Pred || expected == Type::Pred {
        return register == expected;
    }
    let (have, want) = (register.bits(), expected.bits());
    let agrees = register.is_untyped() || expected.is_untyped() || register.is_integer() && expected.is_integer();
    (have == want || wider && have > want) && agrees || register == expected
}

/// The registers that fit, as a help line lists them.
pub fn fitting(expected: Type, wider: bool) -> String {
    let all = Type::ALL.iter().filter(|register| is_register_type(**register) && fits(**register, expected, wider));
    let names: Vec<String> = all.map(|ty| format!("`{ty}`")).collect();
    match names.as_slice() {
        [one] => one.clone(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
        [] => "no".into(),
    }
}

/// Types a register may be declared with; the others are of instructions alone. PTX ISA, "Restricted use".
pub fn is_register_type(ty: Type) -> bool {
    let narrow = matches!(ty, Type::B1 | Type::U4 | Type::S4 | Type::Bf16 | Type::E4m3 | Type::E5m2);
    !narrow && (!ty.is_packed() || ty == Type::F16x2)
}

/// Why a constant may not stand where `expected` is asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConstant {
    #[error("{value} does not fit `{ty}`: expected {low} to {high}", low = range(*.ty).0, high = range(*.ty).1)]
    Range { value: i128, ty: Type },
    #[error("expected a floating-point constant for `{0}`, found an integer")]
    Integer(Type),
    #[error("expected an integer constant for `{0}`, found a floating-point one")]
    Float(Type),
    #[error("expected a constant of {expected} bits, found one of {found}")]
    Width { expected: u32, found: u32 },
    /// Floats of 16 bits and packed values have no constants.
    #[error("`{0}` has no constants")]
    NoConstants(Type),
}

/// May this constant stand where `expected` is asked for?
pub fn check_constant(constant: Immediate, expected: Type) -> Result<(), BadConstant> {
    let found = match constant {
        Immediate::Integer(_) if matches!(expected, Type::F32 | Type::F64) => {
            return Err(BadConstant::Integer(expected));
        }
        Immediate::Integer(_) if expected.is_packed() || expected.is_float() && expected.bits() < 32 => {
            return Err(BadConstant::NoConstants(expected));
        }
        Immediate::Integer(value) => return check_range(value, expected),
        Immediate::Float(_) => 32,
        Immediate::Double(_) => 64,
    };
    match expected {
        Type::F32 | Type::F64 => Ok(()),
        _ if expected.is_float() || expected.is_packed() => Err(BadConstant::NoConstants(expected)),
        _ if !expected.is_untyped() => Err(BadConstant::Float(expected)),
        _ if expected.bits() != found => Err(BadConstant::Width { expected: expected.bits(), found }),
        _ => Ok(()),
    }
}

/// Signed types take `0xFFFFFFFF` and unsigned ones -1: people write masks both ways, and ptxas takes both.
fn check_range(value: i128, ty: Type) -> Result<(), BadConstant> {
    let (low, high) = range(ty);
    if ty == Type::Pred || (low..=high).contains(&value) { Ok(()) } else { Err(BadConstant::Range { value, ty }) }
}

fn range(ty: Type) -> (i128, i128) {
    let bits = ty.bits().min(64); // Literals have at most 64 bits.
    (-(1 << (bits - 1)), (1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_fit_as_the_manual_says() {
        let exact = |register, expected| fits(register, expected, false);
        assert!(exact(Type::U32, Type::S32) && exact(Type::B32, Type::F32) && exact(Type::F32, Type::B32));
        assert!(!exact(Type::U32, Type::F32) && !exact(Type::F32, Type::U32) && !exact(Type::B64, Type::U32));
        assert!(!exact(Type::F16, Type::Bf16) && exact(Type::B16, Type::Bf16) && exact(Type::B32, Type::F16x2));
        assert!(!exact(Type::Pred, Type::B8) && !exact(Type::B8, Type::Pred) && exact(Type::Pred, Type::Pred));
        assert!(fits(Type::U64, Type::U8, true) && !fits(Type::U8, Type::U64, true));
        assert!(fits(Type::B64, Type::F32, true) && !fits(Type::F64, Type::F32, true));
        assert!(fits(Type::F64, Type::B32, true) && !fits(Type::U32, Type::F32, true));
    }

    #[test]
    fn constants_fit_as_ptxas_takes_them() {
        let integer = |value, ty| check_constant(Immediate::Integer(value), ty).is_ok();
        assert!(integer(255, Type::U8) && integer(-1, Type::U32) && integer(0xFFFF_FFFF, Type::S32));
        assert!(!integer(300, Type::U8) && !integer(1 << 32, Type::S32) && !integer(-(1 << 31) - 1, Type::U32));
        assert!(integer(u64::MAX as i128, Type::B64) && !integer(1, Type::F32));
        let float = |ty| check_constant(Immediate::Float(0), ty).is_ok();
        assert!(float(Type::F32) && float(Type::F64) && float(Type::B32) && !float(Type::B64) && !float(Type::U32));
    }
}
