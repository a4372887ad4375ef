//! The functions that are compiled for an instruction set, and which of them a processor can run.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::{Avx512, Avx512Bf16};
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::product::Pairs;
use super::product::{RoundedSingles, Singles};
use super::{Product, Simd};

/// Work that is written for all instruction sets.
pub trait Task {
    fn run<S: Simd, P: Product<S>, const ROWS: usize>(self, s: S, p: P);
}

/// What a processor computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstructionSet {
    /// Whatever the compiler assumes.
    Portable,
    /// 64-bit Arm.
    Neon,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same with dot products of bf16.
    Avx512Bf16,
}

impl InstructionSet {
    pub const ALL: [InstructionSet; 5] = [
        InstructionSet::Portable,
        InstructionSet::Neon,
        InstructionSet::Avx2,
        InstructionSet::Avx512,
        InstructionSet::Avx512Bf16,
    ];

    /// The last that this processor has.
    pub fn best() -> InstructionSet {
        InstructionSet::ALL.into_iter().rfind(|set| set.is_here()).unwrap_or(InstructionSet::Portable)
    }

    /// Whether this processor has it.
    pub fn is_here(self) -> bool {
        match self {
            InstructionSet::Portable => true,
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => Neon::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => Avx512::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512Bf16 => Avx512Bf16::detect().is_some(),
            #[allow(unreachable_patterns)]
            _ => false,
        }
    }
}

/// Runs the task with the instructions of the set, or with portable code where this processor lacks them.
pub fn run<T: Task>(set: InstructionSet, task: T) {
    if let Some(task) = vectors(set, task) {
        task.run::<_, _, 2>(Portable, RoundedSingles);
    }
}

/// The same for a task whose products must not be rounded.
pub fn run_exact<T: Task>(set: InstructionSet, task: T) {
    if let Some(task) = vectors(set, task) {
        task.run::<_, _, 2>(Portable, Singles);
    }
}

/// Runs the task, or gives it back where the set is portable code.
fn vectors<T: Task>(set: InstructionSet, task: T) -> Option<T> {
    #[cfg(target_arch = "x86_64")]
    {
        if set >= InstructionSet::Avx512
            && let Some(token) = Avx512::detect()
        {
            // SAFETY: the instructions were detected.
            unsafe { avx512(token, task) };
            return None;
        }
        if set >= InstructionSet::Avx2
            && let Some(token) = Avx2::detect()
        {
            // SAFETY: the instructions were detected.
            unsafe { avx2(token, task) };
            return None;
        }
    }
    #[cfg(target_arch = "aarch64")]
    if set >= InstructionSet::Neon
        && let Some(token) = Neon::detect()
    {
        // SAFETY: the instructions were detected.
        unsafe { neon(token, task) };
        return None;
    }
    let _ = set;
    Some(task)
}

/// The same for a task that can multiply pairs of bf16.
pub fn run_pairs<T: Task>(set: InstructionSet, task: T) {
    #[cfg(target_arch = "x86_64")]
    if set >= InstructionSet::Avx512Bf16
        && let Some(token) = Avx512Bf16::detect()
    {
        // SAFETY: the instructions were detected.
        return unsafe { avx512_bf16(token, task) };
    }
    run(set, task)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
fn avx512_bf16<T: Task>(token: Avx512Bf16, task: T) {
    task.run::<_, _, 8>(token.vectors(), Pairs(token))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
#[inline(never)]
pub fn avx512<T: Task>(token: Avx512, task: T) {
    task.run::<_, _, 8>(token, Singles)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
#[inline(never)]
pub fn avx2<T: Task>(token: Avx2, task: T) {
    task.run::<_, _, 4>(token, Singles)
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
#[inline(never)]
pub fn neon<T: Task>(token: Neon, task: T) {
    task.run::<_, _, 4>(token, Singles)
}
