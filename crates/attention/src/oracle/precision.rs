//! How finely a floating-point format divides the numbers.

use crate::problem::DType;

/// A binary format: how many fraction bits, and the exponent below which it is subnormal.
#[derive(Clone, Copy)]
pub struct Precision {
    fraction_bits: i32,
    least_exponent: i32,
}

impl Precision {
    /// fp8 with 4 exponent and 3 fraction bits. OCP 8-bit Floating Point Specification, table 2.
    pub const E4M3: Precision = Precision { fraction_bits: 3, least_exponent: -6 };

    // IEEE 754-2019, table 3.5; bf16 is binary32 with 16 fraction bits less.
    pub fn of(dtype: DType) -> Precision {
        match dtype {
            DType::F16 => Precision { fraction_bits: 10, least_exponent: -14 },
            DType::Bf16 => Precision { fraction_bits: 7, least_exponent: -126 },
            DType::F32 => Precision { fraction_bits: 23, least_exponent: -126 },
        }
    }

    /// The most that rounding to nearest moves a value.
    pub fn half_step(self, value: f64) -> f64 {
        self.step(value) / 2.0
    }

    /// The nearest value of the format, ties to even; its largest value is not looked at.
    pub fn round(self, value: f32) -> f32 {
        let step = self.step(f64::from(value));
        ((f64::from(value) / step).round_ties_even() * step) as f32
    }

    /// From one value of the format to the next.
    fn step(self, value: f64) -> f64 {
        let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        2f64.powi(exponent.max(self.least_exponent) - self.fraction_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_format() {
        let f16 = Precision::of(DType::F16);
        assert_eq!(f16.half_step(1.0), 2f64.powi(-11));
        assert_eq!(f16.half_step(-1.999), 2f64.powi(-11));
        assert_eq!(f16.half_step(2.0), 2f64.powi(-10));
        assert_eq!(f16.half_step(0.0), 2f64.powi(-25));
        assert_eq!(Precision::of(DType::Bf16).half_step(1.0), 2f64.powi(-8));
    }

    #[test]
    fn rounds_as_f16_does_for_every_finite_f16_and_between() {
        let f16 = Precision::of(DType::F16);
        for bits in 0..0x7bff_u16 {
            let [low, high] = [bits, bits + 1].map(|bits| half::f16::from_bits(bits).to_f32());
            for value in [low, (low + high) / 2.0, low + (high - low) * 0.51] {
                assert_eq!(f16.round(value), half::f16::from_f32(value).to_f32(), "{value}");
                assert_eq!(f16.round(-value), -f16.round(value));
            }
        }
    }

    #[test]
    fn e4m3_keeps_three_bits() {
        let round = |value| Precision::E4M3.round(value);
        assert_eq!([1.0, 0.9375, 0.97].map(round), [1.0, 0.9375, 1.0]);
        assert_eq!([1.0625, 1.1875].map(round), [1.0, 1.25]); // ties to even
        assert_eq!(
            [2f32.powi(-9), 2f32.powi(-10), 3.0 * 2f32.powi(-11)].map(round),
            [2f32.powi(-9), 0.0, 2f32.powi(-9)]
        );
    }
}
