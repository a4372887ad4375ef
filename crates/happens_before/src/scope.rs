//! What an instruction orders, for whom, and what is offered to those who come later.

use std::borrow::Cow;
use std::sync::Arc;

use super::view::View;

/// The threads that an operation synchronises with. PTX ISA, "Scope". One launch is seen, on one device, in which the two
/// widest scopes are the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Scope {
    /// The thread's own block.
    Cta,
    Cluster,
    /// `.gpu`, `.sys`.
    #[default]
    Gpu,
}

/// Where a thread sits: its cluster in the grid, and its block in the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Seat {
    pub cluster: u32,
    pub block: u32,
}

impl Seat {
    /// A block of the cluster that is spoken of.
    pub fn here(block: u32) -> Seat {
        Seat { cluster: 0, block }
    }
}

impl Scope {
    /// Does the scope, taken at one block, include the threads of another?
    pub(super) fn includes(self, from: Seat, to: Seat) -> bool {
        match self {
            Scope::Cta => from == to,
            Scope::Cluster => from.cluster == to.cluster,
            Scope::Gpu => true,
        }
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
    /// `fence.sc`, `membar`.
    pub sequential: bool,
    pub scope: Scope,
}

impl Semantics {
    pub const fn relaxed(scope: Scope) -> Semantics {
        Semantics { release: false, acquire: false, blind: false, sequential: false, scope }
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
    /// Where those sit who released it.
    pub seat: Seat,
}

impl Offer {
    /// Does it synchronise with an operation of this scope at this seat? Each scope must include the other side.
    pub fn reaches(&self, seat: Seat, scope: Scope) -> bool {
        let includes = |own: Scope| own.includes(self.seat, seat) && scope.includes(seat, self.seat);
        self.scope.is_some_and(includes)
    }

    /// What it tells those of a cluster.
    pub fn told_in(&self, cluster: u32) -> Cow<'_, View> {
        match self.seat.cluster == cluster {
            true => Cow::Borrowed(&self.view),
            false => Cow::Owned(self.view.carried(self.seat.cluster, cluster)),
        }
    }

    /// What is left of it behind an operation that does not synchronise with it.
    pub fn broken(self) -> Offer {
        Offer { scope: None, ..self }
    }

    /// Offers that reach the same readers become one.
    pub fn gather(into: &mut Vec<Offer>, new: Offer) {
        match into.iter_mut().find(|old| (old.scope, old.seat) == (new.scope, new.seat)) {
            Some(old) if Arc::ptr_eq(&old.view, &new.view) => {}
            Some(old) => Arc::make_mut(&mut old.view).join(&new.view),
            None => into.push(new),
        }
    }
}
