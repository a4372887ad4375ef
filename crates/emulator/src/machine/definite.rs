//! Which reads of registers come after a write on every way through a function? Most do, and cost nothing at run time.
//! The others, and whatever is computed from them, are watched lane by lane.

use super::flow::Flow;
use super::register_set::RegisterSet;
use ptx::forms::{OperandSpec, Warp};
use ptx::{Function, Immediate, Instruction, Op, Operand, RegisterId, Statement};
use std::collections::BTreeSet;

/// What a step does with watched registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Read in a way that matters: as an address, to be stored, to wait for.
    pub uses: Vec<RegisterId>,
    /// Read to compute what is written: that has no value either then.
    pub passes: Vec<RegisterId>,
    /// Read by a product if it accumulates.
    pub accumulators: Vec<RegisterId>,
    /// The guard is watched.
    pub guard: bool,
    pub writes: Vec<RegisterId>,
}

/// For each statement what is to be watched there.
pub fn watched(function: &Function, flow: &Flow) -> Vec<Option<Box<Watched>>> {
    let (doubtful, accumulators) = doubtful(function, flow);
    function.body.iter().map(|statement| Watched::of(statement, &doubtful, &accumulators).map(Box::new)).collect()
}

impl Watched {
    fn of(statement: &Statement, doubtful: &Registers, unsure: &Registers) -> Option<Watched> {
        let Statement::Instruction(instruction) = statement else { return None };
        let among = |all: Vec<RegisterId>| all.into_iter().filter(|register| doubtful.contains(register)).collect();
        let (uses, passes) = reads(instruction);
        let guard = instruction.guard.is_some_and(|guard| doubtful.contains(&guard.register));
        let mut accumulators = accumulators(instruction);
        accumulators.retain(|register| unsure.contains(register));
        let mut writes = writes(instruction);
        writes.retain(|register| doubtful.contains(register) || unsure.contains(register));
        let watched = Watched { uses: among(uses), passes: among(passes), accumulators, guard, writes };
        (watched != Watched::default()).then_some(watched)
    }
}

type Registers = BTreeSet<RegisterId>;

/// Registers that are read where no write is sure, and those that are computed from them; then accumulators of products
/// where no write is sure. Whatever is computed from those has a value, for the product has written them.
fn doubtful(function: &Function, flow: &Flow) -> (Registers, Registers) {
    let (mut doubtful, mut unsure) = (Registers::new(), Registers::new());
    for (block, written) in written_at_start(function, flow).into_iter().enumerate() {
        let Some(mut written) = written else { continue };
        for instruction in instructions(function, flow, block) {
            let (uses, passes) = reads(instruction);
            let guard = instruction.guard.map(|guard| guard.register);
            let all = uses.into_iter().chain(passes).chain(guard);
            doubtful.extend(all.filter(|register| !written.has(*register)));
            unsure.extend(accumulators(instruction).into_iter().filter(|register| !written.has(*register)));
            add_writes(&mut written, instruction);
        }
    }
    loop {
        let known = doubtful.len();
        for (_, instruction) in function.instructions() {
            if reads(instruction).1.iter().any(|register| doubtful.contains(register)) {
                doubtful.extend(writes(instruction));
            }
        }
        if doubtful.len() == known {
            return (doubtful, unsure);
        }
    }
}

/// Registers whose values matter at once, and those whose values only go into what is written.
fn reads(instruction: &Instruction) -> (Vec<RegisterId>, Vec<RegisterId>) {
    let (mut uses, mut passes) = (vec![], vec![]);
    // The accumulators of `wgmma` are read only if `scale-d` says so.
    let wanted: fn(&OperandSpec) -> bool = match instruction.op() {
        Op::Wgmma(_) => |spec| spec.reads && !spec.defines,
        _ => |spec| spec.reads,
    };
    let computes = match instruction.op() {
        Op::Integer(_) | Op::Float(_) | Op::Half(_) | Op::Compare(_) | Op::Convert(_) => true,
        Op::Movement(_) => !instruction.operands.iter().any(|operand| matches!(operand, Operand::Address(_))),
        _ => false,
    };
    let shuffles = instruction.op() == Op::Warp(Warp::Shuffle);
    instruction.registers(wanted, |register, operand| {
        let all = if computes || shuffles && operand == 1 { &mut passes } else { &mut uses };
        all.push(register);
    });
    (uses, passes)
}

/// The accumulators of a product that may read them.
fn accumulators(instruction: &Instruction) -> Vec<RegisterId> {
    let (Op::Wgmma(_), Some(accumulates)) = (instruction.op(), instruction.operands.get(3)) else { return vec![] };
    match accumulates {
        Operand::Immediate(Immediate::Integer(0)) => vec![],
        _ => writes(instruction),
    }
}

fn writes(instruction: &Instruction) -> Vec<RegisterId> {
    let mut all = vec![];
    instruction.registers(|spec| spec.defines, |register, _| all.push(register));
    all
}

/// Adds what an instruction writes. What a guard may prevent is not sure.
fn add_writes(written: &mut RegisterSet, instruction: &Instruction) {
    if instruction.guard.is_none() {
        instruction.registers(|spec| spec.defines, |register, _| written.insert(register));
    }
}

/// What is written on every way when a block begins; none for blocks that nothing leads to.
fn written_at_start(function: &Function, flow: &Flow) -> Vec<Option<RegisterSet>> {
    let blocks = flow.blocks();
    let mut at_start: Vec<Option<RegisterSet>> = vec![None; blocks.starts.len()];
    let Some(first) = at_start.first_mut() else { return at_start };
    *first = Some(RegisterSet::default());
    let mut waiting = BTreeSet::from([0]);
    while let Some(block) = waiting.pop_first() {
        let Some(mut written) = at_start[block].clone() else { continue };
        instructions(function, flow, block).for_each(|instruction| add_writes(&mut written, instruction));
        for next in &blocks.successors[block] {
            let changed = match at_start.get_mut(*next) {
                Some(Some(known)) => known.meet(&written),
                Some(unknown) => unknown.replace(written.clone()).is_none(),
                None => false, // The exit.
            };
            if changed {
                waiting.insert(*next);
            }
        }
    }
    at_start
}

fn instructions<'a>(function: &'a Function, flow: &Flow, block: usize) -> impl Iterator<Item = &'a Instruction> {
    let starts = &flow.blocks().starts;
    let end = starts.get(block + 1).copied().unwrap_or(function.body.len());
    function.body[starts[block]..end].iter().filter_map(|statement| match statement {
        Statement::Instruction(instruction) => Some(instruction),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of registers that are watched.
    fn unsure(body: &str) -> Vec<String> {
        let head = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .pred %p; .reg .b32 %a, %b;\n";
        let text = format!("{head}setp.eq.u32 %p, 1, 0;\n{body}\nret;}}");
        let parsed = ptx::parse(&ptx::Source::new("test", text)).unwrap();
        let function = &parsed.module.functions[0];
        let (all, _) = doubtful(function, &Flow::new(function));
        all.into_iter().map(|register| function[register].name.clone()).collect()
    }

    #[test]
    fn a_write_on_every_way_is_sure() {
        let both = "@%p bra A;\nmov.b32 %a, 1;\nbra END;\nA: mov.b32 %a, 2;\nEND: add.u32 %b, %a, 1;";
        assert!(unsure(both).is_empty());
        let one = "@%p bra A;\nmov.b32 %a, 1;\nA: add.u32 %b, %a, 1;";
        assert_eq!(unsure(one), ["%a", "%b"]);
    }

    #[test]
    fn a_guarded_write_is_not_sure() {
        assert_eq!(unsure("@%p mov.b32 %a, 1;\nadd.u32 %b, %a, 1;"), ["%a", "%b"]);
    }

    #[test]
    fn the_first_turn_of_a_loop_counts() {
        assert_eq!(unsure("A: add.u32 %a, %a, 1;\n@%p bra A;"), ["%a"]);
        assert!(unsure("mov.b32 %a, 0;\nA: add.u32 %a, %a, 1;\n@%p bra A;").is_empty());
    }
}
