//! Against the canonical layouts as CuTe writes them: shapes and strides in units of 16 bytes, then `Swizzle<b,4,3>`.

use super::*;

/// A shape with a stride for each of its modes; the first mode runs fastest.
struct Modes([(u32, u32); 2]);

impl Modes {
    fn offset(&self, index: u32) -> u32 {
        let [(inner, near), (outer, far)] = self.0;
        assert!(index / inner < outer);
        index % inner * near + index / inner * far
    }
}

/// `Swizzle<bits,4,3>` on an address.
fn swizzled(bits: u32, address: u32) -> u32 {
    let mut result = address;
    for bit in 0..bits {
        result ^= (address >> (4 + 3 + bit) & 1) << (4 + bit);
    }
    result
}

fn encoded(start: u32, leading: u32, stride: u32, mode: u64) -> u64 {
    let field = |value: u32, at: u32| u64::from((value & 0x3ffff) >> 4) << at;
    field(start, 0) | field(leading, 16) | field(stride, 32) | mode << 62
}

/// Mode bits of the descriptor, and what the swizzle exchanges.
const MODES: [(u64, u32); 4] = [(0, 0), (3, 1), (2, 2), (1, 3)];

/// The address of element (line, depth). Offsets in units of 16 bytes.
fn canonical(major: Major, (mode, start): (usize, u32), [leading, stride]: [u32; 2], bits: u32, at: [u32; 2]) -> u32 {
    let (swizzle, [line, depth]) = (MODES[mode].1, at);
    let width = 1 << swizzle;
    let per_piece = 128 / bits;
    let units = match (major, swizzle) {
        (Major::Depth, 0) => Modes([(8, 1), (32, stride)]).offset(line) + depth / per_piece * leading,
        (Major::Depth, _) => Modes([(8, width), (32, stride)]).offset(line) + depth / per_piece,
        (Major::Lines, 0) => line / per_piece * stride + Modes([(8, 1), (2, leading)]).offset(depth),
        (Major::Lines, _) => {
            Modes([(width, 1), (32, leading)]).offset(line / per_piece) + Modes([(8, width), (2, stride)]).offset(depth)
        }
    };
    let inside = if major == Major::Depth { depth % per_piece } else { line % per_piece };
    8 * swizzled(swizzle, start + 16 * units) + inside * bits
}

/// Bytes without a pattern.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Element of `bits` bits at a bit address.
fn element(shared: &[u8], at: u32, bits: u32) -> u32 {
    (0..bits).map(|bit| u32::from(shared[((at + bit) / 8) as usize] >> ((at + bit) % 8) & 1) << bit).sum()
}

/// Which operand, and what of it.
struct Case {
    major: Major,
    mode: usize,
    bits: u32,
    lines: Range<u32>,
}

fn compare(shared: &[u8], Case { major, mode, bits, lines }: Case, start: u32, [leading, stride]: [u32; 2]) {
    let descriptor = Descriptor::decode(encoded(start, 16 * leading, 16 * stride, MODES[mode].0)).unwrap();
    let tile = Tile { descriptor, major, lines: lines.clone() };
    let depths = 256 / bits;
    let places: Vec<u32> = lines
        .clone()
        .flat_map(|line| (0..depths).map(move |depth| [line, depth]))
        .map(|at| canonical(major, (mode, start), [leading, stride], bits, at))
        .collect();
    let expected: Vec<u32> = places.iter().map(|place| element(shared, *place, bits)).collect();
    assert_eq!(tile.elements(shared, bits), expected, "{major:?}, {descriptor:?}, {bits} bits, {lines:?}");
    let mut pieces: Vec<u32> = tile.pieces().collect();
    let mut touched: Vec<u32> = places.iter().map(|place| place / 128 * 16).collect();
    // Groups may overlap.
    for places in [&mut pieces, &mut touched] {
        places.sort_unstable();
        places.dedup();
    }
    assert_eq!(pieces, touched, "{major:?}, {descriptor:?}, {bits} bits, {lines:?}");
}

#[test]
fn every_mode_reads_the_canonical_layouts() {
    let shared = noise(1 << 18);
    let quarters = (0..4).map(|quarter| 16 * quarter..16 * quarter + 16);
    let widths = [8, 16, 24, 64, 88, 256].map(|columns| 0..columns);
    for lines in quarters.chain(widths) {
        for (mode, shape) in MODES.iter().enumerate() {
            let width = 8 << shape.1;
            // Groups side by side, and groups with something in between.
            for offsets in [[width, 2 * width], [width * 5, width], [width + 8, 4 * width + 16]] {
                for start in [0, 1024, 2048 + 32, 4096 + 96] {
                    for bits in [1, 8, 16, 32] {
                        let case = Case { major: Major::Depth, mode, bits, lines: lines.clone() };
                        compare(&shared, case, start, offsets);
                    }
                    let case = Case { major: Major::Lines, mode, bits: 16, lines: lines.clone() };
                    compare(&shared, case, start, offsets);
                }
            }
        }
    }
}

#[test]
fn steps_of_32_bytes_walk_along_rows_that_a_tensor_copy_wrote() {
    // 64 rows of 64 elements of 16 bits, with a swizzle of 128 bytes, from byte 3072 on.
    let mut shared = vec![0; 16 * 1024];
    for (row, column) in (0..64 * 64).map(|place| (place / 64, place % 64)) {
        let chunk = (column / 8) ^ (row % 8);
        let at = 3072 + row * 128 + chunk * 16 + column % 8 * 2;
        shared[at..at + 2].copy_from_slice(&((row * 64 + column) as u16).to_le_bytes());
    }
    for step in 0..4u32 {
        let descriptor = Descriptor::decode(encoded(3072 + 32 * step, 16, 1024, 1)).unwrap();
        let rows = Tile { descriptor, major: Major::Depth, lines: 16..32 };
        let expected: Vec<u32> = (16..32).flat_map(|row| (0..16).map(move |k| row * 64 + 16 * step + k)).collect();
        assert_eq!(rows.elements(&shared, 16), expected, "step {step}");
        // The same memory with rows as depths.
        let descriptor = Descriptor::decode(encoded(3072 + 2048 * step, 16, 1024, 1)).unwrap();
        let columns = Tile { descriptor, major: Major::Lines, lines: 0..64 };
        let expected: Vec<u32> = (0..64).flat_map(|n| (0..16).map(move |k| (16 * step + k) * 64 + n)).collect();
        assert_eq!(columns.elements(&shared, 16), expected, "step {step}");
    }
}

#[test]
fn a_base_offset_moves_the_pattern() {
    for (mode, swizzle) in [(1u64, 3), (2, 2), (3, 1)] {
        let width = 16 << swizzle;
        for base in 0..8u32 {
            let start = 1024 + 128 * base;
            let mut shared = vec![0; 8192];
            for (row, piece) in (0..16).map(|place| (place / 2, place % 2)) {
                let inside = row * width + piece * 16;
                let at = start + (inside ^ (inside >> 7 & ((1 << swizzle) - 1)) << 4);
                shared[at as usize] = (2 * row + piece) as u8;
            }
            let bits = encoded(start, 16, 8 * width, mode) | u64::from(base) << 49;
            let tile = Tile { descriptor: Descriptor::decode(bits).unwrap(), major: Major::Depth, lines: 0..8 };
            let first = tile.elements(&shared, 8).into_iter().step_by(16).collect::<Vec<u32>>();
            assert_eq!(first, (0..16).collect::<Vec<u32>>(), "{width} bytes, base {base}");
        }
    }
}

#[test]
fn reserved_bits_are_refused() {
    let good = encoded(0x3fff0, 0x3fff0, 0x3fff0, 3) | 7 << 49;
    let descriptor = Descriptor::decode(good).unwrap();
    assert_eq!((descriptor.start, descriptor.leading, descriptor.stride), (0x3fff0, 0x3fff0, 0x3fff0));
    assert_eq!((descriptor.base, descriptor.swizzle), (7, Swizzle::Bytes32));
    for bit in (0..64).filter(|bit| good >> bit & 1 == 0) {
        let bits = good | 1 << bit;
        assert_eq!(Descriptor::decode(bits), Err(Fault::Reserved { bits, reserved: 1 << bit }));
    }
    let text = Descriptor::decode(1 << 15).unwrap_err().to_string();
    assert_eq!(text, "matrix descriptor 0x0000000000008000 has reserved bits 0x8000 set: expected zeros there");
}

#[test]
fn what_lies_outside_of_shared_memory_is_zero() {
    let descriptor = Descriptor::decode(encoded(1024 - 16, 128, 256, 0)).unwrap();
    let tile = Tile { descriptor, major: Major::Depth, lines: 0..8 };
    let elements = tile.elements(&[0xff; 1024], 8);
    assert!(elements[..16].iter().all(|element| *element == 0xff));
    assert!(elements[16..].iter().all(|element| *element == 0));
}
