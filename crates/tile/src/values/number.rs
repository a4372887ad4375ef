//! Types with arithmetic: how each operation is spelled, and what it gives for constants.

use super::{Type, Value};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
}
use Operation::*;

impl Operation {
    /// The operands may change places.
    pub(super) fn commutes(self) -> bool {
        matches!(self, Add | Mul | And | Or | Xor | Min | Max)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Order {
    pub(super) fn text(self) -> &'static str {
        match self {
            Order::Eq => "eq",
            Order::Ne => "ne",
            Order::Lt => "lt",
            Order::Le => "le",
            Order::Gt => "gt",
            Order::Ge => "ge",
        }
    }

    /// The order of `b` and `a` that says the same of `a` and `b`.
    pub(super) fn mirrored(self) -> Order {
        match self {
            Order::Eq | Order::Ne => self,
            Order::Lt => Order::Gt,
            Order::Le => Order::Ge,
            Order::Gt => Order::Lt,
            Order::Ge => Order::Le,
        }
    }

    fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            Order::Eq => a == b,
            Order::Ne => a != b,
            Order::Lt => a < b,
            Order::Le => a <= b,
            Order::Gt => a > b,
            Order::Ge => a >= b,
        }
    }
}

pub trait Number: Type + Into<Value<Self>> {
    /// None where the type has no such operation.
    fn spell(operation: Operation) -> Option<&'static str>;
    fn fold(operation: Operation, a: u64, b: u64) -> Option<u64>;
    fn compare(order: Order, a: u64, b: u64) -> bool;
}

macro_rules! integers {
    ($($ty:ident $dot:literal $bits:literal |$x:ident| $to_bits:expr;)*) => { $(
        impl From<$ty> for Value<$ty> {
            fn from($x: $ty) -> Self { Value::constant($to_bits) }
        }

        impl Number for $ty {
            fn spell(operation: Operation) -> Option<&'static str> {
                Some(match operation {
                    Add => concat!("add.", $dot), Sub => concat!("sub.", $dot), Mul => concat!("mul.lo.", $dot),
                    Div => concat!("div.", $dot), Rem => concat!("rem.", $dot),
                    Min => concat!("min.", $dot), Max => concat!("max.", $dot),
                    And => concat!("and.", $bits), Or => concat!("or.", $bits), Xor => concat!("xor.", $bits),
                })
            }

            fn fold(operation: Operation, a: u64, b: u64) -> Option<u64> {
                let (a, b) = (a as $ty, b as $ty);
                let $x = match operation {
                    Add => a.wrapping_add(b), Sub => a.wrapping_sub(b), Mul => a.wrapping_mul(b),
                    Div => a.checked_div(b)?, Rem => a.checked_rem(b)?,
                    Min => a.min(b), Max => a.max(b), And => a & b, Or => a | b, Xor => a ^ b,
                };
                Some($to_bits)
            }

            fn compare(order: Order, a: u64, b: u64) -> bool {
                order.holds(a as $ty, b as $ty)
            }
        }
    )* };
}
integers! {
    u32 "u32" "b32" |x| x.into();
    i32 "s32" "b32" |x| x.cast_unsigned().into();
    u64 "u64" "b64" |x| x;
}

impl From<f32> for Value<f32> {
    fn from(x: f32) -> Self {
        Value::constant(x.to_bits().into())
    }
}

impl Number for f32 {
    // `.rn` keeps ptxas from fusing: what is written is what is computed.
    fn spell(operation: Operation) -> Option<&'static str> {
        match operation {
            Add => Some("add.rn.f32"),
            Sub => Some("sub.rn.f32"),
            Mul => Some("mul.rn.f32"),
            Div => Some("div.rn.f32"),
            Min => Some("min.f32"),
            Max => Some("max.f32"),
            Rem | And | Or | Xor => None,
        }
    }

    fn fold(operation: Operation, a: u64, b: u64) -> Option<u64> {
        let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let folded = match operation {
            Add => a + b,
            Sub => a - b,
            Mul => a * b,
            Div => a / b,
            Min => a.min(b),
            Max => a.max(b),
            Rem | And | Or | Xor => return None,
        };
        Some(folded.to_bits().into())
    }

    fn compare(order: Order, a: u64, b: u64) -> bool {
        order.holds(f32::from_bits(a as u32), f32::from_bits(b as u32))
    }
}
