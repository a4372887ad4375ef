//! What is wrong with a module that reads well: types and widths, targets and versions, names and sizes.
//!
//! About an instruction, the checks know nothing but its row of the form table.
//! They follow the PTX ISA, "Operand type checking", and ptxas where the manual is silent. They are stricter where
//! ptxas passes over a mistake in silence: a constant that does not fit its type, a parameter read beyond its end,
//! a register that nothing writes, a wait for fewer than no groups.

mod jumps;
mod operands;
mod structure;
mod targets;
mod types;

use crate::diagnostic::Diagnostic;
use crate::ir::{Function, Instruction, Module};
use crate::parser::Parsed;
use crate::source::{Source, Span, Spans};

/// After this many errors, the rest is hardly news.
const MAX_ERRORS: usize = 50;

/// Everything wrong with a module, in the order of the text, up to a bound; nothing if it is sound.
pub fn verify(parsed: &Parsed) -> Vec<Diagnostic> {
    let mut errors = Errors { all: vec![] };
    targets::module(parsed, &mut errors);
    structure::module(parsed, &mut errors);
    for (index, function) in parsed.module.functions.iter().enumerate() {
        structure::function(parsed, index, &mut errors);
        targets::tuning(parsed, index, &mut errors);
        jumps::function(parsed, index, &mut errors);
        for (id, instruction) in function.instructions() {
            let spans = &parsed.spans[index][id.0 as usize];
            let site = Site { module: &parsed.module, source: &parsed.source, function, instruction, spans };
            targets::instruction(&site, &mut errors);
            operands::instruction(&site, &mut errors);
        }
    }
    errors.all.sort_by_key(|error| error.span.start);
    errors.all
}

/// Collects errors up to the bound.
struct Errors {
    all: Vec<Diagnostic>,
}

impl Errors {
    fn push(&mut self, error: Diagnostic) {
        if self.all.len() < MAX_ERRORS {
            self.all.push(error);
        }
    }
}

/// An instruction where it stands.
struct Site<'a> {
    module: &'a Module,
    source: &'a Source,
    function: &'a Function,
    instruction: &'a Instruction,
    spans: &'a Spans,
}

impl Site<'_> {
    fn mnemonic(&self) -> String {
        format!("`{}`", self.instruction.mnemonic())
    }

    fn operand(&self, index: usize) -> Span {
        self.spans.operands.get(index).copied().unwrap_or(self.spans.whole)
    }

    /// `@!%p1`, without the space behind it.
    fn guard(&self) -> Span {
        let before = self.spans.whole.start as usize..self.spans.head.start as usize;
        let text = self.source.text.get(before.clone()).unwrap_or_default();
        Span::new(before.start..before.start + text.trim_end().len())
    }
}
