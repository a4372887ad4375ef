//! Where a matrix lies in shared memory, as the 64 bits of a matrix descriptor say.
//!
//! Memory is read in pieces of 16 bytes. A product is 32 bytes deep whatever its elements, so a K-major operand has two
//! pieces per line (a row of A, a column of B); an MN-major operand, whose elements have 16 bits, has one piece for each
//! 8 lines and each of the 16 depths. Eight neighbours (lines of a K-major operand, depths of an MN-major one) make a
//! group, one below the other at the width of the swizzle; two offsets lead from group to group. Finally bits 4 to 6 of
//! the address are exchanged by those above. PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and
//! "Matrix Descriptor Format".

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl Swizzle {
    /// How many pieces are exchanged among each other.
    const fn pieces(self) -> u32 {
        match self {
            Swizzle::None => 1,
            Swizzle::Bytes32 => 2,
            Swizzle::Bytes64 => 4,
            Swizzle::Bytes128 => 8,
        }
    }
}

/// Which way an operand runs in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    /// The depths of a line lie together.
    Depth,
    /// The lines of a depth lie together: `trans-a` or `trans-b` is 1.
    Lines,
}

/// A decoded matrix descriptor; addresses and offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let (group, pieces) = (depth / GROUP, self.swizzle.pieces());
        let (pattern, piece) = (eight / pieces, eight % pieces);
        let offset = match self.swizzle {
            Swizzle::None => pattern * self.stride + group * self.leading,
            _ => pattern * self.leading + group * self.stride,
        };
        self.exchange(offset + depth % GROUP * self.width() + piece * PIECE)
    }

    fn width(&self) -> u32 {
        self.swizzle.pieces() * PIECE
    }

    /// The address at this offset: the hardware exchanges pieces by their addresses, not by their offsets.
    fn exchange(&self, offset: u32) -> u32 {
        let address = self.start + offset;
        let row = (address >> 7).wrapping_sub(self.base);
        address ^ (row & (self.swizzle.pieces() - 1)) * PIECE
    }
}

/// Lines of an operand in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    pub descriptor: Descriptor,
    pub major: Major,
    /// Whole groups.
    pub lines: Range<u32>,
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

    /// The elements, the depth running fastest. What lies outside of `shared` is zero: its access is reported before.
    pub fn elements(&self, shared: &[u8], bits: u32) -> Vec<u32> {
        let pieces = self.pieces().flat_map(|first| split(shared, first, bits));
        if self.major == Major::Depth {
            return pieces.collect();
        }
        let mut matrix = vec![0; self.lines.len() * DEPTHS as usize];
        let (depths, group) = (DEPTHS as usize, GROUP as usize);
        for (place, element) in pieces.enumerate() {
            let (line, depth) = (place % group, place / group % depths);
            matrix[(place / (group * depths) * group + line) * depths + depth] = element;
        }
        matrix
    }
}

/// The elements of a piece.
fn split(shared: &[u8], first: u32, bits: u32) -> impl Iterator<Item = u32> {
    let piece = shared.get(first as usize..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    let (all, mask) = (u128::from_le_bytes(piece), u32::MAX >> (32 - bits));
    (0..u128::BITS / bits).map(move |index| (all >> (index * bits)) as u32 & mask)
}

#[cfg(test)]
mod tests;
