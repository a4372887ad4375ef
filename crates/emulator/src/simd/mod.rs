//! Whole warps at once: vector instructions of the machine this runs on.
//!
//! The only module with `unsafe` code: functions compiled for instructions that are there only on some machines may be
//! called only on those, and the inner loops reach registers without bounds checks, which [`code::Code`] makes once.

#![allow(unsafe_code)]
// Loops count lanes: what iterators call is not always compiled for the vector level.
#![allow(clippy::needless_range_loop)]

#[cfg(target_arch = "x86_64")]
mod avx512;
mod code;
mod kernels;
mod lanes;
mod memory;
mod step;
pub mod tensor;
#[cfg(test)]
mod tests;
mod vector;
mod warp;
mod words;

pub use code::{Code, Kernel, NO_MEETING, Operation, Permutation, UNGUARDED, combine};
pub use memory::{Traffic, View};
pub use warp::{Parted, Straight};

use std::sync::OnceLock;

/// Vector instructions that a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Baseline,
    /// AVX2, FMA and F16C, with BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// AVX-512 with F, BW, DQ and VL.
    Avx512,
}

impl Level {
    /// The best that this machine has.
    pub fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Level::detect)
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> Level {
        let bits = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        let avx2 = bits
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx2, avx512) {
            (true, true) => Level::Avx512,
            (true, false) => Level::Avx2,
            _ => Level::Baseline,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Level {
        Level::Baseline
    }
}
