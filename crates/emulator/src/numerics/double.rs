//! f64: a fused multiply-add in every rounding, which hosts have for one of them only.

use super::format::Rounding;

/// What an invalid operation gives.
const NAN: u64 = 0xfff8_0000_0000_0000;
const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff << 52;
const FRACTION_BITS: i32 = 52;
const SMALLEST_EXPONENT: i32 = -1022;
/// Where the leading bit of a term stands before terms are added: two of them fit 127 bits.
const LEADING: u32 = 125;

/// `a * b + c`, rounded once.
pub fn fused_multiply_add(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    let nearest = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
    if nearest.is_nan() {
        return NAN;
    }
    let finite = [a, b, c].iter().all(|bits| bits & INFINITY != INFINITY);
    if rounding == Rounding::Nearest || !finite {
        return nearest.to_bits();
    }
    let (product, addend) = (Term::of(a).times(Term::of(b)), Term::of(c));
    round(product.normal().plus(addend.normal(), rounding), rounding)
}

/// `± magnitude * 2^exponent`
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    magnitude: u128,
    exponent: i32,
}

impl Term {
    fn of(bits: u64) -> Term {
        let field = (bits >> FRACTION_BITS & 0x7ff) as i32;
        let hidden = u64::from(field != 0) << FRACTION_BITS;
        let magnitude = u128::from(bits & ((1 << FRACTION_BITS) - 1) | hidden);
        Term { negative: bits & SIGN != 0, magnitude, exponent: field.max(1) - 1 + SMALLEST_EXPONENT - FRACTION_BITS }
    }

    fn times(self, other: Term) -> Term {
        Term {
            negative: self.negative != other.negative,
            magnitude: self.magnitude * other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The same value with the leading bit in its place; a zero is below everything.
    fn normal(self) -> Term {
        if self.magnitude == 0 {
            return Term { exponent: -8000, ..self };
        }
        let left = LEADING - self.magnitude.ilog2();
        Term { magnitude: self.magnitude << left, exponent: self.exponent - left as i32, ..self }
    }

    /// The sum; bits below its last place leave a one there. Both terms are normal, so cancellation that would bring
    /// that place into the result only occurs where nothing was cut.
    fn plus(self, other: Term, rounding: Rounding) -> Term {
        let exponent = self.exponent.max(other.exponent);
        let [a, b] = [self, other].map(|term| {
            let right = (exponent - term.exponent).min(127) as u32;
            let cut = term.magnitude & ((1 << right) - 1) != 0;
            let magnitude = (term.magnitude >> right | u128::from(cut)) as i128;
            if term.negative { -magnitude } else { magnitude }
        });
        // An exact zero of unlike signs is positive, but when rounding down.
        let negative_zero = if self.negative == other.negative { self.negative } else { rounding == Rounding::Down };
        let sum = a + b;
        Term { negative: if sum == 0 { negative_zero } else { sum < 0 }, magnitude: sum.unsigned_abs(), exponent }
    }
}

fn round(term: Term, rounding: Rounding) -> u64 {
    let sign = if term.negative { SIGN } else { 0 };
    if term.magnitude == 0 {
        return sign;
    }
    let leading = term.magnitude.ilog2() as i32 + term.exponent;
    let kept = leading.max(SMALLEST_EXPONENT);
    // Leading bits stand at 124 or above unless nothing was cut, and then a shift to the left is exact.
    let shift = kept - FRACTION_BITS - term.exponent;
    let (quotient, exact) = match shift {
        ..=0 => (term.magnitude << -shift, true),
        1..=127 => (term.magnitude >> shift, term.magnitude & ((1 << shift) - 1) == 0),
        _ => (0, false),
    };
    let outward = match rounding {
        Rounding::Down => term.negative,
        Rounding::Up => !term.negative,
        Rounding::Zero | Rounding::Nearest => false,
    };
    let steps = ((kept - SMALLEST_EXPONENT) as u64) << FRACTION_BITS;
    let magnitude = steps + quotient as u64 + u64::from(outward && !exact);
    sign | magnitude.min(if outward { INFINITY } else { INFINITY - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(a: f64, b: f64, c: f64) -> [f64; 3] {
        let bits = [a, b, c].map(f64::to_bits);
        [Rounding::Zero, Rounding::Down, Rounding::Up]
            .map(|rounding| f64::from_bits(fused_multiply_add(bits[0], bits[1], bits[2], rounding)))
    }

    #[test]
    fn directed_rounding_brackets_the_exact_value() {
        let (one, next, before) = (1.0f64, 1.0f64.next_up(), 1.0f64.next_down());
        assert_eq!(rounded(one, one, 1e-300), [one, one, next]);
        assert_eq!(rounded(one, one, -1e-300), [before, before, one]);
        assert_eq!(rounded(-1.0, one, 1e-300), [-before, -one, -before]);
        assert_eq!(rounded(3.0, 5.0, -15.0).map(f64::to_bits), [0.0, -0.0, 0.0].map(f64::to_bits));
        assert_eq!(rounded(1e200, 1e200, 1.0), [f64::MAX, f64::MAX, f64::INFINITY]);
        let tiny = f64::from_bits(1);
        assert_eq!(rounded(1e-200, 1e-200, 0.0), [0.0, 0.0, tiny]);
        assert_eq!(rounded(0.5, tiny, tiny), [tiny, tiny, f64::from_bits(2)]);
        // (1+e)² - (1+e) = e + e², which is exact.
        assert_eq!(rounded(next, next, -next), [(next - one).next_up(); 3]);
    }
}
