//! `cap · tanh(score / cap)`: no score is beyond the cap.

use super::{Head, Score};
use std::f32::consts::LOG2_E;
use tile::prelude::*;

pub struct SoftCap {
    pub cap: f32,
}

impl Score for SoftCap {
    fn apply(&self, score: F32, _: Coordinate, _: Coordinate, _: Head) -> F32 {
        tanh(score * (1.0 / self.cap)) * self.cap
    }
}

/// Where the polynomial is as near as the quotient: |x| < 0.55.
pub const TANH_SMALL_SQUARE: f32 = 0.55 * 0.55;

/// (tanh(x) − x) / x³ in powers of x², the highest first, by Remez' exchange: tanh is off by at most 4e-8 of itself.
pub const TANH: [f32; 4] = [0.01643595, -0.05267098, 0.13320713, -0.33332947];

/// Within four units of the last place. `tanh.approx` is off by up to 2⁻¹¹, which a log-sum-exp would show.
#[track_caller]
fn tanh(x: F32) -> F32 {
    let square = x * x;
    let [first, rest @ ..] = TANH;
    let polynomial = rest.into_iter().fold(F32::from(first), |sum, coefficient| sum.mul_add(square, coefficient));
    let small = (polynomial * square).mul_add(x, x);
    // 1 − 2 / (exp(2x) + 1); zero and infinity are right for exp(2x), too.
    let large = ((x * (2.0 * LOG2_E)).exp2() + 1.0).recip().mul_add(-2.0, 1.0);
    select(square.lt(TANH_SMALL_SQUARE), small, large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_is_near_everywhere() {
        for step in -4000..=4000 {
            let x = step as f32 / 300.0;
            let (found, exact) = (tanh(x.into()).known().unwrap(), f64::from(x).tanh());
            let error = (f64::from(found) - exact).abs() / exact.abs().max(f64::MIN_POSITIVE);
            assert!(error < 4.0 * f64::from(f32::EPSILON), "tanh({x}) is {found} and not {exact}");
        }
    }
}
