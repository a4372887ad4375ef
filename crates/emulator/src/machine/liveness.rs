//! Does anybody look at what an instruction writes?

use super::flow::Flow;
use ptx::{Function, RegisterId, Statement};

/// Is there a way from behind a statement to an instruction that reads the register, before one that writes it anew?
pub fn is_read_after(function: &Function, flow: &Flow, statement: usize, register: RegisterId) -> bool {
    let blocks = flow.blocks();
    let mut seen = vec![false; blocks.starts.len()];
    let mut waiting = vec![];
    let mut range = statement + 1..blocks.end_of(statement, function.body.len());
    let mut block = blocks.of(statement);
    loop {
        match function.body[range].iter().find_map(|statement| meets(statement, register)) {
            Some(Met::Reads) => return true,
            Some(Met::Writes) => {}
            None => waiting.extend(blocks.successors[block].iter().copied().filter(|next| *next < seen.len())),
        }
        block = loop {
            let Some(next) = waiting.pop() else { return false };
            if !std::mem::replace(&mut seen[next], true) {
                break next;
            }
        };
        let start = blocks.starts[block];
        range = start..blocks.end_of(start, function.body.len());
    }
}

/// What a statement does with a register first.
enum Met {
    Reads,
    Writes,
}

fn meets(statement: &Statement, register: RegisterId) -> Option<Met> {
    let Statement::Instruction(instruction) = statement else { return None };
    let (mut reads, mut writes) = (instruction.guard.is_some_and(|guard| guard.register == register), false);
    instruction.registers(|spec| spec.reads, |found, _| reads |= found == register);
    instruction.registers(|spec| spec.defines, |found, _| writes |= found == register);
    match (reads, writes && instruction.guard.is_none()) {
        (true, _) => Some(Met::Reads),
        (false, true) => Some(Met::Writes),
        (false, false) => None,
    }
}
