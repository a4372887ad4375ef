//! Random numbers that are the same on every machine.
//!
//! SplitMix64 gives the bits. A normal number is the sum of twelve uniform ones less six (Irwin and Hall): its mean is
//! 0, its variance 1, its tails end at 6. The sum is taken in integers and the one multiplication that follows is IEEE,
//! so no `ln` or `cos` of some math library has a say in the bits.

/// What SplitMix64 counts in: 2^64 over the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Each draw has the bits of two uniform numbers.
const DRAWS_PER_NORMAL: u64 = 6;

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// A generator for a named buffer under a common seed, so that buffers differ from each other.
    pub(crate) fn named(name: &str, seed: u64) -> Random {
        // FNV-1a.
        let hash = name
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
        Random::new(hash ^ Random::new(seed).next())
    }

    /// The same generator after it has given that many normal numbers: its state is a counter.
    pub(crate) fn after_normals(&self, count: u64) -> Random {
        Random { state: self.state.wrapping_add(STEP.wrapping_mul(count.wrapping_mul(DRAWS_PER_NORMAL))) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A normal number of variance 1, a multiple of 2^-32.
    pub(crate) fn normal(&mut self) -> f64 {
        let mut sum = 0i64;
        for _ in 0..DRAWS_PER_NORMAL {
            let bits = self.next();
            sum += (bits >> 32) as i64 + (bits & 0xFFFF_FFFF) as i64;
        }
        // Twelve uniforms on 0 ..= 2^32-1 have the mean 6 * (2^32 - 1).
        let centred = sum - 6 * 0xFFFF_FFFF;
        centred as f64 / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_is_the_published_one() {
        let mut random = Random::new(1234567);
        let drawn = [random.next(), random.next(), random.next()];
        assert_eq!(drawn, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn normal_has_its_moments() {
        let mut random = Random::named("x", 0);
        let count = 100_000;
        let drawn: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(count);
        let variance = drawn.iter().map(|x| x * x).sum::<f64>() / f64::from(count);
        let beyond_two = drawn.iter().filter(|x| x.abs() > 2.0).count() as f64 / f64::from(count);
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        assert!((beyond_two - 0.0455).abs() < 0.004, "{beyond_two}");
    }

    #[test]
    fn a_generator_can_begin_anywhere() {
        let mut drawn = Random::named("x", 3);
        let begun = drawn.clone();
        for count in 0..20 {
            assert_eq!(begun.after_normals(count).normal(), drawn.normal(), "after {count}");
        }
    }

    #[test]
    fn names_and_seeds_separate() {
        let first = |name, seed| Random::named(name, seed).next();
        assert_ne!(first("q", 0), first("k", 0));
        assert_ne!(first("q", 0), first("q", 1));
        assert_eq!(first("q", 7), first("q", 7));
    }
}
