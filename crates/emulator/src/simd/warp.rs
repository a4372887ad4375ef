//! Runs straight-line code of one fragment: a plain `match` on the kernel, compiled for every level of vector
//! instructions, and chosen once per call.

use super::code::{Code, Kernel, NO_MEETING, Operation, UNGUARDED, combine};
use super::lanes::{File, blend};
use super::memory::View;
use super::vector::{exponentials, permute};
use super::{Level, words};
use crate::machine::Registers;
use crate::numerics::special;

/// A fragment that runs as far as kernels go.
pub struct Straight<'a> {
    pub code: &'a Code,
    pub registers: &'a mut Registers,
    /// Its lanes.
    pub mask: u32,
    /// The next step.
    pub next: u32,
    /// Where it must stop: others wait there.
    pub stop: u32,
    /// Instructions it may run.
    pub budget: u64,
    /// Does it run steps, too, that checks watch?
    pub through: bool,
    /// May it run first one side of a branch that parts, and then the other?
    pub parts: bool,
    /// The branch inside of which it has ended.
    pub parted: Option<Parted>,
    pub memory: View<'a>,
}

/// A branch that has parted lanes: those that fall through run first, then those that jump.
#[derive(Clone, Copy, Debug)]
pub struct Parted {
    /// All that came to the branch.
    pub whole: u32,
    /// Those that run. The others wait at the meeting point, but for those of `waits`.
    pub runs: u32,
    /// Those that have not begun; they begin at `target`.
    pub waits: u32,
    pub target: u32,
    pub meeting: u32,
    /// Where all of them must stop.
    pub outer: u32,
}

impl Straight<'_> {
    /// Runs until a step that the kernels do not do, the stop, or the end of the budget; returns how many instructions.
    pub fn run(&mut self, level: Level) -> u64 {
        let Registers { chunks, predicates, .. } = &mut *self.registers;
        assert_eq!((chunks.len(), predicates.len()), self.code.sizes(), "a register file of another program");
        // SAFETY: `Code` has checked its places against these sizes.
        let file = unsafe { File::new(chunks, predicates) };
        let Straight { code, mask, next, stop, through, parts, .. } = *self;
        let memory = &mut self.memory;
        let mut runner = Runner { code, memory, file, mask, next, stop, through, parts, parted: None };
        let checked = runner.memory.detector.is_some();
        let executed = match level {
            Level::Baseline => runner.run::<0, true>(self.budget),
            // SAFETY: the level is one that this machine has.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { run_avx2(&mut runner, self.budget) },
            // SAFETY: likewise.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 if checked => unsafe { run_avx512::<true>(&mut runner, self.budget) },
            // SAFETY: likewise.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { run_avx512::<false>(&mut runner, self.budget) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => runner.run::<0, true>(self.budget),
        };
        (self.next, self.parted) = (runner.next, runner.parted);
        executed
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2(runner: &mut Runner, budget: u64) -> u64 {
    runner.run::<1, true>(budget)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx512<const CHECKED: bool>(runner: &mut Runner, budget: u64) -> u64 {
    runner.run::<2, CHECKED>(budget)
}

/// Lanes that run, where they are, and where they stop.
type State = (u32, u32, u32);

struct Runner<'a, 'm> {
    code: &'a Code,
    memory: &'a mut View<'m>,
    file: File<'a>,
    mask: u32,
    next: u32,
    stop: u32,
    through: bool,
    parts: bool,
    parted: Option<Parted>,
}

impl Runner<'_, '_> {
    /// `CHECKED`: there may be a detector.
    #[inline(always)]
    fn run<const LEVEL: u8, const CHECKED: bool>(&mut self, budget: u64) -> u64 {
        let operations = if self.through { self.code.operations() } else { self.code.unwatched() };
        // In registers of their own: whatever the kernels write might lie where `self` is, for all the compiler knows.
        let (mut all, mut stop, mut next, mut executed) = (self.mask, self.stop, self.next, 0);
        while executed < budget {
            if next == stop {
                let Some(state) = self.arrive() else { break };
                (all, next, stop) = state;
                continue;
            }
            let Some(operation) = operations.get(next as usize) else { break };
            let mask = match operation.guard {
                UNGUARDED => all,
                guard => all & (self.file.predicate(guard / 2) ^ (guard & 1).wrapping_neg()),
            };
            match operation.kernel {
                Kernel::Leave => break,
                // Labels are no instructions.
                Kernel::Pass => next += 1,
                Kernel::Branch if mask == 0 => (next, executed) = (next + 1, executed + 1),
                Kernel::Branch if mask == all => (next, executed) = (operation.extra, executed + 1),
                Kernel::Branch => {
                    let Some(state) = self.part(operation, (all, next, stop), mask) else { break };
                    (all, next, stop) = state;
                    executed += 1;
                }
                _ if self.execute::<LEVEL, CHECKED>(operation, mask) => (next, executed) = (next + 1, executed + 1),
                _ => break,
            }
        }
        self.next = next;
        if let Some(parted) = &mut self.parted {
            parted.runs = all;
        }
        executed
    }

    /// A branch that only the lanes of `taken` take. The state of those that go on; none if the definition must do it.
    #[inline(never)]
    fn part(&mut self, branch: &Operation, (all, next, stop): State, taken: u32) -> Option<State> {
        let (target, meeting) = (branch.extra, branch.a);
        if !self.parts || meeting == NO_MEETING {
            return None;
        }
        match self.parted {
            None => {
                let runs = all & !taken;
                self.parted = Some(Parted { whole: all, runs, waits: taken, target, meeting, outer: stop });
                Some((runs, next + 1, meeting))
            }
            // A loop that lanes leave one after the other: those that do are where everybody meets.
            Some(Parted { waits: 0, meeting: same, .. }) if same == meeting && next + 1 == meeting => {
                Some((taken, target, stop))
            }
            Some(Parted { waits: 0, meeting: same, .. }) if same == meeting && target == meeting => {
                Some((all & !taken, next + 1, stop))
            }
            _ => None,
        }
    }

    /// The lanes that ran have come to where they stop: the state of those that go on, if any do.
    #[inline(never)]
    fn arrive(&mut self) -> Option<State> {
        let parted = self.parted.as_mut()?;
        let Parted { whole, waits, target, meeting, outer, .. } = *parted;
        if waits != 0 {
            parted.waits = 0;
            return Some((waits, target, meeting));
        }
        self.parted = None;
        Some((whole, meeting, outer))
    }

    /// False if the definition must do it.
    #[rustfmt::skip] // One row per kernel.
    #[allow(clippy::redundant_closure)] // The macros attach `inline` to closures.
    #[inline(always)]
    fn execute<const LEVEL: u8, const CHECKED: bool>(&mut self, operation: &Operation, mask: u32) -> bool {
        let Operation { kernel, destination, a, b, c, extra, .. } = *operation;
        let places = [destination, a, b, c];
        let file = &mut self.file;
        macro_rules! map { ($function:expr) => { file.map(places, mask, #[inline(always)] $function) } }
        macro_rules! wide { ($function:expr) => { file.map_wide(places, mask, #[inline(always)] $function) } }
        macro_rules! pairs { ($function:expr) => { file.map_pairs(places, mask, #[inline(always)] $function) } }
        macro_rules! holds { ($function:expr) => {{
            let bits = file.compare(a, b, #[inline(always)] $function);
            set(file, operation, mask, bits)
        }} }
        macro_rules! wide_holds { ($function:expr) => {{
            let bits = file.compare_wide(a, b, #[inline(always)] $function);
            set(file, operation, mask, bits)
        }} }
        macro_rules! doubt { ($function:expr) => {
            return file.try_map(places, mask, #[inline(always)] $function)
        } }
        match kernel {
            Kernel::Leave | Kernel::Pass | Kernel::Branch => return false,
            Kernel::Copy => map!(|a, _, _| a),
            Kernel::Add => map!(|a, b, _| a.wrapping_add(b)),
            Kernel::Subtract => map!(|a, b, _| a.wrapping_sub(b)),
            Kernel::MultiplyLow => map!(|a, b, _| a.wrapping_mul(b)),
            Kernel::MultiplyHighSigned => map!(|a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
            Kernel::MultiplyHighUnsigned => map!(|a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32),
            Kernel::MultiplyAddLow => map!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
            Kernel::And => map!(|a, b, _| a & b),
            Kernel::Or => map!(|a, b, _| a | b),
            Kernel::Xor => map!(|a, b, _| a ^ b),
            Kernel::Not => map!(|a, _, _| !a),
            Kernel::Negate => map!(|a, _, _| a.wrapping_neg()),
            Kernel::Absolute => map!(|a, _, _| (a as i32).wrapping_abs() as u32),
            Kernel::ShiftLeft => map!(|a, b, _| if b < 32 { a << b } else { 0 }),
            Kernel::ShiftRightSigned => map!(|a, b, _| ((a as i32) >> b.min(31)) as u32),
            Kernel::ShiftRightUnsigned => map!(|a, b, _| if b < 32 { a >> b } else { 0 }),
            Kernel::MinimumSigned => map!(|a, b, _| (a as i32).min(b as i32) as u32),
            Kernel::MinimumUnsigned => map!(|a, b, _| a.min(b)),
            Kernel::MaximumSigned => map!(|a, b, _| (a as i32).max(b as i32) as u32),
            Kernel::MaximumUnsigned => map!(|a, b, _| a.max(b)),
            // Division by zero gives all ones, and so does its remainder.
            Kernel::DivideSigned => map!(|a, b, _| if b == 0 { !0 } else { (a as i32).wrapping_div(b as i32) as u32 }),
            Kernel::DivideUnsigned => map!(|a, b, _| a.checked_div(b).unwrap_or(!0)),
            Kernel::RemainderSigned => map!(|a, b, _| if b == 0 { !0 } else { (a as i32).wrapping_rem(b as i32) as u32 }),
            Kernel::RemainderUnsigned => map!(|a, b, _| a.checked_rem(b).unwrap_or(!0)),
            Kernel::CountOnes => map!(|a, _, _| a.count_ones()),
            Kernel::CountLeadingZeros => map!(|a, _, _| a.leading_zeros()),
            Kernel::ReverseBits => map!(|a, _, _| a.reverse_bits()),
            Kernel::ExtractSigned => map!(|a, b, c| words::extract::<true>(a, b, c)),
            Kernel::ExtractUnsigned => map!(|a, b, c| words::extract::<false>(a, b, c)),
            Kernel::LogicOfThree => map!(|a, b, c| words::logic_of_three(a, b, c, extra)),
            Kernel::Permute => map!(|a, b, c| words::permute(a, b, c)),
            Kernel::FunnelLeftClamp => map!(|a, b, c| (join(a, b) << c.min(32) >> 32) as u32),
            Kernel::FunnelLeftWrap => map!(|a, b, c| (join(a, b) << (c & 31) >> 32) as u32),
            Kernel::FunnelRightClamp => map!(|a, b, c| (join(a, b) >> c.min(32)) as u32),
            Kernel::FunnelRightWrap => map!(|a, b, c| (join(a, b) >> (c & 31)) as u32),
            Kernel::Select => select(file, operation, mask, 0),
            Kernel::Extend => {
                let field = |shift: u32| extra >> shift & 31;
                let (signed_in, signed_out) = (extra >> 30 & 1 == 1, extra >> 31 == 1);
                map!(|a, _, _| extend(extend(a, field(0), signed_in), field(5), signed_out) & u32::MAX >> field(10))
            }
            Kernel::PackHalves => map!(|a, b, _| a & 0xffff | b << 16),
            Kernel::LowHalf => map!(|a, _, _| a & 0xffff),
            Kernel::HighHalf => map!(|a, _, _| a >> 16),
            Kernel::FloatAdd => map!(|a, b, _| words::add::<false>(a, b)),
            Kernel::FloatAddFlush => map!(|a, b, _| words::add::<true>(a, b)),
            Kernel::FloatSubtract => map!(|a, b, _| words::add::<false>(a, b ^ 1 << 31)),
            Kernel::FloatSubtractFlush => map!(|a, b, _| words::add::<true>(a, b ^ 1 << 31)),
            Kernel::FloatMultiply => map!(|a, b, _| words::multiply::<false>(a, b).0),
            Kernel::FloatMultiplyFlush => doubt!(|a, b, _| words::multiply::<true>(a, b)),
            Kernel::FloatDivide => map!(|a, b, _| words::divide::<false>(a, b).0),
            Kernel::FloatDivideFlush => doubt!(|a, b, _| words::divide::<true>(a, b)),
            Kernel::FloatDivideFull => each_pair(file, places, mask, special::divide_full),
            Kernel::FloatReciprocal => map!(|a, _, _| words::divide::<false>(words::ONE, a).0),
            Kernel::FloatReciprocalFlush => doubt!(|a, _, _| words::divide::<true>(words::ONE, a)),
            Kernel::FloatRoot => map!(|a, _, _| words::root::<false>(a)),
            Kernel::FloatRootFlush => map!(|a, _, _| words::root::<true>(a)),
            Kernel::FloatFuse => map!(|a, b, c| words::fused_multiply_add::<false>(a, b, c).0),
            Kernel::FloatFuseFlush => doubt!(|a, b, c| words::fused_multiply_add::<true>(a, b, c)),
            Kernel::FloatNegate => map!(|a, _, _| words::negate::<false>(a)),
            Kernel::FloatNegateFlush => map!(|a, _, _| words::negate::<true>(a)),
            Kernel::FloatAbsolute => map!(|a, _, _| words::absolute::<false>(a)),
            Kernel::FloatAbsoluteFlush => map!(|a, _, _| words::absolute::<true>(a)),
            Kernel::FloatMinimum => map!(|a, b, _| words::extreme::<false, false, false>(a, b)),
            Kernel::FloatMinimumFlush => map!(|a, b, _| words::extreme::<false, true, false>(a, b)),
            Kernel::FloatMinimumKeep => map!(|a, b, _| words::extreme::<false, false, true>(a, b)),
            Kernel::FloatMaximum => map!(|a, b, _| words::extreme::<true, false, false>(a, b)),
            Kernel::FloatMaximumFlush => map!(|a, b, _| words::extreme::<true, true, false>(a, b)),
            Kernel::FloatMaximumKeep => map!(|a, b, _| words::extreme::<true, false, true>(a, b)),
            Kernel::Exponential => exponentials::<LEVEL, false>(file, places, mask),
            Kernel::ExponentialFlush => exponentials::<LEVEL, true>(file, places, mask),
            Kernel::Logarithm => each(file, places, mask, special::logarithm),
            Kernel::LogarithmFlush => each(file, places, mask, special::unit_logarithm),
            Kernel::Reciprocal => each(file, places, mask, special::reciprocal),
            Kernel::ReciprocalFlush => each(file, places, mask, special::unit_reciprocal),
            Kernel::SquareRoot => each(file, places, mask, special::root),
            Kernel::SquareRootFlush => each(file, places, mask, special::unit_root),
            Kernel::ReciprocalRoot => each(file, places, mask, special::reciprocal_root),
            Kernel::ReciprocalRootFlush => each(file, places, mask, special::unit_reciprocal_root),
            Kernel::ToHalf => map!(|a, _, _| words::to_half(a)),
            Kernel::FromHalf => map!(|a, _, _| words::from_half(a)),
            Kernel::ToHalves => map!(|a, b, _| words::to_half(a) << 16 | words::to_half(b)),
            Kernel::ToBrain16 => map!(|a, _, _| words::to_brain16(a)),
            Kernel::ToBrain16s => map!(|a, b, _| words::to_brain16(a) << 16 | words::to_brain16(b)),
            Kernel::FromBrain16 => map!(|a, _, _| a << 16),
            Kernel::SignedToFloat => map!(|a, _, _| (a as i32 as f32).to_bits()),
            Kernel::UnsignedToFloat => map!(|a, _, _| (a as f32).to_bits()),
            Kernel::FloatToSigned => map!(|a, _, _| f32::from_bits(a) as i32 as u32),
            Kernel::FloatToUnsigned => map!(|a, _, _| f32::from_bits(a) as u32),
            Kernel::FloatToSignedNearest => map!(|a, _, _| f32::from_bits(a).round_ties_even() as i32 as u32),
            Kernel::HalvesAdd => map!(|a, b, _| words::on_halves(a, b, |x, y| x + y)),
            Kernel::HalvesSubtract => map!(|a, b, _| words::on_halves(a, b, |x, y| x - y)),
            Kernel::HalvesMultiply => map!(|a, b, _| words::on_halves(a, b, |x, y| x * y)),
            Kernel::WideCopy => pairs!(|a, _, _| a),
            Kernel::WideJoin => {
                let (low, high) = (file.halves(a), file.halves(b));
                file.write(destination, mask, &low);
                file.write(destination + 1, mask, &high);
            }
            Kernel::WideSplit => {
                let (low, high) = (file.halves(a), file.halves(a + 1));
                file.write(destination, mask, &low);
                file.write(extra, mask, &high);
            }
            Kernel::SplitHalves => {
                let both = file.halves(a);
                let (mut low, mut high) = ([[0; 16]; 2], [[0; 16]; 2]);
                for lane in 0..32 {
                    let pair = both[lane / 16][lane % 16];
                    (low[lane / 16][lane % 16], high[lane / 16][lane % 16]) = (pair & 0xffff, pair >> 16);
                }
                file.write(destination, mask, &low);
                file.write(extra, mask, &high);
            }
            Kernel::WideAdd => pairs!(|a, b, _| words::add_pairs(a, b)),
            Kernel::WideSubtract => wide!(|a, b, _| a.wrapping_sub(b)),
            Kernel::WideAnd => pairs!(|a, b, _| [a[0] & b[0], a[1] & b[1]]),
            Kernel::WideOr => pairs!(|a, b, _| [a[0] | b[0], a[1] | b[1]]),
            Kernel::WideXor => pairs!(|a, b, _| [a[0] ^ b[0], a[1] ^ b[1]]),
            Kernel::WideShiftLeft => wide!(|a, b, _| if (b as u32) < 64 { a << (b as u32) } else { 0 }),
            Kernel::WideShiftRightSigned => wide!(|a, b, _| ((a as i64) >> (b as u32).min(63)) as u64),
            Kernel::WideShiftRightUnsigned => wide!(|a, b, _| if (b as u32) < 64 { a >> (b as u32) } else { 0 }),
            Kernel::WideMultiplyLow => wide!(|a, b, _| a.wrapping_mul(b)),
            Kernel::WideMultiplyAddLow => wide!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
            Kernel::WideSelect => {
                select(file, operation, mask, 0);
                select(file, operation, mask, 1);
            }
            Kernel::WidenSigned => pairs!(|a, _, _| [a[0], (a[0] as i32 >> 31) as u32]),
            Kernel::WidenUnsigned => pairs!(|a, _, _| [a[0], 0]),
            Kernel::MultiplyWideSigned => pairs!(|a, b, _| words::product_signed(a[0], b[0])),
            Kernel::MultiplyWideUnsigned => pairs!(|a, b, _| words::product(a[0], b[0])),
            Kernel::MultiplyAddWideSigned => pairs!(|a, b, c| words::add_pairs(words::product_signed(a[0], b[0]), c)),
            Kernel::MultiplyAddWideUnsigned => pairs!(|a, b, c| words::add_pairs(words::product(a[0], b[0]), c)),
            Kernel::Equal => holds!(|a, b| a == b),
            Kernel::LessSigned => holds!(|a, b| (a as i32) < b as i32),
            Kernel::LessOrEqualSigned => holds!(|a, b| a as i32 <= b as i32),
            Kernel::LessUnsigned => holds!(|a, b| a < b),
            Kernel::LessOrEqualUnsigned => holds!(|a, b| a <= b),
            Kernel::FloatEqual => holds!(|a, b| words::equal::<false>(a, b)),
            Kernel::FloatEqualFlush => holds!(|a, b| words::equal::<true>(a, b)),
            Kernel::FloatLess => holds!(|a, b| words::less::<false>(a, b)),
            Kernel::FloatLessFlush => holds!(|a, b| words::less::<true>(a, b)),
            Kernel::FloatLessOrEqual => holds!(|a, b| words::less_or_equal::<false>(a, b)),
            Kernel::FloatLessOrEqualFlush => holds!(|a, b| words::less_or_equal::<true>(a, b)),
            Kernel::WideEqual => wide_holds!(|a, b| a == b),
            Kernel::WideLessSigned => wide_holds!(|a, b| (a as i64) < b as i64),
            Kernel::WideLessOrEqualSigned => wide_holds!(|a, b| a as i64 <= b as i64),
            Kernel::WideLessUnsigned => wide_holds!(|a, b| a < b),
            Kernel::WideLessOrEqualUnsigned => wide_holds!(|a, b| a <= b),
            Kernel::PredicateCopy => file.set_predicate(destination, mask, file.predicate(a)),
            Kernel::PredicateAnd => file.set_predicate(destination, mask, file.predicate(a) & file.predicate(b)),
            Kernel::PredicateOr => file.set_predicate(destination, mask, file.predicate(a) | file.predicate(b)),
            Kernel::PredicateXor => file.set_predicate(destination, mask, file.predicate(a) ^ file.predicate(b)),
            Kernel::PredicateNot => file.set_predicate(destination, mask, !file.predicate(a)),
            Kernel::Load => return self.memory.load::<LEVEL, CHECKED>(file, &self.code.traffic()[extra as usize], a, mask),
            Kernel::Store => return self.memory.store::<LEVEL, CHECKED>(file, &self.code.traffic()[extra as usize], a, mask),
            Kernel::Shuffle => {
                // Lanes that are not here may come later.
                if mask != u32::MAX {
                    return false;
                }
                let permutation = &self.code.permutations()[extra as usize];
                let words = permute::<LEVEL>(file.words(a), &permutation.from);
                file.write(destination, mask, &words);
                if b != 0 {
                    file.set_predicate(b - 1, mask, permutation.inside);
                }
            }
        }
        true
    }
}

#[inline(always)]
fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// All but the low `32 - unused` bits become copies of the sign, or zero.
#[inline(always)]
fn extend(value: u32, unused: u32, signed: bool) -> u32 {
    let top = value << unused;
    if signed { ((top as i32) >> unused) as u32 } else { top >> unused }
}

/// A function that the compiler does not make vector instructions of: called for each lane that counts.
#[inline(always)]
fn each(file: &mut File, [destination, a, ..]: [u32; 4], mask: u32, function: impl Fn(u32) -> u32) {
    let words = *file.words(a);
    let mut results = [[0; 16]; 2];
    for lane in 0..32 {
        if mask >> lane & 1 == 1 {
            results[lane / 16][lane % 16] = function(words[lane]);
        }
    }
    file.write(destination, mask, &results);
}

/// The same for two operands.
#[inline(always)]
fn each_pair(file: &mut File, [destination, a, b, _]: [u32; 4], mask: u32, function: impl Fn(u32, u32) -> u32) {
    let (left, right) = (*file.words(a), *file.words(b));
    let mut results = [[0; 16]; 2];
    for lane in 0..32 {
        if mask >> lane & 1 == 1 {
            results[lane / 16][lane % 16] = function(left[lane], right[lane]);
        }
    }
    file.write(destination, mask, &results);
}

/// Negates and combines what a comparison found, and writes it.
#[inline(always)]
fn set(file: &mut File, operation: &Operation, mask: u32, found: u32) {
    let extra = operation.extra;
    let found = found ^ (extra & combine::NEGATE).wrapping_neg();
    let other = file.predicate(operation.c) ^ ((extra / combine::NOT) & 1).wrapping_neg();
    let bits = match extra & combine::OPERATION {
        combine::AND => found & other,
        combine::OR => found | other,
        combine::XOR => found ^ other,
        _ => found,
    };
    file.set_predicate(operation.destination, mask, bits);
}

/// `selp` of the words `part` chunks further on.
#[inline(always)]
fn select(file: &mut File, operation: &Operation, mask: u32, part: u32) {
    let negated = (operation.extra & combine::NEGATE).wrapping_neg();
    let chosen = file.predicate(operation.c) ^ negated;
    for half in 0..2 {
        let (a, b) = (file.half(operation.a + part, half), file.half(operation.b + part, half));
        file.write_half(operation.destination + part, half, mask, blend(chosen >> (16 * half), a, b));
    }
}
