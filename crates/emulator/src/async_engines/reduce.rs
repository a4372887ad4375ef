//! What `cp.reduce.async.bulk` does to one element, and to a run of them.

use super::tensor_map::{ElementType, Fault};
use crate::numerics::arithmetic::{self, Mode};
use crate::numerics::half;
use crate::numerics::update::Operation::{self, *};
use ptx::Type;

/// The types that an operation takes in global memory (PTX ISA, "cp.reduce.async.bulk", table of operations).
fn types(operation: Operation) -> (&'static [Type], &'static str) {
    use Type::*;
    match operation {
        Add => (&[U32, S32, U64, F16, Bf16, F32, F64], "u32, s32, u64, f16, bf16, f32 or f64"),
        Minimum | Maximum => (&[U32, S32, U64, S64, F16, Bf16], "u32, s32, u64, s64, f16 or bf16"),
        Increment | Decrement => (&[U32], "u32"),
        // An H200 takes s32 for 32 bits, and does not take s64.
        And | Or | Xor => (&[B32, B64, U32, S32, U64], "32 or 64 bits, not s64"),
    }
}

/// An operation on elements of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    operation: Operation,
    ty: Type,
}

impl Reduction {
    /// In global memory.
    pub fn global(operation: Operation, ty: Type) -> Result<Reduction, Fault> {
        let (types, expected) = types(operation);
        match types.contains(&ty) {
            true => Ok(Reduction { operation, ty }),
            false => Err(Fault::Reduction { operation: operation.text(), element: ty.to_string(), expected }),
        }
    }

    /// In shared memory; integers alone (PTX ISA, "cp.reduce.async.bulk").
    pub fn shared(operation: Operation, ty: Type) -> Result<Reduction, Fault> {
        let reduction = Reduction::global(operation, ty)?;
        match ty.is_float() {
            false => Ok(reduction),
            true => {
                let element = ty.to_string();
                Err(Fault::Reduction { operation: operation.text(), element, expected: "integers in shared memory" })
            }
        }
    }

    /// `cp.reduce.async.bulk.tensor`: the map has the type.
    pub fn tensor(operation: Operation, element: ElementType) -> Result<Reduction, Fault> {
        Reduction::global(operation, element.ty())
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        self.ty.bytes() as usize
    }

    /// Reduces equally many elements of `source` into `target`.
    pub fn apply(self, target: &mut [u8], source: &[u8]) {
        let bytes = self.bytes();
        for (old, operand) in target.chunks_exact_mut(bytes).zip(source.chunks_exact(bytes)) {
            let new = self.update(number(old), number(operand));
            old.copy_from_slice(&new.to_le_bytes()[..bytes]);
        }
    }

    /// The new value of one element.
    pub fn update(self, old: u64, operand: u64) -> u64 {
        match (self.operation, self.ty) {
            (operation, Type::F16) => operation.on_halves(half::Mode::F16, old as u16, operand as u16).into(),
            (operation, Type::Bf16) => operation.on_halves(half::Mode::BF16, old as u16, operand as u16).into(),
            // Unlike those of `red`, the sums of the copy engine keep subnormals (H200).
            (_, Type::F32) => arithmetic::add(old as u32, operand as u32, Mode::NEAREST).into(),
            (_, Type::F64) => add_double(old, operand),
            (operation, ty) => operation.on_integers(ty, old, operand),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// What makes a NaN of f64 quiet.
const QUIET: u64 = 1 << 51;

/// A NaN passes as it is, that of the operand first; infinities of both signs give the operand's, made a NaN (H200).
fn add_double(old: u64, operand: u64) -> u64 {
    let sum = f64::from_bits(old) + f64::from_bits(operand);
    match (f64::from_bits(old).is_nan(), f64::from_bits(operand).is_nan()) {
        (_, true) => operand,
        (true, false) => old,
        _ if sum.is_nan() => operand | QUIET,
        _ => sum.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(operation: Operation, ty: Type, old: u64, operand: u64) -> u64 {
        Reduction::global(operation, ty).unwrap().update(old, operand)
    }

    #[test]
    fn sums_keep_subnormals() {
        let types = [Type::F16, Type::Bf16, Type::F32, Type::F64];
        assert_eq!(types.map(|ty| update(Add, ty, 1, 2)), [3; 4]);
        assert_eq!(update(Add, Type::F32, 0x8000_0001, 0x8000_0002), 0x8000_0003);
        // Half of the least normal number twice.
        assert_eq!(update(Add, Type::F32, 0x0040_0000, 0x0040_0000), 0x0080_0000);
    }

    #[test]
    fn every_nan_of_an_f32_sum_is_the_same() {
        let (infinity, minus_infinity) = (0x7f80_0000, 0xff80_0000);
        let one = 0x3f80_0000;
        for (old, operand) in [(0xffc0_1234, one), (one, 0x7f80_0001), (infinity, minus_infinity)] {
            assert_eq!(update(Add, Type::F32, old, operand), 0x7fff_ffff);
        }
    }

    #[test]
    fn an_f64_sum_passes_the_nan_of_the_operand_first() {
        let add = |old: u64, operand: u64| update(Add, Type::F64, old, operand);
        let (infinity, minus_infinity) = (0x7ff0_u64 << 48, 0xfff0_u64 << 48);
        let (signalling, quiet, one) = (infinity | 1, minus_infinity | QUIET | 2, 1f64.to_bits());
        assert_eq!([add(signalling, one), add(one, signalling)], [signalling; 2]);
        assert_eq!([add(signalling, quiet), add(quiet, signalling)], [quiet, signalling]);
        assert_eq!([add(quiet, infinity), add(infinity, quiet)], [quiet; 2]);
        assert_eq!(add(infinity, minus_infinity), minus_infinity | QUIET);
        assert_eq!(add(minus_infinity, infinity), infinity | QUIET);
        assert_eq!(add(minus_infinity, minus_infinity), minus_infinity);
    }

    #[test]
    fn halves_round_to_nearest_even_and_ignore_one_nan() {
        // 1 + 2^-8 is a tie that goes to the even 1 in bf16; 1 + 3 * 2^-11 one that goes up to 1 + 2^-9 in f16.
        assert_eq!(update(Add, Type::Bf16, 0x3f80, 0x3b80), 0x3f80);
        assert_eq!(update(Add, Type::F16, 0x3c00, 0x1600), 0x3c02);
        assert_eq!([Minimum, Maximum].map(|operation| update(operation, Type::F16, 0x7e00, 0xbc00)), [0xbc00; 2]);
        assert_eq!([Minimum, Maximum].map(|operation| update(operation, Type::Bf16, 0x8000, 0)), [0x8000, 0]);
        assert_eq!(update(Add, Type::F16, 0x7e01, 0), 0x7fff);
        assert_eq!(update(Maximum, Type::F16, 0x7e01, 0xfe01), 0x7fff);
    }

    #[test]
    fn every_element_of_a_run_is_reduced() {
        let run = |values: [u16; 3]| values.map(u16::to_le_bytes).concat();
        let mut target = run([1, 0x3c00, 0x4000]);
        Reduction::global(Add, Type::F16).unwrap().apply(&mut target, &run([2, 0x3c00, 0xbc00]));
        assert_eq!(target, run([3, 0x4000, 0x3c00]));
    }

    #[test]
    fn what_the_hardware_lacks_is_refused() {
        let refused = |reduction: Result<Reduction, Fault>| reduction.unwrap_err().to_string();
        assert_eq!(refused(Reduction::global(Increment, Type::S32)), "inc of .s32 elements: expected u32");
        let shared = refused(Reduction::shared(Add, Type::F32));
        assert_eq!(shared, "add of .f32 elements: expected integers in shared memory");
        let bytes = refused(Reduction::tensor(Xor, ElementType::U8));
        assert_eq!(bytes, "xor of .u8 elements: expected 32 or 64 bits, not s64");
        assert!(Reduction::tensor(Or, ElementType::U32).is_ok() && Reduction::shared(Or, Type::B32).is_ok());
    }
}
