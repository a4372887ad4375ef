//! Student's t.

/// How many standard errors a mean of so many degrees of freedom may be off, at 95 %: the 97.5th percentile.
///
/// Hill, "Algorithm 396: Student's t-quantiles", Communications of the ACM 13 (1970).
pub fn percentile_97_5(freedom: usize) -> f64 {
    const TWO_TAILS: f64 = 0.05;
    match freedom {
        0 => return f64::INFINITY,
        1 => return (std::f64::consts::FRAC_PI_2 * TWO_TAILS).tan().recip(),
        2 => return (2.0 / (TWO_TAILS * (2.0 - TWO_TAILS)) - 2.0).sqrt(),
        _ => {}
    }
    let n = freedom as f64;
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * std::f64::consts::FRAC_PI_2).sqrt() * n;
    let mut y = (d * TWO_TAILS).powf(2.0 / n);
    if y > 0.05 + a {
        let x = NORMAL_2_5;
        y = x * x;
        if freedom < 5 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = (a * y * y).exp_m1();
    } else {
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0)
            * (n + 1.0)
            / (n + 2.0)
            + 1.0 / y;
    }
    (n * y).sqrt()
}

/// The 2.5th percentile of the normal distribution.
const NORMAL_2_5: f64 = -1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_the_tables() {
        let table = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (8, 2.306), (14, 2.145), (30, 2.042)];
        for (freedom, expected) in table.into_iter().chain([(60, 2.000), (120, 1.980), (100_000, 1.960)]) {
            let found = percentile_97_5(freedom);
            assert!((found - expected).abs() < 1e-3, "{freedom}: {found}, expected {expected}");
        }
        assert!(percentile_97_5(0).is_infinite());
    }
}
