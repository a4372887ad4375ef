//! Instructions as whole-warp kernels take them: every operand a place in the register file, checked once.

use super::memory::Traffic;
use crate::machine::Layout;

/// Stands for "no guard".
pub const UNGUARDED: u32 = u32::MAX;
/// Stands for "the sides of this branch never meet".
pub const NO_MEETING: u32 = u32::MAX;

/// What a kernel computes. Words are 32 bits of one register; a wide operand is two chunks, low words first.
#[rustfmt::skip] // Families in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    // The runner leaves these to the definition, passes over them, or jumps.
    Leave, Pass, Branch,
    // Words.
    Copy, Add, Subtract, MultiplyLow, MultiplyHighSigned, MultiplyHighUnsigned, MultiplyAddLow,
    And, Or, Xor, Not, Negate, Absolute, ShiftLeft, ShiftRightSigned, ShiftRightUnsigned,
    MinimumSigned, MinimumUnsigned, MaximumSigned, MaximumUnsigned,
    DivideSigned, DivideUnsigned, RemainderSigned, RemainderUnsigned,
    CountOnes, CountLeadingZeros, ReverseBits, ExtractSigned, ExtractUnsigned,
    LogicOfThree, Permute, FunnelLeftClamp, FunnelLeftWrap, FunnelRightClamp, FunnelRightWrap,
    Select, Extend, PackHalves, LowHalf, HighHalf,
    // f32.
    FloatAdd, FloatAddFlush, FloatSubtract, FloatSubtractFlush, FloatMultiply, FloatMultiplyFlush,
    FloatDivide, FloatDivideFlush, FloatDivideFull, FloatReciprocal, FloatReciprocalFlush, FloatRoot, FloatRootFlush,
    FloatFuse, FloatFuseFlush, FloatNegate, FloatNegateFlush, FloatAbsolute, FloatAbsoluteFlush,
    FloatMinimum, FloatMinimumFlush, FloatMinimumKeep, FloatMaximum, FloatMaximumFlush, FloatMaximumKeep,
    Exponential, ExponentialFlush, Logarithm, LogarithmFlush, Reciprocal, ReciprocalFlush,
    SquareRoot, SquareRootFlush, ReciprocalRoot, ReciprocalRootFlush,
    // Conversions and halves.
    ToHalf, FromHalf, ToHalves, ToBrain16, ToBrain16s, FromBrain16,
    SignedToFloat, UnsignedToFloat, FloatToSigned, FloatToUnsigned, FloatToSignedNearest,
    HalvesAdd, HalvesSubtract, HalvesMultiply,
    // 64 bits.
    WideCopy, WideJoin, WideSplit, SplitHalves, WideAdd, WideSubtract, WideAnd, WideOr, WideXor, WideShiftLeft,
    WideShiftRightSigned, WideShiftRightUnsigned, WideMultiplyLow, WideMultiplyAddLow, WideSelect,
    WidenSigned, WidenUnsigned, MultiplyWideSigned, MultiplyWideUnsigned,
    MultiplyAddWideSigned, MultiplyAddWideUnsigned,
    // Comparisons, into a predicate.
    Equal, LessSigned, LessOrEqualSigned, LessUnsigned, LessOrEqualUnsigned,
    FloatEqual, FloatEqualFlush, FloatLess, FloatLessFlush, FloatLessOrEqual, FloatLessOrEqualFlush,
    WideEqual, WideLessSigned, WideLessOrEqualSigned, WideLessUnsigned, WideLessOrEqualUnsigned,
    // Predicates.
    PredicateCopy, PredicateAnd, PredicateOr, PredicateXor, PredicateNot,
    // Lanes of a whole warp.
    Shuffle,
    // Memory.
    Load, Store,
}

/// How operands of a kernel are counted: which fields are chunks, pairs of chunks, or predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Of a branch, `extra` is the step that it goes to, and `a` the one where its sides meet, or [`NO_MEETING`].
    Control,
    /// Everything is a word.
    Words,
    /// Destination and operands are wide; one chunk behind each is used, too. Also where only some are.
    Wide,
    /// The destination is a predicate, operands are words, or wide. The third operand is a predicate.
    Comparison,
    /// Everything is a predicate.
    Predicates,
    /// Words, chosen by a predicate as the third operand.
    Choice,
    /// Wide, likewise.
    WideChoice,
    /// `extra` counts permutations; the second operand is zero, or one more than a predicate.
    Exchange,
    /// `extra` counts what is in `traffic`; the first operand is an address.
    Memory,
}

impl Kernel {
    pub fn shape(self) -> Shape {
        match self {
            Kernel::Leave | Kernel::Pass | Kernel::Branch => Shape::Control,
            Kernel::Select => Shape::Choice,
            Kernel::WideSelect => Shape::WideChoice,
            Kernel::Shuffle => Shape::Exchange,
            Kernel::Load | Kernel::Store => Shape::Memory,
            one if one >= Kernel::PredicateCopy => Shape::Predicates,
            one if one >= Kernel::Equal => Shape::Comparison,
            one if one >= Kernel::WideCopy => Shape::Wide,
            _ => Shape::Words,
        }
    }
}

/// How a comparison ends: `setp` may negate it, and combine it with a predicate.
pub mod combine {
    pub const NEGATE: u32 = 1;
    pub const AND: u32 = 2;
    pub const OR: u32 = 4;
    pub const XOR: u32 = 6;
    /// The operation, of the three.
    pub const OPERATION: u32 = 6;
    /// The predicate is negated first.
    pub const NOT: u32 = 8;
}

/// An instruction for the runner.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Operation {
    pub kernel: Kernel,
    /// Twice the predicate's index, one more if it is negated; or [`UNGUARDED`].
    pub guard: u32,
    pub destination: u32,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    /// What else the kernel needs: a table, a step, how to combine.
    pub extra: u32,
}

impl Operation {
    pub const LEAVE: Operation = Operation::new(Kernel::Leave);

    pub const fn new(kernel: Kernel) -> Operation {
        Operation { kernel, guard: UNGUARDED, destination: 0, a: 0, b: 0, c: 0, extra: 0 }
    }
}

/// A permutation of lanes: which lane each reads.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Permutation {
    pub from: [u32; 32],
    /// The lanes whose source is in range.
    pub inside: u32,
}

/// The operations of a program, one for each step. Every place in them lies in a register file of its layout.
#[derive(Clone, Debug, Default)]
pub struct Code {
    operations: Vec<Operation>,
    /// The same, but that steps which a check watches are left to the definition.
    unwatched: Vec<Operation>,
    permutations: Vec<Permutation>,
    traffic: Vec<Traffic>,
    chunks: usize,
    predicates: usize,
}

impl Code {
    /// Operations that name places outside the layout are left to the definition. `watched`: the steps that checks watch.
    pub fn new(
        mut operations: Vec<Operation>,
        watched: impl Fn(usize) -> bool,
        (permutations, traffic): (Vec<Permutation>, Vec<Traffic>),
        layout: &Layout,
    ) -> Code {
        let (chunks, predicates) = layout.sizes();
        let mut code = Code { operations: vec![], unwatched: vec![], permutations, traffic, chunks, predicates };
        for operation in &mut operations {
            if !code.contains(operation) {
                *operation = Operation::LEAVE;
            }
        }
        let unwatched = |(at, one): (usize, &Operation)| if watched(at) { Operation::LEAVE } else { *one };
        code.unwatched = operations.iter().enumerate().map(unwatched).collect();
        code.operations = operations;
        code
    }

    fn contains(&self, operation: &Operation) -> bool {
        let Operation { guard, destination, a, b, c, extra, .. } = *operation;
        let words = |all: &[u32]| all.iter().all(|place| (*place as usize) < self.chunks);
        let pairs = |all: &[u32]| all.iter().all(|place| (*place as usize) + 1 < self.chunks);
        let bits = |all: &[u32]| all.iter().all(|place| (*place as usize) < self.predicates);
        let guarded = guard == UNGUARDED || bits(&[guard / 2]);
        guarded
            && match operation.kernel.shape() {
                Shape::Control => true,
                Shape::Words => words(&[destination, a, b, c]),
                Shape::Wide => pairs(&[destination, a, b, c]) && words(&[extra]),
                Shape::Comparison => bits(&[destination, c]) && pairs(&[a, b]),
                Shape::Predicates => bits(&[destination, a, b]),
                Shape::Choice => words(&[destination, a, b]) && bits(&[c]),
                Shape::WideChoice => pairs(&[destination, a, b]) && bits(&[c]),
                Shape::Exchange => {
                    let known = (extra as usize) < self.permutations.len();
                    words(&[destination, a]) && known && (b == 0 || bits(&[b - 1]))
                }
                Shape::Memory => {
                    let traffic = self.traffic.get(extra as usize);
                    pairs(&[a]) && traffic.is_some_and(|one| words(&one.words))
                }
            }
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub fn unwatched(&self) -> &[Operation] {
        &self.unwatched
    }

    pub fn permutations(&self) -> &[Permutation] {
        &self.permutations
    }

    pub fn traffic(&self) -> &[Traffic] {
        &self.traffic
    }

    /// Chunks and predicates of the register files that fit.
    pub fn sizes(&self) -> (usize, usize) {
        (self.chunks, self.predicates)
    }
}
