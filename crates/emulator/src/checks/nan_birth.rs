//! # nan-birth
//!
//! An instruction makes a NaN of operands none of which is one, or an infinity of finite operands: the first time a lane
//! does so. What follows from it is not reported. Only looked for where `--check nan-birth` asks: kernels may mean it.
//!
//! ```ptx
//! sub.f32 %shifted, %score, %maximum;    // -inf - -inf, where a whole row is masked: NaN
//! ex2.approx.f32 %weight, %shifted;      // a NaN since before
//! ```
//!
//! Fix: guard the operands that have no result (a maximum of -inf, a sum of 0), or scale before what overflows. Products of
//! warpgroups are not looked at: they end later. PTX ISA, "Floating-Point Instructions".

use super::{Check, words};
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Cluster, Decoder, Source, lanes};
use crate::operand_sets::{Special, element};
use ptx::forms::Field;
use ptx::{Instruction, Op, RegisterId, Type};

pub const CHECK: Check = Check::warning("nan-birth", include_str!("nan_birth.rs"));

/// The floating-point numbers that a step reads and writes.
#[derive(Default)]
pub struct Floats {
    sources: Vec<(Source, Numbers)>,
    results: Vec<(RegisterId, Numbers)>,
    /// What any lane reads may go into every lane's result.
    shared: bool,
}

/// How numbers lie in a register.
#[derive(Clone, Copy)]
struct Numbers {
    bits: u32,
    element: Type,
}

/// What watches a cluster.
pub struct Births<'a> {
    /// By step.
    floats: &'a [Option<Floats>],
    /// Per warp: lanes that had one.
    done: Vec<u32>,
}

impl<'a> Births<'a> {
    pub fn new(floats: &'a [Option<Floats>], warps: usize) -> Births<'a> {
        Births { floats, done: vec![0; warps] }
    }
}

/// Lanes with a NaN, and lanes with an infinity.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    nan: u32,
    infinite: u32,
}

impl Floats {
    /// None for instructions that compute no floating-point numbers.
    pub fn decode(instruction: &Instruction, decoder: &Decoder) -> Option<Floats> {
        let op = instruction.op();
        if !matches!(op, Op::Float(_) | Op::Half(_) | Op::Convert(_) | Op::Matrix(_) | Op::Wmma(_)) {
            return None;
        }
        let mut floats = Floats { shared: matches!(op, Op::Matrix(_) | Op::Wmma(_)), ..Floats::default() };
        let specs = instruction.form.operands.with(&instruction.modifiers, instruction.operands.len());
        for (spec, operand) in specs.into_iter().flatten().zip(&instruction.operands) {
            let Field::Value(ty, _) = spec.field else { continue };
            let of = ty.of(instruction).unwrap_or(Type::B64);
            let numbers = Numbers { bits: of.bits(), element: element(ty, instruction) };
            if Special::of_type(numbers.element).next().is_none() {
                continue;
            }
            if spec.defines {
                let registers = decoder.destinations(operand).unwrap_or_default();
                floats.results.extend(registers.into_iter().flatten().map(|register| (register, numbers)));
            }
            if spec.reads {
                let sources = decoder.sources(operand, of).unwrap_or_default();
                floats.sources.extend(sources.into_iter().map(|source| (source, numbers)));
            }
        }
        (!floats.results.is_empty()).then_some(floats)
    }
}

impl Numbers {
    fn each(self, value: u64) -> impl Iterator<Item = u64> {
        let width = self.element.bits().min(self.bits).max(1);
        (0..self.bits / width).map(move |index| crate::machine::truncate(value >> (index * width), width))
    }
}

impl Seen {
    fn add(&mut self, at: At, numbers: Numbers, values: &[u64; 32]) {
        for lane in lanes(at.mask) {
            for bits in numbers.each(values[lane]) {
                match Special::of(numbers.element, bits) {
                    Some(Special::NotANumber) => self.nan |= 1 << lane,
                    Some(Special::Infinity | Special::NegativeInfinity) => self.infinite |= 1 << lane,
                    _ => {}
                }
            }
        }
    }
}

/// What a step is about to read; none if it computes no floating-point numbers.
pub fn before(cluster: &Cluster, at: At) -> Option<Seen> {
    let floats = floats(cluster, at)?;
    let mut seen = Seen::default();
    for (source, numbers) in &floats.sources {
        seen.add(at, *numbers, &cluster.read(at.warp, *source));
    }
    let all = |mask: u32| if floats.shared && mask != 0 { u32::MAX } else { mask };
    Some(Seen { nan: all(seen.nan), infinite: all(seen.infinite) })
}

/// Compares what a step has written with what it read.
pub fn after(cluster: &mut Cluster, at: At, read: Seen) {
    let Some(floats) = floats(cluster, at) else { return };
    let mut made = Seen::default();
    for (register, numbers) in &floats.results {
        made.add(at, *numbers, &cluster.warps[at.warp].register(*register));
    }
    let (nan, infinite) = (made.nan & !read.nan, made.infinite & !read.nan & !read.infinite);
    let Some(births) = cluster.births.as_mut() else { return };
    let born = (nan | infinite) & !births.done[at.warp];
    births.done[at.warp] |= born;
    if born != 0 {
        let what = if born & nan != 0 { "NaN" } else { "infinity" };
        let of = if born & nan != 0 { "operands that are none" } else { "finite operands" };
        report(cluster, at.among(born), format!("{what} is made of {of}"));
    }
}

fn floats<'a>(cluster: &Cluster<'a, '_>, at: At) -> Option<&'a Floats> {
    cluster.births.as_ref()?.floats.get(at.statement as usize)?.as_ref()
}

fn report(cluster: &mut Cluster, at: At, message: String) {
    let label = format!("the first of {}", words::who(cluster, at.warp, at.mask));
    let second = cluster.actor(at, &label);
    let help = "guard operands that have no result, or scale before what overflows";
    cluster.findings.add(Report::new(&CHECK, message, second).help(help).count(at.mask.count_ones().into()));
}
