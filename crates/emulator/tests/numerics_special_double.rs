//! The special-function unit on f64: recorded values and a checksum of an H200's results for every high fraction, and
//! bounds where none are recorded.

mod unpacked;

use emulator::numerics::special_double::{reciprocal_root, unit_reciprocal, unit_reciprocal_root};

const RECORDED: &[u8] = include_bytes!("data/special/rcp.approx.ftz.f64.txt.gz");
/// FNV-1a over the high words that an H200 gives for 1 + i * 2^-20, i below 2^20.
const SWEEP: u64 = 0x01ea_cab1_4f00_177e;

fn checksum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0xcbf2_9ce4_8422_2325, |hash, value| (hash ^ value).wrapping_mul(0x0100_0000_01b3))
}

fn fractions(field: u64) -> impl Iterator<Item = u64> {
    (0..1 << 20).map(move |fraction| field << 52 | fraction << 32)
}

fn pair(line: &str) -> (u64, u64) {
    let number = |text| u64::from_str_radix(text, 16).expect("sixteen hexadecimal digits");
    let (a, result) = line.split_once(' ').expect("two numbers");
    (number(a), number(result))
}

#[test]
fn reciprocals_equal_the_recorded_values() {
    for (a, result) in unpacked::text(RECORDED).lines().map(pair) {
        assert_eq!(unit_reciprocal(a), result, "of {a:016x}: {:016x}", unit_reciprocal(a));
    }
    assert!(unpacked::text(RECORDED).lines().count() >= 600);
}

#[test]
fn every_high_fraction_has_the_recorded_reciprocal() {
    let found = checksum(fractions(1023).map(|a| unit_reciprocal(a) >> 32));
    assert_eq!(found, SWEEP, "{found:#018x}");
    assert!(fractions(1023).all(|a| unit_reciprocal(a) as u32 == 0));
}

/// The refined root is within two steps of the true one; the unit's, within 2^-19.
#[test]
fn roots_are_near_the_true_ones() {
    for a in fractions(1022).chain(fractions(1023)).chain(fractions(1)).chain(fractions(2046)).step_by(7) {
        let a = a | 0x89ab_cdef;
        let exact = 1.0 / f64::from_bits(a).sqrt();
        let refined = reciprocal_root(a);
        assert!(refined.abs_diff(exact.to_bits()) <= 2, "of {a:016x}: {refined:016x}");
        let unit = f64::from_bits(unit_reciprocal_root(a));
        assert!((unit / exact - 1.0).abs() < 2f64.powi(-19), "of {a:016x}: {unit:e}, {exact:e}");
    }
}

/// PTX ISA, "rsqrt.approx.ftz.f64" and "rsqrt": zero to infinity with its sign, negative to NaN, infinity to zero.
#[test]
fn roots_of_special_operands() {
    let infinity = f64::INFINITY.to_bits();
    for (a, unit, refined) in [
        (0.0, infinity, infinity),
        (-0.0, 1 << 63 | infinity, 1 << 63 | infinity),
        (f64::INFINITY, 0, 0),
        (0.25, 2f64.to_bits(), 2f64.to_bits()),
        (2f64.powi(-1074), infinity, 2f64.powi(537).to_bits()),
        (-1.0, 0x7fff_ffff_0000_0000, 0xfff8_0000_0000_0000),
        (f64::from_bits(0x7ff0_1234_0000_0001), 0x7fff_ffff_0000_0000, 0x7ff8_1234_0000_0001),
    ] {
        let a = a.to_bits();
        assert_eq!(unit_reciprocal_root(a), unit, "unit, of {a:016x}");
        assert_eq!(reciprocal_root(a), refined, "of {a:016x}");
    }
}
