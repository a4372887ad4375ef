//! The numbers: integers modulo 2^16, infinities and NaN.

use std::cmp::Ordering;
use std::sync::LazyLock;

/// What stands for a float.
///
/// ```
/// use emulator::algebra::Payload;
///
/// let [a, b] = [Payload::of(0.3), Payload::of(-1.7)];
/// assert_eq!(a.plus(b).power_of_two(), a.power_of_two().times(b.power_of_two()));
/// assert_eq!(Payload::of(2.0).times(a), a.plus(a));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// An integer of which the lowest `bits` are known, 16 of most; the others are zero. Logarithms know fewer.
    Number {
        residue: u16,
        bits: u32,
    },
    Infinite {
        negative: bool,
    },
    NotANumber,
}

use Payload::{Infinite, NotANumber, Number};

/// Bits of a number, as many as an f16 has.
pub const BITS: u32 = 16;

/// Floats from here on stand for infinities: masks are written as -1e6 or -1e30, and thresholds against overflow as 2^13.
const LARGE: f64 = 4096.0;

/// The powers of 5 are the odd numbers that are 1 modulo 4, each once: `ORDER` of them.
const BASE: u16 = 5;
const ORDER: usize = 1 << (BITS - 2);

/// `5^x` by `x`, and `x` by `5^x / 4`.
static POWERS: LazyLock<(Vec<u16>, Vec<u16>)> = LazyLock::new(|| {
    let powers: Vec<u16> =
        std::iter::successors(Some(1u16), |power| Some(power.wrapping_mul(BASE))).take(ORDER).collect();
    let mut logarithms = vec![0; ORDER];
    for (exponent, power) in powers.iter().enumerate() {
        logarithms[usize::from(power >> 2)] = exponent as u16;
    }
    (powers, logarithms)
});

impl Default for Payload {
    fn default() -> Payload {
        Payload::integer(0)
    }
}

impl Payload {
    pub const MINUS_INFINITY: Payload = Infinite { negative: true };

    /// Modulo 2^16.
    pub fn integer(value: i64) -> Payload {
        Number { residue: value as u16, bits: BITS }
    }

    /// What stands for a float. Integers stand for themselves, so that `x + x` is `2 * x`; everything else is 1 or 3 with
    /// its sign. So small that scores of attention stay far from 2^15: the order of scores and of their differences is
    /// that of integers.
    pub fn of(value: f64) -> Payload {
        if value.is_nan() {
            return NotANumber;
        }
        if value.abs() >= LARGE {
            return Infinite { negative: value < 0.0 };
        }
        if value == value.trunc() {
            return Payload::integer(value as i64);
        }
        let magnitude = i64::from(1 + 2 * u8::from(mixed(value.abs().to_bits()) >> 63 == 1));
        Payload::integer(if value < 0.0 { -magnitude } else { magnitude })
    }

    fn number(residue: u16, bits: u32) -> Payload {
        let known = u16::MAX.checked_shr(BITS - bits).unwrap_or(0);
        Number { residue: residue & known, bits }
    }

    /// The integer nearest to zero.
    fn signed(residue: u16, bits: u32) -> i32 {
        let unknown = 32 - bits;
        if bits == 0 { 0 } else { ((u32::from(residue) << unknown) as i32) >> unknown }
    }

    /// The integer, if it is one.
    pub fn to_integer(self) -> Option<i64> {
        match self {
            Number { residue, bits } => Some(Payload::signed(residue, bits).into()),
            _ => None,
        }
    }

    pub fn plus(self, other: Payload) -> Payload {
        match (self, other) {
            (Number { residue: a, bits: known }, Number { residue: b, bits }) => {
                Payload::number(a.wrapping_add(b), known.min(bits))
            }
            (NotANumber, _) | (_, NotANumber) => NotANumber,
            (Infinite { negative: a }, Infinite { negative: b }) if a != b => NotANumber,
            (infinite @ Infinite { .. }, _) | (_, infinite) => infinite,
        }
    }

    pub fn negated(self) -> Payload {
        match self {
            Number { residue, bits } => Payload::number(residue.wrapping_neg(), bits),
            Infinite { negative } => Infinite { negative: !negative },
            NotANumber => NotANumber,
        }
    }

    pub fn minus(self, other: Payload) -> Payload {
        self.plus(other.negated())
    }

    pub fn times(self, other: Payload) -> Payload {
        match (self, other) {
            (Number { residue: a, bits: known }, Number { residue: b, bits }) => {
                Payload::number(a.wrapping_mul(b), known.min(bits))
            }
            (a, b) => match (a.sign(), b.sign()) {
                (Some(a), Some(b)) if a != Ordering::Equal && b != Ordering::Equal => Infinite { negative: a != b },
                _ => NotANumber,
            },
        }
    }

    /// Against zero.
    fn sign(self) -> Option<Ordering> {
        self.order(Payload::integer(0))
    }

    pub fn is_negative(self) -> bool {
        self.sign() == Some(Ordering::Less)
    }

    /// `2^self`, which is `5^self`: `2^(a + b)` is `2^a * 2^b`, and `2^-∞` is zero.
    pub fn power_of_two(self) -> Payload {
        match self {
            Number { residue, bits } => Payload::number(POWERS.0[usize::from(residue) % ORDER], (bits + 2).min(BITS)),
            Infinite { negative: true } => Payload::integer(0),
            other => other,
        }
    }

    /// `log2(2^a * b)` is `a + log2(b)`. Powers repeat after 2^14, so that the logarithm of an odd number has 14 bits; that
    /// of `2^k` times an odd number has `k` fewer, because the product has forgotten as many bits of the odd number.
    pub fn logarithm(self) -> Payload {
        match self {
            Number { residue: 0, .. } => Payload::MINUS_INFINITY,
            Number { residue, bits } => {
                let zeros = residue.trailing_zeros();
                let (odd, bits) = (residue >> zeros, (bits - zeros).saturating_sub(2));
                // Minus a power is a number of its own kind, and so is every power of two: a constant each.
                let negative = odd % 4 == 3;
                let power = if negative { odd.wrapping_neg() } else { odd };
                let kind = 2 * zeros as u16 + u16::from(negative);
                Payload::number(POWERS.1[usize::from(power >> 2)].wrapping_add(mixed(kind.into()) as u16), bits)
            }
            Infinite { negative: true } => NotANumber,
            other => other,
        }
    }

    /// `1 / (u * v)` is `1/u * 1/v` for every odd `u`. An even number has no inverse: that of `2^k * v` is `2^k / v`, of
    /// which all bits are known, and that of zero is zero.
    pub fn reciprocal(self) -> Payload {
        match self {
            Number { residue: 0, bits } => Payload::number(0, bits),
            Number { residue, bits } => {
                let zeros = residue.trailing_zeros();
                Payload::number(inverse(residue >> zeros) << zeros, bits)
            }
            Infinite { .. } => Payload::integer(0),
            NotANumber => NotANumber,
        }
    }

    pub fn over(self, other: Payload) -> Payload {
        self.times(other.reciprocal())
    }

    /// A function of which nothing is known: equal operands give equal results.
    pub fn hashed(self, function: u64) -> Payload {
        match self {
            Number { residue, bits } => {
                let result = mixed(mixed(function) ^ u64::from(residue) ^ u64::from(bits) << BITS);
                Number { residue: (result >> 48) as u16, bits: BITS }
            }
            _ => NotANumber,
        }
    }

    /// That of the integers nearest to zero; infinities are at its ends, and NaN is nowhere.
    pub fn order(self, other: Payload) -> Option<Ordering> {
        let place = |payload| match payload {
            Number { residue, bits } => Some(Payload::signed(residue, bits)),
            Infinite { negative } => Some(if negative { i32::MIN } else { i32::MAX }),
            NotANumber => None,
        };
        Some(place(self)?.cmp(&place(other)?))
    }

    /// A NaN is passed over, unless `keep`.
    pub fn maximum(self, other: Payload, keep: bool) -> Payload {
        self.chosen(other, Ordering::Less, keep)
    }

    pub fn minimum(self, other: Payload, keep: bool) -> Payload {
        self.chosen(other, Ordering::Greater, keep)
    }

    /// The other one, where this is so to it.
    fn chosen(self, other: Payload, so: Ordering, keep: bool) -> Payload {
        match self.order(other) {
            Some(order) if order == so => other,
            Some(_) => self,
            None if keep => NotANumber,
            None if self == NotANumber => other,
            None => self,
        }
    }

    pub fn absolute(self) -> Payload {
        if self.is_negative() { self.negated() } else { self }
    }
}

/// Of an odd number, modulo 2^16. Newton's iteration doubles the bits that are right; `3 * odd ^ 2` has five.
fn inverse(odd: u16) -> u16 {
    let start = odd.wrapping_mul(3) ^ 2;
    (0..2).fold(start, |guess, _| guess.wrapping_mul(2u16.wrapping_sub(odd.wrapping_mul(guess))))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every bit.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_number() -> impl Strategy<Value = Payload> {
        any::<i64>().prop_map(Payload::integer)
    }

    fn any_payload() -> impl Strategy<Value = Payload> {
        let infinite = any::<bool>().prop_map(|negative| Infinite { negative });
        let partial = (any::<u16>(), 0u32..=16).prop_map(|(residue, bits)| Payload::number(residue, bits));
        prop_oneof![6 => any_number(), 2 => partial, 1 => infinite, 1 => Just(NotANumber)]
    }

    /// So far from 2^15 that sums of two do not wrap.
    fn small() -> impl Strategy<Value = Payload> {
        (-8000i64..8000).prop_map(Payload::integer)
    }

    proptest! {
        #[test]
        fn sums_and_products_obey_the_laws_of_a_ring(a in any_number(), b in any_number(), c in any_number()) {
            prop_assert_eq!(a.plus(b), b.plus(a));
            prop_assert_eq!(a.plus(b).plus(c), a.plus(b.plus(c)));
            prop_assert_eq!(a.times(b), b.times(a));
            prop_assert_eq!(a.times(b).times(c), a.times(b.times(c)));
            prop_assert_eq!(a.times(b.plus(c)), a.times(b).plus(a.times(c)));
            prop_assert_eq!(a.minus(a), Payload::integer(0));
        }

        /// Sums commute whatever is in them.
        #[test]
        fn order_of_operands_does_not_matter(a in any_payload(), b in any_payload()) {
            prop_assert_eq!(a.plus(b), b.plus(a));
            prop_assert_eq!(a.times(b), b.times(a));
            if a.order(b) != Some(Ordering::Equal) {
                prop_assert_eq!(a.maximum(b, false), b.maximum(a, false));
            }
        }

        #[test]
        fn powers_turn_sums_into_products(a in any_number(), b in any_number()) {
            prop_assert_eq!(a.plus(b).power_of_two(), a.power_of_two().times(b.power_of_two()));
        }

        #[test]
        fn logarithms_turn_powers_into_sums(a in any_number(), b in any_number()) {
            prop_assert_eq!(a.power_of_two().times(b).logarithm(), a.plus(b.logarithm()));
        }

        /// Whatever a kernel has multiplied sums and outputs with: their quotient does not show it.
        #[test]
        fn quotients_forget_a_common_power(a in any_number(), b in any_number(), c in any_number()) {
            let power = c.power_of_two();
            prop_assert_eq!(a.times(power).over(b.times(power)), a.over(b));
        }

        #[test]
        fn odd_numbers_have_inverses(a in any_number()) {
            let odd = a.times(Payload::integer(2)).plus(Payload::integer(1));
            prop_assert_eq!(odd.times(odd.reciprocal()), Payload::integer(1));
        }

        #[test]
        fn maxima_obey_their_laws(a in any_payload(), b in any_payload(), c in any_payload()) {
            prop_assert_eq!(a.maximum(a, false), a);
            let [one, other] = [a.maximum(b, false).maximum(c, false), a.maximum(b.maximum(c, false), false)];
            prop_assert!(one == other || one.order(other) == Some(Ordering::Equal), "{:?} {:?}", one, other);
        }

        /// `min(y - m, 0)` is `min(y, m) - m`, as kernels rely on.
        #[test]
        fn sums_of_small_numbers_keep_the_order(a in small(), b in small(), c in small()) {
            prop_assert_eq!(a.plus(c).maximum(b.plus(c), false), a.maximum(b, false).plus(c));
            let zero = Payload::integer(0);
            prop_assert_eq!(a.minus(b).minimum(zero, false), a.minimum(b, false).minus(b));
        }

        #[test]
        fn a_float_and_its_opposite_stand_for_opposites(value in any::<f64>()) {
            prop_assert_eq!(Payload::of(-value), Payload::of(value).negated());
        }
    }

    #[test]
    fn minus_infinity_hides_a_score() {
        let hidden = Payload::of(f64::NEG_INFINITY);
        assert_eq!(hidden.minus(Payload::of(0.7)).power_of_two(), Payload::integer(0));
        assert_eq!(hidden.times(Payload::of(0.18)), hidden);
        assert_eq!(hidden.times(Payload::of(-0.18)), hidden.negated());
        assert_eq!(hidden.minus(hidden), NotANumber);
        assert_eq!(hidden.maximum(Payload::of(-3.5), false), Payload::of(-3.5));
        assert_eq!(Payload::of(-1e6), hidden);
    }

    #[test]
    fn integers_stand_for_themselves() {
        assert_eq!([0.0, -0.0, 1.0, -8.0].map(|value| Payload::of(value).to_integer()), [0, 0, 1, -8].map(Some));
        assert_eq!(Payload::of(8192.0), Infinite { negative: false });
        let others: Vec<_> = (0..64).map(|at| Payload::of(0.1 + f64::from(at) * 0.37)).collect();
        assert!(others.contains(&Payload::integer(1)) && others.contains(&Payload::integer(3)));
        assert!(others.iter().all(|one| [1, 3].map(Payload::integer).contains(one)));
    }

    #[test]
    fn a_sum_with_a_logarithm_knows_as_many_bits_as_the_logarithm() {
        let Number { bits, .. } = Payload::integer(12).logarithm().plus(Payload::integer(-1)) else { panic!() };
        assert_eq!(bits, 12);
        assert_eq!(Payload::integer(0).logarithm(), Payload::MINUS_INFINITY);
    }
}
