//! The kernels, one row for each: a function that is compiled for every level of vector instructions, in a table from which
//! the runner calls it. Functions of their own keep what they need in registers; arms of one `match` do not, and where
//! they come to lie counts.

use super::code::{Kernel, Operation};
use super::step::{Context, Step};
use super::{Level, words};
use crate::numerics::special;

/// Does an operation in the lanes of a mask. False if the definition must do it.
///
/// # Safety
/// The machine must have the instructions that the function is compiled for.
pub type Function = unsafe fn(&mut Context, &Operation, u32) -> bool;

pub type Functions = [Function; COUNT];

const COUNT: usize = Kernel::Store as usize + 1;

/// The functions for a level. `checked`: there may be a detector.
pub fn functions(level: Level, checked: bool) -> &'static Functions {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if checked => &AVX512_CHECKED,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => &AVX512,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => &AVX2,
        _ => &BASELINE,
    }
}

trait Body {
    fn run<const LEVEL: u8, const CHECKED: bool>(step: Step<LEVEL, CHECKED>) -> bool;
}

fn baseline<B: Body>(context: &mut Context, operation: &Operation, mask: u32) -> bool {
    B::run(Step::<0, true> { context, operation, mask })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<B: Body>(context: &mut Context, operation: &Operation, mask: u32) -> bool {
    B::run(Step::<1, true> { context, operation, mask })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn avx512<B: Body>(context: &mut Context, operation: &Operation, mask: u32) -> bool {
    B::run(Step::<2, false> { context, operation, mask })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn avx512_checked<B: Body>(context: &mut Context, operation: &Operation, mask: u32) -> bool {
    B::run(Step::<2, true> { context, operation, mask })
}

/// `Kernel: form(function);`, a form of [`Step`].
macro_rules! kernels {
    ($($name:ident: $form:ident($function:expr);)*) => {
        $(
            struct $name;
            impl Body for $name {
                #[inline(always)]
                #[allow(clippy::redundant_closure)] // They carry `inline`.
                fn run<const LEVEL: u8, const CHECKED: bool>(mut step: Step<LEVEL, CHECKED>) -> bool {
                    step.$form(#[inline(always)] $function)
                }
            }
        )*

        table!(BASELINE, baseline, $($name)*);
        #[cfg(target_arch = "x86_64")]
        table!(AVX2, avx2, $($name)*);
        #[cfg(target_arch = "x86_64")]
        table!(AVX512, avx512, $($name)*);
        #[cfg(target_arch = "x86_64")]
        table!(AVX512_CHECKED, avx512_checked, $($name)*);
    };
}

macro_rules! table {
    ($table:ident, $level:ident, $($name:ident)*) => {
        static $table: Functions = {
            // No kernel is without a row.
            const fn function(kernel: Kernel) -> Function {
                match kernel {
                    Kernel::Leave | Kernel::Pass | Kernel::Branch => |_, _, _| false,
                    $(Kernel::$name => $level::<$name>,)*
                }
            }
            // The runner does the first three itself.
            let mut functions = [function(Kernel::Leave); COUNT];
            $(functions[Kernel::$name as usize] = function(Kernel::$name);)*
            functions
        };
    };
}

#[rustfmt::skip] // One row per kernel.
kernels! {
    Copy: map(|a, _, _| a);
    Add: map(|a, b, _| a.wrapping_add(b));
    Subtract: map(|a, b, _| a.wrapping_sub(b));
    MultiplyLow: map(|a, b, _| a.wrapping_mul(b));
    MultiplyHighSigned: map(|a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
    MultiplyHighUnsigned: map(|a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    MultiplyAddLow: map(|a, b, c| a.wrapping_mul(b).wrapping_add(c));
    And: map(|a, b, _| a & b);
    Or: map(|a, b, _| a | b);
    Xor: map(|a, b, _| a ^ b);
    Not: map(|a, _, _| !a);
    Negate: map(|a, _, _| a.wrapping_neg());
    Absolute: map(|a, _, _| (a as i32).wrapping_abs() as u32);
    ShiftLeft: map(|a, b, _| if b < 32 { a << b } else { 0 });
    ShiftRightSigned: map(|a, b, _| ((a as i32) >> b.min(31)) as u32);
    ShiftRightUnsigned: map(|a, b, _| if b < 32 { a >> b } else { 0 });
    MinimumSigned: map(|a, b, _| (a as i32).min(b as i32) as u32);
    MinimumUnsigned: map(|a, b, _| a.min(b));
    MaximumSigned: map(|a, b, _| (a as i32).max(b as i32) as u32);
    MaximumUnsigned: map(|a, b, _| a.max(b));
    // Division by zero gives all ones, and so does its remainder.
    DivideSigned: map(|a, b, _| if b == 0 { !0 } else { (a as i32).wrapping_div(b as i32) as u32 });
    DivideUnsigned: map(|a, b, _| a.checked_div(b).unwrap_or(!0));
    RemainderSigned: map(|a, b, _| if b == 0 { !0 } else { (a as i32).wrapping_rem(b as i32) as u32 });
    RemainderUnsigned: map(|a, b, _| a.checked_rem(b).unwrap_or(!0));
    CountOnes: map(|a, _, _| a.count_ones());
    CountLeadingZeros: map(|a, _, _| a.leading_zeros());
    ReverseBits: map(|a, _, _| a.reverse_bits());
    ExtractSigned: map(|a, b, c| words::extract::<true>(a, b, c));
    ExtractUnsigned: map(|a, b, c| words::extract::<false>(a, b, c));
    LogicOfThree: by(|step| step.logic_of_three());
    Permute: map(|a, b, c| words::permute(a, b, c));
    FunnelLeftClamp: map(|a, b, c| (join(a, b) << c.min(32) >> 32) as u32);
    FunnelLeftWrap: map(|a, b, c| (join(a, b) << (c & 31) >> 32) as u32);
    FunnelRightClamp: map(|a, b, c| (join(a, b) >> c.min(32)) as u32);
    FunnelRightWrap: map(|a, b, c| (join(a, b) >> (c & 31)) as u32);
    Select: by(|step| step.select(0));
    Extend: by(|step| step.extend());
    PackHalves: map(|a, b, _| a & 0xffff | b << 16);
    LowHalf: map(|a, _, _| a & 0xffff);
    HighHalf: map(|a, _, _| a >> 16);
    FloatAdd: map(|a, b, _| words::add::<false>(a, b));
    FloatAddFlush: map(|a, b, _| words::add::<true>(a, b));
    FloatSubtract: map(|a, b, _| words::add::<false>(a, b ^ 1 << 31));
    FloatSubtractFlush: map(|a, b, _| words::add::<true>(a, b ^ 1 << 31));
    FloatMultiply: map(|a, b, _| words::multiply::<false>(a, b).0);
    FloatMultiplyFlush: doubt(|a, b, _| words::multiply::<true>(a, b));
    FloatDivide: map(|a, b, _| words::divide::<false>(a, b).0);
    FloatDivideFlush: doubt(|a, b, _| words::divide::<true>(a, b));
    FloatDivideFull: each_pair(|a, b| special::divide_full(a, b));
    FloatReciprocal: map(|a, _, _| words::divide::<false>(words::ONE, a).0);
    FloatReciprocalFlush: doubt(|a, _, _| words::divide::<true>(words::ONE, a));
    FloatRoot: map(|a, _, _| words::root::<false>(a));
    FloatRootFlush: map(|a, _, _| words::root::<true>(a));
    FloatFuse: map(|a, b, c| words::fused_multiply_add::<false>(a, b, c).0);
    FloatFuseFlush: doubt(|a, b, c| words::fused_multiply_add::<true>(a, b, c));
    FloatNegate: map(|a, _, _| words::negate::<false>(a));
    FloatNegateFlush: map(|a, _, _| words::negate::<true>(a));
    FloatAbsolute: map(|a, _, _| words::absolute::<false>(a));
    FloatAbsoluteFlush: map(|a, _, _| words::absolute::<true>(a));
    FloatMinimum: map(|a, b, _| words::extreme::<false, false, false>(a, b));
    FloatMinimumFlush: map(|a, b, _| words::extreme::<false, true, false>(a, b));
    FloatMinimumKeep: map(|a, b, _| words::extreme::<false, false, true>(a, b));
    FloatMaximum: map(|a, b, _| words::extreme::<true, false, false>(a, b));
    FloatMaximumFlush: map(|a, b, _| words::extreme::<true, true, false>(a, b));
    FloatMaximumKeep: map(|a, b, _| words::extreme::<true, false, true>(a, b));
    Exponential: by(|step| step.exponentials::<false>());
    ExponentialFlush: by(|step| step.exponentials::<true>());
    Logarithm: each(|a| special::logarithm(a));
    LogarithmFlush: each(|a| special::unit_logarithm(a));
    Reciprocal: each(|a| special::reciprocal(a));
    ReciprocalFlush: each(|a| special::unit_reciprocal(a));
    SquareRoot: each(|a| special::root(a));
    SquareRootFlush: each(|a| special::unit_root(a));
    ReciprocalRoot: each(|a| special::reciprocal_root(a));
    ReciprocalRootFlush: each(|a| special::unit_reciprocal_root(a));
    ToHalf: map(|a, _, _| words::to_half(a));
    FromHalf: map(|a, _, _| words::from_half(a));
    ToHalves: map(|a, b, _| words::to_half(a) << 16 | words::to_half(b));
    ToBrain16: map(|a, _, _| words::to_brain16(a));
    ToBrain16s: map(|a, b, _| words::to_brain16(a) << 16 | words::to_brain16(b));
    FromBrain16: map(|a, _, _| a << 16);
    SignedToFloat: map(|a, _, _| (a as i32 as f32).to_bits());
    UnsignedToFloat: map(|a, _, _| (a as f32).to_bits());
    FloatToSigned: map(|a, _, _| f32::from_bits(a) as i32 as u32);
    FloatToUnsigned: map(|a, _, _| f32::from_bits(a) as u32);
    FloatToSignedNearest: map(|a, _, _| f32::from_bits(a).round_ties_even() as i32 as u32);
    HalvesAdd: map(|a, b, _| words::on_halves(a, b, |x, y| x + y));
    HalvesSubtract: map(|a, b, _| words::on_halves(a, b, |x, y| x - y));
    HalvesMultiply: map(|a, b, _| words::on_halves(a, b, |x, y| x * y));
    WideCopy: pairs(|a, _, _| a);
    WideJoin: by(|step| step.join());
    WideSplit: by(|step| step.split());
    SplitHalves: by(|step| step.split_halves());
    WideAdd: pairs(|a, b, _| words::add_pairs(a, b));
    WideSubtract: wide(|a, b, _| a.wrapping_sub(b));
    WideAnd: pairs(|a, b, _| [a[0] & b[0], a[1] & b[1]]);
    WideOr: pairs(|a, b, _| [a[0] | b[0], a[1] | b[1]]);
    WideXor: pairs(|a, b, _| [a[0] ^ b[0], a[1] ^ b[1]]);
    WideShiftLeft: wide(|a, b, _| if (b as u32) < 64 { a << (b as u32) } else { 0 });
    WideShiftRightSigned: wide(|a, b, _| ((a as i64) >> (b as u32).min(63)) as u64);
    WideShiftRightUnsigned: wide(|a, b, _| if (b as u32) < 64 { a >> (b as u32) } else { 0 });
    WideMultiplyLow: wide(|a, b, _| a.wrapping_mul(b));
    WideMultiplyAddLow: wide(|a, b, c| a.wrapping_mul(b).wrapping_add(c));
    WideSelect: by(|step| step.select(0) && step.select(1));
    WidenSigned: pairs(|a, _, _| [a[0], (a[0] as i32 >> 31) as u32]);
    WidenUnsigned: pairs(|a, _, _| [a[0], 0]);
    MultiplyWideSigned: pairs(|a, b, _| words::product_signed(a[0], b[0]));
    MultiplyWideUnsigned: pairs(|a, b, _| words::product(a[0], b[0]));
    MultiplyAddWideSigned: pairs(|a, b, c| words::add_pairs(words::product_signed(a[0], b[0]), c));
    MultiplyAddWideUnsigned: pairs(|a, b, c| words::add_pairs(words::product(a[0], b[0]), c));
    Equal: holds(|a, b| a == b);
    LessSigned: holds(|a, b| (a as i32) < b as i32);
    LessOrEqualSigned: holds(|a, b| a as i32 <= b as i32);
    LessUnsigned: holds(|a, b| a < b);
    LessOrEqualUnsigned: holds(|a, b| a <= b);
    FloatEqual: holds(|a, b| words::equal::<false>(a, b));
    FloatEqualFlush: holds(|a, b| words::equal::<true>(a, b));
    FloatLess: holds(|a, b| words::less::<false>(a, b));
    FloatLessFlush: holds(|a, b| words::less::<true>(a, b));
    FloatLessOrEqual: holds(|a, b| words::less_or_equal::<false>(a, b));
    FloatLessOrEqualFlush: holds(|a, b| words::less_or_equal::<true>(a, b));
    WideEqual: wide_holds(|a, b| a == b);
    WideLessSigned: wide_holds(|a, b| (a as i64) < b as i64);
    WideLessOrEqualSigned: wide_holds(|a, b| a as i64 <= b as i64);
    WideLessUnsigned: wide_holds(|a, b| a < b);
    WideLessOrEqualUnsigned: wide_holds(|a, b| a <= b);
    PredicateCopy: predicates(|a, _| a);
    PredicateAnd: predicates(|a, b| a & b);
    PredicateOr: predicates(|a, b| a | b);
    PredicateXor: predicates(|a, b| a ^ b);
    PredicateNot: predicates(|a, _| !a);
    Load: by(|step| step.load());
    Store: by(|step| step.store());
    Shuffle: by(|step| step.shuffle());
}

#[inline(always)]
fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
