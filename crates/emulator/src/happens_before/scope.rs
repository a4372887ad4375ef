//! What an instruction orders, for whom, and what is offered to those who come later.

use std::sync::Arc;

use super::view::View;

/// The threads that an operation synchronises with. PTX ISA, "Scope". The detector sees one cluster, in which all scopes
/// but the narrowest are the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Scope {
    /// The thread's own block.
    Cta,
    /// `.cluster`, `.gpu`, `.sys`: at least the cluster.
    #[default]
    Cluster,
}

impl Scope {
    /// Does the scope, taken at one block, include the threads of another?
    pub(super) fn includes(self, from: u32, to: u32) -> bool {
        self == Scope::Cluster || from == to
    }
}

/// What an instruction orders besides touching memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Semantics {
    /// What came before is published: `.release`, `.acq_rel`.
    pub release: bool,
    /// What others published is taken: `.acquire`, `.acq_rel`.
    pub acquire: bool,
    /// `red`: nobody learns what it read.
    pub blind: bool,
    pub scope: Scope,
}

impl Semantics {
    pub const fn relaxed(scope: Scope) -> Semantics {
        Semantics { release: false, acquire: false, blind: false, scope }
    }

    pub const fn release(scope: Scope) -> Semantics {
        Semantics { release: true, ..Semantics::relaxed(scope) }
    }

    pub const fn acquire(scope: Scope) -> Semantics {
        Semantics { acquire: true, ..Semantics::relaxed(scope) }
    }
}

/// Knowledge that was released. Whether it may be taken depends on who takes it.
#[derive(Clone)]
pub struct Offer {
    pub view: Arc<View>,
    /// None: nothing that synchronises, so that it only explains.
    pub scope: Option<Scope>,
    /// The block of those who released it.
    pub block: u32,
}

impl Offer {
    /// Does it synchronise with an operation of this scope in this block? Each scope must include the other side.
    pub fn reaches(&self, block: u32, scope: Scope) -> bool {
        let includes = |own: Scope| own.includes(self.block, block) && scope.includes(block, self.block);
        self.scope.is_some_and(includes)
    }

    /// What is left of it behind an operation that does not synchronise with it.
    pub fn broken(self) -> Offer {
        Offer { scope: None, ..self }
    }

    /// Offers that reach the same readers become one.
    pub fn gather(into: &mut Vec<Offer>, new: Offer) {
        match into.iter_mut().find(|old| (old.scope, old.block) == (new.scope, new.block)) {
            Some(old) if Arc::ptr_eq(&old.view, &new.view) => {}
            Some(old) => Arc::make_mut(&mut old.view).join(&new.view),
            None => into.push(new),
        }
    }
}
