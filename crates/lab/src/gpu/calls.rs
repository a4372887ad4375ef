//! The calls of a sample, on sets of buffers that are placed on the GPU.

use cuda::{Cuda, Loaded, Stream};
use launch::Memory;

use super::delay::Delay;
use super::plan::Plan;
use super::stamp::Stamps;
use crate::case::Case;

/// Whom calls are for.
#[derive(Clone, Copy, Debug)]
pub enum For {
    Sample,
    WarmUp,
}

/// A kernel with as many sets of buffers as the plan says.
pub struct Calls {
    /// Those of samples, and behind them those of warm-ups.
    pub sets: Vec<Loaded>,
    pub stamps: Stamps,
    /// Behind the last call.
    pub delay: Option<Delay>,
    plan: Plan,
}

impl Calls {
    pub fn new(cuda: &Cuda, case: &Case, plan: Plan, memories: &[Memory]) -> Result<Calls, cuda::Error> {
        // Nothing is drawn for warm-ups: where samples have the same numbers, V has other signs by then.
        let again = memories.iter().cycle().take(plan.warm_up_sets);
        let sets = sets(cuda, case, memories.iter().chain(again))?;
        Ok(Calls { sets, stamps: Stamps::new(cuda.context())?, delay: None, plan })
    }

    /// The sets that samples have.
    pub fn of_samples(&self) -> &[Loaded] {
        &self.sets[..self.plan.sets]
    }

    /// Puts the plan's calls into a stream, between two stamps.
    pub fn enqueue(&mut self, stream: &Stream, purpose: For) -> Result<(), cuda::Error> {
        let (of_samples, of_warm_ups) = self.sets.split_at_mut(self.plan.sets);
        let sets = match purpose {
            For::Sample => of_samples,
            For::WarmUp => of_warm_ups,
        };
        let count = sets.len();
        self.stamps.begin(stream)?;
        (0..self.plan.calls).try_for_each(|call| sets[call % count].enqueue(stream))?;
        self.delay.iter().try_for_each(|delay| delay.enqueue(stream))?;
        self.stamps.end(stream)
    }
}

/// The kernel with buffers of its own for each memory; its code is compiled once.
pub(crate) fn sets<'memory>(
    cuda: &Cuda,
    case: &Case,
    memories: impl IntoIterator<Item = &'memory Memory>,
) -> Result<Vec<Loaded>, cuda::Error> {
    let mut sets: Vec<Loaded> = Vec::new();
    for memory in memories {
        let mut loaded = match sets.first() {
            None => launch::backend::Backend::load(cuda, &case.kernel)?,
            Some(first) => cuda.load_again(&case.kernel, first)?,
        };
        loaded.fill(memory)?;
        sets.push(loaded);
    }
    Ok(sets)
}

/// Of buffers, in the recipe.
pub(crate) fn numbers(case: &Case, names: &[&str]) -> Vec<usize> {
    let number = |name: &&str| case.resolved.buffers.iter().position(|buffer| buffer.name == *name);
    names.iter().filter_map(number).collect()
}
