//! Which lane of a warp holds which element of a matrix.
//!
//! All layouts are those of `mma.sync`, also of `wmma`, whose fragments PTX leaves open: on sm_80 and later a fragment
//! of `wmma` is the fragments of the `mma` instructions that compute the product, whatever the order in memory. Kernels
//! that touch single elements of a fragment see that. In `g = lane/4`, `t = lane%4` and registers that hold `e`
//! elements: a register of an operand holds a line (a row of A, a column of B) `g` from a multiple of 8 and the depths
//! `e·t` to `e·t+e-1` from a multiple of `4e`. PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"
//! and its neighbours.

use crate::machine::Values;

/// The places of the elements of a matrix in the registers of a warp.
pub struct Layout {
    /// Bits of an element.
    pub bits: u32,
    /// Elements in a register.
    pub parts: usize,
    /// Elements of the matrix.
    pub elements: usize,
    /// For each register, each of its elements and each lane: the element's index.
    places: Vec<[u16; 32]>,
    /// Registers that hold different elements. A fragment may have more: they repeat these, and no product reads them.
    registers: usize,
}

/// How lines and depths follow each other in the registers of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As in A of `m16n8k16`: 16 lines at a time, two registers for each step of depth.
    Paired,
    /// As in B of `m16n8k16`: 8 lines at a time.
    Single,
}

impl Layout {
    /// Of `place(lane, index)`, the element that a lane has at an index of its fragment.
    pub fn new(elements: usize, bits: u32, place: impl Fn(usize, usize) -> usize) -> Layout {
        let parts = (32 / bits as usize).max(1);
        let held = elements / 32;
        let places = (0..held).map(|index| std::array::from_fn(|lane| place(lane, index) as u16)).collect();
        Layout { bits, parts, elements, places, registers: held / parts }
    }

    /// An operand, indexed with the depth running fastest.
    pub fn operand(lines: usize, depth: usize, bits: u32, order: Order) -> Layout {
        let parts = (32 / bits as usize).max(1);
        let steps = depth / (4 * parts);
        Layout::new(lines * depth, bits, |lane, index| {
            let (register, part) = (index / parts, index % parts);
            let (line, step) = match order {
                Order::Paired if lines >= 16 => {
                    let (group, inside) = (register / (2 * steps), register % (2 * steps));
                    (16 * group + 8 * (inside % 2), inside / 2)
                }
                _ => (8 * (register / steps), register % steps),
            };
            (line + lane / 4) * depth + 4 * parts * step + parts * (lane % 4) + part
        })
    }

    /// An accumulator, indexed by rows: products of 16x8, side by side or one below the other. One of 8x32 is kept as
    /// that of the transposed product.
    pub fn accumulator(rows: usize, columns: usize, bits: u32) -> Layout {
        let transposed = rows < columns;
        let across = columns == 16;
        Layout::new(rows * columns, bits, |lane, index| {
            let (tile, inside) = (index / 4, index % 4);
            let row = lane / 4 + 8 * (inside / 2) + if across { 0 } else { 16 * tile };
            let column = 2 * (lane % 4) + inside % 2 + if across { 8 * tile } else { 0 };
            if transposed { column * columns + row } else { row * columns + column }
        })
    }

    /// Operands of `m8n8k4` for four products, one for each pair of quads; `along`: a lane holds a line, else a depth.
    pub fn quad_operand(along: bool) -> Layout {
        Layout::new(4 * 32, 16, |lane, index| {
            let upper = 4 * (lane / 16);
            let (line, depth) = if along { (lane % 4 + upper, index) } else { (index + upper, lane % 4) };
            lane / 4 % 4 * 32 + line * 4 + depth
        })
    }

    /// Accumulators of `m8n8k4`. PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
    pub fn quad_accumulator(bits: u32) -> Layout {
        Layout::new(4 * 64, bits, |lane, index| {
            let (row, column) = match bits {
                16 => (lane % 4, index),
                _ => ((lane & 1) + (index & 2), (index & 4) + (lane & 2) + (index & 1)),
            };
            lane / 4 % 4 * 64 + (row + 4 * (lane / 16)) * 8 + column
        })
    }

    /// The registers that hold different elements.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// For each lane, the index of an element of a register.
    pub fn places(&self, register: usize, part: usize) -> &[u16; 32] {
        &self.places[register % self.registers * self.parts + part]
    }

    /// The matrix of the registers that `read` reads.
    pub fn collect<T: Copy + Default>(&self, read: impl Fn(usize) -> Values, element: impl Fn(u64) -> T) -> Vec<T> {
        let mut matrix = vec![T::default(); self.elements];
        let mask = u64::MAX >> (64 - self.bits);
        for (register, places) in self.places.chunks_exact(self.parts).enumerate() {
            let values = read(register);
            for (part, places) in places.iter().enumerate() {
                for (value, place) in values.iter().zip(places) {
                    matrix[usize::from(*place)] = element(value >> (part * self.bits as usize) & mask);
                }
            }
        }
        matrix
    }

    /// The values of a register.
    pub fn spread<T: Copy + Into<u64>>(&self, matrix: &[T], register: usize) -> Values {
        let mut values = [0; 32];
        for part in 0..self.parts {
            for (value, place) in values.iter_mut().zip(self.places(register, part)) {
                *value |= matrix[usize::from(*place)].into() << (part * self.bits as usize);
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_holds_every_element_once() {
        let operands = [(8, 4, 64), (16, 16, 64), (16, 4, 32), (16, 16, 16), (32, 16, 16), (16, 32, 8), (16, 256, 1)];
        let orders = [Order::Paired, Order::Single];
        let operands = operands
            .into_iter()
            .flat_map(|(lines, depth, bits)| orders.map(|order| Layout::operand(lines, depth, bits, order)));
        let shapes = [(8, 8, 64), (16, 8, 16), (16, 16, 32), (32, 8, 32), (8, 32, 16)];
        let accumulators = shapes.map(|(rows, columns, bits)| Layout::accumulator(rows, columns, bits));
        let quads = [Layout::quad_operand(true), Layout::quad_operand(false)];
        let quads = quads.into_iter().chain([16, 32].map(Layout::quad_accumulator));
        for layout in operands.chain(accumulators).chain(quads) {
            let mut places: Vec<u16> = layout.places.iter().flatten().copied().collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..layout.elements as u16), "{} bits", layout.bits);
        }
    }
}
