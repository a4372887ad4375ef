//! Mutants of a kernel, and the kernels that they become. What stays keeps its place in the text, so that reports about
//! a mutant point into the file that the user has.

use super::operators::{Change, Operator, changes};
use launch::{Kernel, Resolved};
use ptx::{Function, FunctionKind, Immediate, Instruction, Operand, Parsed, Register, ScopeId, Statement, Type};

/// A kernel with one synchronisation weakened.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub operator: Operator,
    /// The line of the synchronisation in the kernel's file.
    pub line: u32,
    /// The synchronisation as the file has it.
    pub text: String,
    /// The function in its module, and the statement in that.
    pub(super) function: usize,
    pub(super) statement: usize,
    pub(super) change: Change,
}

/// Every mutant of what a kernel's launches may execute, in the order of the text.
pub fn mutants(kernel: &Kernel, resolved: &Resolved) -> Vec<Mutant> {
    let entries: Vec<&str> =
        resolved.launches.iter().filter_map(|launch| Some(kernel.entry(launch).ok()?.name.as_str())).collect();
    let runs = |function: &Function| function.kind == FunctionKind::Callee || entries.contains(&&*function.name);
    let functions = kernel.module().functions.iter().enumerate().filter(|(_, function)| runs(function));
    functions
        .flat_map(|(index, function)| function.instructions().map(move |(at, one)| (index, at.0 as usize, one)))
        .flat_map(|(function, statement, instruction)| {
            let mutant = move |(operator, change)| {
                let (line, text) = place(&kernel.parsed, function, statement);
                Mutant { operator, line, text, function, statement, change }
            };
            changes(instruction).into_iter().map(mutant)
        })
        .collect()
}

/// The line and the text of a statement.
pub fn place(parsed: &Parsed, function: usize, statement: usize) -> (u32, String) {
    let spans = &parsed.spans[function][statement];
    let text = parsed.source.text.get(spans.whole.range()).unwrap_or_default();
    let words: Vec<&str> = text.trim_end_matches(';').split_whitespace().collect();
    (parsed.source.position(spans.head.start).line, words.join(" "))
}

impl Mutant {
    /// The kernel with this change.
    pub fn of(&self, kernel: &Kernel) -> Kernel {
        rewritten(kernel, &[(self.function, self.statement, &self.change)])
    }

    /// What tells it apart from the other mutants of its module.
    pub fn key(&self) -> (usize, usize, Operator) {
        (self.function, self.statement, self.operator)
    }

    pub(super) fn site(&self) -> (usize, usize) {
        (self.function, self.statement)
    }
}

/// The kernel with several changes, each at a statement of its own.
pub(super) fn rewritten(kernel: &Kernel, changes: &[(usize, usize, &Change)]) -> Kernel {
    let mut kernel = kernel.clone();
    let mut changes = changes.to_vec();
    // From the back, so that places before a change stay what they are.
    changes.sort_by_key(|(function, statement, _)| std::cmp::Reverse((*function, *statement)));
    changes.iter().for_each(|(function, statement, change)| apply(&mut kernel.parsed, *function, *statement, change));
    kernel
}

fn apply(parsed: &mut Parsed, function: usize, statement: usize, change: &Change) {
    let (body, spans) = (&mut parsed.module.functions[function], &mut parsed.spans[function]);
    match change {
        Change::Delete => {
            body.body.remove(statement);
            spans.remove(statement);
        }
        Change::Replace(new) => body.body[statement] = Statement::Instruction(new.clone()),
        Change::Add(index, by) => {
            if let Some(before) = adjust(body, statement, *index, ("add.s32", *by), |value| value + i128::from(*by)) {
                body.body.insert(statement, before);
                spans.insert(statement, spans[statement].clone());
            }
        }
        Change::Flip(index) => {
            if let Some(before) = adjust(body, statement, *index, ("xor.b32", 1), |value| value ^ 1) {
                body.body.insert(statement, before);
                spans.insert(statement, spans[statement].clone());
            }
        }
    }
}

/// Changes an operand: a constant where it stands, a register by an instruction that must run before.
fn adjust(
    function: &mut Function,
    statement: usize,
    index: usize,
    (mnemonic, by): (&str, i64),
    constant: impl Fn(i128) -> i128,
) -> Option<Statement> {
    let fresh = ptx::RegisterId(function.registers.len() as u32);
    let Statement::Instruction(instruction) = &mut function.body[statement] else { return None };
    let guard = instruction.guard;
    let operand = instruction.operands.get_mut(index)?;
    if let Operand::Immediate(Immediate::Integer(value)) = operand {
        *value = constant(*value);
        return None;
    }
    let old = std::mem::replace(operand, Operand::Register(fresh));
    let operands = vec![Operand::Register(fresh), old, Operand::Immediate(Immediate::Integer(by.into()))];
    let before = Instruction { guard, ..Instruction::new(mnemonic, operands).ok()? };
    let name = format!("%mutant_{}", fresh.0);
    function.registers.push(Register { name, ty: Type::B32, scope: ScopeId(0) });
    Some(Statement::Instruction(before))
}

/// A kernel that traps where a statement would have run.
pub(super) fn trapping(kernel: &Kernel, (function, statement): (usize, usize)) -> Kernel {
    let mut kernel = kernel.clone();
    if let Statement::Instruction(old) = &mut kernel.parsed.module.functions[function].body[statement]
        && let Ok(trap) = Instruction::new("trap", vec![])
    {
        *old = Instruction { guard: old.guard, ..trap };
    }
    kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [64, 1, 1]\n\
        .version 8.0\n.target sm_90\n.address_size 64\n.visible .entry wait()\n{\n    .reg .pred %p;\n    .reg .b32 %phase;\n\
        .shared .b64 full;\n    mov.u32 %phase, 0;\n    bar.sync 0;\n    mbarrier.try_wait.parity.shared.b64 %p, [full], %phase;\n\
        bar.sync 1, 64;\n    ret;\n}\n";

    fn kernel() -> Kernel {
        Kernel::parse("wait.ptx", TEXT).unwrap()
    }

    /// The body of each mutant that verifies, instructions only.
    fn bodies() -> Vec<(String, Vec<String>)> {
        let kernel = kernel();
        let all = mutants(&kernel, &kernel.resolve(&launch::Limits::default()).unwrap());
        let body = |mutant: &Mutant| {
            let text = ptx::print(mutant.of(&kernel).module());
            let lines = text.lines().map(str::trim).filter(|line| line.contains("bar") || line.contains("phase,"));
            (format!("{}: {}", mutant.line, mutant.operator.name()), lines.skip(1).map(String::from).collect())
        };
        all.iter().map(body).collect()
    }

    #[test]
    fn a_deleted_statement_leaves_the_places_of_others() {
        let kernel = kernel();
        let all = mutants(&kernel, &kernel.resolve(&launch::Limits::default()).unwrap());
        let changed = all[0].of(&kernel);
        let last = changed.parsed.spans[0].len() - 2;
        assert_eq!(place(&changed.parsed, 0, last), (15, "bar.sync 1, 64".into()));
        assert_eq!(kernel.parsed.spans[0].len(), changed.parsed.spans[0].len() + 1);
    }

    #[test]
    fn a_parity_in_a_register_is_flipped_before_the_wait() {
        let all = bodies();
        let flipped = &all.iter().find(|(name, _)| name.contains("parity")).unwrap().1;
        assert!(flipped.iter().any(|line| line.contains("xor.b32 %mutant_2, %phase, 1")), "{flipped:?}");
        assert!(flipped.iter().any(|line| line.ends_with("[full], %mutant_2;")), "{flipped:?}");
    }

    #[test]
    fn mutants_come_in_the_order_of_the_text() {
        let names: Vec<String> = bodies().into_iter().map(|(name, _)| name).collect();
        let expected = [
            "13: barrier deleted",
            "14: wait deleted",
            "14: parity flipped",
            "14: acquire relaxed",
            "15: barrier deleted",
            "15: arrive count up",
            "15: arrive count down",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn every_mutant_prints_what_reads_back() {
        let kernel = kernel();
        for mutant in mutants(&kernel, &kernel.resolve(&launch::Limits::default()).unwrap()) {
            let text = ptx::print(mutant.of(&kernel).module());
            let again = ptx::parse(&ptx::Source::new("mutant.ptx", text.clone()));
            assert!(again.is_ok(), "{text}");
        }
    }
}
