//! AVX2 with fused multiply-adds and conversions of halves: two registers for each vector.

use super::vectors::Vectors;
use std::arch::x86_64::*;

/// Proof that the processor has the instructions.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    pub fn detect() -> Option<Avx2> {
        let all =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        all.then_some(Avx2(()))
    }
}

/// Operations that are one instruction for each half.
macro_rules! instructions {
    ($($name:ident($($argument:ident: $type:ident),*) -> $result:ident = $instruction:expr;)*) => {
        $(#[inline(always)]
        fn $name(self, $($argument: Self::$type),*) -> Self::$result {
            // Written out: the closure of a `map` would not be compiled for the instructions.
            // SAFETY: `self` proves that the processor has the instruction; it touches registers only.
            let low = unsafe {
                $(let $argument = $argument[0];)*
                $instruction
            };
            // SAFETY: as above.
            let high = unsafe {
                $(let $argument = $argument[1];)*
                $instruction
            };
            [low, high]
        })*
    };
}

#[rustfmt::skip] // One row per line.
impl Vectors for Avx2 {
    type Floats = [__m256; 2];
    type Integers = [__m256i; 2];
    type Shorts = [__m256i; 2];
    type Mask = [__m256i; 2];
    const EXACT_AT_ONCE: usize = 1;
    const FUSED_AT_ONCE: usize = 2;

    instructions! {
        add_shorts(a: Shorts, b: Shorts) -> Shorts = _mm256_add_epi16(a, b);
        larger_shorts(a: Shorts, b: Shorts) -> Shorts = _mm256_max_epi16(a, b);
        multiply(a: Floats, b: Floats) -> Floats = _mm256_mul_ps(a, b);
        fused(a: Floats, b: Floats, c: Floats) -> Floats = _mm256_fmadd_ps(a, b, c);
        not_a_number(a: Floats) -> Mask = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, a));
        truncate(a: Floats) -> Integers = _mm256_cvttps_epi32(a);
        toward_zero(a: Integers) -> Floats = toward_zero(a);
        bits(a: Floats) -> Integers = _mm256_castps_si256(a);
        of_bits(a: Integers) -> Floats = _mm256_castsi256_ps(a);
        of_halves(a: Integers) -> Floats = _mm256_cvtph_ps(lower_halves(a));
        to_halves(a: Floats) -> Integers = _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a));
        add(a: Integers, b: Integers) -> Integers = _mm256_add_epi32(a, b);
        subtract(a: Integers, b: Integers) -> Integers = _mm256_sub_epi32(a, b);
        larger(a: Integers, b: Integers) -> Integers = _mm256_max_epi32(a, b);
        and(a: Integers, b: Integers) -> Integers = _mm256_and_si256(a, b);
        or(a: Integers, b: Integers) -> Integers = _mm256_or_si256(a, b);
        exclusive_or(a: Integers, b: Integers) -> Integers = _mm256_xor_si256(a, b);
        shift_left(a: Integers) -> Integers = _mm256_slli_epi32::<23>(a);
        shift_right(a: Integers) -> Integers = _mm256_srli_epi32::<23>(a);
        greater(a: Integers, b: Integers) -> Mask = _mm256_cmpgt_epi32(a, b);
        equal(a: Integers, b: Integers) -> Mask = _mm256_cmpeq_epi32(a, b);
        both(a: Mask, b: Mask) -> Mask = _mm256_and_si256(a, b);
        either(a: Mask, b: Mask) -> Mask = _mm256_or_si256(a, b);
        without(a: Mask, b: Mask) -> Mask = _mm256_andnot_si256(b, a);
        select(mask: Mask, a: Integers, b: Integers) -> Integers = _mm256_blendv_epi8(b, a, mask);
    }

    #[inline(always)]
    fn lanes(self, mask: [__m256i; 2]) -> u32 {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe {
            let low = _mm256_movemask_ps(_mm256_castsi256_ps(mask[0]));
            let high = _mm256_movemask_ps(_mm256_castsi256_ps(mask[1]));
            (low | high << 8) as u32
        }
    }

    #[inline(always)]
    fn widen(self, shorts: [__m256i; 2]) -> [[__m256i; 2]; 2] {
        // SAFETY: as above.
        unsafe { [widen(shorts[0]), widen(shorts[1])] }
    }

    #[inline(always)]
    fn shorts(self, from: &[i16; 32]) -> [__m256i; 2] {
        // SAFETY: as above; the array has the size of two vectors.
        unsafe { [_mm256_loadu_si256(from.as_ptr().cast()), _mm256_loadu_si256(from.as_ptr().add(16).cast())] }
    }

    #[inline(always)]
    fn shorts_of_four(self, from: &[i16; 4]) -> [__m256i; 2] {
        // SAFETY: as above; four numbers are 64 bits.
        [unsafe { _mm256_set1_epi64x(from.as_ptr().cast::<i64>().read_unaligned()) }; 2]
    }

    #[inline(always)]
    fn floats(self, from: &[f32; 16]) -> [__m256; 2] {
        // SAFETY: as above; the array has the size of two vectors.
        unsafe { [_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))] }
    }

    #[inline(always)]
    fn floats_of_four(self, from: &[f32; 4]) -> [__m256; 2] {
        // SAFETY: as above; the array has the size of the vector that is loaded.
        [unsafe { _mm256_broadcast_ps(&_mm_loadu_ps(from.as_ptr())) }; 2]
    }

    #[inline(always)]
    fn integers(self, from: &[u32; 16]) -> [__m256i; 2] {
        // SAFETY: as above; the array has the size of two vectors.
        unsafe { [_mm256_loadu_si256(from.as_ptr().cast()), _mm256_loadu_si256(from.as_ptr().add(8).cast())] }
    }

    #[inline(always)]
    fn store(self, a: [__m256i; 2], to: &mut [u32; 16]) {
        // SAFETY: as above; the array has the size of two vectors.
        unsafe {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), a[0]);
            _mm256_storeu_si256(to.as_mut_ptr().add(8).cast(), a[1]);
        }
    }

    #[inline(always)]
    fn splat(self, value: i32) -> [__m256i; 2] {
        // SAFETY: as above.
        [unsafe { _mm256_set1_epi32(value) }; 2]
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen(shorts: __m256i) -> [__m256i; 2] {
    let (low, high) = (_mm256_castsi256_si128(shorts), _mm256_extracti128_si256::<1>(shorts));
    [_mm256_cvtepi16_epi32(low), _mm256_cvtepi16_epi32(high)]
}

/// The conversion rounds to the nearest: where its magnitude is too large, the bits before it are those wanted.
#[inline]
#[target_feature(enable = "avx2")]
fn toward_zero(a: __m256i) -> __m256 {
    let magnitude = _mm256_abs_epi32(a);
    let nearest = _mm256_cvtepi32_ps(a);
    let back = _mm256_abs_epi32(_mm256_cvttps_epi32(nearest));
    let excess = _mm256_srai_epi32::<31>(_mm256_sub_epi32(magnitude, back));
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(nearest), excess))
}

#[inline]
#[target_feature(enable = "avx2")]
fn lower_halves(a: __m256i) -> __m128i {
    let packed = _mm256_packus_epi32(a, a);
    _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(packed))
}
