//! Pipelines where paths meet: a loop body or a branch must leave the copies in flight as it found them.

use super::Builder;
use crate::error::{BuildError, Place};
use std::ops::Range;
use std::rc::Rc;

/// Copies in flight and stages that wait for a barrier: what loops and branches must keep in order.
pub(crate) trait Pipeline {
    /// What must look the same at both ends of a loop body or branch; `copies` is the number of groups so far.
    fn describe(&self, copies: u64) -> String;
    /// For each free stage: it may still be read by somebody, so a barrier is due before it is filled.
    fn due(&self) -> Vec<bool>;
    fn set_due(&self, due: Vec<bool>);
}

/// The pipelines at one point of the kernel: each one's description and its stages that wait for a barrier.
pub(crate) struct Snapshot(Vec<(String, Vec<bool>)>);

impl Builder {
    pub fn has_pipelines(&self) -> bool {
        !self.pipelines.is_empty()
    }

    pub fn watch(&mut self, pipeline: Rc<dyn Pipeline>) {
        self.pipelines.push(pipeline);
    }

    /// A thread counts its own groups of copies, and one count must be right for all who wait.
    pub fn note_copying(&mut self, warps: Range<u32>, ring: &str, at: Place) {
        let (others, other, place) = self.copying.get_or_insert((warps.clone(), ring.into(), at));
        if *others != warps {
            let message = format!("ring `{ring}` is filled by warps {warps:?}, and ring `{other}` by warps {others:?}");
            let help = "fill all rings with the same warps: a wait counts the copies of a thread";
            BuildError::new(message, at).note("which is made here", place).help(help).raise()
        }
    }

    /// After a barrier, nobody reads what was released before it.
    pub fn pass_barrier(&self) {
        self.pipelines.iter().for_each(|pipeline| pipeline.set_due(vec![false; pipeline.due().len()]));
    }

    pub fn snapshot(&self) -> Snapshot {
        let describe = |pipeline: &Rc<dyn Pipeline>| (pipeline.describe(self.copies), pipeline.due());
        Snapshot(self.pipelines.iter().map(describe).collect())
    }

    /// Where two paths meet, here and at `earlier`, a barrier is due if it is due on either of them.
    pub fn meet(&self, earlier: &Snapshot, what: &str, at: Place) {
        for (pipeline, (before, due)) in self.pipelines.iter().zip(&earlier.0) {
            let after = pipeline.describe(self.copies);
            if after != *before {
                BuildError::new(format!("the {what} does not leave a pipeline as it found it"), at)
                    .help(format!("before: {before}; after: {after}"))
                    .raise()
            }
            let either = pipeline.due().into_iter().zip(due).map(|(now, then)| now | then);
            pipeline.set_due(either.collect());
        }
    }
}
