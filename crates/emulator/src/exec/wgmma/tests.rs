//! Whole products of a warpgroup.

use super::*;
use crate::numerics::convert::f32_to_f16;
use crate::numerics::format::Rounding;

/// A product without registers in A. Both operands lie without swizzle: A from byte 0, B from byte 16384.
fn product([d, a, b]: [Type; 3], columns: usize, majors: [Major; 2]) -> Multiply {
    let depth = 256 / a.bits() as usize;
    // 8 lines or depths are 128 bytes; a K-major operand has its two halves in a row, an MN-major one its depths.
    let descriptor = |start: u64| Source::Constant(start >> 4 | (128 >> 4) << 16 | (256 >> 4) << 32);
    let matrix = |index: usize| Matrix { descriptor: descriptor(16384 * index as u64), major: majors[index] };
    let accumulator = fragment::accumulator(columns, d.bits());
    let destinations = (0..accumulator.registers() as u32).map(RegisterId);
    Multiply {
        algebra: None,
        arithmetic: arithmetic::arithmetic([d, a, b], false).unwrap(),
        shape: Shape { rows: ROWS, columns, depth },
        bits: a.bits(),
        signs: [0; 2],
        left: Left::Shared(matrix(0)),
        right: matrix(1),
        accumulate: Source::Constant(1),
        accumulator,
        accumulators: destinations.clone().collect(),
        fragments: RegisterSet::default(),
        destinations: destinations.map(Some).collect(),
    }
}

/// Writes an element where the descriptors of [`product`] have it.
fn put(shared: &mut [u8], start: usize, major: Major, [line, depth]: [usize; 2], bits: u32, value: u32) {
    let (across, down) = if major == Major::Depth { (depth, line) } else { (line, depth) };
    let per_piece = 128 / bits as usize;
    let (piece, inside) = (across / per_piece, across % per_piece);
    let groups = if major == Major::Depth { [down / 8, piece] } else { [piece, down / 8] };
    let bit = 8 * (start + groups[0] * 256 + groups[1] * 128 + down % 8 * 16) + inside * bits as usize;
    for at in 0..bits as usize {
        shared[(bit + at) / 8] |= ((value >> at & 1) as u8) << ((bit + at) % 8);
    }
}

/// The 64 rows of a product whose accumulators hold `old(row, column)`.
fn run(product: &Multiply, shared: &[u8], old: impl Fn(usize, usize) -> u32) -> Vec<u32> {
    let columns = product.shape.columns;
    let quarter = |quarter: usize| {
        let c: Vec<u32> = (0..16 * columns).map(|at| old(16 * quarter + at / columns, at % columns)).collect();
        let read = |source: Source| match source {
            Source::Constant(value) => [value; 32],
            Source::Register(register) => product.accumulator.spread(&c, register.0 as usize),
            other => panic!("{other:?}"),
        };
        let issued = product.issue(quarter, read).unwrap();
        let result =
            product.execute(&issued, Precision::Exact, shared, |source| read(source).map(|value| value as u32));
        product.accumulator.collect(|register| result[register].map(u64::from), |bits| bits as u32)
    };
    (0..4).flat_map(quarter).collect()
}

fn half(value: f32) -> u32 {
    f32_to_f16(value.to_bits(), Rounding::Nearest).into()
}

/// One, in an operand of this type.
fn one(ty: Type) -> u32 {
    match ty {
        Type::F16 => half(1.0),
        Type::Bf16 => 0x3f80,
        Type::Tf32 => 0x3f80_0000,
        Type::E4m3 => 0x38,
        Type::E5m2 => 0x3c,
        _ => 1,
    }
}

/// A small whole number in an accumulator.
fn whole(ty: Type, value: u32) -> u32 {
    match ty {
        Type::F32 => (value as f32).to_bits(),
        Type::F16 => half(value as f32),
        _ => value,
    }
}

#[rustfmt::skip] // One row per line.
const TYPES: [[Type; 3]; 17] = [
    [Type::F32, Type::F16, Type::F16], [Type::F16, Type::F16, Type::F16], [Type::F32, Type::Bf16, Type::Bf16],
    [Type::F32, Type::Tf32, Type::Tf32], [Type::S32, Type::B1, Type::B1],
    [Type::F32, Type::E4m3, Type::E4m3], [Type::F32, Type::E4m3, Type::E5m2], [Type::F32, Type::E5m2, Type::E4m3],
    [Type::F32, Type::E5m2, Type::E5m2],
    [Type::F16, Type::E4m3, Type::E4m3], [Type::F16, Type::E4m3, Type::E5m2], [Type::F16, Type::E5m2, Type::E4m3],
    [Type::F16, Type::E5m2, Type::E5m2],
    [Type::S32, Type::S8, Type::S8], [Type::S32, Type::S8, Type::U8], [Type::S32, Type::U8, Type::S8],
    [Type::S32, Type::U8, Type::U8],
];

fn majors(ty: Type) -> Vec<[Major; 2]> {
    let both = [Major::Depth, Major::Lines];
    let all = both.into_iter().flat_map(|left| both.map(|right| [left, right]));
    let transposable = matches!(ty, Type::F16 | Type::Bf16);
    all.filter(|majors| transposable || *majors == [Major::Depth; 2]).collect()
}

/// One element of A and one of B at a time: exactly one element of D changes.
#[test]
fn products_of_unit_matrices_land_where_rows_and_columns_meet() {
    for (types, columns) in TYPES.into_iter().flat_map(|types| [8, 24, 96, 256].map(|columns| (types, columns))) {
        let [d, a, b] = types;
        for majors in majors(a) {
            let product = product(types, columns, majors);
            for (row, column) in [(0, 0), (17, 5), (42, columns - 1), (63, columns / 2)] {
                let depth = (row + 3 * column) % product.shape.depth;
                let mut shared = vec![0; 32 * 1024];
                put(&mut shared, 0, majors[0], [row, depth], a.bits(), one(a));
                put(&mut shared, 16384, majors[1], [column, depth], b.bits(), one(b));
                let result = run(&product, &shared, |row, column| whole(d, (row + column) as u32));
                for (at, found) in result.into_iter().enumerate() {
                    let place = (at / columns, at % columns);
                    let expected = place.0 + place.1 + usize::from(place == (row, column));
                    assert_eq!(found, whole(d, expected as u32), "{types:?} {majors:?} n{columns} at {place:?}");
                }
            }
        }
    }
}

/// A permutation times B is B with its depths in another order.
#[test]
fn every_width_has_all_its_columns() {
    for columns in (8..=256).step_by(8) {
        let product = product([Type::F32, Type::F16, Type::F16], columns, [Major::Depth, Major::Lines]);
        let mut shared = vec![0; 32 * 1024];
        for row in 0..64 {
            put(&mut shared, 0, Major::Depth, [row, row * 7 % 16], 16, half(1.0));
        }
        for (column, depth) in (0..columns * 16).map(|at| (at / 16, at % 16)) {
            put(&mut shared, 16384, Major::Lines, [column, depth], 16, half((16 * (column % 100) + depth) as f32));
        }
        let result = run(&product, &shared, |_, _| 0);
        for (at, found) in result.into_iter().enumerate() {
            let (row, column) = (at / columns, at % columns);
            assert_eq!(found, ((16 * (column % 100) + row * 7 % 16) as f32).to_bits(), "n{columns}, {row}, {column}");
        }
    }
}

#[test]
fn scales_negate_and_the_accumulator_may_be_left_out() {
    let mut product = product([Type::F32, Type::Bf16, Type::Bf16], 8, [Major::Depth; 2]);
    let mut shared = vec![0; 32 * 1024];
    put(&mut shared, 0, Major::Depth, [1, 0], 16, 0x4040);
    put(&mut shared, 16384, Major::Depth, [0, 0], 16, 0x3f80);
    for (signs, expected) in [([0, 0], 3.0f32), ([0x8000, 0], -3.0), ([0, 0x8000], -3.0), ([0x8000, 0x8000], 3.0)] {
        product.signs = signs;
        product.accumulate = Source::Constant(1);
        assert_eq!(run(&product, &shared, |_, _| 10f32.to_bits())[8], (10.0 + expected).to_bits());
        product.accumulate = Source::Constant(0);
        let fresh = run(&product, &shared, |_, _| 10f32.to_bits());
        assert_eq!((fresh[8], fresh[0]), (expected.to_bits(), 0));
    }
}

/// All four quarters read all of B, and of A their own rows.
#[test]
fn a_warp_reads_its_own_rows_of_a_and_all_of_b() {
    let product = product([Type::F32, Type::F16, Type::F16], 24, [Major::Depth; 2]);
    let read = |source: Source| if let Source::Constant(value) = source { [value; 32] } else { [0; 32] };
    for quarter in 0..4 {
        let mut pieces: Vec<u32> = product.issue(quarter, read).unwrap().pieces().collect();
        pieces.sort_unstable();
        let left = (512 * quarter as u32..512 * (quarter as u32 + 1)).step_by(16);
        assert!(pieces.into_iter().eq(left.chain((16384..16384 + 24 * 32).step_by(16))), "quarter {quarter}");
    }
}

#[test]
fn lanes_must_agree() {
    let mut product = product([Type::F32, Type::F16, Type::F16], 8, [Major::Depth; 2]);
    product.accumulate = Source::Special("%laneid");
    let read = |source: Source| match source {
        Source::Constant(value) => [value; 32],
        _ => std::array::from_fn(|lane| lane as u64),
    };
    assert_eq!(product.issue(0, read).unwrap_err(), Fault::Different { what: "scale-d" });
}
