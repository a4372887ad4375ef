//! Element types: their size, and conversion to and from bits with one rounding, to nearest even.
//!
//! The small floats are ours rather than a library's, so that the same value gives the same bits on every machine
//! whatever instructions it has.

use std::fmt;

/// What a buffer holds, or how wide a scalar argument is.
///
/// ```
/// use launch::Element;
/// use launch::element::Value;
///
/// let element: Element = "bf16".parse().unwrap();
/// assert_eq!(element.bytes(), 2);
/// assert_eq!(element.encode(Value::Float(1.0)).unwrap(), 0x3F80);
/// assert_eq!(element.decode(0x3F80), 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    Bf16,
    F32,
    F64,
    E4m3,
    E5m2,
}

/// A number before it has a type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An exact integer.
    Integer(i128),
    /// A real number.
    Float(f64),
}

/// A float format of at most 16 bits.
struct SmallFloat {
    /// Bits of the fraction.
    fraction: u32,
    /// Exponent of the smallest normal number.
    least_exponent: i32,
    /// The code of the largest finite number.
    largest: u64,
    /// What a larger magnitude becomes: infinity, or the largest number where PTX offers `.satfinite` only.
    overflow: u64,
    /// The quiet NaN.
    nan: u64,
    sign: u64,
}

#[rustfmt::skip] // One row per line.
const F16: SmallFloat = SmallFloat { fraction: 10, least_exponent: -14, largest: 0x7BFF, overflow: 0x7C00, nan: 0x7E00, sign: 0x8000 };
#[rustfmt::skip]
const BF16: SmallFloat = SmallFloat { fraction: 7, least_exponent: -126, largest: 0x7F7F, overflow: 0x7F80, nan: 0x7FC0, sign: 0x8000 };
#[rustfmt::skip] // PTX ISA, "Alternate floating-point data formats": no infinity, one NaN code per sign.
const E4M3: SmallFloat = SmallFloat { fraction: 3, least_exponent: -6, largest: 0x7E, overflow: 0x7E, nan: 0x7F, sign: 0x80 };
#[rustfmt::skip] // PTX ISA, cvt: conversions to e5m2 are `.satfinite`.
const E5M2: SmallFloat = SmallFloat { fraction: 2, least_exponent: -14, largest: 0x7B, overflow: 0x7B, nan: 0x7E, sign: 0x80 };

#[rustfmt::skip] // One row per line.
const TABLE: [(Element, &str, usize); 14] = [
    (Element::U8,   "u8",   1), (Element::U16,  "u16",  2), (Element::U32, "u32", 4), (Element::U64, "u64", 8),
    (Element::S8,   "s8",   1), (Element::S16,  "s16",  2), (Element::S32, "s32", 4), (Element::S64, "s64", 8),
    (Element::F16,  "f16",  2), (Element::Bf16, "bf16", 2), (Element::F32, "f32", 4), (Element::F64, "f64", 8),
    (Element::E4m3, "e4m3", 1), (Element::E5m2, "e5m2", 1),
];

impl Element {
    /// Every element type.
    pub fn all() -> impl Iterator<Item = Element> {
        TABLE.iter().map(|row| row.0)
    }

    /// The name in a recipe.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Size in memory.
    pub fn bytes(self) -> usize {
        TABLE[self as usize].2
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self as usize >= Element::F16 as usize
    }

    fn is_signed(self) -> bool {
        matches!(self, Element::S8 | Element::S16 | Element::S32 | Element::S64)
    }

    fn small_float(self) -> Option<&'static SmallFloat> {
        match self {
            Element::F16 => Some(&F16),
            Element::Bf16 => Some(&BF16),
            Element::E4m3 => Some(&E4M3),
            Element::E5m2 => Some(&E5M2),
            _ => None,
        }
    }

    /// The bits of a value in the low bytes. Integers must fit; floats round once, to nearest even.
    pub fn encode(self, value: Value) -> Result<u64, String> {
        if self.is_float() {
            return Ok(self.encode_float(value.as_float()));
        }
        let integer = value.as_integer().ok_or_else(|| format!("{value} is not an integer: expected a {self}"))?;
        let (least, most) = self.integer_range();
        if (least..=most).contains(&integer) {
            return Ok(self.wrap(integer));
        }
        Err(format!("{integer} does not fit in {self}: expected {least} to {most}"))
    }

    fn encode_float(self, value: f64) -> u64 {
        match self.small_float() {
            Some(format) => format.encode(value),
            None if self == Element::F32 => u64::from((value as f32).to_bits()),
            None => value.to_bits(),
        }
    }

    /// The low bits of an integer.
    pub(crate) fn wrap(self, integer: i128) -> u64 {
        integer as u64 & (u64::MAX >> (64 - 8 * self.bytes()))
    }

    fn integer_range(self) -> (i128, i128) {
        let bits = 8 * self.bytes() as u32;
        match self.is_signed() {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        }
    }

    /// The value of bits. 64-bit integers beyond 2^53 round; compare bits where that matters.
    pub fn decode(self, bits: u64) -> f64 {
        match self {
            Element::F64 => f64::from_bits(bits),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            _ if self.is_signed() => self.sign_extend(bits) as f64,
            _ => self.small_float().map_or(bits as f64, |format| format.decode(bits)),
        }
    }

    fn sign_extend(self, bits: u64) -> i64 {
        let unused = 64 - 8 * self.bytes();
        ((bits << unused) as i64) >> unused
    }

    /// A number whose difference between two codes counts the representable values between them.
    pub(crate) fn order(self, bits: u64) -> i128 {
        if !self.is_float() {
            return if self.is_signed() { i128::from(self.sign_extend(bits)) } else { i128::from(bits) };
        }
        let sign = 1u64 << (8 * self.bytes() - 1);
        let magnitude = i128::from(bits & !sign);
        if bits & sign == 0 { magnitude } else { -magnitude }
    }

    /// Whether the bits are a NaN.
    pub fn is_nan(self, bits: u64) -> bool {
        self.is_float() && self.decode(bits).is_nan()
    }

    /// The bits at `index` of little-endian elements.
    pub fn read(self, bytes: &[u8], index: usize) -> u64 {
        let mut word = [0; 8];
        word[..self.bytes()].copy_from_slice(&bytes[index * self.bytes()..][..self.bytes()]);
        u64::from_le_bytes(word)
    }

    /// The bits of all little-endian elements.
    pub fn read_all(self, bytes: &[u8]) -> Vec<u64> {
        (0..bytes.len() / self.bytes()).map(|index| self.read(bytes, index)).collect()
    }

    /// Appends the bits, little-endian.
    pub fn write(self, bits: u64, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&bits.to_le_bytes()[..self.bytes()]);
    }

    /// What `poison` writes: a signalling NaN where the type has one (e4m3 has only a quiet one), else bytes 0xA5.
    ///
    /// A kernel that computes with it shows NaN or absurd numbers, and a buffer it never wrote is recognised by eye.
    pub fn poison(self) -> u64 {
        match self {
            Element::F16 => 0x7D5A,
            Element::Bf16 => 0x7FA5,
            Element::F32 => 0x7FA5_A5A5,
            Element::F64 => 0x7FF5_A5A5_A5A5_A5A5,
            Element::E4m3 => 0x7F,
            Element::E5m2 => 0x7D,
            _ => self.wrap(0xA5A5_A5A5_A5A5_A5A5),
        }
    }

    /// How far a ramp counts before it starts again: up to there every integer is exact.
    pub(crate) fn ramp_period(self) -> u128 {
        match self {
            Element::F64 => 1 << 53,
            Element::F32 => 1 << 24,
            _ => self.small_float().map_or(1 << (8 * self.bytes()), |format| 1 << (format.fraction + 1)),
        }
    }
}

impl SmallFloat {
    fn encode(&self, value: f64) -> u64 {
        let sign = if value.is_sign_negative() { self.sign } else { 0 };
        if value.is_nan() {
            return self.nan | sign;
        }
        let magnitude = value.abs();
        let exponent = (((magnitude.to_bits() >> 52) as i32) - 1023).max(self.least_exponent);
        if exponent > 1000 {
            return self.overflow | sign;
        }
        // The division is by a power of two, hence exact: the only rounding is to whole steps of the target format.
        let step = power_of_two(exponent - self.fraction as i32);
        let steps = (magnitude / step).round_ties_even() as u64;
        // Where rounding carries into the next exponent the addition carries too.
        let code = steps + (((exponent - self.least_exponent) as u64) << self.fraction);
        if code > self.largest { self.overflow | sign } else { code | sign }
    }

    fn decode(&self, bits: u64) -> f64 {
        let code = bits & (self.sign - 1);
        let magnitude = match code {
            _ if code <= self.largest => self.finite(code),
            _ if code == self.largest + 1 && code != self.nan => f64::INFINITY,
            _ => f64::NAN,
        };
        if bits & self.sign == 0 { magnitude } else { -magnitude }
    }

    fn finite(&self, code: u64) -> f64 {
        let exponent = (code >> self.fraction) as i32;
        let hidden = if exponent > 0 { 1 << self.fraction } else { 0 };
        let fraction = (code & ((1 << self.fraction) - 1)) | hidden;
        fraction as f64 * power_of_two(exponent.max(1) - 1 + self.least_exponent - self.fraction as i32)
    }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

impl Value {
    /// As a real number; large integers round.
    pub fn as_float(self) -> f64 {
        match self {
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
        }
    }

    fn as_integer(self) -> Option<i128> {
        match self {
            Value::Integer(value) => Some(value),
            Value::Float(value) => (value.fract() == 0.0 && value.abs() < 1e30).then_some(value as i128),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => write!(formatter, "{value}"),
            Value::Float(value) => write!(formatter, "{value:?}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl std::str::FromStr for Element {
    type Err = String;

    fn from_str(name: &str) -> Result<Element, String> {
        let found = TABLE.iter().find(|row| row.1 == name).map(|row| row.0);
        found.ok_or_else(|| {
            let names: Vec<&str> = TABLE.iter().map(|row| row.1).collect();
            format!("unknown type `{name}`: expected one of {}", names.join(" "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn table_rows_stand_in_order() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, index);
        }
    }

    #[test]
    fn small_floats_decode_as_half_does() {
        for code in 0..=u16::MAX {
            let (f16, bf16) = (half::f16::from_bits(code).to_f64(), half::bf16::from_bits(code).to_f64());
            assert!(same(Element::F16.decode(code.into()), f16), "f16 {code:#x}");
            assert!(same(Element::Bf16.decode(code.into()), bf16), "bf16 {code:#x}");
        }
    }

    fn same(left: f64, right: f64) -> bool {
        left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan()
    }

    #[test]
    fn every_small_code_survives() {
        for element in [Element::F16, Element::Bf16, Element::E4m3, Element::E5m2] {
            for code in 0..1u64 << (8 * element.bytes()) {
                let value = element.decode(code);
                if value.is_finite() {
                    assert_eq!(element.encode(Value::Float(value)), Ok(code), "{element} {code:#x}");
                }
            }
        }
    }

    /// Between two neighbours the nearer one is taken, and the even one at the middle.
    #[test]
    fn fp8_rounds_to_nearest_even() {
        for element in [Element::E4m3, Element::E5m2] {
            let largest = element.small_float().unwrap().largest;
            for code in 0..largest {
                let (low, high) = (element.decode(code), element.decode(code + 1));
                let middle = (low + high) / 2.0;
                let even = if code % 2 == 0 { code } else { code + 1 };
                assert_eq!(element.encode_float(middle), even);
                assert_eq!(element.encode_float(middle.next_down()), code);
                assert_eq!(element.encode_float(middle.next_up()), code + 1);
            }
        }
    }

    #[test]
    fn known_codes() {
        assert_eq!(Element::E4m3.encode_float(448.0), 0x7E);
        assert_eq!(Element::E4m3.encode_float(1e9), 0x7E);
        assert_eq!(Element::E4m3.encode_float(f64::NAN), 0x7F);
        assert_eq!(Element::E4m3.encode_float(-1.0), 0xB8);
        assert_eq!(Element::E5m2.encode_float(1.0), 0x3C);
        assert_eq!(Element::E5m2.encode_float(f64::INFINITY), 0x7B);
        assert_eq!(Element::E5m2.decode(0x7C), f64::INFINITY);
        assert!(Element::E4m3.decode(0x7F).is_nan());
        assert_eq!(Element::F16.encode_float(65520.0), 0x7C00);
        assert_eq!(Element::F16.encode_float(65519.999), 0x7BFF);
        // On its way through f32 this would lose its last bit, become a tie, and come out one step lower.
        assert_eq!(Element::F16.encode_float(1.0 + power_of_two(-11) + power_of_two(-40)), 0x3C01);
    }

    #[test]
    fn poison_is_a_signalling_nan() {
        for element in Element::all().filter(|element| element.is_float()) {
            assert!(element.is_nan(element.poison()), "{element}");
        }
        assert_eq!(Element::U16.poison(), 0xA5A5);
    }

    proptest! {
        #[test]
        fn halves_encode_as_half_does(value: f32) {
            prop_assume!(!value.is_nan());
            prop_assert_eq!(Element::F16.encode_float(value.into()), u64::from(half::f16::from_f32(value).to_bits()));
            prop_assert_eq!(Element::Bf16.encode_float(value.into()), u64::from(half::bf16::from_f32(value).to_bits()));
        }
    }

    #[test]
    fn integers_must_fit() {
        assert_eq!(Element::S8.encode(Value::Integer(-128)), Ok(0x80));
        assert_eq!(Element::S8.decode(0x80), -128.0);
        insta::assert_snapshot!(Element::U8.encode(Value::Integer(256)).unwrap_err(), @"256 does not fit in u8: expected 0 to 255");
        insta::assert_snapshot!(Element::U8.encode(Value::Float(0.5)).unwrap_err(), @"0.5 is not an integer: expected a u8");
    }
}
