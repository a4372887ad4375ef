//! The left side of products, spread over the registers of a warp.

use super::{Accumulator, Element, Packed, Value, Var};
use crate::builder::here;

/// 16 × depth of `E` per warp.
pub struct RowOperand<E> {
    steps: Vec<[Var<Packed<E>>; 4]>,
}

impl<E: Element> RowOperand<E> {
    /// Without a value yet.
    #[track_caller]
    pub fn new(name: &str, depth: u32) -> RowOperand<E> {
        here();
        let step = |k: u32| std::array::from_fn(|index| Var::unset(format!("{name}_{}", k * 4 + index as u32)));
        RowOperand { steps: (0..depth / 16).map(step).collect() }
    }

    pub(super) fn loaded(steps: Vec<[Value<Packed<E>>; 4]>) -> RowOperand<E> {
        RowOperand { steps: steps.into_iter().map(|step| step.map(Var::of)).collect() }
    }

    /// `sums`, rounded. Two 8-column groups of an accumulator are one 16-deep step.
    #[track_caller]
    pub fn set(&mut self, sums: &Accumulator) {
        for (step, eight) in self.steps.iter_mut().zip(sums.registers().chunks_exact(8)) {
            for (register, pair) in step.iter_mut().zip(eight.chunks_exact(2)) {
                register.set(pair[0].raw().pack::<E>(pair[1].raw()));
            }
        }
    }

    pub fn depth(&self) -> u32 {
        self.steps.len() as u32 * 16
    }

    /// The registers of each 16-deep step.
    pub(super) fn steps(&self) -> impl Iterator<Item = [Value<Packed<E>>; 4]> + '_ {
        self.steps.iter().map(|step| std::array::from_fn(|index| step[index].raw()))
    }
}
