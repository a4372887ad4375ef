//! The kernel without the `trap` that stops it: last of all changes, because it silences and seldom cures.

use launch::Kernel;
use ptx::forms::Control;
use ptx::{Instruction, Op, Statement};

use super::super::setup::Setup;
use super::super::symptom::Symptom;
use super::{Axis, Variation};

/// Each `trap` that may have stopped it: the one that a finding names, or, where only the launch is known to have failed, any.
pub fn without(failing: &Setup, symptom: &Symptom) -> Vec<Variation> {
    let kernel = &failing.kernel;
    let named = match symptom {
        Symptom::Finding(finding) if finding.check == emulator::checks::trap::CHECK.name => {
            Some(finding.primary().line)
        }
        Symptom::LaunchFailure(_) => None,
        Symptom::Finding(_) | Symptom::WrongResult(_) => return vec![],
    };
    let wanted = |(_, line): &(Site, u32)| named.is_none_or(|named| named == *line);
    let without = |((function, at), line): (Site, u32)| {
        let mut setup = failing.clone();
        setup.kernel.parsed.module.functions[function].body.remove(at);
        setup.kernel.parsed.spans[function].remove(at);
        Variation::new(Axis::Trap, format!("`trap` at line {line} deleted"), setup)
    };
    traps(kernel).into_iter().filter(wanted).map(without).collect()
}

/// A statement of a function.
type Site = (usize, usize);

/// Every `trap` of a module, with its line.
fn traps(kernel: &Kernel) -> Vec<(Site, u32)> {
    let mut all = vec![];
    let parsed = &kernel.parsed;
    for (number, (function, spans)) in parsed.module.functions.iter().zip(&parsed.spans).enumerate() {
        for (at, (statement, span)) in function.body.iter().zip(spans).enumerate() {
            if matches!(statement, Statement::Instruction(one) if one.op() == Op::Control(Control::Trap)) {
                all.push(((number, at), parsed.source.position(span.head.start).line));
            }
        }
    }
    all
}

/// What an entry means that consists of a `trap`: nobody writes one, compilers do.
pub fn left_by_compiler(kernel: &Kernel, symptom: &Symptom) -> Option<String> {
    let stopped = match symptom {
        Symptom::Finding(finding) => finding.check == emulator::checks::trap::CHECK.name,
        Symptom::LaunchFailure(_) => true,
        Symptom::WrongResult(_) => false,
    };
    let ends = |one: &Instruction| matches!(one.op(), Op::Control(Control::Trap | Control::Return | Control::Exit));
    let functions = &kernel.module().functions;
    let hollow = |((function, _), _): &(Site, u32)| functions[*function].instructions().all(|(_, one)| ends(one));
    let ((function, _), line) = traps(kernel).into_iter().find(hollow).filter(|_| stopped)?;
    Some(format!(
        "line {line}: the `trap` is all that is left of `{}`: it has no guard, so neither data nor schedule decides, and nothing is \
         computed. A compiler writes that in place of code that cannot work, such as a WMMA fragment that is loaded from local memory, \
         and warns when it does: compile the source again and read its warnings (`veriflash bisect FILE.cu` shows them)",
        functions[function].name,
    ))
}
