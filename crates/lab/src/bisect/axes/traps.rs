//! The kernel without the `trap` that stops it: last of all changes, because it silences and seldom cures.

use launch::Kernel;
use ptx::forms::Control;
use ptx::{Instruction, Op, Statement};

use super::super::setup::Setup;
use super::super::symptom::Symptom;
use super::{Axis, Variation};

pub fn without(failing: &Setup, symptom: &Symptom) -> Vec<Variation> {
    let Some(finding) = symptom.finding().filter(|finding| finding.check == emulator::checks::trap::CHECK.name) else {
        return vec![];
    };
    let line = finding.primary().line;
    let mut setup = failing.clone();
    let parsed = &mut setup.kernel.parsed;
    for (function, spans) in parsed.module.functions.iter_mut().zip(&mut parsed.spans) {
        let stops = |(statement, span): &(&Statement, &ptx::Spans)| {
            let here = parsed.source.position(span.head.start).line == line;
            here && matches!(statement, Statement::Instruction(one) if one.op() == Op::Control(Control::Trap))
        };
        if let Some(at) = function.body.iter().zip(spans.iter()).position(|pair| stops(&pair)) {
            function.body.remove(at);
            spans.remove(at);
            return vec![Variation::new(Axis::Trap, format!("`trap` at line {line} deleted"), setup)];
        }
    }
    vec![]
}

/// What an entry means that consists of a `trap`: nobody writes one, compilers do.
pub fn left_by_compiler(kernel: &Kernel, symptom: &Symptom) -> Option<String> {
    let finding = symptom.finding().filter(|finding| finding.check == emulator::checks::trap::CHECK.name)?;
    let ends = |one: &Instruction| matches!(one.op(), Op::Control(Control::Trap | Control::Return | Control::Exit));
    let hollow = |entry: &&ptx::Function| entry.instructions().all(|(_, one)| ends(one)) && !entry.body.is_empty();
    let entry = kernel.module().entries().find(hollow)?;
    Some(format!(
        "line {}: the `trap` is all that is left of `{}`: it has no guard, so neither data nor schedule decides, and nothing is computed. A \
         compiler writes that in place of code that cannot work, such as a WMMA fragment that is loaded from local memory, and \
         warns when it does: compile the source again and read its warnings (`veriflash bisect FILE.cu` shows them)",
        finding.primary().line,
        entry.name,
    ))
}
