//! The special-function unit against recorded values, and against checksums of whole sweeps that touch every table row.

mod unpacked;

use emulator::numerics::special::*;

type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;

/// Over 2^20 inputs spread through all of f32: a change in any table row shows.
const SWEEP: u32 = 1 << 20;

macro_rules! recorded {
    ($($function:ident $file:literal $checksum:literal;)*) => {
        [$(($file, $function as _, $checksum, unpacked::text(include_bytes!(concat!("data/special/", $file, ".txt.gz"))))),*]
    };
}

#[rustfmt::skip] // One row per line.
fn unary() -> [(&'static str, Unary, u64, &'static str); 13] {
    recorded! {
        unit_exponential     "ex2.approx.ftz.f32"   0x3f2081471c6f2548;
        exponential          "ex2.approx.f32"       0x6c3c8affd7e6ebb1;
        unit_logarithm       "lg2.approx.ftz.f32"   0xc4275ceb0bb20f1e;
        logarithm            "lg2.approx.f32"       0x099e85fb5a51fa69;
        unit_reciprocal      "rcp.approx.ftz.f32"   0xd104cba828f70a46;
        reciprocal           "rcp.approx.f32"       0x157e430d9c539c95;
        unit_reciprocal_root "rsqrt.approx.ftz.f32" 0xb898f6cadfc0b256;
        reciprocal_root      "rsqrt.approx.f32"     0x32cf19aa8bdb4045;
        unit_root            "sqrt.approx.ftz.f32"  0xe93fe58fb8785c60;
        root                 "sqrt.approx.f32"      0x26f9c2e9433c9052;
        sine                 "sin.approx.f32"       0x0f9f7f74168aab76;
        cosine               "cos.approx.f32"       0xb9d94c34fab0a792;
        hyperbolic_tangent   "tanh.approx.f32"      0xc9ffbc10b4195af7;
    }
}

#[rustfmt::skip] // One row per line.
fn binary() -> [(&'static str, Binary, u64, &'static str); 4] {
    recorded! {
        divide_full       "div.full.f32"       0x91abac379c8fe2ca;
        divide            "div.approx.f32"     0xd13ddd50561e61a8;
        divide_full_flush "div.full.ftz.f32"   0xb5cc7f6d6979b756;
        divide_flush      "div.approx.ftz.f32" 0x69cc9b48dd642d96;
    }
}

fn hexadecimal(line: &str) -> Vec<u32> {
    line.split(' ').map(|word| u32::from_str_radix(word, 16).expect("eight hexadecimal digits")).collect()
}

/// FNV-1a over words instead of bytes.
fn checksum(values: impl Iterator<Item = u32>) -> u64 {
    values.fold(0xcbf2_9ce4_8422_2325, |hash, value| (hash ^ u64::from(value)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn unary_functions_equal_the_recorded_values() {
    for (name, function, _, recorded) in unary() {
        for line in recorded.lines() {
            let [a, result] = hexadecimal(line)[..] else { panic!("{name}: two words in {line}") };
            assert_eq!(function(a), result, "{name} of {a:08x}: {:08x}", function(a));
        }
        assert!(recorded.lines().count() >= 200, "{name}");
    }
}

#[test]
fn divisions_equal_the_recorded_values() {
    for (name, function, _, recorded) in binary() {
        for line in recorded.lines() {
            let [a, b, result] = hexadecimal(line)[..] else { panic!("{name}: three words in {line}") };
            assert_eq!(function(a, b), result, "{name} of {a:08x} {b:08x}: {:08x}", function(a, b));
        }
        assert!(recorded.lines().count() >= 200, "{name}");
    }
}

#[test]
fn sweeps_have_the_recorded_checksums() {
    for (name, function, expected, _) in unary() {
        let found = checksum((0..SWEEP).map(|step| function(step.wrapping_mul(4093))));
        assert_eq!(found, expected, "{name}: {found:#018x}");
    }
    for (name, function, expected, _) in binary() {
        let pair = |step: u32| function(step.wrapping_mul(4093), step.wrapping_mul(2_654_435_761));
        let found = checksum((0..SWEEP).map(pair));
        assert_eq!(found, expected, "{name}: {found:#018x}");
    }
}

/// The sweeps would notice: each bit of the result matters to the checksum.
#[test]
fn a_single_wrong_bit_changes_the_checksum() {
    for (name, function, expected, _) in unary() {
        let wrong = |step: u32| function(step.wrapping_mul(4093)) ^ u32::from(step == SWEEP / 2);
        assert_ne!(checksum((0..SWEEP).map(wrong)), expected, "{name}");
    }
}
