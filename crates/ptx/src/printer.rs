//! A module to text. What is printed reads back to an equal module.

use crate::ir::*;
use std::fmt::{self, Write};

/// The module as PTX text, with modifiers in the table's order.
pub fn print(module: &Module) -> String {
    let mut text = String::new();
    write_module(&mut text, module).expect("writing to a string does not fail");
    text
}

fn write_module(out: &mut String, module: &Module) -> fmt::Result {
    writeln!(out, ".version {}\n.target {}\n.address_size 64", module.version, module.target)?;
    for (number, name) in &module.files {
        writeln!(out, ".file {number} \"{name}\"")?;
    }
    for text in &module.pragmas {
        writeln!(out, ".pragma \"{text}\";")?;
    }
    // Variables stand behind the functions whose addresses they may hold.
    let declared = module.functions.iter().take_while(|function| function.declared).count();
    for function in &module.functions[..declared] {
        write_function(out, module, function)?;
    }
    for variable in &module.variables {
        write_variable(out, module, variable)?;
    }
    for function in &module.functions[declared..] {
        write_function(out, module, function)?;
    }
    for (new, known) in &module.aliases {
        writeln!(out, ".alias {}, {};", module[*new].name, module[*known].name)?;
    }
    Ok(())
}

fn linkage(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::Internal => "",
        Linkage::Visible => ".visible ",
        Linkage::Weak => ".weak ",
        Linkage::Extern => ".extern ",
        Linkage::Common => ".common ",
    }
}

fn write_variable(out: &mut String, module: &Module, variable: &Variable) -> fmt::Result {
    write!(out, "{}{} .align {} ", linkage(variable.linkage), variable.space, variable.align)?;
    write!(out, "{} {}", variable.ty, variable.name)?;
    match variable.size {
        VariableSize::Scalar => {}
        VariableSize::Array(count) => write!(out, "[{count}]")?,
        VariableSize::Dynamic => write!(out, "[]")?,
    }
    let values: Vec<String> = variable.init.iter().map(|value| initial(module, value)).collect();
    match (variable.size, values.as_slice()) {
        (_, []) => {}
        (VariableSize::Scalar, [value]) => write!(out, " = {value}")?,
        _ => write!(out, " = {{{}}}", values.join(", "))?,
    }
    writeln!(out, ";")
}

fn initial(module: &Module, value: &Initial) -> String {
    match value {
        Initial::Value(value) => immediate(value),
        Initial::Address { of, offset, generic, mask } => {
            let name = match of {
                Symbol::Function(id) => module[*id].name.as_str(),
                Symbol::Global(id) => module[*id].name.as_str(),
                // A module's variables know no others.
                Symbol::Parameter(_) | Symbol::Return(_) | Symbol::Local(_) => "_",
            };
            let name = if *generic { format!("generic({name})") } else { name.into() };
            let name = if *offset == 0 { name } else { format!("{name}+{offset}") };
            mask.map_or(name.clone(), |mask| format!("0x{mask:X}({name})"))
        }
    }
}

fn write_function(out: &mut String, module: &Module, function: &Function) -> fmt::Result {
    write!(out, "\n{}", linkage(function.linkage))?;
    match function.kind {
        FunctionKind::Entry => write!(out, ".entry ")?,
        FunctionKind::Callee => write!(out, ".func ")?,
    }
    if !function.returns.is_empty() {
        write_parameters(out, &function.returns)?;
        write!(out, " ")?;
    }
    write!(out, "{}", function.name)?;
    write_parameters(out, &function.parameters)?;
    writeln!(out)?;
    for tuning in &function.tuning {
        write_tuning(out, tuning)?;
    }
    for text in &function.pragmas {
        writeln!(out, ".pragma \"{text}\";")?;
    }
    if function.declared {
        return writeln!(out, ";");
    }
    writeln!(out, "{{")?;
    let body = Body { module, function };
    body.write_declarations(out, ScopeId(0))?;
    body.write(out)?;
    writeln!(out, "}}")
}

fn write_parameters(out: &mut String, parameters: &[Parameter]) -> fmt::Result {
    write!(out, "(")?;
    for (index, parameter) in parameters.iter().enumerate() {
        write!(out, "{}\n    ", if index == 0 { "" } else { "," })?;
        write_parameter(out, parameter)?;
    }
    write!(out, "{})", if parameters.is_empty() { "" } else { "\n" })
}

fn write_parameter(out: &mut String, parameter: &Parameter) -> fmt::Result {
    write!(out, ".param ")?;
    if parameter.align != parameter.ty.bytes() {
        write!(out, ".align {} ", parameter.align)?;
    }
    write!(out, "{}", parameter.ty)?;
    if let Some((space, align)) = parameter.pointer {
        write!(out, " .ptr{} .align {align}", space.map_or(String::new(), |space| format!(" {space}")))?;
    }
    write!(out, " {}", parameter.name)?;
    match parameter.count {
        None => Ok(()),
        Some(0) => write!(out, "[]"),
        Some(count) => write!(out, "[{count}]"),
    }
}

fn write_tuning(out: &mut String, tuning: &Tuning) -> fmt::Result {
    match tuning {
        Tuning::MaxThreads([x, y, z]) => writeln!(out, ".maxntid {x}, {y}, {z}"),
        Tuning::RequiredThreads([x, y, z]) => writeln!(out, ".reqntid {x}, {y}, {z}"),
        Tuning::MinBlocksPerProcessor(count) => writeln!(out, ".minnctapersm {count}"),
        Tuning::MaxRegisters(count) => writeln!(out, ".maxnreg {count}"),
        Tuning::ExplicitCluster => writeln!(out, ".explicitcluster"),
        Tuning::RequiredCluster([x, y, z]) => writeln!(out, ".reqnctapercluster {x}, {y}, {z}"),
        Tuning::MaxClusterRank(count) => writeln!(out, ".maxclusterrank {count}"),
        Tuning::NoReturn => writeln!(out, ".noreturn"),
    }
}

/// How many registers from the first on are `stem0`, `stem1`, … of one type. A stem that ends in a digit is none: ptxas
/// does not find `%x00` in `%x0<2>`.
fn numbered_run(registers: &[&Register]) -> usize {
    let Some(stem) = registers[0].name.strip_suffix('0') else { return 1 };
    if stem.ends_with(|last: char| last.is_ascii_digit()) {
        return 1;
    }
    let follows = |(index, register): &(usize, &&Register)| {
        register.ty == registers[0].ty && register.name.strip_prefix(stem) == Some(index.to_string().as_str())
    };
    registers.iter().enumerate().take_while(follows).count().max(1)
}

struct Body<'a> {
    module: &'a Module,
    function: &'a Function,
}

impl Body<'_> {
    /// Registers and variables of one scope. Runs `%r0`, `%r1`, … of one type are printed as `%r<n>`.
    fn write_declarations(&self, out: &mut String, scope: ScopeId) -> fmt::Result {
        let here = self.function.registers.iter().filter(|register| register.scope == scope);
        let registers: Vec<&Register> = here.collect();
        let mut rest = registers.as_slice();
        while let Some(first) = rest.first() {
            let run = numbered_run(rest);
            match first.name.strip_suffix('0') {
                Some(stem) if run > 1 => writeln!(out, "    .reg {} {stem}<{run}>;", first.ty)?,
                _ => writeln!(out, "    .reg {} {};", first.ty, first.name)?,
            }
            rest = &rest[run..];
        }
        for variable in self.function.variables.iter().filter(|variable| variable.scope == scope) {
            write!(out, "    ")?;
            write_variable(out, self.module, variable)?;
        }
        Ok(())
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        for statement in &self.function.body {
            match statement {
                Statement::Label(label) => writeln!(out, "{}:", self.function[*label].name)?,
                Statement::Instruction(instruction) => writeln!(out, "    {};", self.instruction(instruction))?,
                Statement::Location { file, line, column } => writeln!(out, "    .loc {file} {line} {column}")?,
                Statement::Pragma(text) => writeln!(out, "    .pragma \"{text}\";")?,
                Statement::Open(scope) => {
                    writeln!(out, "    {{")?;
                    self.write_declarations(out, *scope)?;
                }
                Statement::BranchTargets(label, targets) => {
                    let names: Vec<&str> = targets.iter().map(|label| self.label(*label)).collect();
                    writeln!(out, "{}: .branchtargets {};", self.label(*label), names.join(", "))?;
                }
                Statement::CallTargets(label, targets) => {
                    let names: Vec<&str> = targets.iter().map(|id| self.module[*id].name.as_str()).collect();
                    writeln!(out, "{}: .calltargets {};", self.label(*label), names.join(", "))?;
                }
                Statement::Prototype(label, prototype) => self.write_prototype(out, *label, prototype)?,
                Statement::Close => writeln!(out, "    }}")?,
            }
        }
        Ok(())
    }

    fn write_prototype(&self, out: &mut String, label: LabelId, prototype: &Prototype) -> fmt::Result {
        write!(out, "{}: .callprototype ", self.label(label))?;
        if !prototype.returns.is_empty() {
            write_parameters(out, &prototype.returns)?;
            write!(out, " ")?;
        }
        write!(out, "_ ")?;
        write_parameters(out, &prototype.parameters)?;
        writeln!(out, "{};", if prototype.no_return { " .noreturn" } else { "" })
    }

    fn label(&self, label: LabelId) -> &str {
        &self.function[label].name
    }

    fn instruction(&self, instruction: &Instruction) -> String {
        let guard = instruction.guard.map_or(String::new(), |guard| {
            format!("@{}{} ", if guard.negated { "!" } else { "" }, self.function[guard.register].name)
        });
        let operands = self.list(&instruction.operands);
        let gap = if operands.is_empty() { "" } else { " " };
        format!("{guard}{}{gap}{operands}", instruction.mnemonic())
    }

    fn list(&self, operands: &[Operand]) -> String {
        let written = operands.iter().filter(|operand| **operand != Operand::Arguments(vec![]));
        written.map(|operand| self.operand(operand)).collect::<Vec<_>>().join(", ")
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Register(register) => self.function[*register].name.clone(),
            Operand::Not(register) => format!("!{}", self.function[*register].name),
            Operand::Immediate(value) => immediate(value),
            Operand::Special(name) => name.to_string(),
            Operand::Symbol(symbol) => self.symbol(*symbol).into(),
            Operand::Address(address) => format!("[{}]", self.address(address)),
            Operand::TensorAddress(map, coordinates) => {
                format!("[{}, {{{}}}]", self.address(map), self.list(coordinates))
            }
            Operand::Vector(parts) => format!("{{{}}}", self.list(parts)),
            Operand::Pair(first, second) => format!("{}|{}", self.operand(first), self.operand(second)),
            Operand::Label(label) => self.label(*label).into(),
            Operand::Arguments(arguments) => format!("({})", self.list(arguments)),
            Operand::Sink => "_".into(),
        }
    }

    fn address(&self, address: &Address) -> String {
        let base = match address.base {
            AddressBase::Register(register) => self.function[register].name.as_str(),
            AddressBase::Symbol(symbol) => self.symbol(symbol),
            AddressBase::Absolute => return address.offset.to_string(),
        };
        match address.offset {
            0 => base.into(),
            offset => format!("{base}+{offset}"),
        }
    }

    fn symbol(&self, symbol: Symbol) -> &str {
        match symbol {
            Symbol::Parameter(id) => &self.function[id].name,
            Symbol::Return(id) => &self.function[id].name,
            Symbol::Local(id) => &self.function[id].name,
            Symbol::Global(id) => &self.module[id].name,
            Symbol::Function(id) => &self.module[id].name,
        }
    }
}

fn immediate(value: &Immediate) -> String {
    match value {
        Immediate::Integer(value) => value.to_string(),
        Immediate::Float(bits) => format!("0f{bits:08X}"),
        Immediate::Double(bits) => format!("0d{bits:016X}"),
    }
}
