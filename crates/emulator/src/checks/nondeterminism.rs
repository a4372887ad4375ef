//! # nondeterminism
//!
//! No check finds an error, and yet the results differ from schedule to schedule. Most often floating-point numbers are
//! added by atomics: rounding makes the sum depend on the order. Or places are handed out by a counter, first come, first
//! served.
//!
//! ```ptx
//! red.global.add.f32 [%sum], %part;      // a + (b + c) is not (a + b) + c
//! ```
//!
//! Fix: add in a fixed order (each block writes its part, one block adds all of them), or add integers; or accept it.
//! PTX ISA, "red": nothing is said about the order of atomics of different threads.

use super::Check;
use crate::finding::{Actor, Findings, Place, Report};
use launch::backend::Options;
use launch::{BufferMemory, Finding, Kernel, Memory};
use ptx::{FunctionKind, Op, Statement};

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

/// Names the atomics, which are the usual cause.
fn advice(kernel: &Kernel) -> String {
    let mut lines = vec![];
    for (function, spans) in kernel.module().functions.iter().zip(&kernel.parsed.spans) {
        for (statement, spans) in function.body.iter().zip(spans) {
            if matches!(statement, Statement::Instruction(one) if matches!(one.op(), Op::Atomic(_))) {
                lines.push(kernel.parsed.source.position(spans.head.start).line.to_string());
            }
        }
    }
    match lines.as_slice() {
        [] => "look for what depends on time or on who comes first".into(),
        [line] => format!("the atomics of line {line} come in any order: add in a fixed order, or add integers"),
        lines => {
            format!(
                "the atomics of lines {} come in any order: add in a fixed order, or add integers",
                lines.join(", ")
            )
        }
    }
}
