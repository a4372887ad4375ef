//! How many registers a thread needs, at least: those that memory, another lane or a product fills, each as long as
//! somebody may still read it. Other values can be computed again where they are needed.

use super::flow::Flow;
use super::register_set::RegisterSet;
use ptx::forms::{Effect, Launch};
use ptx::{Function, Instruction, Op, RegisterId, Space, Statement, Type};
use std::collections::BTreeSet;

/// Most registers of 32 bits that are in use at once, and the statement before which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    pub registers: u32,
    pub statement: u32,
}

/// The most between a `setmaxnreg` and the next one, on any way.
pub fn behind(function: &Function, flow: &Flow, at: usize) -> Option<InUse> {
    let in_use = in_use(function, flow);
    let reached = reached_from(function, flow, at + 1);
    let most = reached.into_iter().max_by_key(|statement| (in_use[*statement], std::cmp::Reverse(*statement)))?;
    Some(InUse { registers: in_use[most], statement: most as u32 })
}

/// The statements that follow before the next `setmaxnreg`.
fn reached_from(function: &Function, flow: &Flow, start: usize) -> BTreeSet<usize> {
    let blocks = flow.blocks();
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![start]);
    while let Some(start) = waiting.pop() {
        let block = blocks.starts.partition_point(|first| *first <= start) - 1;
        let end = blocks.starts.get(block + 1).copied().unwrap_or(function.body.len());
        let resizes = (start..end).find(|at| is_resize(&function.body[*at]));
        if start >= end || !reached.insert(start) {
            continue;
        }
        reached.extend(start..resizes.unwrap_or(end));
        if resizes.is_none() {
            waiting.extend(blocks.successors[block].iter().filter_map(|next| blocks.starts.get(*next)));
        }
    }
    reached
}

fn is_resize(statement: &Statement) -> bool {
    matches!(statement, Statement::Instruction(one) if one.op() == Op::Launch(Launch::Registers))
}

/// Registers in use before each statement.
fn in_use(function: &Function, flow: &Flow) -> Vec<u32> {
    let (starts, kept) = (&flow.blocks().starts, kept(function));
    let words = |register: RegisterId| function[register].ty.bits().div_ceil(32) * u32::from(kept.has(register));
    let mut counts = vec![0; function.body.len()];
    for (block, mut live) in live_at_end(function, flow).into_iter().enumerate() {
        let end = starts.get(block + 1).copied().unwrap_or(function.body.len());
        for at in (starts[block]..end).rev() {
            if let Statement::Instruction(instruction) = &function.body[at] {
                step_back(&mut live, instruction);
            }
            counts[at] = live.iter().map(words).sum();
        }
    }
    counts
}

/// What somebody may still read when a block ends.
fn live_at_end(function: &Function, flow: &Flow) -> Vec<RegisterSet> {
    let blocks = flow.blocks();
    let mut at_end = vec![RegisterSet::default(); blocks.starts.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..blocks.starts.len()).rev() {
            let end = blocks.starts.get(block + 1).copied().unwrap_or(function.body.len());
            let mut live = at_end[block].clone();
            for statement in function.body[blocks.starts[block]..end].iter().rev() {
                if let Statement::Instruction(instruction) = statement {
                    step_back(&mut live, instruction);
                }
            }
            for (before, nexts) in blocks.successors.iter().enumerate() {
                changed |= nexts.contains(&block) && at_end[before].join(&live);
            }
        }
    }
    at_end
}

/// From what is live behind an instruction to what is live before it.
fn step_back(live: &mut RegisterSet, instruction: &Instruction) {
    if instruction.guard.is_none() {
        instruction.registers(|spec| spec.defines, |register, _| live.remove(register));
    }
    instruction.registers(|spec| spec.reads, |register, _| live.insert(register));
    instruction.guard.iter().for_each(|guard| live.insert(guard.register));
}

/// Registers that something fills which cannot be computed again. Predicates have registers of their own.
fn kept(function: &Function) -> RegisterSet {
    let mut kept = RegisterSet::default();
    for (_, instruction) in function.instructions().filter(|(_, instruction)| is_given(instruction)) {
        instruction.registers(|spec| spec.defines, |register, _| kept.insert(register));
    }
    function.registers.iter().zip(0..).filter(|(one, _)| one.ty == Type::Pred).for_each(|(_, number)| {
        kept.remove(RegisterId(number));
    });
    kept
}

/// Does memory, another lane or a product give the result?
fn is_given(instruction: &Instruction) -> bool {
    match instruction.op() {
        Op::Movement(_) => instruction.form.effect == Effect::Reads && instruction.space() != Some(Space::Parameter),
        Op::Atomic(_) | Op::Matrix(_) | Op::Wmma(_) | Op::Wgmma(_) | Op::Warp(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in use behind the first `setmaxnreg` of a kernel.
    fn in_use(body: &str) -> Option<u32> {
        let head = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() { .reg .pred %p; .reg .b32 %a, %b;\n";
        let registers = ".reg .b64 %w, %to; mov.b64 %to, 0;\nsetp.eq.u32 %p, 1, 0;\n";
        let parsed = ptx::parse(&ptx::Source::new("test", format!("{head}{registers}{body}\nret;}}"))).unwrap();
        let function = &parsed.module.functions[0];
        let at = function.body.iter().position(is_resize)?;
        behind(function, &Flow::new(function), at).map(|most| most.registers)
    }

    const RELEASE: &str = "setmaxnreg.dec.sync.aligned.u32 24;\n";

    #[test]
    fn what_is_read_later_is_in_use() {
        let loads = "ld.global.b32 %a, [%to];\nld.global.b64 %w, [%to];\n";
        let stores = "st.global.b32 [%to], %a;\nst.global.b64 [%to], %w;\n";
        assert_eq!(in_use(&format!("{loads}{RELEASE}{stores}")), Some(3));
        assert_eq!(in_use(&format!("{loads}{stores}{RELEASE}")), Some(0));
        assert_eq!(in_use(&format!("{RELEASE}{loads}{stores}")), Some(3));
    }

    #[test]
    fn what_can_be_computed_again_does_not_count() {
        assert_eq!(in_use(&format!("mov.b32 %a, %tid.x;\n{RELEASE}st.global.b32 [%to], %a;")), Some(0));
        let sum = format!("ld.global.b32 %a, [%to];\nadd.u32 %b, %a, 1;\n{RELEASE}st.global.b64 [%to], {{%a, %b}};");
        assert_eq!(in_use(&sum.replace("b64", "v2.b32")), Some(1));
    }

    #[test]
    fn the_next_change_ends_the_count() {
        let taken = "setmaxnreg.inc.sync.aligned.u32 240;\n";
        let later = format!("{RELEASE}@%p bra END;\n{taken}ld.global.b32 %a, [%to];\nst.global.b32 [%to], %a;\nEND:");
        assert_eq!(in_use(&later), Some(0));
        let loops = format!("ld.global.b32 %a, [%to];\n{RELEASE}L: st.global.b32 [%to], %a;\n@%p bra L;");
        assert_eq!(in_use(&loops), Some(1));
    }
}
