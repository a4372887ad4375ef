//! Which bytes a bulk tensor copy moves where, in tiled mode.
//!
//! The box lies densely in shared memory, its first dimension fastest; a swizzle then permutes 16-byte chunks by the
//! bits of their shared address. Loads, stores and reductions all go by the same [`Plan`]: elements outside of the
//! tensor are filled by a load and left alone by the others.

use super::tensor_map::{Fault, TensorMap};
use launch::tensor_map::{Interleave, OutOfBounds, Swizzle};
use std::ops::Range;

/// The granularity of swizzles (CUDA C++ Programming Guide, "TMA swizzle").
const CHUNK: u32 = 16;
/// Alignment of the box in shared memory (PTX ISA, "cp.async.bulk.tensor").
const ALIGNMENT: u32 = 128;
/// sm_90, CUDA C++ Programming Guide, compute capabilities.
const MAX_SHARED_BYTES: u64 = 227 * 1024;

/// A run of bytes that is consecutive on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub global: u64,
    pub shared: u32,
    pub bytes: u32,
}

/// What one copy does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order of the box's elements.
    pub moves: Vec<Move>,
    /// Shared addresses of the elements outside of the tensor, ascending and apart.
    pub fills: Vec<Range<u32>>,
    /// Bytes of the whole box: what a load adds to its barrier's count, filled ones too.
    pub bytes: u32,
    /// The bytes of an element that is filled.
    filler: Vec<u8>,
}

impl Plan {
    /// A copy of the box at these coordinates, from or to the shared address.
    pub fn new(map: &TensorMap, coordinates: &[i32], shared: u32) -> Result<Plan, Fault> {
        Plan::build(map, coordinates, shared, 1)
    }

    /// Rows end at a multiple of so many bytes.
    fn build(map: &TensorMap, coordinates: &[i32], shared: u32, grain: u32) -> Result<Plan, Fault> {
        let bytes = check(map, coordinates, shared)?;
        let (moves, fills) = (Vec::new(), Vec::new());
        let mut plan = Plan { moves, fills, bytes, filler: filler(map) };
        let row_bytes = map.row_bytes() as u32;
        let inside = inside(map, coordinates[0]);
        let inside = inside.start..inside.end.next_multiple_of(grain).min(row_bytes);
        for (index, row) in Rows::new(map, coordinates).enumerate() {
            let at = shared + index as u32 * row_bytes;
            match row {
                Some(start) => plan.row(map, at, inside.clone(), start),
                None => plan.row(map, at, 0..0, 0),
            }
        }
        plan.fills.sort_by_key(|range| range.start);
        plan.fills = merged(&plan.fills);
        Ok(plan)
    }

    /// The same for a store or a reduction. It begins inside of the tensor, and writes whole chunks of 16 bytes: also what
    /// lies behind the end of a row, up to the end of its last chunk. No manual says so; an H200 does it.
    pub fn of_store(map: &TensorMap, coordinates: &[i32], shared: u32) -> Result<Plan, Fault> {
        match coordinates.iter().position(|coordinate| *coordinate < 0) {
            Some(dimension) => Err(Fault::Negative { dimension, coordinate: coordinates[dimension] }),
            None => Plan::build(map, coordinates, shared, CHUNK),
        }
    }

    /// That many bytes of fill, from the start of an element.
    pub fn fill(&self, bytes: usize) -> Vec<u8> {
        self.filler.iter().copied().cycle().take(bytes).collect()
    }

    /// One row of the box, of which the bytes `inside` are in the tensor; `start` is where byte 0 would be.
    fn row(&mut self, map: &TensorMap, at: u32, inside: Range<u32>, start: u64) {
        let row_bytes = map.row_bytes() as u32;
        let step = if map.swizzle == Swizzle::None { row_bytes } else { CHUNK };
        for chunk in (0..row_bytes).step_by(step as usize) {
            let end = chunk + step;
            let (low, high) = (inside.start.clamp(chunk, end), inside.end.clamp(chunk, end));
            let place = |byte: u32| swizzled(map.swizzle, at + chunk) + (byte - chunk);
            self.fill_range(place(chunk)..place(low));
            self.add(Move { global: start.wrapping_add(low.into()), shared: place(low), bytes: high - low });
            self.fill_range(place(high)..place(end));
        }
    }

    fn add(&mut self, next: Move) {
        match self.moves.last_mut() {
            _ if next.bytes == 0 => {}
            Some(last)
                if last.global + u64::from(last.bytes) == next.global && last.shared + last.bytes == next.shared =>
            {
                last.bytes += next.bytes;
            }
            _ => self.moves.push(next),
        }
    }

    fn fill_range(&mut self, range: Range<u32>) {
        if !range.is_empty() {
            self.fills.push(range);
        }
    }
}

/// The size of the box, if the copy is possible.
fn check(map: &TensorMap, coordinates: &[i32], shared: u32) -> Result<u32, Fault> {
    if coordinates.len() != map.rank() {
        return Err(Fault::Coordinates { found: coordinates.len(), expected: map.rank() });
    }
    // No manual says so; an H200 answers with an illegal instruction.
    let byte = i64::from(coordinates[0]) * map.element.bytes() as i64;
    if byte % i64::from(CHUNK) != 0 {
        return Err(Fault::FirstCoordinate { coordinate: coordinates[0], byte });
    }
    let bytes = (1..map.rank()).map(|dimension| count(map, dimension)).product::<u64>() * map.row_bytes();
    if bytes > MAX_SHARED_BYTES {
        return Err(Fault::BoxBytes { found: bytes, most: MAX_SHARED_BYTES });
    }
    if !shared.is_multiple_of(ALIGNMENT) || shared.checked_add(bytes as u32).is_none() {
        return Err(Fault::SharedAddress(shared));
    }
    unsupported(map).map_or(Ok(bytes as u32), |what| Err(Fault::Unsupported(what)))
}

fn unsupported(map: &TensorMap) -> Option<String> {
    if map.interleave != Interleave::None {
        return Some(format!("tensors with the {} interleave", map.interleave));
    }
    if map.element.converts() {
        return Some(format!("elements of type {}, which change on their way,", map.element));
    }
    // The manuals do not say where the rows of a narrower box lie.
    let span = map.span().filter(|span| map.row_bytes() < *span)?;
    Some(format!("boxes with rows of {} bytes, less than the {span} bytes of their swizzle,", map.row_bytes()))
}

/// Elements taken along a dimension (CUDA driver API, cuTensorMapEncodeTiled: `ceil(boxDim[i] / elementStrides[i])`).
fn count(map: &TensorMap, dimension: usize) -> u64 {
    map.box_sizes[dimension].div_ceil(map.element_strides[dimension]).into()
}

/// The bytes of a row that are in the tensor. The element stride of the first dimension is ignored without interleave
/// (CUDA driver API, cuTensorMapEncodeTiled).
fn inside(map: &TensorMap, first: i32) -> Range<u32> {
    let (size, width) = (map.sizes[0] as i64, i64::from(map.box_sizes[0]));
    let bytes = |element: i64| element as u32 * map.element.bytes() as u32;
    let low = (-i64::from(first)).clamp(0, width);
    let high = (size - i64::from(first)).clamp(0, width);
    bytes(low)..bytes(high)
}

/// The bytes of an element that lies outside. The NaN is what an H200 fills with, whatever the type.
fn filler(map: &TensorMap) -> Vec<u8> {
    let pair = match map.fill {
        OutOfBounds::Zero => [0; 2],
        OutOfBounds::Nan => [0xf7, 0x7f],
    };
    pair.iter().copied().cycle().take(map.element.bytes() as usize).collect()
}

/// XORs the number of the chunk with bits 7 and up, as many as number the chunks of the span.
fn swizzled(swizzle: Swizzle, address: u32) -> u32 {
    let mask = match swizzle {
        Swizzle::None => 0,
        Swizzle::B32 => 1,
        Swizzle::B64 => 3,
        Swizzle::B128 => 7,
    };
    address ^ (address >> 7 & mask) << 4
}

/// Joins neighbours of a sorted list.
fn merged(ranges: &[Range<u32>]) -> Vec<Range<u32>> {
    let mut joined: Vec<Range<u32>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range.clone()),
        }
    }
    joined
}

/// The rows of a box in order: the global address of the first byte, none for a row outside of the tensor.
struct Rows<'map> {
    map: &'map TensorMap,
    coordinates: &'map [i32],
    /// The step in each dimension but the first; none when all are done.
    steps: Option<Vec<u64>>,
}

impl<'map> Rows<'map> {
    fn new(map: &'map TensorMap, coordinates: &'map [i32]) -> Rows<'map> {
        Rows { map, coordinates, steps: Some(vec![0; map.rank() - 1]) }
    }

    fn start(&self, steps: &[u64]) -> Option<u64> {
        let first = i64::from(self.coordinates[0]) * self.map.element.bytes() as i64;
        let mut address = self.map.address.wrapping_add_signed(first);
        for (outer, step) in steps.iter().enumerate() {
            let dimension = outer + 1;
            let offset = step * u64::from(self.map.element_strides[dimension]);
            let index = i64::from(self.coordinates[dimension]) + offset as i64;
            let index = u64::try_from(index).ok().filter(|index| *index < self.map.sizes[dimension])?;
            address = address.wrapping_add(index.wrapping_mul(self.map.strides[outer]));
        }
        Some(address)
    }

    fn advance(&self, mut steps: Vec<u64>) -> Option<Vec<u64>> {
        for outer in 0..steps.len() {
            steps[outer] += 1;
            if steps[outer] < count(self.map, outer + 1) {
                return Some(steps);
            }
            steps[outer] = 0;
        }
        None
    }
}

impl Iterator for Rows<'_> {
    type Item = Option<u64>;

    fn next(&mut self) -> Option<Option<u64>> {
        let steps = self.steps.take()?;
        let start = self.start(&steps);
        self.steps = self.advance(steps);
        Some(start)
    }
}

#[cfg(test)]
#[path = "tensor_tests.rs"]
mod tests;
