//! Binary floating-point formats, decoding them, and rounding an exact value into one.

/// A format as it lies in the low bits of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub exponent_bits: u32,
    pub fraction_bits: u32,
    /// Low bits of the register that the hardware does not read.
    pub ignored_bits: u32,
    /// No infinity; NaN has all bits set. True of e4m3 alone.
    pub finite: bool,
}

/// How a value between two neighbours is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// `.rn`: to the nearest, ties to even.
    Nearest,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: toward minus infinity.
    Down,
    /// `.rp`: toward plus infinity.
    Up,
}

/// What kind of number a bit pattern is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Finite,
    Infinite,
    NotANumber,
}

/// A decoded number: `significand * 2^(exponent - fraction_bits)`, both zero unless finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub class: Class,
    pub negative: bool,
    /// Not normalised: subnormals and zero carry the exponent of the smallest normal number.
    pub exponent: i32,
    pub significand: u32,
}

impl Format {
    pub const F32: Format = Format::ieee(8, 23);
    pub const F16: Format = Format::ieee(5, 10);
    pub const BF16: Format = Format::ieee(8, 7);
    /// A 32-bit register of which the low 13 bits are not read.
    pub const TF32: Format = Format { ignored_bits: 13, ..Format::ieee(8, 10) };
    pub const E4M3: Format = Format { finite: true, ..Format::ieee(4, 3) };
    pub const E5M2: Format = Format::ieee(5, 2);

    const fn ieee(exponent_bits: u32, fraction_bits: u32) -> Format {
        Format { exponent_bits, fraction_bits, ignored_bits: 0, finite: false }
    }

    pub const fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Exponent of the smallest normal number.
    pub const fn smallest_exponent(&self) -> i32 {
        1 - self.bias()
    }

    pub const fn sign(&self) -> u32 {
        1 << (self.exponent_bits + self.fraction_bits + self.ignored_bits)
    }

    pub const fn infinity(&self) -> u32 {
        ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.ignored_bits)
    }

    /// The NaN that instructions produce: every bit set but the sign.
    pub const fn nan(&self) -> u32 {
        self.sign() - 1
    }

    pub fn decode(&self, bits: u32) -> Element {
        let negative = bits & self.sign() != 0;
        let bits = (bits & self.nan()) >> self.ignored_bits;
        let (field, fraction) = (bits >> self.fraction_bits, bits & ((1 << self.fraction_bits) - 1));
        let full_fraction = (1 << self.fraction_bits) - 1;
        if field == (1 << self.exponent_bits) - 1 && (!self.finite || fraction == full_fraction) {
            let class = if self.finite || fraction != 0 { Class::NotANumber } else { Class::Infinite };
            return Element { class, negative, exponent: 0, significand: 0 };
        }
        let hidden = u32::from(field != 0) << self.fraction_bits;
        let exponent = field.max(1) as i32 - self.bias();
        Element { class: Class::Finite, negative, exponent, significand: fraction | hidden }
    }

    /// Rounds into the format. The value must be exact, or rounded to odd so that no second rounding can show.
    pub fn round(&self, value: f64, rounding: Rounding) -> u32 {
        if value.is_nan() {
            return self.nan();
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let bits = value.abs().to_bits();
        if value.is_infinite() || bits == 0 {
            return sign | if bits == 0 { 0 } else { self.infinity() };
        }
        let exponent = (bits >> 52) as i32 - 1023;
        let significand = (bits & ((1 << 52) - 1)) | 1 << 52;
        let kept = exponent.max(self.smallest_exponent());
        // Beyond 62 nothing but the remainder is left, wherever it lies.
        let shift = (52 - self.fraction_bits as i32 + kept - exponent).min(62);
        let (quotient, remainder, half) = (significand >> shift, significand & ((1 << shift) - 1), 1 << (shift - 1));
        let outward = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => sign != 0,
            Rounding::Up => sign == 0,
        };
        let away = match rounding {
            Rounding::Nearest => remainder > half || remainder == half && quotient & 1 == 1,
            _ => outward && remainder != 0,
        };
        let steps = ((kept - self.smallest_exponent()) as u64) << self.fraction_bits;
        let magnitude = steps + quotient + u64::from(away);
        let infinity = u64::from(self.infinity() >> self.ignored_bits);
        let largest = match outward {
            _ if self.finite => u64::from(self.nan() - 1),
            true => infinity,
            false => infinity - 1,
        };
        sign | (magnitude.min(largest) as u32) << self.ignored_bits
    }
}
