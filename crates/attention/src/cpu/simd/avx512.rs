//! AVX-512 (F, BW, DQ, VL), and its dot products of bf16 pairs.

use super::avx2::Avx2;
use super::exp2::polynomial;
use super::{LANES, Lanes, Simd, Task, entry};
use half::{bf16, f16};
use std::arch::x86_64::*;

/// Whoever has it has AVX2, too.
#[derive(Clone, Copy)]
pub struct Avx512(Avx2);

impl Avx512 {
    pub fn detect() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        Avx2::detect().filter(|_| has).map(Avx512)
    }
}

/// AVX-512 with `vdpbf16ps`.
#[derive(Clone, Copy)]
pub struct Avx512Bf16(Avx512);

impl Avx512Bf16 {
    pub fn detect() -> Option<Avx512Bf16> {
        Avx512::detect().filter(|_| is_x86_feature_detected!("avx512bf16")).map(Avx512Bf16)
    }

    /// The instructions that are no products of pairs.
    pub fn vectors(self) -> Avx512 {
        self.0
    }

    /// `sum` + the products of the pairs of `left` and of `right`. Subnormal numbers count as 0 (Intel SDM, VDPBF16PS).
    #[inline(always)]
    pub fn dot(self, sum: __m512, left: __m512, right: __m512) -> __m512 {
        // SAFETY: the instruction was detected. Both types are sixteen words of 32 bits.
        unsafe {
            let [left, right] = [left, right].map(|words| std::mem::transmute::<__m512, __m512bh>(words));
            _mm512_dpbf16_ps(sum, left, right)
        }
    }

    /// Sixteen pairs of bf16 out of sixteen low and sixteen high halves.
    #[inline(always)]
    pub fn pair(self, low: __m512, high: __m512) -> __m512 {
        // SAFETY: the instruction was detected. `__m512bh` is 64 bytes, as `__m512i` is.
        unsafe {
            let halves: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(high, low));
            let low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
            let high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(halves));
            _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32::<16>(high)))
        }
    }

    /// Words whose halves are the elements of two rows.
    #[inline(always)]
    pub fn zip(self, low: &[bf16; LANES], high: &[bf16; LANES]) -> __m512 {
        // SAFETY: AVX-512 was detected, and both arrays have 32 bytes.
        unsafe {
            let low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(low.as_ptr().cast()));
            let high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(high.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32::<16>(high)))
        }
    }
}

// SAFETY of all blocks below: the instructions were detected, and arrays have the length that is read or written.
impl Simd for Avx512 {
    type Vector = __m512;
    const SUMS_SIX_COLUMNS: bool = false;
    const MANY_REGISTERS: bool = true;

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> __m512 {
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: __m512) {
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) }
    }
    #[inline(always)]
    fn add(self, left: __m512, right: __m512) -> __m512 {
        unsafe { _mm512_add_ps(left, right) }
    }
    #[inline(always)]
    fn sub(self, left: __m512, right: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(left, right) }
    }
    #[inline(always)]
    fn mul(self, left: __m512, right: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(left, right) }
    }
    #[inline(always)]
    fn div(self, left: __m512, right: __m512) -> __m512 {
        unsafe { _mm512_div_ps(left, right) }
    }
    #[inline(always)]
    fn max(self, left: __m512, right: __m512) -> __m512 {
        unsafe { _mm512_max_ps(left, right) }
    }
    #[inline(always)]
    fn mul_add(self, left: __m512, right: __m512, more: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(left, right, more) }
    }
    #[inline(always)]
    fn if_below(self, left: __m512, right: __m512, yes: __m512, no: __m512) -> __m512 {
        unsafe { _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask::<_CMP_LT_OQ>(left, right), yes) }
    }
    #[inline(always)]
    fn any_above(self, left: __m512, right: __m512) -> bool {
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(left, right) != 0 }
    }
    #[inline(always)]
    fn sum(self, value: __m512) -> f32 {
        unsafe {
            let half = _mm256_add_ps(_mm512_castps512_ps256(value), _mm512_extractf32x8_ps::<1>(value));
            self.0.sum_of_eight(half)
        }
    }
    /// Lanes of four vectors change places so that one addition adds numbers of all four.
    #[inline(always)]
    fn sums(self, of: [__m512; 4]) -> [f32; 4] {
        unsafe {
            let left = _mm512_add_ps(_mm512_unpacklo_ps(of[0], of[1]), _mm512_unpackhi_ps(of[0], of[1]));
            let right = _mm512_add_ps(_mm512_unpacklo_ps(of[2], of[3]), _mm512_unpackhi_ps(of[2], of[3]));
            let (left, right) = (_mm512_castps_pd(left), _mm512_castps_pd(right));
            let (low, high) = (_mm512_unpacklo_pd(left, right), _mm512_unpackhi_pd(left, right));
            let all = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
            let half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
            self.0.sum_of_quarters(half)
        }
    }
    #[inline(always)]
    fn exp2(self, x: __m512) -> __m512 {
        // The fraction above the next lower integer, 0 for −∞; then · 2^⌊x⌋, which is 0 for −∞.
        unsafe { _mm512_scalef_ps(polynomial(self, _mm512_reduce_ps::<0x09>(x)), x) }
    }
    #[inline(always)]
    fn apart<T: Task>(self, task: T) {
        unsafe { entry::avx512(self, task) }
    }
    #[inline(always)]
    fn widen_f16(self, from: &[f16; LANES]) -> __m512 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn widen_bf16(self, from: &[bf16; LANES]) -> __m512 {
        unsafe {
            let words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
        }
    }
    #[inline(always)]
    fn narrow_f16(self, value: __m512, to: &mut [f16; LANES]) {
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value)) }
    }
    #[inline(always)]
    fn narrow_bf16(self, value: __m512, to: &mut [bf16; LANES]) {
        unsafe {
            let bits = _mm512_castps_si512(value);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
            // NaN stays NaN: its bits must not be rounded up to infinity.
            let number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(value, value);
            let bits = _mm512_mask_mov_epi32(_mm512_set1_epi32(0x7fc0_0000), number, rounded);
            _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(bits)));
        }
    }
    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[inline(always)]
    fn transpose(self, block: &mut [Lanes; LANES]) {
        self.0.transpose_block(block);
    }
}
