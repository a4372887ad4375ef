//! How atomics and the copy engine make a new value of the old one and an operand. Sums of f32 and f64 are not here:
//! hardware forms them in other ways in each place.

use super::arithmetic::{self, NanOperand};
use super::half;
use ptx::Type;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Add,
    Minimum,
    Maximum,
    Increment,
    Decrement,
    And,
    Or,
    Xor,
}

use Operation::*;

const OPERATIONS: [(&str, Operation); 8] = [
    ("add", Add),
    ("min", Minimum),
    ("max", Maximum),
    ("inc", Increment),
    ("dec", Decrement),
    ("and", And),
    ("or", Or),
    ("xor", Xor),
];

impl Operation {
    /// By its modifier, without the dot.
    pub fn named(word: &str) -> Option<Operation> {
        OPERATIONS.iter().find(|row| row.0 == word).map(|row| row.1)
    }

    /// Its modifier, without the dot.
    pub fn text(self) -> &'static str {
        OPERATIONS[self as usize].0
    }

    /// On integers and bits of this type, which fill no more than its width.
    pub fn on_integers(self, ty: Type, old: u64, operand: u64) -> u64 {
        match self {
            Add => old.wrapping_add(operand) & u64::MAX >> (64 - ty.bits()),
            Minimum if signed(ty, old) <= signed(ty, operand) => old,
            Maximum if signed(ty, old) >= signed(ty, operand) => old,
            Minimum | Maximum => operand,
            Increment if old >= operand => 0,
            Increment => old + 1,
            Decrement if old == 0 || old > operand => operand,
            Decrement => old - 1,
            And => old & operand,
            Or => old | operand,
            Xor => old ^ operand,
        }
    }

    /// To nearest even, subnormals kept (`.noftz`); a NaN operand of `min` and `max` is ignored.
    pub fn on_halves(self, mode: half::Mode, old: u16, operand: u16) -> u16 {
        let select = |choose: fn(u32, u32, NanOperand) -> u32| {
            half::select(old, operand, mode, |a, b| choose(a, b, NanOperand::Ignored))
        };
        match self {
            Minimum => select(arithmetic::minimum),
            Maximum => select(arithmetic::maximum),
            _ => half::add(old, operand, mode),
        }
    }
}

fn signed(ty: Type, value: u64) -> i128 {
    match ty {
        Type::S32 => i128::from(value as u32 as i32),
        Type::S64 => i128::from(value as i64),
        _ => i128::from(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_compare_by_their_sign() {
        assert_eq!(Add.on_integers(Type::U32, 0xffff_ffff, 2), 1);
        assert_eq!(Add.on_integers(Type::U64, u64::MAX, 2), 1);
        assert_eq!([Type::S32, Type::U32].map(|ty| Minimum.on_integers(ty, 0xffff_ffff, 1)), [0xffff_ffff, 1]);
        assert_eq!([Type::S64, Type::U64].map(|ty| Maximum.on_integers(ty, u64::MAX, 1)), [1, u64::MAX]);
        assert_eq!([And, Or, Xor].map(|operation| operation.on_integers(Type::B64, 0b1100, 0b1010)), [8, 14, 6]);
    }

    #[test]
    fn counting_wraps_at_the_operand() {
        assert_eq!([4, 5, 9].map(|old| Increment.on_integers(Type::U32, old, 5)), [5, 0, 0]);
        assert_eq!([0, 5, 6, 3].map(|old| Decrement.on_integers(Type::U32, old, 5)), [5, 4, 5, 2]);
    }

    #[test]
    fn words_name_operations() {
        assert_eq!(["add", "xor", "exch"].map(Operation::named), [Some(Add), Some(Xor), None]);
        assert!(OPERATIONS.iter().all(|(word, operation)| operation.text() == *word));
    }
}
