//! The tensor-core rule against results of the hardware, and against itself on the fast path.

mod unpacked;

use emulator::numerics::format::{Element, Format};
use emulator::numerics::tensor_core::{Rule, Shape, multiply};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

macro_rules! recorded {
    ($($file:literal $rule:expr;)*) => {
        [$(($file, $rule, unpacked::bytes(include_bytes!(concat!("data/dot/", $file, ".bin.gz"))))),*]
    };
}

fn recordings() -> [(&'static str, Rule, &'static [u8]); 12] {
    recorded! {
        "f16_k16" Rule::F16_K16;
        "f16_k8" Rule::F16_K8;
        "bf16_k16" Rule::BF16_K16;
        "bf16_k8" Rule::BF16_K8;
        "tf32_k8" Rule::TF32_K8;
        "tf32_k4" Rule::TF32_K4;
        "f16_k16_f16" Rule::F16_K16_F16;
        "f16_k8_f16" Rule::F16_K8_F16;
        "e4m3_k32" Rule::E4M3_K32;
        "e5m2_k32" Rule::E5M2_K32;
        "e4m3_k32_f16" Rule::E4M3_K32_F16;
        "e5m2_k32_f16" Rule::E5M2_K32_F16;
    }
}

fn recording(name: &str) -> (Rule, &'static [u8]) {
    let (_, rule, bytes) = recordings().into_iter().find(|(file, ..)| *file == name).expect("a recorded rule");
    (rule, bytes)
}

struct Recorded {
    c: u32,
    result: u32,
    a: Vec<u32>,
    b: Vec<u32>,
}

fn width(format: Format) -> usize {
    (format.sign().ilog2() as usize + 1) / 8
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn read(rule: &Rule, bytes: &[u8]) -> Vec<Recorded> {
    let width = width(rule.operand);
    let size = 8 + 2 * rule.length * width;
    assert_eq!(bytes.len() % size, 0, "the file holds whole records");
    let record = |record: &[u8]| {
        let elements: Vec<u32> = record[8..].chunks(width).map(little_endian).collect();
        let (a, b) = elements.split_at(rule.length);
        let (c, result) = (little_endian(&record[..4]), little_endian(&record[4..8]));
        Recorded { c, result, a: a.to_vec(), b: b.to_vec() }
    };
    bytes.chunks(size).map(record).collect()
}

fn decode(rule: &Rule, bits: &[u32]) -> Vec<Element> {
    bits.iter().map(|bits| rule.operand.decode(*bits)).collect()
}

fn dot(rule: &Rule, recorded: &Recorded) -> u32 {
    rule.dot(&decode(rule, &recorded.a), &decode(rule, &recorded.b), recorded.c)
}

fn tile(rule: &Rule, recorded: &Recorded) -> u32 {
    let mut c = [recorded.c];
    multiply(rule, Shape { rows: 1, columns: 1, depth: rule.length }, &recorded.a, &recorded.b, &mut c);
    c[0]
}

fn differences(rule: &Rule, bytes: &[u8], compute: fn(&Rule, &Recorded) -> u32) -> usize {
    read(rule, bytes).iter().filter(|recorded| compute(rule, recorded) != recorded.result).count()
}

#[test]
fn dot_products_equal_the_hardware() {
    let mut count = 0;
    for (name, rule, bytes) in recordings() {
        assert_eq!(differences(&rule, bytes, dot), 0, "{name}");
        count += read(&rule, bytes).len();
    }
    assert!(count >= 4_000, "only {count} records");
}

#[test]
fn tiles_equal_the_hardware() {
    for (name, rule, bytes) in recordings() {
        assert_eq!(differences(&rule, bytes, tile), 0, "{name}");
    }
}

/// Every parameter is noticed: one off, and the hardware disagrees.
#[test]
fn wrong_rules_differ_from_the_hardware() {
    for (name, rule, bytes) in recordings() {
        for change in [-1, 1] {
            let aligned = Rule { aligned_bits: rule.aligned_bits + change, ..rule };
            for compute in [dot, tile] {
                assert!(differences(&aligned, bytes, compute) > 0, "{name}: aligned bits {}", aligned.aligned_bits);
            }
        }
    }
    // For f16 accumulators no recorded case tells -20 from -21.
    for (name, floor) in [("bf16_k16", -132), ("bf16_k16", -134), ("tf32_k4", -132), ("f16_k16_f16", -22)] {
        let (rule, bytes) = recording(name);
        assert!(differences(&Rule { floor, ..rule }, bytes, dot) > 0, "{name}: floor {floor}");
    }
}

#[test]
fn tf32_ignores_the_low_bits_of_the_register() {
    let (rule, bytes) = recording("tf32_k8");
    for mut recorded in read(&rule, bytes) {
        recorded.a.iter_mut().chain(&mut recorded.b).for_each(|bits| *bits |= 0x1fff);
        assert_eq!((dot(&rule, &recorded), tile(&rule, &recorded)), (recorded.result, recorded.result));
    }
}

#[test]
fn a_zero_is_positive_and_a_nan_canonical() {
    let minus_zero = [0x8000u16; 16];
    let mut c = [0x8000_0000];
    let shape = Shape { rows: 1, columns: 1, depth: 16 };
    multiply(&Rule::F16_K16, shape, &minus_zero, &[0; 16], &mut c);
    assert_eq!(c, [0]);
    let infinity = [0x7c00u16; 16];
    multiply(&Rule::F16_K16, shape, &infinity, &[0; 16], &mut c);
    assert_eq!(c, [0x7fff_ffff]);
    let mut c = [0x8000];
    multiply(&Rule::F16_K16_F16, shape, &infinity, &[0; 16], &mut c);
    assert_eq!(c, [0x7fff]);
}

#[test]
fn a_deep_product_is_a_chain_of_blocks() {
    let (a, b): (Vec<u16>, Vec<u16>) = (0..32u16).map(|k| (0x3c00 + 37 * k, 0x4111 + 91 * k)).unzip();
    let (mut chained, mut at_once) = ([0x3f80_0000], [0x3f80_0000]);
    let half = Shape { rows: 1, columns: 1, depth: 16 };
    multiply(&Rule::F16_K16, half, &a[..16], &b[..16], &mut chained);
    multiply(&Rule::F16_K16, half, &a[16..], &b[16..], &mut chained);
    multiply(&Rule::F16_K16, Shape { depth: 32, ..half }, &a, &b, &mut at_once);
    assert_eq!(chained, at_once);
}

/// Bits that crowd where the fast path and the plain one meet: any pattern, one binade, or few exponents.
fn bits() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        any::<u32>().prop_map(|bits| bits & 0x8fff_ffff | 0x3000_0000),
        Just(0),
        0u32..0x0200_0000
    ]
}

/// Elements of one matrix: 16-bit patterns lie in the upper half of what `bits` makes.
fn narrow(rule: &Rule, bits: u32) -> u32 {
    bits >> (32 - 8 * width(rule.operand))
}

/// The same cases in every run.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(10), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn tiles_equal_dot_products(
        index in 0usize..12,
        finite in any::<bool>(),
        elements in prop::collection::vec(bits(), 2 * 11 * 64),
        accumulators in prop::collection::vec(bits(), 3 * 11),
    ) {
        let (_, rule, _) = recordings()[index];
        let shape = Shape { rows: 3, columns: 11, depth: 2 * rule.length };
        let element = |bits: &u32| {
            let bits = narrow(&rule, *bits);
            // Half of the cases stay where the fast path applies.
            if finite { bits & !(rule.operand.sign() >> 1) } else { bits }
        };
        let (a, b) = elements.split_at(11 * 64);
        let a: Vec<u32> = a.iter().map(element).take(shape.rows * shape.depth).collect();
        let b: Vec<u32> = b.iter().map(element).take(shape.columns * shape.depth).collect();
        let mut c: Vec<u32> = accumulators.iter().map(|bits| bits >> (31 - rule.accumulator.sign().ilog2())).collect();
        let expected: Vec<u32> = c.iter().enumerate().map(|(place, c)| {
            let row = &a[place / shape.columns * shape.depth..][..shape.depth];
            let column = &b[place % shape.columns * shape.depth..][..shape.depth];
            let blocks = row.chunks(rule.length).zip(column.chunks(rule.length));
            blocks.fold(*c, |c, (a, b)| rule.dot(&decode(&rule, a), &decode(&rule, b), c))
        }).collect();
        multiply(&rule, shape, &a, &b, &mut c);
        prop_assert_eq!(c, expected);
    }
}
