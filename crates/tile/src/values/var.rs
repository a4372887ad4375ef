//! The one kind of register that changes.

use super::{Type, Value};
use crate::builder::{Reach, fresh};
use crate::instructions::mov_into;
use std::ops::{Add, AddAssign};

/// A register that may be set again: what a loop carries from one pass to the next.
///
/// Neither `Copy` nor `Clone`: whoever may change it holds `&mut Var`.
#[derive(Debug)]
pub struct Var<T> {
    register: Value<T>,
}

impl<T: Type> Var<T> {
    #[track_caller]
    pub fn new(name: impl Into<String>, value: impl Into<Value<T>>) -> Var<T> {
        let mut var = Var::unset(name);
        var.set(value);
        var
    }

    /// A destination that something else fills: a load, a product.
    #[track_caller]
    pub(crate) fn unset(name: impl Into<String>) -> Var<T> {
        Var { register: fresh(Some(name.into())) }
    }

    /// Takes over a register that nothing else holds.
    pub(crate) fn of(register: Value<T>) -> Var<T> {
        Var { register }
    }

    /// The author's word that so many threads always hold the same.
    #[track_caller]
    pub fn reaching(self, reach: Reach) -> Var<T> {
        Var { register: self.register.reaching(reach) }
    }

    /// Its value now. Later changes do not reach the copy.
    #[track_caller]
    pub fn get(&self) -> Value<T> {
        self.register.copied()
    }

    #[track_caller]
    pub fn set(&mut self, value: impl Into<Value<T>>) {
        let value = value.into();
        if value.repr() != self.register.repr() {
            mov_into(self.register, value);
        }
    }

    /// The register itself, for operands read at once.
    pub(crate) fn raw(&self) -> Value<T> {
        self.register
    }
}

impl<T: Type, R: Into<Value<T>>> AddAssign<R> for Var<T>
where
    Value<T>: Add<Output = Value<T>>,
{
    #[track_caller]
    fn add_assign(&mut self, right: R) {
        let sum = self.register + right.into();
        self.set(sum);
    }
}
