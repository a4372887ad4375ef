//! Names of a function while it is read: registers, variables and labels, by scope.

use crate::ir::*;
use crate::source::Span;
use crate::words::distance;
use std::collections::HashMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    Register(RegisterId),
    Symbol(Symbol),
}

/// A label used before it may have been defined.
pub struct Mention {
    pub name: String,
    pub scope: ScopeId,
    pub span: Span,
}

#[derive(Default)]
pub struct Names {
    /// Open scopes, innermost last.
    open: Vec<(ScopeId, HashMap<String, Meaning>)>,
    globals: HashMap<String, Meaning>,
    labels: HashMap<(ScopeId, String), LabelId>,
    pub mentions: Vec<Mention>,
}

impl Names {
    pub fn new(module: &Module) -> Names {
        let meaning = |index: usize| Meaning::Symbol(Symbol::Global(GlobalId(index as u32)));
        let variables = module.variables.iter().enumerate().map(|(index, one)| (one.name.clone(), meaning(index)));
        let mut names = Names { globals: variables.collect(), ..Names::default() };
        for (index, function) in module.functions.iter().enumerate() {
            names.know_function(&function.name, FunctionId(index as u32));
        }
        names
    }

    /// The first declaration of a function is what its name means.
    pub fn know_function(&mut self, name: &str, id: FunctionId) {
        self.globals.entry(name.into()).or_insert(Meaning::Symbol(Symbol::Function(id)));
    }

    pub fn open(&mut self, scope: ScopeId) {
        self.open.push((scope, HashMap::new()));
    }

    /// The scope that was innermost; the body itself stays open.
    pub fn close(&mut self) -> Option<ScopeId> {
        if self.open.len() > 1 { self.open.pop().map(|(scope, _)| scope) } else { None }
    }

    pub fn scope(&self) -> ScopeId {
        self.open.last().map_or(ScopeId(0), |(scope, _)| *scope)
    }

    /// Returns false when the scope has this name already.
    pub fn declare(&mut self, name: &str, meaning: Meaning) -> bool {
        self.open.last_mut().is_some_and(|(_, names)| names.insert(name.into(), meaning).is_none())
    }

    /// Does the name mean something already, outside the innermost scope?
    pub fn hides(&self, name: &str) -> bool {
        let here = self.open.last().is_some_and(|(_, names)| names.contains_key(name));
        !here && self.resolve(name).is_some()
    }

    pub fn resolve(&self, name: &str) -> Option<Meaning> {
        let local = self.open.iter().rev().find_map(|(_, names)| names.get(name));
        local.or_else(|| self.globals.get(name)).copied()
    }

    /// Returns false when the scope has this label already.
    pub fn define_label(&mut self, name: &str, label: LabelId) -> bool {
        self.labels.insert((self.scope(), name.into()), label).is_none()
    }

    /// Notes a use; its number stands in for the label until `Function` is complete.
    pub fn mention(&mut self, name: &str, span: Span) -> LabelId {
        self.mentions.push(Mention { name: name.into(), scope: self.scope(), span });
        LabelId(self.mentions.len() as u32 - 1)
    }

    /// The label a mention means: the one of the innermost scope around it that has the name.
    pub fn find_label(&self, mention: &Mention, scopes: &[Scope]) -> Option<LabelId> {
        let mut scope = mention.scope;
        loop {
            if let Some(label) = self.labels.get(&(scope, mention.name.clone())) {
                return Some(*label);
            }
            if scope == ScopeId(0) {
                return None;
            }
            scope = scopes[scope.0 as usize].parent;
        }
    }

    /// The declared name nearest to a misspelled one, for the help line.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let all = self.open.iter().flat_map(|(_, names)| names.keys()).chain(self.globals.keys());
        let near = all.map(|known| (distance(known, name), known.as_str())).filter(|(distance, _)| *distance <= 2);
        near.min().map(|(_, known)| known)
    }
}
