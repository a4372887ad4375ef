//! Operators and methods of values, spelled as Rust spells them. Constants are folded, with or without a kernel.

use super::number::{Number, Operation, Order};
use super::{I32, Pred, Repr, Type, U32, U64, Value};
use crate::builder::define_pure;
use crate::error::BuildError;
use ptx::{Immediate, Operand};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Not, Rem, Shl, Shr, Sub};
use std::panic::Location;

#[track_caller]
fn binary<T: Number>(operation: Operation, mut a: Value<T>, mut b: Value<T>) -> Value<T> {
    if matches!(operation, Operation::Div | Operation::Rem) && T::NAME != f32::NAME && b.repr == Repr::Constant(0) {
        divided_by_zero()
    }
    if let (Repr::Constant(x), Repr::Constant(y)) = (a.repr, b.repr)
        && let Some(folded) = T::fold(operation, x, y)
    {
        return Value::constant(folded);
    }
    if operation.commutes() && matches!(a.repr, Repr::Constant(_)) {
        (a, b) = (b, a);
    }
    if let Repr::Constant(y) = b.repr
        && let Some(simple) = with_constant(operation, a, y)
    {
        return simple;
    }
    define_pure(spell::<T>(operation), vec![a.operand(), b.operand()])
}

#[track_caller]
fn divided_by_zero() -> ! {
    BuildError::new("an integer is divided by zero", Location::caller()).raise()
}

#[track_caller]
fn spell<T: Number>(operation: Operation) -> &'static str {
    let at = Location::caller();
    let missing = || BuildError::new(format!("{} has no operation {operation:?}", T::NAME), at).raise();
    T::spell(operation).unwrap_or_else(missing)
}

/// Integer identities and powers of two; `None` where the instruction is needed.
#[track_caller]
fn with_constant<T: Number>(operation: Operation, a: Value<T>, y: u64) -> Option<Value<T>> {
    use Operation::*;
    let unsigned = T::NAME.starts_with('u');
    let power = y.is_power_of_two();
    let bits = T::REGISTER.bits();
    let shift = || Operand::Immediate(Immediate::Integer(y.trailing_zeros().into()));
    match operation {
        _ if T::NAME == "f32" => None,
        Add | Sub | Or | Xor if y == 0 => Some(a),
        Mul | Div if y == 1 => Some(a),
        Mul | And if y == 0 => Some(Value::constant(0)),
        Rem if y == 1 => Some(Value::constant(0)),
        Mul if power => Some(define_pure(&format!("shl.b{bits}"), vec![a.operand(), shift()])),
        Div if power && unsigned => Some(define_pure(&format!("shr.u{bits}"), vec![a.operand(), shift()])),
        Rem if power && unsigned => Some(binary(And, a, Value::constant(y - 1))),
        _ => None,
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $operation:ident;)*) => { $(
        impl<T: Number> $operator for Value<T> {
            type Output = Value<T>;
            #[track_caller]
            fn $method(self, right: Value<T>) -> Value<T> { binary(Operation::$operation, self, right) }
        }
        impl<T: Number> $operator<T> for Value<T> {
            type Output = Value<T>;
            #[track_caller]
            fn $method(self, right: T) -> Value<T> { binary(Operation::$operation, self, right.into()) }
        }
    )* };
}
operators! {
    Add add Add; Sub sub Sub; Mul mul Mul; Div div Div; Rem rem Rem; BitAnd bitand And; BitOr bitor Or; BitXor bitxor Xor;
}

/// Distances beyond the width leave nothing. PTX ISA, "shl" and "shr".
#[track_caller]
fn shift(mnemonic: &str, fold: impl FnOnce(u32, u32) -> Option<u32>, bits: U32, by: U32) -> U32 {
    match (bits.known(), by.known()) {
        (Some(bits), Some(by)) => fold(bits, by).unwrap_or(0).into(),
        (_, Some(0)) => bits,
        _ => define_pure(mnemonic, vec![bits.operand(), by.operand()]),
    }
}

macro_rules! shifts {
    ($($operator:ident $method:ident $mnemonic:literal $fold:ident;)*) => { $(
        impl<R: Into<U32>> $operator<R> for U32 {
            type Output = U32;
            #[track_caller]
            fn $method(self, by: R) -> U32 { shift($mnemonic, u32::$fold, self, by.into()) }
        }
    )* };
}
shifts! { Shl shl "shl.b32" checked_shl; Shr shr "shr.u32" checked_shr; }

macro_rules! comparisons {
    ($($method:ident $order:ident;)*) => { $(
        #[track_caller]
        pub fn $method(self, right: impl Into<Value<T>>) -> Pred {
            compare(Order::$order, self, right.into())
        }
    )* };
}

impl<T: Number> Value<T> {
    comparisons! { eq Eq; ne Ne; lt Lt; le Le; gt Gt; ge Ge; }

    #[track_caller]
    pub fn min(self, right: impl Into<Value<T>>) -> Value<T> {
        binary(Operation::Min, self, right.into())
    }

    #[track_caller]
    pub fn max(self, right: impl Into<Value<T>>) -> Value<T> {
        binary(Operation::Max, self, right.into())
    }
}

#[track_caller]
fn compare<T: Number>(order: Order, a: Value<T>, b: Value<T>) -> Pred {
    match (a.repr, b.repr) {
        (Repr::Constant(x), Repr::Constant(y)) => T::compare(order, x, y).into(),
        // The first operand of `setp` is a register.
        (Repr::Constant(_), Repr::Register(_)) => compare(order.mirrored(), b, a),
        _ => define_pure(&format!("setp.{}.{}", order.text(), T::NAME), vec![a.operand(), b.operand()]),
    }
}

impl From<bool> for Pred {
    fn from(x: bool) -> Pred {
        Value::constant(x.into())
    }
}

impl Pred {
    /// What it is, where that is known while generating.
    pub fn known(self) -> Option<bool> {
        match self.repr {
            Repr::Constant(bits) => Some(bits != 0),
            Repr::Register(_) => None,
        }
    }
}

impl BitAnd for Pred {
    type Output = Pred;
    #[track_caller]
    fn bitand(self, right: Pred) -> Pred {
        match (self.known(), right.known()) {
            (Some(true), _) => right,
            (_, Some(true)) => self,
            (Some(false), _) | (_, Some(false)) => false.into(),
            (None, None) => define_pure("and.pred", vec![self.operand(), right.operand()]),
        }
    }
}

impl Not for Pred {
    type Output = Pred;
    #[track_caller]
    fn not(self) -> Pred {
        match self.known() {
            Some(known) => (!known).into(),
            None => define_pure("not.pred", vec![self.operand()]),
        }
    }
}

impl U32 {
    /// The number, where it is known while generating.
    pub fn known(self) -> Option<u32> {
        match self.repr {
            Repr::Constant(bits) => Some(bits as u32),
            Repr::Register(_) => None,
        }
    }

    /// Quotient and rest, by one division.
    #[track_caller]
    pub fn div_rem(self, divisor: U32) -> (U32, U32) {
        let quotient = self / divisor;
        (quotient, self - quotient * divisor)
    }

    #[track_caller]
    pub fn div_ceil(self, divisor: u32) -> U32 {
        if divisor == 0 {
            divided_by_zero()
        }
        (self + (divisor - 1)) / divisor
    }

    /// `self - right`, or zero.
    #[track_caller]
    pub fn saturating_sub(self, right: impl Into<U32>) -> U32 {
        let right = right.into();
        self.max(right) - right
    }

    /// The full 64-bit product.
    #[track_caller]
    pub fn widening_mul(self, right: impl Into<U32>) -> U64 {
        let right = right.into();
        match (self.known(), right.known()) {
            (Some(a), Some(b)) => (u64::from(a) * u64::from(b)).into(),
            (Some(_), None) => right.widening_mul(self),
            _ => define_pure("mul.wide.u32", vec![self.operand(), right.operand()]),
        }
    }

    /// The same bits as a signed number.
    pub fn signed(self) -> I32 {
        Value { repr: self.repr, holds: std::marker::PhantomData }
    }

    #[track_caller]
    pub fn to_u64(self) -> U64 {
        match self.known() {
            Some(known) => u64::from(known).into(),
            None => define_pure("cvt.u64.u32", vec![self.operand()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fold_without_a_kernel() {
        let seven = U32::from(7);
        let folded = [seven + 3, seven - 3, seven * 3, seven / 3, seven % 4, seven ^ 2, seven.min(3), seven.max(9)];
        assert_eq!(folded.map(U32::known), [10, 4, 21, 2, 3, 5, 3, 9].map(Some));
        let bits = [seven & 12, seven | 8, seven << 2, seven >> 1, seven << 32, seven >> U32::from(40)];
        assert_eq!(bits.map(U32::known), [4, 15, 28, 3, 0, 0].map(Some));
        assert_eq!(seven.div_ceil(4).known(), Some(2));
        assert_eq!(seven.saturating_sub(9).known(), Some(0));
        assert_eq!((seven.signed() - 9).lt(-1).known(), Some(true));
        let orders = [seven.eq(7), seven.ne(7), seven.lt(8), seven.le(6), seven.gt(6), seven.ge(8)];
        assert_eq!(orders.map(Pred::known), [true, false, true, false, true, false].map(Some));
        assert_eq!((Pred::from(true) & !Pred::from(true)).known(), Some(false));
    }
}
