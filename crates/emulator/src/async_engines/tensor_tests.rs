//! Layouts by hand, and every plan against the definition, element by element.

use super::*;
use crate::async_engines::tensor_map::ElementType;
use proptest::prelude::*;

const BASE: u64 = 0x1000;

/// A dense tensor at `BASE`.
fn map(element: ElementType, sizes: &[u64], box_sizes: &[u32]) -> TensorMap {
    let mut strides = Vec::new();
    let mut stride = element.bytes();
    for size in &sizes[..sizes.len() - 1] {
        stride *= size;
        strides.push(stride);
    }
    TensorMap {
        address: BASE,
        element,
        sizes: sizes.to_vec(),
        strides,
        box_sizes: box_sizes.to_vec(),
        element_strides: vec![1; sizes.len()],
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        fill: OutOfBounds::Zero,
    }
}

fn moved(global: u64, shared: u32, bytes: u32) -> Move {
    Move { global: BASE + global, shared, bytes }
}

fn filled(plan: &Plan) -> Vec<(u32, u32)> {
    plan.fills.iter().map(|range| (range.start, range.end)).collect()
}

#[test]
fn a_line_is_one_move() {
    let plan = Plan::new(&map(ElementType::F32, &[100], &[32]), &[8], 128).unwrap();
    assert_eq!((filled(&plan), plan.moves, plan.bytes), (vec![], vec![moved(32, 128, 128)], 128));
}

#[test]
fn a_line_hangs_over_both_ends() {
    let line = map(ElementType::F32, &[100], &[32]);
    let before = Plan::new(&line, &[-8], 0).unwrap();
    assert_eq!((filled(&before), before.moves), (vec![(0, 32)], vec![moved(0, 32, 96)]));
    let after = Plan::new(&line, &[88], 0).unwrap();
    assert_eq!((filled(&after), after.moves, after.bytes), (vec![(48, 128)], vec![moved(352, 0, 48)], 128));
    let short = Plan::new(&map(ElementType::F32, &[20], &[32]), &[-4], 0).unwrap();
    assert_eq!((filled(&short), short.moves), (vec![(0, 16), (96, 128)], vec![moved(0, 16, 80)]));
    for far in [-32, 100, i32::MIN, i32::MAX - 3] {
        let nothing = Plan::new(&line, &[far], 0).unwrap();
        assert_eq!((filled(&nothing), nothing.moves), (vec![(0, 128)], vec![]));
    }
}

#[test]
fn rows_that_touch_on_both_sides_are_one_move() {
    let whole_rows = Plan::new(&map(ElementType::Bf16, &[64, 8], &[64, 4]), &[0, 2], 1024).unwrap();
    assert_eq!(whole_rows.moves, [moved(256, 1024, 512)]);
    let half_rows = Plan::new(&map(ElementType::Bf16, &[64, 8], &[32, 2]), &[32, 6], 0).unwrap();
    assert_eq!(half_rows.moves, [moved(6 * 128 + 64, 0, 64), moved(7 * 128 + 64, 64, 64)]);
}

#[test]
fn rows_outside_are_filled() {
    let tall = map(ElementType::U8, &[32, 4], &[16, 6]);
    let plan = Plan::new(&tall, &[16, -1], 0).unwrap();
    assert_eq!(plan.moves, [16, 48, 80, 112].map(|global| moved(global, 16 + (global as u32 - 16) / 2, 16)));
    assert_eq!(filled(&plan), [(0, 16), (80, 96)]);
}

#[test]
fn element_strides_skip_rows_but_not_columns() {
    let strided = TensorMap { element_strides: vec![2, 3], ..map(ElementType::U32, &[8, 16], &[4, 7]) };
    let plan = Plan::new(&strided, &[4, 10], 0).unwrap();
    // ceil(7 / 3) rows: 10, 13 and 16, the last outside.
    assert_eq!(plan.moves, [moved(10 * 32 + 16, 0, 16), moved(13 * 32 + 16, 16, 16)]);
    assert_eq!((filled(&plan), plan.bytes), (vec![(32, 48)], 48));
}

#[test]
fn five_dimensions_count_from_the_first() {
    let five = map(ElementType::U8, &[16, 2, 3, 4, 5], &[16, 1, 2, 1, 2]);
    let plan = Plan::new(&five, &[0, 1, 1, 3, 3], 0).unwrap();
    let at = |third: u64, fifth: u64| 16 + 32 * third + 96 * 3 + 384 * fifth;
    let expected = [moved(at(1, 3), 0, 16), moved(at(2, 3), 16, 16), moved(at(1, 4), 32, 16), moved(at(2, 4), 48, 16)];
    assert_eq!(plan.moves, expected);
    let three = map(ElementType::U8, &[16, 2, 3], &[16, 2, 2]);
    assert_eq!(Plan::new(&three, &[0, 0, 1], 0).unwrap().moves, [moved(32, 0, 64)]);
    let four = map(ElementType::U8, &[16, 2, 3, 2], &[16, 2, 3, 2]);
    let outside = Plan::new(&four, &[0, 0, 0, 1], 0).unwrap();
    assert_eq!((filled(&outside), outside.moves), (vec![(96, 192)], vec![moved(96, 0, 96)]));
}

/// For each 16-byte slot of shared memory, the chunk of the box that lies there.
fn slots(swizzle: Swizzle, row: u64, rows: u32, shared: u32) -> Vec<u64> {
    let tile = TensorMap { swizzle, ..map(ElementType::U8, &[row, rows.into()], &[row as u32, rows]) };
    let plan = Plan::new(&tile, &[0, 0], shared).unwrap();
    let mut slots = vec![u64::MAX; (plan.bytes / CHUNK) as usize];
    for one in plan.moves {
        for chunk in 0..one.bytes / CHUNK {
            slots[((one.shared - shared) / CHUNK + chunk) as usize] = (one.global - BASE) / 16 + u64::from(chunk);
        }
    }
    slots
}

#[test]
fn swizzle_of_128_bytes() {
    let found = slots(Swizzle::B128, 128, 9, 0);
    assert_eq!(found[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(found[8..16], [9, 8, 11, 10, 13, 12, 15, 14]);
    assert_eq!(found[16..24], [18, 19, 16, 17, 22, 23, 20, 21]);
    assert_eq!(found[56..64], [63, 62, 61, 60, 59, 58, 57, 56]);
    assert_eq!(found[64..], [64, 65, 66, 67, 68, 69, 70, 71]);
}

#[test]
fn swizzle_of_64_bytes() {
    // Two rows share 128 bytes, and so a pattern.
    let found = slots(Swizzle::B64, 64, 10, 0);
    assert_eq!(found[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(found[8..16], [9, 8, 11, 10, 13, 12, 15, 14]);
    assert_eq!(found[16..24], [18, 19, 16, 17, 22, 23, 20, 21]);
    assert_eq!(found[24..32], [27, 26, 25, 24, 31, 30, 29, 28]);
    assert_eq!(found[32..], [32, 33, 34, 35, 36, 37, 38, 39]);
}

#[test]
fn swizzle_of_32_bytes() {
    let found = slots(Swizzle::B32, 32, 12, 0);
    assert_eq!(found[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(found[8..16], [9, 8, 11, 10, 13, 12, 15, 14]);
    assert_eq!(found[16..], [16, 17, 18, 19, 20, 21, 22, 23]);
}

#[test]
fn the_address_selects_the_pattern_not_the_row() {
    assert_eq!(slots(Swizzle::B128, 128, 1, 3 * 128), [3, 2, 1, 0, 7, 6, 5, 4]);
}

#[test]
fn a_chunk_is_cut_where_the_tensor_ends() {
    // 126 bytes of the second row are inside: chunk 7 lies in slot 6, its last element filled.
    let tile = TensorMap { swizzle: Swizzle::B128, strides: vec![128], ..map(ElementType::F16, &[63, 2], &[64, 1]) };
    let plan = Plan::new(&tile, &[0, 1], 128).unwrap();
    assert_eq!(plan.moves.last(), Some(&moved(128 + 112, 128 + 96, 14)));
    assert_eq!(filled(&plan), [(128 + 96 + 14, 128 + 112)]);
}

#[test]
fn a_swizzled_row_outside_is_one_fill() {
    let tile = TensorMap { swizzle: Swizzle::B128, ..map(ElementType::F16, &[64, 2], &[64, 3]) };
    let plan = Plan::new(&tile, &[0, 1], 128).unwrap();
    assert_eq!((filled(&plan), plan.moves.len()), (vec![(256, 512)], 8));
}

#[test]
fn fill_is_zero_or_nan() {
    let line = map(ElementType::F16, &[8], &[8]);
    assert_eq!(Plan::new(&line, &[0], 0).unwrap().fill(4), [0; 4]);
    let nan = TensorMap { fill: OutOfBounds::Nan, ..line };
    assert_eq!(Plan::new(&nan, &[0], 0).unwrap().fill(4), [0xf7, 0x7f, 0xf7, 0x7f]);
}

#[test]
fn a_store_begins_inside() {
    let tile = map(ElementType::U32, &[64, 64], &[8, 8]);
    assert!(Plan::of_store(&tile, &[60, 63], 0).is_ok());
    let refused = Plan::of_store(&tile, &[0, -1], 0).unwrap_err().to_string();
    assert_eq!(refused, "coordinate 1 of the store is -1: expected one that is not negative");
}

#[test]
fn what_cannot_be_copied_is_said() {
    let tile = map(ElementType::Bf16, &[64, 64], &[64, 64]);
    let refused =
        |map: &TensorMap, coordinates: &[i32], shared| Plan::new(map, coordinates, shared).unwrap_err().to_string();
    assert_eq!(refused(&tile, &[0], 0), "the copy has 1 coordinates: the tensor map has 2 dimensions");
    assert_eq!(refused(&tile, &[0, 0], 64), "shared memory address 0x40 of the box: expected a multiple of 128");
    assert!(matches!(Plan::new(&tile, &[0, 0], 0xffff_ff80), Err(Fault::SharedAddress(_))));
    let large = map(ElementType::F64, &[256, 256], &[256, 256]);
    assert_eq!(
        refused(&large, &[0, 0], 0),
        "the box has 524288 bytes: expected at most 232448, the shared memory of a block"
    );
    let interleaved = TensorMap { interleave: Interleave::B16, ..tile.clone() };
    assert_eq!(refused(&interleaved, &[0, 0], 0), "the emulator does not copy tensors with the 16B interleave yet");
    let narrow = TensorMap { swizzle: Swizzle::B128, box_sizes: vec![32, 8], ..tile.clone() };
    assert!(refused(&narrow, &[0, 0], 0).contains("rows of 64 bytes, less than the 128 bytes"));
    let rounded = TensorMap { element: ElementType::Tf32, ..tile };
    assert!(refused(&rounded, &[0, 0], 0).contains(".tf32"));
}

#[test]
fn a_row_begins_at_a_multiple_of_16_bytes() {
    use ElementType::{Bf16, F32, F64, U8};
    for (element, per_chunk) in [(U8, 16), (Bf16, 8), (F32, 4), (F64, 2)] {
        let line = map(element, &[64], &[16]);
        for first in -33..97 {
            let byte = i64::from(first) * i64::from(16 / per_chunk);
            let refused = Fault::FirstCoordinate { coordinate: first, byte };
            let expected = if first % per_chunk == 0 { None } else { Some(refused) };
            assert_eq!(Plan::new(&line, &[first], 0).err(), expected);
        }
    }
    // Only the first coordinate.
    assert!(Plan::new(&map(F32, &[64, 64], &[16, 16]), &[-4, 3], 0).is_ok());
    assert_eq!(
        Plan::new(&map(F32, &[64], &[16]), &[-3], 0).unwrap_err().to_string(),
        "the first coordinate of the copy is -3, at byte -12 of a row: expected a multiple of 16 bytes"
    );
}

/// A map with padded rows, and coordinates around the tensor.
fn copies() -> impl Strategy<Value = (TensorMap, Vec<i32>, u32)> {
    let elements = [ElementType::U8, ElementType::Bf16, ElementType::F32, ElementType::F64];
    let swizzles = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];
    let dimension = (1u64..7, 1u32..5, 1u32..4, 0u64..3, -4i32..7);
    let outer = prop::collection::vec(dimension, 0..5);
    let first = (1u64..150, 1u64..9, -3i32..12);
    let choices = (prop::sample::select(elements.to_vec()), prop::sample::select(swizzles.to_vec()), 0u32..16);
    (choices, first, outer).prop_map(|((element, swizzle, slot), (size, chunks, start), outer)| {
        let mut map = map(element, &[size], &[1]);
        map.swizzle = swizzle;
        let row_bytes = map.span().unwrap_or(chunks * 16);
        map.box_sizes = vec![(row_bytes / element.bytes()) as u32];
        let mut stride = (size * element.bytes()).next_multiple_of(16);
        let mut coordinates = vec![start * (16 / element.bytes()) as i32];
        for (size, width, step, padding, start) in outer {
            stride += padding * 16;
            map.strides.push(stride);
            stride *= size;
            map.sizes.push(size);
            map.box_sizes.push(width);
            map.element_strides.push(step);
            coordinates.push(start);
        }
        (map, coordinates, slot * ALIGNMENT)
    })
}

/// Where each element of the box is: global offset, if inside, and shared address, by the definition.
fn elements(map: &TensorMap, coordinates: &[i32], shared: u32) -> Vec<(Option<u64>, u32)> {
    let counts: Vec<u64> =
        (0..map.rank()).map(|at| if at == 0 { map.box_sizes[0].into() } else { count(map, at) }).collect();
    let place = |linear: u64| {
        let address = u64::from(shared) + linear * map.element.bytes();
        let bits = map.span().map_or(0, |span| span / 16 - 1);
        (address ^ (((address / 128) & bits) * 16)) as u32
    };
    let global = |linear: u64| {
        let (mut rest, mut offset) = (linear, 0);
        for at in 0..map.rank() {
            let step = if at == 0 { 1 } else { i64::from(map.element_strides[at]) };
            let index = i64::from(coordinates[at]) + (rest % counts[at]) as i64 * step;
            rest /= counts[at];
            if index < 0 || index >= map.sizes[at] as i64 {
                return None;
            }
            offset += index as u64 * if at == 0 { map.element.bytes() } else { map.strides[at - 1] };
        }
        Some(offset)
    };
    (0..counts.iter().product()).map(|linear| (global(linear), place(linear))).collect()
}

proptest! {
    #[test]
    fn a_load_and_its_store_agree_with_the_definition((map, coordinates, shared) in copies()) {
        let plan = Plan::new(&map, &coordinates, shared).unwrap();
        let width = map.element.bytes() as usize;
        let extent = map.strides.last().map_or(map.sizes[0] * width as u64, |stride| stride * map.sizes[map.rank() - 1]);
        let global: Vec<u8> = (0..extent).map(|at| (at * 37 % 251 + 1) as u8).collect();
        let mut tile = vec![0xee; shared as usize + plan.bytes as usize + 1024];
        for one in &plan.moves {
            let (from, to, bytes) = ((one.global - BASE) as usize, one.shared as usize, one.bytes as usize);
            tile[to..to + bytes].copy_from_slice(&global[from..from + bytes]);
        }
        for range in &plan.fills {
            let (start, end) = (range.start as usize, range.end as usize);
            tile[start..end].copy_from_slice(&plan.fill(end - start));
        }
        let mut expected_tile = vec![0xee; tile.len()];
        let mut expected_store = vec![0; global.len()];
        for (from, to) in elements(&map, &coordinates, shared) {
            let to = to as usize;
            match from.map(|from| from as usize) {
                Some(from) => {
                    expected_tile[to..to + width].copy_from_slice(&global[from..from + width]);
                    expected_store[from..from + width].copy_from_slice(&global[from..from + width]);
                }
                None => expected_tile[to..to + width].fill(0),
            }
        }
        prop_assert_eq!(&tile, &expected_tile);
        let mut stored = vec![0; global.len()];
        for one in &plan.moves {
            let (to, from, bytes) = ((one.global - BASE) as usize, one.shared as usize, one.bytes as usize);
            stored[to..to + bytes].copy_from_slice(&tile[from..from + bytes]);
        }
        prop_assert_eq!(stored, expected_store);
        let total: u32 = plan.moves.iter().map(|one| one.bytes).chain(plan.fills.iter().map(|r| r.end - r.start)).sum();
        prop_assert_eq!(total, plan.bytes);
    }
}
