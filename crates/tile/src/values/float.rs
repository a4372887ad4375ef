//! Functions of f32. Of constants, the host's own give the answer: as near to the truth as the GPU's, not the same bits.

use super::{Element, F32, I32, Packed, Pred, Repr, U32, Value};
use crate::builder::{define, define_pure};
use crate::instructions::{mov_halves, vote_sync_all};
use std::ops::Neg;

impl F32 {
    /// The number, where it is known while generating.
    pub fn known(self) -> Option<f32> {
        match self.repr {
            Repr::Constant(bits) => Some(f32::from_bits(bits as u32)),
            Repr::Register(_) => None,
        }
    }

    #[track_caller]
    fn unary(self, mnemonic: &str, of_constant: fn(f32) -> f32) -> F32 {
        match self.known() {
            Some(known) => of_constant(known).into(),
            None => define(mnemonic, vec![self.operand()]),
        }
    }

    /// `self * factor + addend`, rounded once.
    #[track_caller]
    pub fn mul_add(self, factor: impl Into<F32>, addend: impl Into<F32>) -> F32 {
        let (factor, addend) = (factor.into(), addend.into());
        match (self.known(), factor.known(), addend.known()) {
            (Some(known), Some(factor), Some(addend)) => known.mul_add(factor, addend).into(),
            _ => define("fma.rn.f32", vec![self.operand(), factor.operand(), addend.operand()]),
        }
    }

    #[track_caller]
    pub fn abs(self) -> F32 {
        self.unary("abs.f32", f32::abs)
    }

    /// Neither an infinity nor NaN.
    #[track_caller]
    pub fn is_finite(self) -> Pred {
        self.abs().lt(f32::INFINITY)
    }

    #[track_caller]
    pub fn exp2(self) -> F32 {
        self.unary("ex2.approx.ftz.f32", f32::exp2)
    }

    #[track_caller]
    pub fn log2(self) -> F32 {
        self.unary("lg2.approx.ftz.f32", f32::log2)
    }

    #[track_caller]
    pub fn recip(self) -> F32 {
        self.unary("rcp.approx.ftz.f32", f32::recip)
    }

    /// Its bits, as a number.
    #[track_caller]
    pub fn to_bits(self) -> U32 {
        match self.known() {
            Some(known) => known.to_bits().into(),
            None => define("mov.b32", vec![self.operand()]),
        }
    }

    /// The number of these bits.
    #[track_caller]
    pub fn from_bits(bits: U32) -> F32 {
        match bits.known() {
            Some(known) => f32::from_bits(known).into(),
            None => define("mov.b32", vec![bits.operand()]),
        }
    }

    /// Of a normal number, the power of two that it lies behind.
    #[track_caller]
    pub fn exponent(self) -> F32 {
        ((self.to_bits() >> 23 & 255).signed() - 127).to_f32()
    }

    /// Two numbers rounded into one register, `self` in the low half.
    #[track_caller]
    pub fn pack<E: Element>(self, high: F32) -> Value<Packed<E>> {
        define(&format!("cvt.rn.{}x2.f32", E::NAME), vec![high.operand(), self.operand()])
    }
}

impl<E: Element> Value<Packed<E>> {
    /// Both numbers, the low half first.
    #[track_caller]
    pub fn unpack(self) -> [F32; 2] {
        let mut numbers = [F32::from(0.0); 2];
        for (number, half) in numbers.iter_mut().zip(mov_halves(self)) {
            *number = define(&format!("cvt.f32.{}", E::NAME), vec![half.operand()]);
        }
        numbers
    }
}

impl Neg for F32 {
    type Output = F32;
    #[track_caller]
    fn neg(self) -> F32 {
        self.unary("neg.f32", |x| -x)
    }
}

impl Pred {
    /// Whether it holds for every lane of the warp.
    #[track_caller]
    pub fn of_all_lanes(self) -> Pred {
        match self.known() {
            Some(_) => self,
            None => vote_sync_all(self),
        }
    }
}

impl I32 {
    /// The nearest f32: itself up to 2²⁴.
    #[track_caller]
    pub fn to_f32(self) -> F32 {
        match self.repr {
            Repr::Constant(bits) => ((bits as u32).cast_signed() as f32).into(),
            Repr::Register(_) => define_pure("cvt.rn.f32.s32", vec![self.operand()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Coordinate;

    #[test]
    fn constants_fold_without_a_kernel() {
        let two = F32::from(2.0);
        let folded = [-two, (-two).abs(), two.exp2(), two.log2(), two.recip(), two.mul_add(3.0, 1.0)];
        assert_eq!(folded.map(F32::known), [-2.0, 2.0, 4.0, 1.0, 0.5, 7.0].map(Some));
        assert_eq!((U32::from(3).signed() - 5).to_f32().known(), Some(-2.0));
        assert_eq!(Coordinate::from(3).minus(Coordinate::from(10)).known(), Some(-7.0));
    }
}
