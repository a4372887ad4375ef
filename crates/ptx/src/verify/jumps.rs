//! Where control goes: labels that are what an instruction takes them for, calls that fit the function.

use super::types::fits;
use super::{Errors, Site};
use crate::diagnostic::Diagnostic;
use crate::forms::{Control, Op};
use crate::ir::*;
use crate::parser::Parsed;
use crate::types::Space;

pub fn function(parsed: &Parsed, index: usize, errors: &mut Errors) {
    let function = &parsed.module.functions[index];
    let marks = marks(function);
    for (id, instruction) in function.instructions() {
        let spans = &parsed.spans[index][id.0 as usize];
        let site = Site { module: &parsed.module, source: &parsed.source, function, instruction, spans };
        let jump = Jump { site, marks: &marks };
        if let Err(error) = jump.check() {
            errors.push(error);
        }
    }
}

/// The statement that each label marks.
fn marks(function: &Function) -> Vec<Option<&Statement>> {
    let mut marks = vec![None; function.labels.len()];
    for statement in &function.body {
        let label = match statement {
            Statement::Label(label)
            | Statement::BranchTargets(label, _)
            | Statement::Prototype(label, _)
            | Statement::CallTargets(label, _) => *label,
            _ => continue,
        };
        marks[label.0 as usize] = Some(statement);
    }
    marks
}

type Outcome = Result<(), Diagnostic>;

struct Jump<'a> {
    site: Site<'a>,
    marks: &'a [Option<&'a Statement>],
}

/// What a callee takes and returns, and how errors call it.
struct Signature<'a> {
    name: &'a str,
    returns: &'a [Parameter],
    parameters: &'a [Parameter],
}

impl Jump<'_> {
    fn check(&self) -> Outcome {
        let operands = &self.site.instruction.operands;
        match (self.site.instruction.op(), operands.as_slice()) {
            (Op::Control(Control::Branch), [Operand::Label(label)]) => match self.mark(*label) {
                Some(Statement::Label(_)) | None => Ok(()),
                Some(_) => self.fail(0, self.name(*label), "is no place to jump to", "expected a label of code"),
            },
            (Op::Control(Control::BranchTable), [_, Operand::Label(label)]) => match self.mark(*label) {
                Some(Statement::BranchTargets(..)) => Ok(()),
                _ => self.fail(1, self.name(*label), "is no table of branches", "expected a label of `.branchtargets`"),
            },
            (Op::Control(Control::Call | Control::CallIndirect), [results, callee, arguments, table @ ..]) => {
                let signature = self.signature(callee, table.first())?;
                self.arguments(results, &signature, 0)?;
                self.arguments(arguments, &signature, 2)
            }
            _ => Ok(()),
        }
    }

    fn mark(&self, label: LabelId) -> Option<&Statement> {
        self.marks[label.0 as usize]
    }

    fn name(&self, label: LabelId) -> &str {
        &self.site.function[label].name
    }

    fn signature<'a>(&'a self, callee: &Operand, table: Option<&Operand>) -> Result<Signature<'a>, Diagnostic> {
        let named = |id: FunctionId| {
            let Function { name, returns, parameters, .. } = &self.site.module[id];
            Signature { name, returns, parameters }
        };
        match (callee, table) {
            (Operand::Symbol(Symbol::Function(id)), _) if self.site.module[*id].kind == FunctionKind::Entry => {
                Err(self.error(1, &self.site.module[*id].name, "is an entry: it is launched, not called", "an entry"))
            }
            (Operand::Symbol(Symbol::Function(id)), _) => Ok(named(*id)),
            (_, Some(Operand::Label(label))) => match self.mark(*label) {
                Some(Statement::Prototype(_, prototype)) => Ok(Signature {
                    name: self.name(*label),
                    returns: &prototype.returns,
                    parameters: &prototype.parameters,
                }),
                Some(Statement::CallTargets(_, targets)) => Ok(named(targets[0])),
                _ => {
                    let (says, label_text) = ("is no prototype", "expected a label of `.callprototype`");
                    Err(self.error(3, self.name(*label), says, label_text))
                }
            },
            _ => Err(self.error(1, &self.site.instruction.mnemonic(), "takes a function here", "not a function")),
        }
    }

    fn arguments(&self, given: &Operand, signature: &Signature, index: usize) -> Outcome {
        let Operand::Arguments(given) = given else { return Ok(()) };
        let (formal, what) = match index {
            0 => (signature.returns, "returns"),
            _ => (signature.parameters, "takes"),
        };
        if given.len() != formal.len() {
            let says = format!("{what} {} values, found {}", formal.len(), given.len());
            return self.fail(index, signature.name, &says, &format!("expected {}", formal.len()));
        }
        given.iter().zip(formal).try_for_each(|(given, formal)| self.argument(given, formal, signature, index))
    }

    fn argument(&self, given: &Operand, formal: &Parameter, signature: &Signature, index: usize) -> Outcome {
        let size = formal.bytes();
        let found = match given {
            Operand::Register(id) if formal.count.is_none() => {
                let register = &self.site.function[*id];
                if fits(register.ty, formal.ty, false) {
                    return Ok(());
                }
                format!("`{}`, which is `{}`", register.name, register.ty)
            }
            Operand::Symbol(Symbol::Local(id)) if self.site.function[*id].space == Space::Parameter => {
                let variable = &self.site.function[*id];
                if variable.bytes() == size || size == 0 {
                    return Ok(());
                }
                format!("`{}` of {} bytes", variable.name, variable.bytes())
            }
            Operand::Immediate(_) if formal.count.is_none() && index > 0 => return Ok(()),
            Operand::Sink if index == 0 => return Ok(()),
            _ => "something else".into(),
        };
        let says = format!("has a `{}` of {size} bytes here, found {found}", formal.ty);
        self.fail(index, signature.name, &says, "expected a register or `.param` variable of this size")
    }

    fn fail(&self, operand: usize, name: &str, says: &str, label: &str) -> Outcome {
        Err(self.error(operand, name, says, label))
    }

    fn error(&self, operand: usize, name: &str, says: &str, label: &str) -> Diagnostic {
        Diagnostic::new(format!("`{name}` {says}"), self.site.operand(operand), label)
    }
}
