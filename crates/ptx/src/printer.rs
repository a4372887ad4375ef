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
    for variable in &module.variables {
        write_variable(out, variable)?;
    }
    module.functions.iter().try_for_each(|function| write_function(out, module, function))
}

fn write_variable(out: &mut String, variable: &Variable) -> fmt::Result {
    let external = if variable.size == VariableSize::Dynamic { ".extern " } else { "" };
    write!(out, "{external}{} .align {} {} {}", variable.space, variable.align, variable.ty, variable.name)?;
    match variable.size {
        VariableSize::Scalar => {}
        VariableSize::Array(count) => write!(out, "[{count}]")?,
        VariableSize::Dynamic => write!(out, "[]")?,
    }
    let values: Vec<String> = variable.init.iter().map(immediate).collect();
    match (variable.size, values.as_slice()) {
        (_, []) => {}
        (VariableSize::Scalar, [value]) => write!(out, " = {value}")?,
        _ => write!(out, " = {{{}}}", values.join(", "))?,
    }
    writeln!(out, ";")
}

fn write_function(out: &mut String, module: &Module, function: &Function) -> fmt::Result {
    write!(out, "\n{}.entry {}(", if function.visible { ".visible " } else { "" }, function.name)?;
    for (index, parameter) in function.parameters.iter().enumerate() {
        write!(out, "{}\n    ", if index == 0 { "" } else { "," })?;
        write_parameter(out, parameter)?;
    }
    writeln!(out, "{})", if function.parameters.is_empty() { "" } else { "\n" })?;
    for tuning in &function.tuning {
        write_tuning(out, tuning)?;
    }
    writeln!(out, "{{")?;
    write_declarations(out, function, ScopeId(0))?;
    Body { module, function }.write(out)?;
    writeln!(out, "}}")
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
    parameter.count.map_or(Ok(()), |count| write!(out, "[{count}]"))
}

fn write_tuning(out: &mut String, tuning: &Tuning) -> fmt::Result {
    match tuning {
        Tuning::MaxThreads([x, y, z]) => writeln!(out, ".maxntid {x}, {y}, {z}"),
        Tuning::RequiredThreads([x, y, z]) => writeln!(out, ".reqntid {x}, {y}, {z}"),
        Tuning::MinBlocksPerProcessor(count) => writeln!(out, ".minnctapersm {count}"),
        Tuning::MaxRegisters(count) => writeln!(out, ".maxnreg {count}"),
    }
}

/// Registers and variables of one scope. Runs `%r0`, `%r1`, … of one type are printed as `%r<n>`.
fn write_declarations(out: &mut String, function: &Function, scope: ScopeId) -> fmt::Result {
    let registers: Vec<&Register> = function.registers.iter().filter(|register| register.scope == scope).collect();
    let mut rest = registers.as_slice();
    while let Some(first) = rest.first() {
        let run = numbered_run(rest);
        match first.name.strip_suffix('0') {
            Some(stem) if run > 1 => writeln!(out, "    .reg {} {stem}<{run}>;", first.ty)?,
            _ => writeln!(out, "    .reg {} {};", first.ty, first.name)?,
        }
        rest = &rest[run..];
    }
    for variable in function.variables.iter().filter(|variable| variable.scope == scope) {
        write!(out, "    ")?;
        write_variable(out, variable)?;
    }
    Ok(())
}

/// How many registers from the first on are `stem0`, `stem1`, … of one type.
fn numbered_run(registers: &[&Register]) -> usize {
    let Some(stem) = registers[0].name.strip_suffix('0') else { return 1 };
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
    fn write(&self, out: &mut String) -> fmt::Result {
        for statement in &self.function.body {
            match statement {
                Statement::Label(label) => writeln!(out, "{}:", self.function[*label].name)?,
                Statement::Instruction(instruction) => writeln!(out, "    {};", self.instruction(instruction))?,
                Statement::Location { file, line, column } => writeln!(out, "    .loc {file} {line} {column}")?,
                Statement::Pragma(text) => writeln!(out, "    .pragma \"{text}\";")?,
                Statement::Open(scope) => {
                    writeln!(out, "    {{")?;
                    write_declarations(out, self.function, *scope)?;
                }
                Statement::Close => writeln!(out, "    }}")?,
            }
        }
        Ok(())
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
        operands.iter().map(|operand| self.operand(operand)).collect::<Vec<_>>().join(", ")
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
            Operand::Label(label) => self.function[*label].name.clone(),
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
            Symbol::Local(id) => &self.function[id].name,
            Symbol::Global(id) => &self.module[id].name,
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
