//! Every kernel, at every level that this machine has, against the definition of the instructions that it stands for.

use super::{Kernel, Level, Operation, Straight, View};
use crate::exec::Action;
use crate::machine::{Program, Registers, Source, Values, Wants, Warp};
use crate::memory::{Bytes, GlobalMemory, SharedMemory, Variables};
use ptx::RegisterId;
use std::collections::{BTreeMap, BTreeSet};

/// `%a`, `%b` and `%c` are words, `%x`, `%y` and `%z` pairs, `%h` and `%i` 16 bits, `%p` and `%q` predicates, `%d`, `%e`,
/// `%w`, `%k` and `%o` results of each kind.
const INSTRUCTIONS: &str = "
    mov.b32 %d, %a; mov.b64 %w, %x; mov.pred %o, %p; mov.b32 %d, 77; mov.b64 %w, 0x123456789abcdef0;
    mov.b64 %w, {%a, %b}; mov.b64 {%d, %e}, %x; mov.b32 %d, {%h, %i}; mov.b32 {%k, _}, %a; mov.b32 {_, %k}, %a; mov.b32 {%k, %i}, %a;
    add.s32 %d, %a, %b; add.u32 %d, %a, 5; sub.s32 %d, %a, %b; mul.lo.s32 %d, %a, %b; mul.hi.s32 %d, %a, %b;
    mul.hi.u32 %d, %a, %b; mad.lo.s32 %d, %a, %b, %c; and.b32 %d, %a, %b; or.b32 %d, %a, %b; xor.b32 %d, %a, %b;
    not.b32 %d, %a; neg.s32 %d, %a; abs.s32 %d, %a; shl.b32 %d, %a, %b; shl.b32 %d, %a, %c; shl.b32 %d, %a, 7;
    shr.s32 %d, %a, %c; shr.u32 %d, %a, %c; shr.s32 %d, %a, %b; min.s32 %d, %a, %b; min.u32 %d, %a, %b;
    max.s32 %d, %a, %b; max.u32 %d, %a, %b; div.s32 %d, %a, %b; div.u32 %d, %a, %b; rem.s32 %d, %a, %b;
    rem.u32 %d, %a, %b; popc.b32 %d, %a; clz.b32 %d, %a; brev.b32 %d, %a; bfe.s32 %d, %a, %b, %c;
    bfe.u32 %d, %a, %b, %c; bfe.u32 %d, %a, 4, 9; bfe.s32 %d, %a, 28, 8; bfe.s32 %d, %a, 31, 40;
    lop3.b32 %d, %a, %b, %c, 0x96; lop3.b32 %d, %a, %b, %c, 0xe8; lop3.b32 %d, %a, %b, %c, 0x01;
    prmt.b32 %d, %a, %b, %c; prmt.b32 %d, %a, %b, 0x5410; shf.l.clamp.b32 %d, %a, %b, %c;
    shf.l.wrap.b32 %d, %a, %b, %c; shf.r.clamp.b32 %d, %a, %b, %c; shf.r.wrap.b32 %d, %a, %b, %c;
    selp.b32 %d, %a, %b, %p; selp.f32 %d, %a, 0f3F800000, %q; selp.b64 %w, %x, %y, %p;
    cvt.u32.u16 %d, %h; cvt.s32.s16 %d, %h; cvt.u32.u8 %d, %a; cvt.s32.s8 %d, %a; cvt.u16.u32 %k, %a;
    cvt.u32.u64 %d, %x; cvt.s16.s8 %k, %h; cvt.u64.u32 %w, %a; cvt.s64.s32 %w, %a; cvt.u64.s32 %w, %a;
    add.f32 %d, %a, %b; add.rn.ftz.f32 %d, %a, %b; sub.f32 %d, %a, %b; sub.ftz.f32 %d, %a, %b;
    mul.f32 %d, %a, %b; mul.ftz.f32 %d, %a, %b; fma.rn.f32 %d, %a, %b, %c; fma.rn.ftz.f32 %d, %a, %b, %c;
    div.rn.f32 %d, %a, %b; div.rn.ftz.f32 %d, %a, %b; div.full.f32 %d, %a, %b; rcp.rn.f32 %d, %a;
    rcp.rn.ftz.f32 %d, %a; sqrt.rn.f32 %d, %a; sqrt.rn.ftz.f32 %d, %a;
    neg.f32 %d, %a; neg.ftz.f32 %d, %a; abs.f32 %d, %a; abs.ftz.f32 %d, %a;
    min.f32 %d, %a, %b; min.ftz.f32 %d, %a, %b; min.NaN.f32 %d, %a, %b;
    max.f32 %d, %a, %b; max.ftz.f32 %d, %a, %b; max.NaN.f32 %d, %a, %b;
    ex2.approx.f32 %d, %a; ex2.approx.ftz.f32 %d, %a; lg2.approx.f32 %d, %a; lg2.approx.ftz.f32 %d, %a;
    rcp.approx.f32 %d, %a; rcp.approx.ftz.f32 %d, %a; sqrt.approx.f32 %d, %a; sqrt.approx.ftz.f32 %d, %a;
    rsqrt.approx.f32 %d, %a; rsqrt.approx.ftz.f32 %d, %a;
    cvt.rn.f16.f32 %k, %a; cvt.f32.f16 %d, %h; cvt.rn.f16x2.f32 %d, %a, %b; cvt.rn.bf16.f32 %k, %a;
    cvt.rn.bf16x2.f32 %d, %a, %b; cvt.f32.bf16 %d, %h; cvt.rn.f32.s32 %d, %a; cvt.rn.f32.u32 %d, %a;
    cvt.rzi.s32.f32 %d, %a; cvt.rni.s32.f32 %d, %a; cvt.rzi.u32.f32 %d, %a; cvt.rzi.ftz.s32.f32 %d, %a;
    add.f16x2 %d, %a, %b; sub.f16x2 %d, %a, %b; mul.f16x2 %d, %a, %b;
    add.s64 %w, %x, %y; sub.s64 %w, %x, %y; and.b64 %w, %x, %y; or.b64 %w, %x, %y; xor.b64 %w, %x, %y;
    shl.b64 %w, %x, %c; shl.b64 %w, %x, 3; shr.s64 %w, %x, %c; shr.u64 %w, %x, %c; shr.u64 %w, %x, %b;
    mul.lo.s64 %w, %x, %y; mad.lo.s64 %w, %x, %y, %z; mul.wide.s32 %w, %a, %b; mul.wide.u32 %w, %a, %b;
    mul.wide.u32 %w, %a, 16; mad.wide.s32 %w, %a, %b, %x; mad.wide.u32 %w, %a, %b, %x; add.s64 %w, %x, -4;
    setp.eq.s32 %o, %a, %b; setp.ne.s32 %o, %a, %b; setp.lt.s32 %o, %a, %b; setp.le.s32 %o, %a, %b;
    setp.gt.s32 %o, %a, %b; setp.ge.s32 %o, %a, 4; setp.lt.u32 %o, %a, %b; setp.hs.u32 %o, %a, %b;
    setp.ls.u32 %o, %a, %b; setp.eq.f32 %o, %a, %b; setp.eq.ftz.f32 %o, %a, %b; setp.neu.f32 %o, %a, %b;
    setp.lt.f32 %o, %a, %b; setp.lt.ftz.f32 %o, %a, %b; setp.le.f32 %o, %a, %b; setp.le.ftz.f32 %o, %a, %b;
    setp.gt.f32 %o, %a, %b; setp.ge.f32 %o, %a, %b; setp.ltu.f32 %o, %a, %b; setp.leu.f32 %o, %a, %b;
    setp.gtu.f32 %o, %a, %b; setp.geu.f32 %o, %a, %b; setp.lt.and.f32 %o, %a, %b, %p; setp.lt.or.s32 %o, %a, %b, !%p;
    setp.ne.xor.s32 %o, %a, %b, %q; setp.eq.s64 %o, %x, %y; setp.ne.s64 %o, %x, %y; setp.lt.s64 %o, %x, %y;
    setp.le.s64 %o, %x, %y; setp.lt.u64 %o, %x, %y; setp.ge.u64 %o, %x, %y; setp.gt.s64 %o, %x, 0;
    and.pred %o, %p, %q; or.pred %o, %p, %q; xor.pred %o, %p, %q; not.pred %o, %p;
";

const REGISTERS: &str = ".reg .b32 %a, %b, %c, %d, %e; .reg .b64 %x, %y, %z, %w; .reg .b16 %h, %i, %k;
    .reg .pred %p, %q, %o;";

/// Rounds of operands for each instruction.
const ROUNDS: usize = 300;

fn program() -> Program {
    let head = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {";
    let text = format!("{head}{REGISTERS}{INSTRUCTIONS}}}");
    let parsed = ptx::parse(&ptx::Source::new("test", text)).unwrap();
    let shared = SharedMemory::new(&parsed.module, &parsed.module.functions[0], 0);
    let variables = Variables::place(&parsed.module, &mut GlobalMemory::default());
    Program::decode(&parsed.module, 0, &shared, &variables, Wants::default()).unwrap()
}

/// A generator with a well-known definition (Steele, Lea and Flood, 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Any word, a special float, a small integer, or a float near one.
    fn word(&mut self) -> u32 {
        const SPECIAL: [u32; 18] = [
            0,
            1,
            2,
            31,
            32,
            33,
            0x8000_0000,
            0x7fff_ffff,
            0xffff_ffff,
            0x3f80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0001,
            0xff80_0001,
            0x0080_0000,
            0x007f_ffff,
            0x8080_0000,
            0x7f7f_ffff,
        ];
        let random = self.next();
        match random >> 60 {
            0..4 => random as u32,
            4..8 => SPECIAL[(random % 18) as usize],
            8..10 => random as u32 & 255,
            10..12 => (random as u32 & 0x807f_ffff) | (100 + (random >> 32) as u32 % 40) << 23,
            12..14 => (random as u32 & 0x807f_ffff) | ((random >> 32) as u32 % 64) << 23,
            _ => (random as u32).wrapping_neg() >> (random >> 40 & 31),
        }
    }
}

fn levels() -> impl Iterator<Item = Level> {
    let best = Level::best() as usize;
    [Level::Baseline, Level::Avx2, Level::Avx512].into_iter().filter(move |level| *level as usize <= best)
}

/// What the definition says, and into which registers.
fn defined(warp: &Warp, action: &Action) -> Vec<(RegisterId, Values)> {
    let read = |source: &Source| warp.read(*source, &|_, _| 0);
    match action {
        Action::Compute(compute) => {
            let [a, b, c] = compute.sources.map(|source| read(&source));
            let values = std::array::from_fn(|lane| compute.function.evaluate([a[lane], b[lane], c[lane]]));
            vec![(compute.destination.unwrap(), values)]
        }
        Action::Movement(transfer) => {
            let results = transfer.moved(&read);
            results.into_iter().filter_map(|(register, values)| Some((register?, values))).collect()
        }
        _ => vec![],
    }
}

fn same(expected: &Registers, found: &Registers) -> bool {
    expected.chunks == found.chunks && expected.predicates == found.predicates
}

#[test]
fn kernels_do_what_the_definitions_say() {
    let program = program();
    let (mut random, mut covered) = (SplitMix(1), BTreeSet::new());
    for (at, step) in program.steps.iter().enumerate() {
        let Operation { kernel, .. } = program.code.operations()[at];
        if matches!(step.action, Action::Control(_)) {
            continue;
        }
        assert_ne!(kernel, Kernel::Leave, "no kernel for instruction {at}");
        covered.insert(kernel);
        let mut done = BTreeMap::new();
        for round in 0..ROUNDS {
            let mut warp = Warp::new(0, u32::MAX, &program.layout, 0);
            (0..15).for_each(|register| {
                let values = std::array::from_fn(|_| u64::from(random.word()) << 32 | u64::from(random.word()));
                warp.write(Some(RegisterId(register)), u32::MAX, &values);
            });
            let mask = if round % 2 == 0 { u32::MAX } else { random.next() as u32 | 1 };
            let before = warp.registers.clone();
            let results = defined(&warp, &step.action);
            results.iter().for_each(|(register, values)| warp.write(Some(*register), mask, values));
            for level in levels() {
                let mut registers = before.clone();
                let (code, next, stop) = (&program.code, at as u32, u32::MAX);
                let (shared, global) = (&mut Bytes::default(), &mut GlobalMemory::default());
                let memory = View { shared, rank: 0, global, warp: 0, detector: None, audit: None };
                let (through, parts, parted) = (true, false, None);
                let registers = &mut registers;
                let ran = Straight { code, registers, mask, next, stop, budget: 1, through, parts, parted, memory }
                    .run(level);
                *done.entry(format!("{level:?}")).or_insert(0) += ran;
                let right = same(if ran == 1 { &warp.registers } else { &before }, registers);
                assert!(right, "{kernel:?} at {level:?}, instruction {at}, {before:?}");
            }
        }
        assert!(done.values().all(|ran| *ran > 0), "{kernel:?} is always in doubt: {done:?}");
    }
    let all = (Kernel::Copy as u8..=Kernel::PredicateNot as u8).count();
    assert_eq!(covered.len(), all, "kernels that no instruction tests: {covered:?}");
}

#[test]
fn every_half_comes_from_and_goes_to_its_float() {
    for half in 0..=u16::MAX {
        assert_eq!(super::words::from_half(half.into()), crate::numerics::convert::f16_to_f32(half));
    }
    for step in 0..1u32 << 20 {
        let bits = step.wrapping_mul(4093);
        let nearest = crate::numerics::format::Rounding::Nearest;
        assert_eq!(
            super::words::to_half(bits),
            u32::from(crate::numerics::convert::f32_to_f16(bits, nearest)),
            "{bits:#x}"
        );
    }
}
