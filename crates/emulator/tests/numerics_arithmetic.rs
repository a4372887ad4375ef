//! Arithmetic and conversions against IEEE 754 as the host and `half` compute it, and the hardware's own rules.

use emulator::numerics::arithmetic::*;
use emulator::numerics::convert::*;
use emulator::numerics::format::Rounding;
use emulator::numerics::half as half_arithmetic;
use half::{bf16, f16};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const NAN: u32 = 0x7fff_ffff;
const HALF: half_arithmetic::Mode = half_arithmetic::Mode::F16;
const ZERO: Mode = Mode { rounding: Rounding::Zero, flush: false };
const DOWN: Mode = Mode { rounding: Rounding::Down, flush: false };
const UP: Mode = Mode { rounding: Rounding::Up, flush: false };

/// Asks the bits: optimised code has answered `is_nan` of the root of a signalling NaN with no.
fn canonical(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits & 0x7fff_ffff > 0x7f80_0000 { NAN } else { bits }
}

fn to_s32(bits: u32, rounding: Rounding) -> i128 {
    to_integer(f64::from(float(bits)), rounding, Integers { bits: 32, signed: true }, false)
}

fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// Any pattern, numbers near one, near the smallest normal number and near overflow, and the specials.
fn number() -> impl Strategy<Value = u32> {
    let special = [0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000, 0x7f80_0001];
    let signed = |exponents: std::ops::Range<u32>| {
        (exponents, 0u32..1 << 23, any::<bool>())
            .prop_map(|(field, fraction, sign)| field << 23 | fraction | u32::from(sign) << 31)
    };
    prop_oneof![
        any::<u32>(),
        signed(120..134),
        signed(0..4),
        signed(60..68),
        signed(250..255),
        (prop::sample::select(special.to_vec()), any::<bool>()).prop_map(|(bits, sign)| bits | u32::from(sign) << 31),
    ]
    .boxed()
}

/// The same cases in every run.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(10), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn nearest_is_the_hosts_arithmetic(a in number(), b in number(), c in number()) {
        prop_assert_eq!(add(a, b, Mode::NEAREST), canonical(float(a) + float(b)));
        prop_assert_eq!(subtract(a, b, Mode::NEAREST), canonical(float(a) - float(b)));
        prop_assert_eq!(multiply(a, b, Mode::NEAREST), canonical(float(a) * float(b)));
        prop_assert_eq!(fused_multiply_add(a, b, c, Mode::NEAREST), canonical(float(a).mul_add(float(b), float(c))));
        prop_assert_eq!(divide(a, b, Mode::NEAREST), canonical(float(a) / float(b)));
        prop_assert_eq!(square_root(a, Mode::NEAREST), canonical(float(a).sqrt()));
        prop_assert_eq!(reciprocal(a, Mode::NEAREST), canonical(1.0 / float(a)));
    }

    /// The exact product lies between the two directed roundings, which are neighbours unless it is one of them.
    #[test]
    fn directed_roundings_enclose_the_product(a in number(), b in number()) {
        let exact = f64::from(float(a)) * f64::from(float(b));
        if !exact.is_finite() {
            return Ok(());
        }
        let (down, up) = (float(multiply(a, b, DOWN)), float(multiply(a, b, UP)));
        prop_assert!(f64::from(down) <= exact && exact <= f64::from(up), "{down:e} {exact:e} {up:e}");
        prop_assert!(down == up || down.next_up() == up);
        prop_assert_eq!(down == up, f64::from(down) == exact);
        let toward_zero = if exact < 0.0 { up } else { down };
        prop_assert_eq!(float(multiply(a, b, ZERO)), toward_zero);
    }

    /// `a + b` with `b` far below the last bit of `a` shows only in the direction.
    #[test]
    fn directed_roundings_see_the_smallest_addend(a in 0x3f80_0001u32..0x7f00_0000, negative in any::<bool>()) {
        let tiny = 1 | u32::from(negative) << 31;
        let below = if negative { a - 1 } else { a };
        prop_assert_eq!(add(a, tiny, DOWN), below);
        prop_assert_eq!(add(a, tiny, ZERO), below);
        prop_assert_eq!(add(a, tiny, UP), below + 1);
        prop_assert_eq!(fused_multiply_add(a, 0x3f80_0000, tiny, UP), below + 1);
    }

    /// `.ftz` differs from flushing the IEEE result only where IEEE rounds up to the smallest normal number.
    #[test]
    fn flushing_is_tiny_after_rounding(a in number(), b in number()) {
        let exact = f64::from(float(flush(a))) * f64::from(float(flush(b)));
        let threshold = 2f64.powi(-126) - 2f64.powi(-151);
        let ieee = multiply(flush(a), flush(b), Mode::NEAREST);
        let expected = if exact.abs() < threshold { ieee & 0x8000_0000 } else { ieee };
        prop_assert_eq!(multiply(a, b, Mode::NEAREST_FLUSH), expected);
    }

    #[test]
    fn halves_round_as_ieee(a in number()) {
        let value = float(a);
        if value.is_nan() {
            return Ok(());
        }
        prop_assert_eq!(f32_to_f16(a, Rounding::Nearest), f16::from_f32(value).to_bits());
        prop_assert_eq!(f32_to_bf16(a, Rounding::Nearest), bf16::from_f32(value).to_bits());
        prop_assert_eq!(f32_to_bf16(a, Rounding::Zero), (a >> 16) as u16);
        let truncated = f16::from_bits(f32_to_f16(a, Rounding::Zero)).to_f32();
        if value.is_finite() {
            let beyond = f16::from_bits(f32_to_f16(a, Rounding::Zero) + 1).to_f32();
            prop_assert!(truncated.abs() <= value.abs() && value.abs() < beyond.abs(), "{truncated} {value}");
        }
    }

    /// f16 sums and products are exact in f64 but for a sum of distant numbers; f32 holds the product of two exactly.
    #[test]
    fn half_arithmetic_rounds_once(a in any::<u16>(), b in any::<u16>()) {
        let (x, y) = (f16::from_bits(a).to_f32(), f16::from_bits(b).to_f32());
        prop_assert_eq!(half_arithmetic::multiply(a, b, HALF), f32_to_f16(canonical(x * y), Rounding::Nearest));
        prop_assert_eq!(half_arithmetic::fused_multiply_add(a, b, 0x8000, HALF), half_arithmetic::multiply(a, b, HALF));
        prop_assert_eq!(half_arithmetic::fused_multiply_add(a, 0x3c00, b, HALF), half_arithmetic::add(a, b, HALF));
        prop_assert_eq!(half_arithmetic::add(a, b, HALF), f32_to_f16(canonical(x + y), Rounding::Nearest));
    }
}

#[test]
fn every_half_widens_exactly() {
    for bits in 0..=u16::MAX {
        let value = f16::from_bits(bits);
        assert_eq!(f16_to_f32(bits), canonical(value.to_f32()), "{bits:04x}");
        if !value.is_nan() {
            assert_eq!(f32_to_f16(f16_to_f32(bits), Rounding::Nearest), bits);
            assert_eq!(f32_to_f16(f16_to_f32(bits), Rounding::Zero), bits);
        }
    }
}

#[test]
fn conversions_of_specials() {
    for rounding in [Rounding::Nearest, Rounding::Zero] {
        assert_eq!((f32_to_f16(0xffc0_0001, rounding), f32_to_bf16(0xffc0_0001, rounding)), (0x7fff, 0x7fff));
        assert_eq!((f32_to_f16(0xff80_0000, rounding), f32_to_bf16(0xff80_0000, rounding)), (0xfc00, 0xff80));
        assert_eq!(to_s32(NAN, rounding), 0);
    }
    assert_eq!(f32_to_f16(0x7f7f_ffff, Rounding::Nearest), 0x7c00);
    assert_eq!(f32_to_f16(0x7f7f_ffff, Rounding::Zero), 0x7bff, "overflow toward zero is the largest finite number");
    assert_eq!(bf16_to_f32(0x7f81), 0x7f81_0000, "bf16 keeps the payload of a NaN");
    assert_eq!(f32_to_f16x2(0x3f80_0000, 0x4000_0000, Rounding::Nearest), 0x3c00_4000, "the first source is high");
    assert_eq!(f32_to_bf16x2(0x3f80_0000, 0x4000_0000, Rounding::Nearest), 0x3f80_4000);
    let halves = [0.5f32, 1.5, 2.5, -0.5, -2.5].map(|value| to_s32(value.to_bits(), Rounding::Nearest));
    assert_eq!(halves, [0, 2, 2, 0, -2]);
    assert_eq!(integer_to_odd(i128::from(u64::MAX)), 2f64.powi(64).next_down());
}

#[test]
fn flushing_just_below_the_smallest_normal_number() {
    // (1 - 2^-24) * 2^-126: 24 bits hold it, so it is tiny, although IEEE rounds it up to 2^-126.
    let (almost_one, smallest) = (0x3f7f_ffff, 0x0080_0000);
    assert_eq!(multiply(almost_one, smallest, Mode::NEAREST), smallest);
    assert_eq!(multiply(almost_one, smallest, Mode::NEAREST_FLUSH), 0);
    assert_eq!(multiply(almost_one | 0x8000_0000, smallest, Mode::NEAREST_FLUSH), 0x8000_0000);
    // (1 - 2^-23)(1 + 2^-23) * 2^-126 is nearer to 2^-126 than to any other number of 24 bits.
    assert_eq!(multiply(0x3f7f_fffe, smallest + 1, Mode::NEAREST_FLUSH), smallest);
    assert_eq!(fused_multiply_add(0x3f7f_fffe, smallest + 1, 0, Mode::NEAREST_FLUSH), smallest);
    assert_eq!(add(smallest, 0x8000_0001, Mode::NEAREST_FLUSH), smallest, "a subnormal operand is zero");
    assert_eq!(add(smallest + 1, smallest | 0x8000_0000, Mode::NEAREST_FLUSH), 0, "a subnormal result is zero");
}

#[test]
fn the_sign_of_a_zero_sum() {
    let (one, minus_one) = (0x3f80_0000, 0xbf80_0000);
    assert_eq!((add(one, minus_one, Mode::NEAREST), add(one, minus_one, DOWN)), (0, 0x8000_0000));
    assert_eq!((add(0, 0, DOWN), add(0x8000_0000, 0x8000_0000, UP)), (0, 0x8000_0000));
}

#[test]
fn minimum_and_maximum() {
    let (minus_zero, one, nan) = (0x8000_0000, 0x3f80_0000, 0xffc0_0123);
    assert_eq!(
        (minimum(0, minus_zero, NanOperand::Ignored), maximum(minus_zero, 0, NanOperand::Ignored)),
        (minus_zero, 0)
    );
    assert_eq!((minimum(nan, one, NanOperand::Ignored), maximum(one, nan, NanOperand::Ignored)), (one, one));
    assert_eq!((minimum(nan, one, NanOperand::Kept), maximum(one, nan, NanOperand::Kept)), (NAN, NAN));
    assert_eq!(maximum(nan, nan, NanOperand::Ignored), NAN);
    let ordered = [0xff80_0000, 0xc000_0000, 0x8000_0001, minus_zero, 0, 1, one, 0x7f80_0000];
    for pair in ordered.windows(2) {
        assert_eq!(minimum(pair[1], pair[0], NanOperand::Ignored), pair[0]);
        assert_eq!(maximum(pair[0], pair[1], NanOperand::Kept), pair[1]);
    }
}

#[test]
fn sign_and_saturation() {
    assert_eq!((negate(0xffc0_0123), absolute(0xffc0_0123)), (NAN, NAN));
    assert_eq!((negate(0), absolute(0x8000_0000), negate(0x7f80_0000)), (0x8000_0000, 0, 0xff80_0000));
    let saturated = [NAN, 0x8000_0000, 0xbf80_0000, 0x3f00_0000, 0x4000_0000].map(saturate);
    assert_eq!(saturated, [0, 0, 0, 0x3f00_0000, 0x3f80_0000]);
}

#[test]
fn halves_of_a_register_are_apart() {
    let sum = half_arithmetic::on_halves([0x3c00_7c01, 0x4000_3c00], |[a, b]| half_arithmetic::add(a, b, HALF));
    assert_eq!(sum, 0x4200_7fff, "1 + 2 above, NaN below");
}
