//! AVX-512 with the extensions that every processor since Skylake-X and Zen 4 has.

use super::Register;
use super::operand::{self, LeftStep, NO_EXPONENT, RightSteps, SPECIAL};
use super::vectors::Vectors;
use crate::numerics::format::Format;
use std::arch::x86_64::*;

/// Proof that the processor has the instructions.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    pub fn detect() -> Option<Avx512> {
        let all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && super::avx2::Avx2::detect().is_some();
        all.then_some(Avx512(()))
    }
}

/// Operations that are one instruction each.
macro_rules! instructions {
    ($($name:ident($($argument:ident: $type:ident),*) -> $result:ident = $instruction:expr;)*) => {
        $(#[inline(always)]
        fn $name(self, $($argument: Self::$type),*) -> Self::$result {
            // SAFETY: `self` proves that the processor has the instruction; it touches registers only.
            unsafe { $instruction }
        })*
    };
}

#[rustfmt::skip] // One row per line.
impl Vectors for Avx512 {
    type Floats = __m512;
    type Integers = __m512i;
    type Shorts = __m512i;
    type Mask = __mmask16;
    const EXACT_AT_ONCE: usize = 4;
    const FUSED_AT_ONCE: usize = 4;

    instructions! {
        add_shorts(a: Shorts, b: Shorts) -> Shorts = _mm512_add_epi16(a, b);
        larger_shorts(a: Shorts, b: Shorts) -> Shorts = _mm512_max_epi16(a, b);
        multiply(a: Floats, b: Floats) -> Floats = _mm512_mul_ps(a, b);
        fused(a: Floats, b: Floats, c: Floats) -> Floats = _mm512_fmadd_ps(a, b, c);
        not_a_number(a: Floats) -> Mask = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a);
        truncate(a: Floats) -> Integers = _mm512_cvttps_epi32(a);
        toward_zero(a: Integers) -> Floats = _mm512_cvt_roundepi32_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(a);
        bits(a: Floats) -> Integers = _mm512_castps_si512(a);
        of_bits(a: Integers) -> Floats = _mm512_castsi512_ps(a);
        of_halves(a: Integers) -> Floats = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a));
        to_halves(a: Floats) -> Integers = _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(a));
        add(a: Integers, b: Integers) -> Integers = _mm512_add_epi32(a, b);
        subtract(a: Integers, b: Integers) -> Integers = _mm512_sub_epi32(a, b);
        larger(a: Integers, b: Integers) -> Integers = _mm512_max_epi32(a, b);
        and(a: Integers, b: Integers) -> Integers = _mm512_and_si512(a, b);
        or(a: Integers, b: Integers) -> Integers = _mm512_or_si512(a, b);
        exclusive_or(a: Integers, b: Integers) -> Integers = _mm512_xor_si512(a, b);
        shift_left(a: Integers) -> Integers = _mm512_slli_epi32::<23>(a);
        shift_right(a: Integers) -> Integers = _mm512_srli_epi32::<23>(a);
        greater(a: Integers, b: Integers) -> Mask = _mm512_cmpgt_epi32_mask(a, b);
        equal(a: Integers, b: Integers) -> Mask = _mm512_cmpeq_epi32_mask(a, b);
        select(mask: Mask, a: Integers, b: Integers) -> Integers = _mm512_mask_blend_epi32(mask, b, a);
    }

    #[inline(always)]
    fn both(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }

    #[inline(always)]
    fn either(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a | b
    }

    #[inline(always)]
    fn without(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & !b
    }

    #[inline(always)]
    fn lanes(self, mask: __mmask16) -> u32 {
        mask.into()
    }

    #[inline(always)]
    fn widen(self, shorts: __m512i) -> [__m512i; 2] {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe {
            let (low, high) = (_mm512_castsi512_si256(shorts), _mm512_extracti64x4_epi64::<1>(shorts));
            [_mm512_cvtepi16_epi32(low), _mm512_cvtepi16_epi32(high)]
        }
    }

    #[inline(always)]
    fn shorts(self, from: &[i16; 32]) -> __m512i {
        // SAFETY: as above; the array has the size of the vector.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn shorts_of_four(self, from: &[i16; 4]) -> __m512i {
        // SAFETY: as above; four numbers are 64 bits.
        unsafe { _mm512_set1_epi64(from.as_ptr().cast::<i64>().read_unaligned()) }
    }

    #[inline(always)]
    fn floats(self, from: &[f32; 16]) -> __m512 {
        // SAFETY: as above; the array has the size of the vector.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn floats_of_four(self, from: &[f32; 4]) -> __m512 {
        // SAFETY: as above; the array has the size of the vector that is loaded.
        unsafe { _mm512_broadcast_f32x4(_mm_loadu_ps(from.as_ptr())) }
    }

    #[inline(always)]
    fn integers(self, from: &[u32; 16]) -> __m512i {
        // SAFETY: as above; the array has the size of the vector.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, a: __m512i, to: &mut [u32; 16]) {
        // SAFETY: as above; the array has the size of the vector.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), a) }
    }

    #[inline(always)]
    fn splat(self, value: i32) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    fn load_left<const EXPONENTS: bool>(self, format: Format, core: &Register, half: usize, steps: &mut [LeftStep]) {
        match format {
            Format::F16 => self.spread_left::<false, EXPONENTS>(core, half, steps),
            Format::BF16 => self.spread_left::<true, EXPONENTS>(core, half, steps),
            other => operand::spread_left::<EXPONENTS>(other, core, half, steps),
        }
    }

    #[inline(always)]
    fn load_right<const EXPONENTS: bool>(self, format: Format, core: &Register, steps: RightSteps) {
        match format {
            Format::F16 => self.spread_right::<false, EXPONENTS>(core, steps),
            Format::BF16 => self.spread_right::<true, EXPONENTS>(core, steps),
            other => operand::spread_right::<EXPONENTS>(other, core, steps),
        }
    }

    #[inline(always)]
    fn transpose(self, core: &Register) -> Register {
        let core = Core::load(self, core);
        let mut result = [0; 32];
        let (low, high) = result.split_at_mut(16);
        for (part, words) in [low, high].into_iter().enumerate() {
            if let Some(words) = words.first_chunk_mut() {
                self.store(core.pick(&TRANSPOSED[part]), words);
            }
        }
        result
    }
}

/// For each depth, the elements of eight lines, four times each.
static ROWS: [[u16; 32]; 8] = table(Order::Rows);
/// For each four depths, the elements of the even lines and of the odd ones.
static COLUMNS: [[u16; 32]; 2] = table(Order::Columns);
/// The depths of four lines each.
static TRANSPOSED: [[u16; 32]; 2] = table(Order::Transposed);

#[derive(Clone, Copy)]
enum Order {
    Rows,
    Columns,
    Transposed,
}

/// Indices of elements of a core matrix, lines of eight.
const fn table<const COUNT: usize>(order: Order) -> [[u16; 32]; COUNT] {
    let mut table = [[0; 32]; COUNT];
    let mut place = 0;
    while place < 32 * COUNT {
        let (index, lane) = (place / 32, place % 32);
        let (line, depth) = match order {
            Order::Rows => (lane / 4, index),
            Order::Columns => (2 * (lane % 4) + lane / 4 % 2, 4 * index + lane / 8),
            Order::Transposed => (lane % 8, 4 * index + lane / 8),
        };
        table[index][lane] = (8 * line + depth) as u16;
        place += 1;
    }
    table
}

/// A core matrix of 16-bit elements.
#[derive(Clone, Copy)]
struct Core([__m512i; 2]);

impl Core {
    #[inline(always)]
    fn load(v: Avx512, core: &Register) -> Core {
        let (halves, _) = core.as_chunks::<16>();
        Core([v.integers(&halves[0]), v.integers(&halves[1])])
    }

    #[inline(always)]
    fn pick(self, indices: &[u16; 32]) -> __m512i {
        // SAFETY: vectors of this type exist only where the processor has the instructions; the array has their size.
        unsafe { _mm512_permutex2var_epi16(self.0[0], _mm512_loadu_si512(indices.as_ptr().cast()), self.0[1]) }
    }

    #[inline(always)]
    fn exponents<const BRAIN: bool>(self) -> Core {
        // SAFETY: vectors of this type exist only where the processor has the instructions.
        unsafe { Core([exponents::<BRAIN>(self.0[0]), exponents::<BRAIN>(self.0[1])]) }
    }
}

/// As [`operand::split`] gives them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn exponents<const BRAIN: bool>(bits: __m512i) -> __m512i {
    let (limit, bias) = if BRAIN { ((63 + 127) << 7, 127) } else { (0x7c00, 15) };
    let magnitude = _mm512_and_si512(bits, _mm512_set1_epi16(0x7fff));
    let field = if BRAIN { _mm512_srli_epi16::<7>(magnitude) } else { _mm512_srli_epi16::<10>(magnitude) };
    let exponent = _mm512_sub_epi16(_mm512_max_epi16(field, _mm512_set1_epi16(1)), _mm512_set1_epi16(bias));
    let special = _mm512_cmpge_epi16_mask(magnitude, _mm512_set1_epi16(limit));
    let exponent = _mm512_mask_mov_epi16(exponent, special, _mm512_set1_epi16(SPECIAL));
    let zero = _mm512_cmpeq_epi16_mask(magnitude, _mm512_setzero_si512());
    _mm512_mask_mov_epi16(exponent, zero, _mm512_set1_epi16(NO_EXPONENT))
}

/// 32 elements as f32.
#[inline(always)]
fn values<const BRAIN: bool>(bits: __m512i) -> [__m512; 2] {
    // SAFETY: vectors of this type exist only where the processor has the instructions.
    unsafe {
        let (low, high) = (_mm512_castsi512_si256(bits), _mm512_extracti64x4_epi64::<1>(bits));
        if BRAIN { [widen_brain(low), widen_brain(high)] } else { [_mm512_cvtph_ps(low), _mm512_cvtph_ps(high)] }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_brain(bits: __m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits)))
}

impl Avx512 {
    #[inline(always)]
    fn spread_left<const BRAIN: bool, const EXPONENTS: bool>(
        self,
        core: &Register,
        half: usize,
        steps: &mut [LeftStep],
    ) {
        let bits = Core::load(self, core);
        let exponents = bits.exponents::<BRAIN>();
        for (step, indices) in steps.iter_mut().zip(&ROWS) {
            let [low, high] = values::<BRAIN>(bits.pick(indices));
            // SAFETY: `self` proves that the processor has the instructions; the arrays have the size of the vectors.
            unsafe {
                _mm512_storeu_ps(step.values[half][0].as_mut_ptr(), low);
                _mm512_storeu_ps(step.values[half][1].as_mut_ptr(), high);
                if EXPONENTS {
                    _mm512_storeu_si512(step.exponents[half].as_mut_ptr().cast(), exponents.pick(indices));
                }
            }
        }
    }

    #[inline(always)]
    fn spread_right<const BRAIN: bool, const EXPONENTS: bool>(self, core: &Register, steps: RightSteps) {
        let bits = Core::load(self, core);
        let exponents = bits.exponents::<BRAIN>();
        let (values_to, _) = steps.values.as_chunks_mut::<4>();
        let (exponents_to, _) = steps.exponents.as_chunks_mut::<4>();
        for ((to, exponents_to), indices) in values_to.iter_mut().zip(exponents_to).zip(&COLUMNS) {
            let [low, high] = values::<BRAIN>(bits.pick(indices));
            // SAFETY: `self` proves that the processor has the instructions; the arrays have the size of two vectors of
            // numbers and of one of exponents.
            unsafe {
                _mm512_storeu_ps(to.as_mut_ptr().cast(), low);
                _mm512_storeu_ps(to.as_mut_ptr().cast::<f32>().add(16), high);
                if EXPONENTS {
                    _mm512_storeu_si512(exponents_to.as_mut_ptr().cast(), exponents.pick(indices));
                }
            }
        }
    }
}
