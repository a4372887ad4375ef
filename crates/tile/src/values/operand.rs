//! The left side of products, spread over the registers of a warp.

use super::rows::row_groups;
use super::{Accumulator, Element, Packed, Value, Var, View};
use crate::builder::here;
use crate::error::BuildError;

/// Rows × depth of `E` per warp.
pub struct RowOperand<E> {
    /// Of every 16 columns, the registers of each 16 rows.
    steps: Vec<Vec<[Var<Packed<E>>; 4]>>,
}

/// The registers of 16 rows and 16 columns.
pub type Square<E> = [Value<Packed<E>>; 4];

impl<E: Element> RowOperand<E> {
    /// Without a value yet.
    #[track_caller]
    pub fn new(name: &str, rows: u32, depth: u32) -> RowOperand<E> {
        let groups = row_groups(name, rows) as u32;
        let block =
            |number: u32| std::array::from_fn(|index| Var::unset(format!("{name}_{}", number * 4 + index as u32)));
        let step = |k: u32| (0..groups).map(|group| block(k * groups + group)).collect();
        RowOperand { steps: (0..depth / 16).map(step).collect() }
    }

    pub(super) fn loaded(steps: impl Iterator<Item = Vec<Square<E>>>) -> RowOperand<E> {
        let held = |blocks: Vec<Square<E>>| blocks.into_iter().map(|block| block.map(Var::of)).collect();
        RowOperand { steps: steps.map(held).collect() }
    }

    /// `sums`, rounded. Two 8-column groups of an accumulator are one 16-deep step.
    #[track_caller]
    pub fn set(&mut self, sums: &Accumulator) {
        let at = here();
        let [own, given] = [[self.rows(), self.depth()], [sums.rows(), sums.columns()]];
        if own != given {
            let message = format!("shapes do not fit: {}×{} = {}×{}", own[0], own[1], given[0], given[1]);
            BuildError::new(message, at).raise()
        }
        for (group, registers) in sums.groups().enumerate() {
            for (step, eights) in self.steps.iter_mut().zip(registers.chunks_exact(8)) {
                for (register, pair) in step[group].iter_mut().zip(eights.chunks_exact(2)) {
                    register.set(pair[0].raw().pack::<E>(pair[1].raw()));
                }
            }
        }
    }

    /// What 16 rows in shared memory hold now.
    #[track_caller]
    pub fn load(&mut self, from: View<E>) {
        let at = here();
        if [self.rows(), self.depth()] != [from.rows, from.columns] {
            let (rows, depth) = (self.rows(), self.depth());
            let message = format!("shapes do not fit: {rows}×{depth} = {}×{}", from.rows, from.columns);
            BuildError::new(message, at).raise()
        }
        let lanes = from.lanes_of_sixteen_rows();
        for (number, step) in self.steps.iter_mut().enumerate() {
            for (registers, square) in step.iter_mut().zip(from.squares(lanes, number as u32)) {
                registers.iter_mut().zip(square).for_each(|(register, value)| register.set(value));
            }
        }
    }

    pub fn rows(&self) -> u32 {
        self.steps.first().map_or(0, |squares| squares.len() as u32 * 16)
    }

    pub fn depth(&self) -> u32 {
        self.steps.len() as u32 * 16
    }

    /// The registers of one 16-deep step.
    pub(super) fn step(&self, step: u32) -> Vec<Square<E>> {
        let block = |block: &[Var<Packed<E>>; 4]| std::array::from_fn(|index| block[index].raw());
        self.steps[step as usize].iter().map(block).collect()
    }
}
