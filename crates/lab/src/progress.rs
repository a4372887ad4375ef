//! How somebody watches a long run, and stops it.

use crate::{Outcome, Stage};

/// Called from several threads.
pub trait Progress: Sync {
    /// A stage begins; it has so many steps.
    fn begin(&self, stage: Stage, steps: usize);
    /// One step is done.
    fn step(&self);
    fn end(&self, outcome: &Outcome);

    /// Asked between steps: once true, the run ends and leaves nothing behind.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Shows nothing and never stops.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: Stage, _: usize) {}
    fn step(&self) {}
    fn end(&self, _: &Outcome) {}
}
