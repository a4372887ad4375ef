//! Products of the tensor cores.
//!
//! Kernels are written once, over [`Vectors`], and compiled for each instruction set: a function that enables the
//! instructions calls the kernel, which is inlined into it with every operation. What runs is chosen once, by
//! [`Level::best`]. A value of a type that implements [`Vectors`] proves that the processor has the instructions, because
//! only detection makes one; that is why calling into them is sound.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod kernel;
mod operand;
mod portable;
mod vectors;

pub use kernel::Parameters;
pub use operand::{Left, Right, elements};

use crate::numerics::format::Format;
use std::sync::OnceLock;
use vectors::Vectors;

/// A register of a warp: 32 lanes. As a part of an operand, 8 lines of 16 bytes.
pub type Register = [u32; 32];

/// Sets of vector instructions, the widest first.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    Portable(portable::Portable),
}

/// The same kernel behind a function for each instruction set.
macro_rules! compiled {
    ($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $kernel:expr) => {
        pub fn $name(self, $($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
            fn avx512(v: avx512::Avx512, $($argument: $type),*) $(-> $result)? {
                $kernel(v, $($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2(v: avx2::Avx2, $($argument: $type),*) $(-> $result)? {
                $kernel(v, $($argument),*)
            }
            match self {
                // SAFETY: both values exist only where detection found the instructions.
                #[cfg(target_arch = "x86_64")]
                Level::Avx512(v) => unsafe { avx512(v, $($argument),*) },
                #[cfg(target_arch = "x86_64")]
                Level::Avx2(v) => unsafe { avx2(v, $($argument),*) },
                Level::Portable(v) => $kernel(v, $($argument),*),
            }
        }
    };
}

impl Level {
    /// What this processor has; the last is the same everywhere.
    pub fn available() -> Vec<Level> {
        let mut levels = vec![];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(avx512::Avx512::detect().map(Level::Avx512));
            levels.extend(avx2::Avx2::detect().map(Level::Avx2));
        }
        levels.push(Level::Portable(portable::Portable));
        levels
    }

    pub fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Level::available()[0])
    }

    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => "AVX2",
            Level::Portable(_) => "portable",
        }
    }

    compiled!(load_left(format: Format, cores: &[Register], left: &mut Left) = operand::load_left::<_, true>);
    compiled!(load_right(format: Format, cores: &[Register], right: &mut [Right]) = operand::load_right::<_, true>);
    compiled!(load_left_values(format: Format, cores: &[Register], left: &mut Left) = operand::load_left::<_, false>);
    compiled!(load_right_values(format: Format, cores: &[Register], right: &mut [Right])
        = operand::load_right::<_, false>);
    compiled!(transpose(core: &Register) -> Register = Vectors::transpose);
    compiled!(exact(parameters: &Parameters, left: &Left, right: &[Right], c: &mut [Register], rest: &mut [u32])
        = kernel::exact);
    compiled!(fused(parameters: &Parameters, left: &Left, right: &[Right], c: &mut [Register]) = kernel::fused);
}
