//! From the builder's lines to a `ptx::Module`: registers that the text uses get dense numbers and names.

use super::{Builder, Line, operands};
use crate::error::Place;
use ptx::{Function, Instruction, Module, Operand, Statement, Tuning};
use std::collections::{HashMap, HashSet};

/// The first PTX version that knows sm_80; forms may ask for a later one.
const FIRST_VERSION: ptx::Version = ptx::Version { major: 7, minor: 0 };

/// The name of the block's dynamic shared memory, and the alignment that the 128-byte swizzle needs: eight rows.
const SHARED: (&str, u32) = ("shared", 1024);

pub(crate) fn finish(name: &str, mut builder: Builder) -> Module {
    let mut lines = std::mem::take(&mut builder.prologue);
    lines.append(&mut builder.lines);
    lines.append(&mut builder.seldom);
    let registers = number_registers(&builder, &lines);
    let labels = number_labels(&lines);
    let mut body = Body { files: vec![], statements: vec![], last: None };
    for line in lines {
        match line {
            Line::Label(id) => body.statements.push(Statement::Label(labels[&id])),
            Line::Pragma(text) => body.statements.push(Statement::Pragma(text.into())),
            Line::Instruction(instruction, at) => body.push(renumbered(instruction, &registers.numbers, &labels), at),
        }
    }
    let versions = body.statements.iter().filter_map(|statement| match statement {
        Statement::Instruction(instruction) => Some(instruction.form.version),
        _ => None,
    });
    let version = versions.fold(FIRST_VERSION, Ord::max);
    let variables = if builder.shared_bytes > 0 { vec![shared_variable()] } else { vec![] };
    let mut names: Vec<_> =
        labels.into_iter().map(|(old, new)| (new, builder.labels[old.0 as usize].clone())).collect();
    names.sort();
    let function = Function {
        name: name.into(),
        linkage: ptx::Linkage::Visible,
        tuning: tuning(&builder),
        parameters: builder.parameters,
        registers: registers.all,
        labels: names.into_iter().map(|(_, name)| ptx::Label { name, scope: ptx::ScopeId(0) }).collect(),
        scopes: vec![ptx::Scope { parent: ptx::ScopeId(0) }],
        body: body.statements,
        ..Function::default()
    };
    let files = (1..).zip(body.files).collect();
    Module { files, variables, functions: vec![function], ..Module::new(version, builder.options.target) }
}

fn tuning(builder: &Builder) -> Vec<Tuning> {
    let threads = Tuning::RequiredThreads([builder.options.threads, 1, 1]);
    let blocks = builder.options.blocks_per_processor.map(Tuning::MinBlocksPerProcessor);
    let cluster = builder.options.cluster;
    let cluster = (cluster > 1).then_some(Tuning::RequiredCluster([cluster, 1, 1]));
    std::iter::once(threads).chain(blocks).chain(cluster).collect()
}

fn shared_variable() -> ptx::Variable {
    ptx::Variable {
        name: SHARED.0.into(),
        space: ptx::Space::Shared,
        ty: ptx::Type::B8,
        align: SHARED.1,
        size: ptx::VariableSize::Dynamic,
        init: vec![],
        scope: ptx::ScopeId(0),
        linkage: ptx::Linkage::Extern,
    }
}

struct Body {
    files: Vec<String>,
    statements: Vec<Statement>,
    last: Option<Place>,
}

impl Body {
    fn push(&mut self, instruction: Instruction, at: Place) {
        if self.last.replace(at) != Some(at) {
            let file = self.file_number(relative(at.file()));
            self.statements.push(Statement::Location { file, line: at.line(), column: at.column() });
        }
        self.statements.push(Statement::Instruction(instruction));
    }

    fn file_number(&mut self, file: String) -> u32 {
        let known = self.files.iter().position(|known| *known == file);
        let index = known.unwrap_or_else(|| {
            self.files.push(file);
            self.files.len() - 1
        });
        index as u32 + 1
    }
}

/// The path from the workspace on, or from the package on if it came from a registry, so that the text is the same wherever
/// it was built.
pub(crate) fn relative(file: &str) -> String {
    let file = file.replace('\\', "/");
    if let Some((_, package)) = file.split_once("/registry/src/") {
        return package.split_once('/').map_or(package, |(_, inside)| inside).into();
    }
    match file.rfind("/crates/") {
        Some(at) => file[at + 1..].into(),
        None => file,
    }
}

fn renumbered(
    mut instruction: Instruction,
    registers: &HashMap<ptx::RegisterId, ptx::RegisterId>,
    labels: &HashMap<ptx::LabelId, ptx::LabelId>,
) -> Instruction {
    if let Some(guard) = &mut instruction.guard {
        guard.register = registers[&guard.register];
    }
    operands::renumber(&mut instruction.operands, &mut |id| *id = registers[id]);
    for operand in &mut instruction.operands {
        if let Operand::Label(label) = operand {
            *label = labels[label];
        }
    }
    instruction
}

/// Labels in the order in which they stand.
fn number_labels(lines: &[Line]) -> HashMap<ptx::LabelId, ptx::LabelId> {
    let labels = lines.iter().filter_map(|line| match line {
        Line::Label(id) => Some(*id),
        Line::Instruction(..) | Line::Pragma(_) => None,
    });
    labels.zip((0..).map(ptx::LabelId)).collect()
}

struct Registers {
    all: Vec<ptx::Register>,
    numbers: HashMap<ptx::RegisterId, ptx::RegisterId>,
}

/// Named registers first, in the order in which they were made, so that those of a fragment stand together; then the
/// others by type, `%r0`, `%r1`, …
fn number_registers(builder: &Builder, lines: &[Line]) -> Registers {
    let used = used(lines);
    let mut registers = Registers { all: vec![], numbers: HashMap::new() };
    let mut taken = HashSet::new();
    for &id in &used {
        let register = &builder.registers[id.0 as usize];
        if let Some(name) = &register.name {
            registers.add(id, unique(name, &mut taken), register.ty);
        }
    }
    for (ty, prefix) in ANONYMOUS {
        let anonymous = |id: &&ptx::RegisterId| {
            let register = &builder.registers[id.0 as usize];
            register.name.is_none() && register.ty == ty
        };
        for (number, &id) in used.iter().filter(anonymous).enumerate() {
            registers.add(id, format!("%{prefix}{number}"), ty);
        }
    }
    registers
}

const ANONYMOUS: [(ptx::Type, &str); 5] = [
    (ptx::Type::Pred, "p"),
    (ptx::Type::B16, "h"),
    (ptx::Type::B32, "r"),
    (ptx::Type::F32, "f"),
    (ptx::Type::B64, "rd"),
];

impl Registers {
    fn add(&mut self, id: ptx::RegisterId, name: String, ty: ptx::Type) {
        self.numbers.insert(id, ptx::RegisterId(self.all.len() as u32));
        self.all.push(ptx::Register { name, ty, scope: ptx::ScopeId(0) });
    }
}

fn used(lines: &[Line]) -> Vec<ptx::RegisterId> {
    let mut ids = vec![];
    for line in lines {
        if let Line::Instruction(instruction, _) = line {
            ids.extend(instruction.guard.map(|guard| guard.register));
            ids.extend(operands::registers(&instruction.operands));
        }
    }
    ids.sort();
    ids.dedup();
    ids
}

fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let plain = (!is_reserved(name)).then(|| format!("%{name}"));
    let numbered = (2u32..).map(|number| format!("%{name}__{number}"));
    let mut candidates = plain.into_iter().chain(numbered);
    candidates.find(|candidate| taken.insert(candidate.clone())).unwrap_or_default()
}

/// ptxas lets a register shadow a special one without a word, so such names are never given; nor those of the
/// anonymous registers.
fn is_reserved(name: &str) -> bool {
    let special = |(full, _): &(&str, ptx::Type)| full[1..].split('.').next() == Some(name);
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let others = ["smid", "nsmid", "gridid", "clock", "clock_hi", "clock64", "globaltimer"];
    ptx::SPECIAL_REGISTERS.iter().any(special)
        || others.contains(&name)
        || (stem.len() < name.len() && ANONYMOUS.iter().any(|(_, prefix)| *prefix == stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_begin_at_the_workspace_wherever_it_is() {
        let expected = "crates/attention/src/kernels/ampere.rs";
        for prefix in ["", "/home/someone/crates/veriflash/", "../veriflash/"] {
            assert_eq!(relative(&format!("{prefix}{expected}")), expected);
        }
        assert_eq!(relative(r"C:\veriflash\crates\attention\src\kernels\ampere.rs"), expected);
        assert_eq!(relative("src/main.rs"), "src/main.rs");
        let fetched = "/home/someone/.cargo/registry/src/index.crates.io-1949cf8c/attention-0.1.0/src/planner.rs";
        assert_eq!(relative(fetched), "attention-0.1.0/src/planner.rs");
    }

    #[test]
    fn names_of_special_and_anonymous_registers_are_not_given() {
        let mut taken = HashSet::new();
        let given = ["laneid", "tid", "r7", "rd", "max_0", "max_0"].map(|name| unique(name, &mut taken));
        assert_eq!(given, ["%laneid__2", "%tid__2", "%r7__2", "%rd", "%max_0", "%max_0__2"]);
    }
}
