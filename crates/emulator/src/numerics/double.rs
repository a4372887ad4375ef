//! f64 arithmetic in every rounding, on integers: the host rounds to nearest alone.
//!
//! A NaN operand comes back quiet; which of several does is the operation's choice, as measured on an H200. An operation
//! without a result gives the negative quiet NaN.

use super::format::Rounding;

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
const QUIET: u64 = 1 << 51;
/// What an invalid operation gives.
pub const NAN_64: u64 = 0xfff8_0000_0000_0000;

/// Where the top bit of an exact significand stands: a sum of two still fits.
const TOP: i32 = 125;
/// The exponent of zero: less than any other, and sums of it do not overflow.
const BELOW_ALL: i32 = -1_000_000;

/// A finite number: `significand * 2^(exponent - TOP)`, the significand zero or in [2^TOP, 2^(TOP + 1)). What did not
/// fit has set the lowest bit, so that no later rounding, to far fewer bits, can take the value for an exact one.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Exact {
    /// `significand * 2^lowest`.
    fn new(negative: bool, significand: u128, lowest: i32) -> Exact {
        if significand == 0 {
            return Exact { negative, significand, exponent: BELOW_ALL };
        }
        let shift = significand.leading_zeros() as i32 - (127 - TOP);
        let exponent = lowest - shift + TOP;
        let significand =
            if shift < 0 { shifted(significand, shift.unsigned_abs()) } else { significand << shift.unsigned_abs() };
        Exact { negative, significand, exponent }
    }

    pub fn integer(value: i128) -> Exact {
        Exact::new(value < 0, value.unsigned_abs(), 0)
    }

    fn of(bits: u64) -> Exact {
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & (QUIET * 2 - 1));
        let hidden = u64::from(field != 0) << 52;
        Exact::new(bits & SIGN != 0, u128::from(fraction | hidden), field.max(1) - 1023 - 52)
    }

    /// The 53 bits of a number that came from `of`, and the exponent of the lowest.
    fn parts(self) -> (u128, i32) {
        (self.significand >> (TOP - 52), self.exponent - 52)
    }

    /// The sign of an exact zero is the rounding's.
    fn add(self, other: Exact, rounding: Rounding) -> Exact {
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        if large.significand == 0 {
            let negative = if self.negative == other.negative { self.negative } else { rounding == Rounding::Down };
            return Exact { negative, ..large };
        }
        let aligned = shifted(small.significand, (large.exponent - small.exponent).min(127) as u32);
        let lowest = large.exponent - TOP;
        if large.negative == small.negative {
            return Exact::new(large.negative, large.significand + aligned, lowest);
        }
        match large.significand.checked_sub(aligned) {
            Some(0) => Exact::new(rounding == Rounding::Down, 0, lowest),
            Some(rest) => Exact::new(large.negative, rest, lowest),
            None => Exact::new(small.negative, aligned - large.significand, lowest),
        }
    }

    fn multiply(self, other: Exact) -> Exact {
        let ((a, low), (b, other_low)) = (self.parts(), other.parts());
        Exact::new(self.negative != other.negative, a * b, low + other_low)
    }

    fn divide(self, other: Exact) -> Exact {
        const ROOM: i32 = 74;
        let ((a, low), (b, other_low)) = (self.parts(), other.parts());
        let (quotient, remainder) = ((a << ROOM) / b, (a << ROOM) % b);
        let negative = self.negative != other.negative;
        Exact::new(negative, quotient | u128::from(remainder != 0), low - other_low - ROOM)
    }

    fn square_root(self) -> Exact {
        let (a, low) = self.parts();
        let room = 72 + (low & 1); // The exponent must be even.
        let root = (a << room).isqrt();
        Exact::new(self.negative, root | u128::from(root * root != a << room), (low - room) / 2)
    }

    /// Rounds into an IEEE format of 64 bits.
    pub fn round(self, rounding: Rounding) -> u64 {
        const FRACTION_BITS: i32 = 52;
        const SMALLEST_EXPONENT: i32 = -1022;
        let sign = if self.negative { SIGN } else { 0 };
        if self.significand == 0 {
            return sign;
        }
        let kept = self.exponent.max(SMALLEST_EXPONENT);
        let shift = (TOP - FRACTION_BITS + kept - self.exponent).min(127) as u32;
        let (quotient, remainder) = (self.significand >> shift, self.significand & ((1 << shift) - 1));
        let half = 1 << (shift - 1);
        let outward = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => self.negative,
            Rounding::Up => !self.negative,
        };
        let away = match rounding {
            Rounding::Nearest => remainder > half || remainder == half && quotient & 1 == 1,
            _ => outward && remainder != 0,
        };
        let steps = ((kept - SMALLEST_EXPONENT) as u64) << FRACTION_BITS;
        let magnitude = steps + quotient as u64 + u64::from(away);
        sign | magnitude.min(if outward { INFINITY } else { INFINITY - 1 })
    }
}

/// Moves to the right; bits that fall out set the lowest.
fn shifted(value: u128, by: u32) -> u128 {
    if by == 0 { value } else { value >> by | u128::from(value << (128 - by) != 0) }
}

fn is_nan(bits: u64) -> bool {
    bits & !SIGN > INFINITY
}

fn is_infinite(bits: u64) -> bool {
    bits & !SIGN == INFINITY
}

fn is_zero(bits: u64) -> bool {
    bits & !SIGN == 0
}

/// The NaN that sums and products give: the first signalling one, or else the first, quiet.
fn first_nan(operands: &[u64]) -> Option<u64> {
    let mut nans = operands.iter().filter(|bits| is_nan(**bits));
    let first = nans.clone().next()?;
    Some(nans.find(|bits| **bits & QUIET == 0).unwrap_or(first) | QUIET)
}

/// The NaN that `fma` and `div` give: the first, signalling or not, quiet.
fn foremost_nan(operands: &[u64]) -> Option<u64> {
    operands.iter().find(|bits| is_nan(**bits)).map(|bits| bits | QUIET)
}

/// `add{.rnd}.f64`
pub fn add(a: u64, b: u64, rounding: Rounding) -> u64 {
    if let Some(nan) = first_nan(&[a, b]) {
        return nan;
    }
    match (is_infinite(a), is_infinite(b)) {
        (true, true) if a != b => NAN_64,
        (true, _) => a,
        (_, true) => b,
        _ => Exact::of(a).add(Exact::of(b), rounding).round(rounding),
    }
}

/// `sub{.rnd}.f64`
pub fn subtract(a: u64, b: u64, rounding: Rounding) -> u64 {
    add(a, if is_nan(b) { b } else { b ^ SIGN }, rounding)
}

/// `mul{.rnd}.f64`
pub fn multiply(a: u64, b: u64, rounding: Rounding) -> u64 {
    if let Some(nan) = first_nan(&[a, b]) {
        return nan;
    }
    match is_infinite(a) || is_infinite(b) {
        true if is_zero(a) || is_zero(b) => NAN_64,
        true => (a ^ b) & SIGN | INFINITY,
        false => Exact::of(a).multiply(Exact::of(b)).round(rounding),
    }
}

/// `fma.rnd.f64`: `a * b + c`, rounded once.
pub fn fused_multiply_add(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    if let Some(nan) = foremost_nan(&[a, b, c]) {
        return nan;
    }
    if is_infinite(a) || is_infinite(b) {
        let product = multiply(a, b, rounding);
        return if product == NAN_64 { product } else { add(product, c, rounding) };
    }
    if is_infinite(c) {
        return c;
    }
    Exact::of(a).multiply(Exact::of(b)).add(Exact::of(c), rounding).round(rounding)
}

/// `div.rnd.f64`
pub fn divide(a: u64, b: u64, rounding: Rounding) -> u64 {
    if let Some(nan) = foremost_nan(&[a, b]) {
        return nan;
    }
    let sign = (a ^ b) & SIGN;
    match (is_infinite(a) || is_zero(b), is_infinite(b) || is_zero(a)) {
        (true, true) => NAN_64,
        (true, false) => sign | INFINITY,
        (false, true) => sign,
        (false, false) => Exact::of(a).divide(Exact::of(b)).round(rounding),
    }
}

/// `rcp.rnd.f64`
pub fn reciprocal(a: u64, rounding: Rounding) -> u64 {
    divide(1f64.to_bits(), a, rounding)
}

/// `sqrt.rnd.f64`
pub fn square_root(a: u64, rounding: Rounding) -> u64 {
    match a {
        _ if is_nan(a) => a | QUIET,
        _ if is_zero(a) || a == INFINITY => a,
        _ if a & SIGN != 0 => NAN_64,
        _ => Exact::of(a).square_root().round(rounding),
    }
}

/// `neg.f64`
pub fn negate(a: u64) -> u64 {
    first_nan(&[a]).unwrap_or(a ^ SIGN)
}

/// `abs.f64`; a NaN keeps its sign.
pub fn absolute(a: u64) -> u64 {
    first_nan(&[a]).unwrap_or(a & !SIGN)
}

/// `min.f64`: one NaN gives the other operand, two give the second; -0 is less than +0.
pub fn minimum(a: u64, b: u64) -> u64 {
    select(a, b, u64::min)
}

/// `max.f64`, likewise.
pub fn maximum(a: u64, b: u64) -> u64 {
    select(a, b, u64::max)
}

fn select(a: u64, b: u64, choose: fn(u64, u64) -> u64) -> u64 {
    // Ordered as unsigned integers once negative numbers are inverted and the sign bit is turned.
    let key = |bits: u64| if bits & SIGN != 0 { !bits } else { bits | SIGN };
    let value = |key: u64| if key & SIGN != 0 { key ^ SIGN } else { !key };
    match (is_nan(a), is_nan(b)) {
        (false, false) => value(choose(key(a), key(b))),
        (true, true) => b | QUIET,
        (true, false) => b,
        (false, true) => a,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [f64; 12] =
        [0.0, -0.0, 1.0, -1.5, 0.1, 3.0, 1e300, -1e300, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.0 + f64::EPSILON];

    /// The host agrees where it can: to nearest.
    #[test]
    fn nearest_is_what_the_host_computes() {
        for a in VALUES {
            assert_eq!(square_root(a.abs().to_bits(), Rounding::Nearest), a.abs().sqrt().to_bits(), "root of {a:e}");
            for b in VALUES {
                let [x, y] = [a, b].map(f64::to_bits);
                assert_eq!(add(x, y, Rounding::Nearest), (a + b).to_bits(), "{a:e} + {b:e}");
                assert_eq!(multiply(x, y, Rounding::Nearest), (a * b).to_bits(), "{a:e} * {b:e}");
                if b != 0.0 {
                    assert_eq!(divide(x, y, Rounding::Nearest), (a / b).to_bits(), "{a:e} / {b:e}");
                }
                for c in VALUES {
                    let fused = fused_multiply_add(x, y, c.to_bits(), Rounding::Nearest);
                    assert_eq!(fused, a.mul_add(b, c).to_bits(), "{a:e} * {b:e} + {c:e}");
                }
            }
        }
    }

    #[test]
    fn directed_roundings_enclose() {
        let third = |rounding| divide(1f64.to_bits(), 3f64.to_bits(), rounding);
        assert_eq!(third(Rounding::Up), third(Rounding::Down) + 1);
        assert_eq!(third(Rounding::Zero), third(Rounding::Down));
        let overflow = |rounding| add(f64::MAX.to_bits(), f64::MAX.to_bits(), rounding);
        assert_eq!(overflow(Rounding::Down), f64::MAX.to_bits());
        assert_eq!(overflow(Rounding::Up), INFINITY);
        assert_eq!(add(1f64.to_bits(), (-1f64).to_bits(), Rounding::Down), SIGN);
    }
}
