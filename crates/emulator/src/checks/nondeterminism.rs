//! # nondeterminism
//!
//! No check finds an error, and yet the results differ from schedule to schedule. Most often floating-point numbers are
//! added by atomics: rounding makes the sum depend on the order. Or places are handed out by a counter, first come, first
//! served. Or a thread reads a sum to which others still add.
//!
//! ```ptx
//! red.global.add.f32 [%sum], %part;      // a + (b + c) is not (a + b) + c
//! ```
//!
//! Fix: add in a fixed order (each block writes its part, one block adds all of them), or add integers; read a sum
//! behind a barrier that comes after all additions; or accept it. PTX ISA, "red": nothing is said about the order of
//! atomics of different threads.

use super::Check;
use crate::finding::{Actor, Findings, Place, Report};
use launch::backend::Options;
use launch::{BufferMemory, Finding, Kernel, Memory};
use ptx::{FunctionKind, Instruction, Op, Statement, Type};

pub const CHECK: Check = Check::warning("nondeterminism", include_str!("nondeterminism.rs"));

/// The first buffer in which two of the runs left different bytes.
pub fn compare(kernel: &Kernel, schedules: &[Options], memories: &[&Memory]) -> Option<Finding> {
    let (first, others) = memories.split_first()?;
    let (run, buffer) = others.iter().zip(1..).find_map(|(other, run)| {
        let mut pairs = first.buffers.iter().zip(&other.buffers);
        Some((run, pairs.position(|(one, two)| one.contents != two.contents)?))
    })?;
    let message = words(&first.buffers[buffer], &memories[run].buffers[buffer], [&schedules[0], &schedules[run]]);
    let mut findings = Findings::new(kernel, &schedules[run]);
    findings.enter(last_entry(kernel));
    let at = Actor::nobody(Place::Entry, "what it leaves behind depends on the schedule");
    findings.add(Report::new(&CHECK, message, at).help(advice(kernel)));
    findings.into_vec().pop()
}

/// The function that the last launch of the recipe starts.
fn last_entry(kernel: &Kernel) -> usize {
    let name = kernel.recipe.launches.last().and_then(|launch| launch.entry.as_deref());
    let is_it = |one: &ptx::Function| one.kind == FunctionKind::Entry && name.is_none_or(|name| one.name == name);
    kernel.module().functions.iter().position(is_it).unwrap_or(0)
}

fn words(one: &BufferMemory, two: &BufferMemory, schedules: [&Options; 2]) -> String {
    let (element, [a, b]) = (one.element, [one, two].map(|buffer| buffer.contents.to_vec()));
    let differs = |index: &usize| element.read(&a, *index) != element.read(&b, *index);
    let index = (0..a.len() / element.bytes()).find(differs).unwrap_or(0);
    let values = [&a, &b].map(|bytes| element.decode(element.read(bytes, index)));
    let [left, right] = schedules.map(|options| match options.policy {
        Some(policy) => format!("seed {} and policy {policy}", options.seed),
        None => format!("seed {}", options.seed),
    });
    format!("`{}[{index}]` is {} with {left} and {} with {right}", one.name, values[0], values[1])
}

/// Names the atomics, which are the usual cause. Those of integers leave the same sum behind in any order.
fn advice(kernel: &Kernel) -> String {
    let is_float = |one: &Instruction| one.ty().is_some_and(Type::is_float);
    let returns = |one: &Instruction| one.mnemonic().starts_with("atom");
    if let Some(floats) = atomics(kernel, is_float) {
        format!("the {floats} come in any order: add in a fixed order, or add integers")
    } else if let Some(integers) = atomics(kernel, returns) {
        format!(
            "the {integers} come in any order, and what they return tells who came first: let no result depend on it"
        )
    } else if let Some(integers) = atomics(kernel, |_| true) {
        format!(
            "a thread may read what the {integers} still change: let it read behind a barrier that comes after them, or \
             in a second launch"
        )
    } else {
        "look for what depends on time or on who comes first".into()
    }
}

/// `atomics of lines 30, 33`: those that are wanted.
fn atomics(kernel: &Kernel, wanted: impl Fn(&Instruction) -> bool) -> Option<String> {
    let mut lines = vec![];
    for (function, spans) in kernel.module().functions.iter().zip(&kernel.parsed.spans) {
        for (statement, spans) in function.body.iter().zip(spans) {
            if matches!(statement, Statement::Instruction(one) if matches!(one.op(), Op::Atomic(_)) && wanted(one)) {
                lines.push(kernel.parsed.source.position(spans.head.start).line.to_string());
            }
        }
    }
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    (!lines.is_empty()).then(|| format!("atomics of {noun} {}", lines.join(", ")))
}
