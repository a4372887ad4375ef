//! Scopes: loops and branches around the instruction that is being built.
//!
//! A register may be used only while the scope it was born in is open: then the block that sets it dominates its use.

use super::{Builder, Reach, RegisterId};
use crate::error::{BuildError, Place};
use crate::values::Repr;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ScopeId(u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScopeKind {
    Kernel,
    Loop,
    /// A loop body run for its effects on the pipelines; its code is thrown away.
    Rehearsal,
    Branch,
}

impl ScopeKind {
    fn text(self) -> &'static str {
        match self {
            ScopeKind::Kernel => "kernel",
            ScopeKind::Loop | ScopeKind::Rehearsal => "loop",
            ScopeKind::Branch => "branch",
        }
    }
}

struct Scope {
    parent: ScopeId,
    kind: ScopeKind,
    reach: Reach,
    at: Place,
    open: bool,
    /// Of a branch that always the same warps take: what tells them.
    members: Option<Repr>,
}

pub(crate) struct Scopes {
    all: Vec<Scope>,
    open: Vec<ScopeId>,
}

impl Scopes {
    pub const KERNEL: ScopeId = ScopeId(0);

    pub fn new(at: Place) -> Scopes {
        let (kind, reach) = (ScopeKind::Kernel, Reach::Block);
        let kernel = Scope { parent: Scopes::KERNEL, kind, reach, at, open: true, members: None };
        Scopes { all: vec![kernel], open: vec![Scopes::KERNEL] }
    }

    pub fn innermost(&self) -> ScopeId {
        self.open.last().copied().unwrap_or(Scopes::KERNEL)
    }

    pub fn open(&mut self, kind: ScopeKind, reach: Reach, at: Place) {
        let parent = self.innermost();
        self.all.push(Scope { parent, kind, reach, at, open: true, members: None });
        self.open.push(ScopeId(self.all.len() as u32 - 1));
    }

    pub fn close(&mut self) {
        if let Some(id) = self.open.pop() {
            self.all[id.0 as usize].open = false;
        }
    }

    /// Opens a branch that `members` alone take. Whoever gets there has taken their earlier branches, too, so these go on
    /// as far as what is around them is open; `close_again` is given them.
    pub fn open_again(&mut self, members: Repr, reach: Reach, at: Place) -> Vec<ScopeId> {
        let mut again = vec![];
        for id in (0..self.all.len() as u32).map(ScopeId) {
            let scope = self.get(id);
            if scope.members == Some(members) && !scope.open && self.get(scope.parent).open {
                self.all[id.0 as usize].open = true;
                again.push(id);
            }
        }
        self.open(ScopeKind::Branch, reach, at);
        self.all.last_mut().into_iter().for_each(|scope| scope.members = Some(members));
        again
    }

    pub fn close_again(&mut self, again: Vec<ScopeId>) {
        self.close();
        again.into_iter().for_each(|id| self.all[id.0 as usize].open = false);
    }

    /// The loop or branch that is open, if any.
    pub fn inside(&self) -> Option<Place> {
        self.open.get(1).map(|id| self.get(*id).at)
    }

    fn get(&self, id: ScopeId) -> &Scope {
        &self.all[id.0 as usize]
    }

    /// Of the scopes around `id` that have ended, the one that ended last.
    fn outermost_closed(&self, id: ScopeId) -> &Scope {
        let scope = self.get(id);
        if self.get(scope.parent).open { scope } else { self.outermost_closed(scope.parent) }
    }
}

impl Builder {
    pub(super) fn in_reach(&self, id: RegisterId) -> bool {
        self.scopes.get(self.registers[id.index as usize].scope).open
    }

    pub(super) fn check_dominance(&self, id: RegisterId, at: Place) {
        if id.kernel != self.id {
            BuildError::new("this value belongs to another kernel", at).raise()
        }
        if self.in_reach(id) {
            return;
        }
        let register = &self.registers[id.index as usize];
        let scope = self.scopes.outermost_closed(register.scope);
        let keep = "keep it in a `Var` made before the loop";
        let (message, help) = match scope.kind {
            ScopeKind::Rehearsal => ("this value was made by the previous pass of the loop", keep),
            ScopeKind::Loop => ("this value was made inside a loop and is used after it", keep),
            ScopeKind::Branch | ScopeKind::Kernel => {
                ("this value was made inside a branch and is used after it", "use `choose`, `select` or a `Var`")
            }
        };
        let error = BuildError::new(message, at).note("made here", register.at);
        error.note(format!("inside this {}", scope.kind.text()), scope.at).help(help).raise()
    }

    /// Refuses what `needs` more threads together than the open branches promise.
    pub fn check_converged(&mut self, what: &str, needs: Reach, at: Place) {
        let at = self.author_place(at);
        let mut open = self.scopes.open.iter().map(|id| self.scopes.get(*id));
        if let Some(scope) = open.find(|scope| scope.reach < needs) {
            let who = match needs {
                Reach::Block => "block",
                Reach::Warpgroup => "warpgroup",
                Reach::Warp | Reach::Lane => "warp",
            };
            let kind = scope.kind.text();
            let message = format!("{what} needs every thread of the {who}, and this {kind} may split it");
            BuildError::new(message, at).note(format!("inside this {kind}"), scope.at).raise()
        }
    }
}
