//! AVX2 with FMA and F16C: two vectors of eight lanes.

use super::exp2::COEFFICIENTS;
use super::{LANES, Lanes, Simd, Task, entry};
use half::{bf16, f16};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    pub fn detect() -> Option<Avx2> {
        let has =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        has.then_some(Avx2(()))
    }

    /// The sum of eight lanes.
    #[inline(always)]
    pub fn sum_of_eight(self, of: __m256) -> f32 {
        // SAFETY: the instructions were detected.
        unsafe {
            let quarter = _mm_add_ps(_mm256_castps256_ps128(of), _mm256_extractf128_ps::<1>(of));
            let pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
        }
    }

    /// Lane by lane, the sum of four lanes and the next four.
    #[inline(always)]
    pub fn sum_of_quarters(self, of: __m256) -> [f32; 4] {
        let mut sums = [0.0; 4];
        // SAFETY: the instructions were detected, and four numbers are written.
        unsafe {
            let sum = _mm_add_ps(_mm256_castps256_ps128(of), _mm256_extractf128_ps::<1>(of));
            _mm_storeu_ps(sums.as_mut_ptr(), sum);
        }
        sums
    }

    /// Rows become columns: four blocks of 8 × 8, of which two change places.
    #[inline(always)]
    pub fn transpose_block(self, block: &mut [Lanes; LANES]) {
        let first = block.as_mut_ptr().cast::<f32>();
        let at = |row: usize, column: usize| first.wrapping_add(row * HALF * LANES + column * HALF);
        // SAFETY: the instructions were detected, and four blocks of 8 × 8 are all that there is.
        unsafe {
            let (upper, lower) = (eight_by_eight(at(0, 1)), eight_by_eight(at(1, 0)));
            write(at(0, 1), lower);
            write(at(1, 0), upper);
            write(at(0, 0), eight_by_eight(at(0, 0)));
            write(at(1, 1), eight_by_eight(at(1, 1)));
        }
    }
}

type Vector = [__m256; 2];

const HALF: usize = LANES / 2;

#[inline(always)]
fn halves<T>(of: &[T; LANES]) -> [*const T; 2] {
    let first = of.as_ptr();
    [first, first.wrapping_add(HALF)]
}

#[inline(always)]
fn halves_mut<T>(of: &mut [T; LANES]) -> [*mut T; 2] {
    let first = of.as_mut_ptr();
    [first, first.wrapping_add(HALF)]
}

// SAFETY of all blocks below: the instructions were detected, and each half of an array has the length that is read or
// written.
impl Simd for Avx2 {
    type Vector = Vector;
    const SUMS_SIX_COLUMNS: bool = true;
    const MANY_REGISTERS: bool = false;

    #[inline(always)]
    fn splat(self, value: f32) -> Vector {
        unsafe { [_mm256_set1_ps(value); 2] }
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Vector {
        let [first, second] = halves(from);
        unsafe { [_mm256_loadu_ps(first), _mm256_loadu_ps(second)] }
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], value: Vector) {
        let [first, second] = halves_mut(to);
        unsafe {
            _mm256_storeu_ps(first, value[0]);
            _mm256_storeu_ps(second, value[1]);
        }
    }
    #[inline(always)]
    fn add(self, left: Vector, right: Vector) -> Vector {
        unsafe { [_mm256_add_ps(left[0], right[0]), _mm256_add_ps(left[1], right[1])] }
    }
    #[inline(always)]
    fn sub(self, left: Vector, right: Vector) -> Vector {
        unsafe { [_mm256_sub_ps(left[0], right[0]), _mm256_sub_ps(left[1], right[1])] }
    }
    #[inline(always)]
    fn mul(self, left: Vector, right: Vector) -> Vector {
        unsafe { [_mm256_mul_ps(left[0], right[0]), _mm256_mul_ps(left[1], right[1])] }
    }
    #[inline(always)]
    fn div(self, left: Vector, right: Vector) -> Vector {
        unsafe { [_mm256_div_ps(left[0], right[0]), _mm256_div_ps(left[1], right[1])] }
    }
    #[inline(always)]
    fn max(self, left: Vector, right: Vector) -> Vector {
        unsafe { [_mm256_max_ps(left[0], right[0]), _mm256_max_ps(left[1], right[1])] }
    }
    #[inline(always)]
    fn mul_add(self, left: Vector, right: Vector, more: Vector) -> Vector {
        unsafe { [_mm256_fmadd_ps(left[0], right[0], more[0]), _mm256_fmadd_ps(left[1], right[1], more[1])] }
    }
    #[inline(always)]
    fn if_below(self, left: Vector, right: Vector, yes: Vector, no: Vector) -> Vector {
        unsafe {
            let below =
                [_mm256_cmp_ps::<_CMP_LT_OQ>(left[0], right[0]), _mm256_cmp_ps::<_CMP_LT_OQ>(left[1], right[1])];
            [_mm256_blendv_ps(no[0], yes[0], below[0]), _mm256_blendv_ps(no[1], yes[1], below[1])]
        }
    }
    #[inline(always)]
    fn any_above(self, left: Vector, right: Vector) -> bool {
        unsafe {
            let first = _mm256_cmp_ps::<_CMP_GT_OQ>(left[0], right[0]);
            let second = _mm256_cmp_ps::<_CMP_GT_OQ>(left[1], right[1]);
            _mm256_movemask_ps(_mm256_or_ps(first, second)) != 0
        }
    }
    #[inline(always)]
    fn sum(self, value: Vector) -> f32 {
        unsafe { self.sum_of_eight(_mm256_add_ps(value[0], value[1])) }
    }
    #[inline(always)]
    fn sums(self, of: [Vector; 4]) -> [f32; 4] {
        unsafe {
            let left = _mm256_hadd_ps(_mm256_add_ps(of[0][0], of[0][1]), _mm256_add_ps(of[1][0], of[1][1]));
            let right = _mm256_hadd_ps(_mm256_add_ps(of[2][0], of[2][1]), _mm256_add_ps(of[3][0], of[3][1]));
            self.sum_of_quarters(_mm256_hadd_ps(left, right))
        }
    }
    /// One half behind the other: both at once would not leave enough registers.
    #[inline(always)]
    fn exp2(self, x: Vector) -> Vector {
        unsafe { [exp2(x[0]), exp2(x[1])] }
    }
    #[inline(always)]
    fn apart<T: Task>(self, task: T) {
        unsafe { entry::avx2(self, task) }
    }
    #[inline(always)]
    fn widen_f16(self, from: &[f16; LANES]) -> Vector {
        let [first, second] = halves(from);
        unsafe { [_mm256_cvtph_ps(_mm_loadu_si128(first.cast())), _mm256_cvtph_ps(_mm_loadu_si128(second.cast()))] }
    }
    #[inline(always)]
    fn widen_bf16(self, from: &[bf16; LANES]) -> Vector {
        let [first, second] = halves(from);
        unsafe {
            let first = _mm256_cvtepu16_epi32(_mm_loadu_si128(first.cast()));
            let second = _mm256_cvtepu16_epi32(_mm_loadu_si128(second.cast()));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(first)), _mm256_castsi256_ps(_mm256_slli_epi32::<16>(second))]
        }
    }
    #[inline(always)]
    fn narrow_f16(self, value: Vector, to: &mut [f16; LANES]) {
        let [first, second] = halves_mut(to);
        unsafe {
            _mm_storeu_si128(first.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value[0]));
            _mm_storeu_si128(second.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value[1]));
        }
    }
    #[inline(always)]
    fn narrow_bf16(self, value: Vector, to: &mut [bf16; LANES]) {
        let [first, second] = halves_mut(to);
        unsafe {
            _mm_storeu_si128(first.cast(), rounded_to_bf16(value[0]));
            _mm_storeu_si128(second.cast(), rounded_to_bf16(value[1]));
        }
    }
    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[inline(always)]
    fn transpose(self, block: &mut [Lanes; LANES]) {
        self.transpose_block(block);
    }
}

/// Coefficients in all lanes. They are read where they are needed, again and again (which only `read_volatile` brings about): held
/// in registers, they push what the loop around needs onto the stack.
static SPREAD: [Spread; COEFFICIENTS.len()] = {
    let mut spread = [const { Spread([0.0; HALF]) }; COEFFICIENTS.len()];
    let mut index = 0;
    while index < spread.len() {
        spread[index] = Spread([COEFFICIENTS[index]; HALF]);
        index += 1;
    }
    spread
};

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Spread([f32; HALF]);

/// # Safety
/// AVX2 with FMA.
#[inline(always)]
unsafe fn exp2(x: __m256) -> __m256 {
    unsafe {
        let least = _mm256_set1_ps(-126.0);
        // The second operand where one is NaN: NaN stays.
        let clamped = _mm256_max_ps(least, x);
        let below = _mm256_floor_ps(clamped);
        let fraction = _mm256_sub_ps(clamped, below);
        let mut power = _mm256_set1_ps(COEFFICIENTS[0]);
        for coefficient in &SPREAD[1..] {
            // SAFETY: a static of eight f32, aligned as a vector is.
            power = _mm256_fmadd_ps(power, fraction, std::ptr::read_volatile((&raw const coefficient.0).cast()));
        }
        let exponent = _mm256_slli_epi32::<23>(_mm256_cvtps_epi32(below));
        let scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(power), exponent));
        // What is no number has no exponent, and is not below anything.
        _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(x, least), scaled)
    }
}

/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn rounded_to_bf16(value: __m256) -> __m128i {
    unsafe {
        let bits = _mm256_castps_si256(value);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
        let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
        // NaN stays NaN: its bits must not be rounded up to infinity.
        let number = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_ORD_Q>(value, value));
        let words = _mm256_srli_epi32::<16>(_mm256_blendv_epi8(_mm256_set1_epi32(0x7fc0_0000), rounded, number));
        _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(words, words)))
    }
}

/// # Safety
/// AVX, and all eight rows of sixteen can be written.
#[inline(always)]
unsafe fn write(to: *mut f32, rows: [__m256; 8]) {
    for (index, row) in rows.into_iter().enumerate() {
        unsafe { _mm256_storeu_ps(to.add(index * LANES), row) };
    }
}

/// The columns of 8 × 8 numbers in rows of sixteen.
///
/// # Safety
/// AVX, and all of them can be read.
#[inline(always)]
unsafe fn eight_by_eight(from: *const f32) -> [__m256; 8] {
    unsafe {
        let mut rows = [_mm256_setzero_ps(); 8];
        for (index, row) in rows.iter_mut().enumerate() {
            *row = _mm256_loadu_ps(from.add(index * LANES));
        }
        let mut pairs = rows;
        for index in (0..8).step_by(2) {
            pairs[index] = _mm256_unpacklo_ps(rows[index], rows[index + 1]);
            pairs[index + 1] = _mm256_unpackhi_ps(rows[index], rows[index + 1]);
        }
        // Four rows of each half of the lanes.
        let mut fours = rows;
        for (index, from) in [(0, 0), (2, 1), (4, 4), (6, 5)] {
            fours[index] = _mm256_shuffle_ps::<0x44>(pairs[from], pairs[from + 2]);
            fours[index + 1] = _mm256_shuffle_ps::<0xee>(pairs[from], pairs[from + 2]);
        }
        let mut columns = rows;
        for index in 0..4 {
            columns[index] = _mm256_permute2f128_ps::<0x20>(fours[index], fours[index + 4]);
            columns[index + 4] = _mm256_permute2f128_ps::<0x31>(fours[index], fours[index + 4]);
        }
        columns
    }
}
