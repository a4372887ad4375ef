//! 2^f for f in [0, 1).

use super::Simd;

/// Minimax by Remez' exchange, the highest power first: off by at most 6.1e-8 of the value, and exact at 0, so that a single
/// key gives its value to the bit. Types that show less need it, too, for the log-sum-exp.
#[allow(clippy::approx_constant)] // Nearly the powers of ln 2, but not quite: the error is spread.
pub const COEFFICIENTS: [f32; 7] = [0.00021702255, 0.0012439688, 0.009678841, 0.05548334, 0.24022983, 0.693147, 1.0];

#[inline(always)]
pub fn polynomial<S: Simd>(s: S, fraction: S::Vector) -> S::Vector {
    let mut sum = s.splat(COEFFICIENTS[0]);
    for coefficient in &COEFFICIENTS[1..] {
        sum = s.mul_add(sum, fraction, s.splat(*coefficient));
    }
    sum
}
