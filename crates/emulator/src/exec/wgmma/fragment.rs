//! Which lane of a warp holds which element of its 16 rows. PTX ISA, "Register Fragments" of `wgmma.mma_async`.

use crate::exec::layout::{Layout, Order};

/// Rows of A and D that each of the four warps has.
pub const ROWS: usize = 16;

/// A, in registers: as `mma.m16n8` has it.
pub fn left(depth: usize, bits: u32) -> Layout {
    Layout::operand(ROWS, depth, bits, Order::Paired)
}

/// D: products of 16x8, side by side.
pub fn accumulator(columns: usize, bits: u32) -> Layout {
    Layout::new(ROWS * columns, bits, |lane, index| {
        let (tile, inside) = (index / 4, index % 4);
        let (row, column) = (lane / 4 + 8 * (inside / 2), 8 * tile + 2 * (lane % 4) + inside % 2);
        row * columns + column
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registers of a lane, from the picture: element i of the fragment has this row and column.
    fn picture(lane: usize, i: usize) -> (usize, usize) {
        let row = if i % 4 < 2 { lane >> 2 } else { (lane >> 2) + 8 };
        (row, (i / 4) * 8 + (lane & 3) * 2 + (i & 1))
    }

    #[test]
    fn accumulators_of_every_width_lie_as_the_manual_draws_them() {
        for (columns, bits) in (8..=256).step_by(8).flat_map(|columns| [(columns, 16), (columns, 32)]) {
            let layout = accumulator(columns, bits);
            assert_eq!(layout.registers(), columns * bits as usize / 64, "n{columns} of {bits} bits");
            let matrix: Vec<u32> = (0..16 * columns as u32).collect();
            for register in 0..layout.registers() {
                let values = layout.spread(&matrix, register);
                for (lane, value) in values.iter().enumerate() {
                    for part in 0..32 / bits as usize {
                        let (row, column) = picture(lane, register * (32 / bits as usize) + part);
                        let found = value >> (part as u32 * bits) & (u64::MAX >> (64 - bits));
                        assert_eq!(found, (row * columns + column) as u64, "n{columns}, {lane}, {register}, {part}");
                    }
                }
            }
        }
    }

    #[test]
    fn operands_in_registers_lie_as_the_manual_draws_them() {
        for (depth, bits) in [(8, 32), (16, 16), (32, 8), (256, 1)] {
            let (layout, parts) = (left(depth, bits), 32 / bits as usize);
            assert_eq!(layout.registers(), 4);
            for (register, part, lane) in (0..4 * parts * 32).map(|i| (i / 32 / parts, i / 32 % parts, i % 32)) {
                let row = lane / 4 + if register == 1 || register == 3 { 8 } else { 0 };
                let column = lane % 4 * parts + part + if register >= 2 { depth / 2 } else { 0 };
                assert_eq!(usize::from(layout.places(register, part)[lane]), row * depth + column, "{bits} bits");
            }
        }
    }
}
