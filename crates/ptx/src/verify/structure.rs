//! Names, declarations and the registers of a function.

use super::Errors;
use super::types::{check_constant, is_register_type};
use crate::diagnostic::Diagnostic;
use crate::ir::*;
use crate::parser::Parsed;
use crate::source::Span;
use crate::types::{Space, Type};
use std::collections::HashSet;

pub fn module(parsed: &Parsed, errors: &mut Errors) {
    let variables = parsed.module.variables.iter().zip(&parsed.places.variables);
    variables.clone().for_each(|(one, place)| variable(one, *place, errors));
    let names = variables.map(|(one, place)| (one.name.as_str(), *place));
    let entries = parsed.module.functions.iter().zip(&parsed.places.entries);
    let defined = entries.clone().filter(|(one, _)| !one.declared);
    unique(names.chain(defined.map(|(one, places)| (one.name.as_str(), places.name))), errors);
    for (one, places) in entries {
        declared_alike(&parsed.module, one, places.name, errors);
    }
}

/// A function may be declared often; each time with the same parameters and results.
fn declared_alike(module: &Module, function: &Function, place: Span, errors: &mut Errors) {
    let sizes = |all: &[Parameter]| all.iter().map(|one| (one.ty.bits(), one.count)).collect::<Vec<_>>();
    let shape = |one: &Function| (one.kind, sizes(&one.returns), sizes(&one.parameters));
    let first = module.functions.iter().find(|one| one.name == function.name).unwrap_or(function);
    if shape(first) != shape(function) {
        let message = format!("`{}` was declared with other parameters or results", function.name);
        errors.push(Diagnostic::new(message, place, "expected them as above"));
    }
    let callee = function.kind == FunctionKind::Callee;
    if function.linkage == Linkage::Extern && !function.declared {
        errors.push(Diagnostic::new(
            format!("`{}` is `.extern`, and has a body", function.name),
            place,
            "defined elsewhere",
        ));
    }
    if !callee && function.tuning.contains(&Tuning::NoReturn) {
        let message = format!("`.noreturn` is for functions; `{}` is an entry", function.name);
        errors.push(Diagnostic::new(message, place, "an entry"));
    }
}

fn unique<'a>(names: impl Iterator<Item = (&'a str, Span)>, errors: &mut Errors) {
    let mut known = HashSet::new();
    for (name, place) in names {
        if !known.insert(name) {
            errors.push(Diagnostic::new(format!("`{name}` is declared twice"), place, "the second one"));
        }
    }
}

pub fn function(parsed: &Parsed, index: usize, errors: &mut Errors) {
    let (function, places) = (&parsed.module.functions[index], &parsed.places.entries[index]);
    function.variables.iter().zip(&places.variables).for_each(|(one, place)| variable(one, *place, errors));
    for (tuning, place) in function.tuning.iter().zip(&places.tuning) {
        if is_zero(tuning) {
            errors.push(Diagnostic::new("a block has at least one thread", *place, "expected numbers above 0"));
        }
    }
    for (register, place) in function.registers.iter().zip(&places.registers) {
        if !is_register_type(register.ty) {
            let message = format!("`{}` is a type of instructions, not of registers", register.ty);
            errors.push(Diagnostic::new(
                message,
                *place,
                format!("expected a type such as `.b{}`", register.ty.bits()),
            ));
        }
    }
    unwritten(parsed, index, errors);
}

fn is_zero(tuning: &Tuning) -> bool {
    match tuning {
        Tuning::MaxThreads(sizes) | Tuning::RequiredThreads(sizes) => sizes.contains(&0),
        _ => false,
    }
}

fn variable(variable: &Variable, place: Span, errors: &mut Errors) {
    let (name, space) = (&variable.name, variable.space);
    let mut fail = |message: String, label: &str| errors.push(Diagnostic::new(message, place, label));
    if variable.ty == Type::Pred || !is_register_type(variable.ty) {
        fail(format!("a variable cannot be `{}`", variable.ty), "expected a type such as `.b32`");
    }
    if variable.linkage == Linkage::Extern && !variable.init.is_empty() {
        fail(format!("`{name}` is `.extern`: its values are written elsewhere"), "remove what follows `=`");
    }
    if variable.size == VariableSize::Array(0) {
        fail(format!("`{name}` has no elements"), "expected at least one");
    }
    if !variable.init.is_empty() && !matches!(space, Space::Global | Space::Constant) {
        fail(format!("`{name}` is in `{space}`, which has no initial values"), "remove what follows `=`");
    }
    let room = if let VariableSize::Array(count) = variable.size { count as usize } else { 1 };
    if variable.init.len() > room {
        fail(format!("`{name}` has {room} elements and {} initial values", variable.init.len()), "too many values");
    }
    let wrong = |value: &Initial| match value {
        Initial::Value(value) => check_constant(*value, variable.ty).err().map(|error| error.to_string()),
        Initial::Address { mask: Some(_), .. } if variable.ty == Type::U8 => None,
        Initial::Address { mask: Some(_), .. } => Some("bytes of an address are `.u8`".into()),
        Initial::Address { .. } if variable.ty.bits() == 64 && !variable.ty.is_float() => None,
        Initial::Address { .. } => Some(format!("an address does not fit `{}`: expected 64 bits", variable.ty)),
    };
    if let Some(message) = variable.init.iter().find_map(wrong) {
        fail(message, "this initial value");
    }
}

/// Registers that are read though nothing in the function writes them: the first use of each.
fn unwritten(parsed: &Parsed, index: usize, errors: &mut Errors) {
    let function = &parsed.module.functions[index];
    let mut known: HashSet<RegisterId> = HashSet::new();
    for (_, instruction) in function.instructions() {
        instruction.registers(
            |spec| spec.defines,
            |register, _| {
                known.insert(register);
            },
        );
    }
    for (id, instruction) in function.instructions() {
        let spans = &parsed.spans[index][id.0 as usize];
        let mut read = |register: RegisterId, place: Span| {
            if known.insert(register) {
                errors.push(never_written(&function[register].name, place));
            }
        };
        instruction.guard.into_iter().for_each(|guard| read(guard.register, spans.whole));
        instruction.registers(
            |spec| spec.reads,
            |register, operand| {
                read(register, spans.operands.get(operand).copied().unwrap_or(spans.whole));
            },
        );
    }
}

fn never_written(name: &str, place: Span) -> Diagnostic {
    let help = format!("write `{name}` first, or read the register that was meant");
    Diagnostic::new(format!("`{name}` is read but nothing writes it"), place, "its value is undefined").help(help)
}
