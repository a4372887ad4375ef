//! Where a matrix lies in shared memory, as the 64 bits of a matrix descriptor say.
//!
//! Memory is read in pieces of 16 bytes. A product is 32 bytes deep whatever its elements, so a K-major operand has two
//! pieces per line (a row of A, a column of B); an MN-major operand, whose elements have 16 bits, has one piece for each
//! 8 lines and each of the 16 depths. Eight neighbours (lines of a K-major operand, depths of an MN-major one) make a
//! group, one below the other at the width of the swizzle; two offsets lead from group to group. Finally bits 4 to 6 of
//! the address are exchanged by those above. PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and
//! "Matrix Descriptor Format".

use crate::numerics::fragment::{Register, transpose as exchange_lines_and_depths};
use std::ops::Range;

/// What is wrong with the operands of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("matrix descriptor {bits:#018x} has reserved bits {reserved:#x} set: expected zeros there")]
    Reserved { bits: u64, reserved: u64 },
    #[error("the lanes have different values of {what}: expected the same in the whole warpgroup")]
    Different { what: &'static str },
}

/// Bits of a descriptor that carry nothing.
const RESERVED: u64 = 0x3ff1_c000_c000_c000;
/// Bytes that are read together.
pub const PIECE: u32 = 16;
/// Lines or depths of a group.
const GROUP: u32 = 8;
/// Depths of an MN-major operand.
const DEPTHS: u32 = 16;

/// The pattern in which pieces are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl Swizzle {
    /// How many pieces are exchanged among each other: 2 to this power.
    const fn power(self) -> u32 {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 1,
            Swizzle::Bytes64 => 2,
            Swizzle::Bytes128 => 3,
        }
    }
}

/// Which way an operand runs in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// The depths of a line lie together.
    Depth,
    /// The lines of a depth lie together: `trans-a` or `trans-b` is 1.
    Lines,
}

/// A decoded matrix descriptor; addresses and offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    pub start: u32,
    pub leading: u32,
    pub stride: u32,
    /// Where the pattern of the swizzle begins: bits 7 to 9 of that address, zero if it is aligned to 1024 bytes.
    pub base: u32,
    pub swizzle: Swizzle,
}

impl Descriptor {
    pub fn decode(bits: u64) -> Result<Descriptor, Fault> {
        if bits & RESERVED != 0 {
            return Err(Fault::Reserved { bits, reserved: bits & RESERVED });
        }
        let field = |from: u32| ((bits >> from & 0x3fff) as u32) << 4;
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::Bytes128,
            2 => Swizzle::Bytes64,
            _ => Swizzle::Bytes32,
        };
        Ok(Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: (bits >> 49 & 7) as u32,
            swizzle,
        })
    }

    /// The first byte of a piece of a line, the lines running along the depth.
    fn along(&self, line: u32, piece: u32) -> u32 {
        let leading = if self.swizzle == Swizzle::None { self.leading } else { PIECE };
        self.exchange(line / GROUP * self.stride + line % GROUP * self.width() + piece * leading)
    }

    /// The first byte of the piece of 8 lines at a depth.
    fn across(&self, eight: u32, depth: u32) -> u32 {
        let group = depth / GROUP;
        let (pattern, piece) = (eight >> self.swizzle.power(), eight & self.last_piece());
        let offset = match self.swizzle {
            Swizzle::None => pattern * self.stride + group * self.leading,
            _ => pattern * self.leading + group * self.stride,
        };
        self.exchange(offset + depth % GROUP * self.width() + piece * PIECE)
    }

    /// Bytes from one line or depth of a group to the next.
    fn width(&self) -> u32 {
        PIECE << self.swizzle.power()
    }

    fn last_piece(&self) -> u32 {
        (1 << self.swizzle.power()) - 1
    }

    /// The address at this offset: the hardware exchanges pieces by their addresses, not by their offsets.
    fn exchange(&self, offset: u32) -> u32 {
        let address = self.start + offset;
        let row = (address >> 7).wrapping_sub(self.base);
        address ^ ((row & self.last_piece()) * PIECE)
    }
}

/// Lines of an operand in shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    pub descriptor: Descriptor,
    pub major: Major,
    /// Whole groups.
    pub lines: Range<u32>,
}

/// Shared memory as products read it.
pub trait Shared {
    /// The piece that begins at an offset; none outside.
    fn piece(&self, first: u32) -> Option<[u8; PIECE as usize]>;
}

impl<T: AsRef<[u8]> + ?Sized> Shared for T {
    fn piece(&self, first: u32) -> Option<[u8; PIECE as usize]> {
        self.as_ref().get(first as usize..)?.first_chunk().copied()
    }
}

impl Tile {
    /// The first bytes of all pieces: line by line, or depth by depth for each 8 lines.
    pub fn pieces(&self) -> impl Iterator<Item = u32> {
        let (descriptor, major) = (self.descriptor, self.major);
        let (outer, inner) = match major {
            Major::Depth => (self.lines.clone(), 2),
            Major::Lines => (self.lines.start / GROUP..self.lines.end / GROUP, DEPTHS),
        };
        let places = outer.flat_map(move |outer| (0..inner).map(move |inner| (outer, inner)));
        places.map(move |(outer, inner)| match major {
            Major::Depth => descriptor.along(outer, inner),
            Major::Lines => descriptor.across(outer, inner),
        })
    }

    /// The core matrices of each 8 lines, 16 bytes of depth each. What lies outside of `shared` is zero.
    pub fn cores(&self, shared: &(impl Shared + ?Sized)) -> Vec<Register> {
        let mut cores = vec![[0; 32]; self.lines.len() / GROUP as usize * 2];
        for (at, first) in self.pieces().enumerate() {
            let piece = shared.piece(first).unwrap_or_default();
            let (group, inside) = (at / 16, at % 16);
            let (line, step) = match self.major {
                Major::Depth => (inside / 2, inside % 2),
                Major::Lines => (inside % 8, inside / 8),
            };
            let words = &mut cores[group * 2 + step][4 * line..][..4];
            words.iter_mut().zip(piece.as_chunks().0).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
        }
        if self.major == Major::Lines {
            cores.iter_mut().for_each(|core| *core = exchange_lines_and_depths(core));
        }
        cores
    }

    /// The elements, the depth running fastest. What lies outside of `shared` is zero: its access is reported before.
    pub fn elements(&self, shared: &(impl Shared + ?Sized), bits: u32) -> Vec<u32> {
        let per_piece = (u128::BITS / bits) as usize;
        let mut matrix = vec![0; self.pieces().count() * per_piece];
        let pieces = self.pieces().map(|first| shared.piece(first).unwrap_or_default());
        match self.major {
            Major::Depth => {
                matrix.chunks_exact_mut(per_piece).zip(pieces).for_each(|(to, piece)| split(piece, bits, to))
            }
            Major::Lines => transpose(pieces, &mut matrix),
        }
        matrix
    }
}

/// The pieces of an MN-major operand, one for each depth of each group of lines.
fn transpose(pieces: impl Iterator<Item = [u8; PIECE as usize]>, matrix: &mut [u32]) {
    const LINES: usize = GROUP as usize;
    let mut lines = [0; LINES];
    for (at, piece) in pieces.enumerate() {
        let (group, depth) = (at / DEPTHS as usize, at % DEPTHS as usize);
        split(piece, 16, &mut lines);
        for (line, element) in lines.iter().enumerate() {
            matrix[(group * LINES + line) * DEPTHS as usize + depth] = *element;
        }
    }
}

/// The elements of a piece, of 1, 8, 16 or 32 bits.
fn split(piece: [u8; PIECE as usize], bits: u32, elements: &mut [u32]) {
    let whole = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
    match bits {
        32 => elements.iter_mut().zip(piece.as_chunks::<4>().0).for_each(|(to, bytes)| *to = whole(bytes)),
        16 => elements.iter_mut().zip(piece.as_chunks::<2>().0).for_each(|(to, bytes)| *to = whole(bytes)),
        8 => elements.iter_mut().zip(piece).for_each(|(to, byte)| *to = byte.into()),
        _ => (0..).zip(elements).for_each(|(bit, to)| *to = (piece[bit / 8] >> (bit % 8) & 1).into()),
    }
}

#[cfg(test)]
mod tests;
