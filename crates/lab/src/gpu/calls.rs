//! The calls of a sample, on sets of buffers that are placed on the GPU.

use std::time::Instant;

use super::delay::Delay;
use super::keepsakes::variables;
use super::plan::Plan;
use super::stamp::Stamps;
use crate::case::Case;
use cuda::{Cuda, Loaded, Stream};
use launch::{Kernel, Memory};

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
    /// Behind the last call of a sample.
    pub delay: Option<Delay>,
    plan: Plan,
}

impl Calls {
    pub fn new(cuda: &Cuda, case: &Case, plan: Plan, memories: &[Memory]) -> Result<Calls, cuda::Error> {
        // Nothing is drawn for warm-ups: where samples have the same numbers, V has other signs by then.
        let again = memories.iter().cycle().take(plan.warm_up_sets);
        let sets = sets(cuda, case, memories.iter().chain(again), Code::of(&case.kernel))?;
        Ok(Calls { sets, stamps: Stamps::new(cuda.context())?, delay: None, plan })
    }

    /// The sets that samples have.
    pub fn of_samples(&self) -> &[Loaded] {
        &self.sets[..self.plan.sets]
    }

    /// Puts the plan's calls into a stream.
    pub fn enqueue(&mut self, stream: &Stream, purpose: For) -> Result<(), cuda::Error> {
        (0..self.plan.calls).try_for_each(|call| self.call(call, stream, purpose))?;
        self.delay.iter().try_for_each(|delay| delay.enqueue(stream))
    }

    /// One after the other, each waited for before the next begins; the seconds of all by the host's clock.
    pub fn one_by_one(&mut self, stream: &Stream, purpose: For) -> Result<f64, cuda::Error> {
        let mut seconds = 0.0;
        for call in 0..self.plan.calls {
            let begun = Instant::now();
            self.call(call, stream, purpose)?;
            stream.synchronise()?;
            seconds += begun.elapsed().as_secs_f64();
        }
        Ok(seconds)
    }

    fn call(&mut self, number: usize, stream: &Stream, purpose: For) -> Result<(), cuda::Error> {
        let (of_samples, of_warm_ups) = self.sets.split_at_mut(self.plan.sets);
        let sets = match purpose {
            For::Sample => of_samples,
            For::WarmUp => of_warm_ups,
        };
        sets[number % sets.len()].enqueue(stream)
    }
}

/// Whether sets share the machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// As a program's calls do, peers' among them: the caches have it from one call to the next.
    Shared,
    /// Loaded for each.
    Apart,
}

impl Code {
    /// A kernel with variables of its own in global memory could tell its next call what this one did: each call has new ones.
    fn of(kernel: &Kernel) -> Code {
        if variables(kernel.module()).is_empty() { Code::Shared } else { Code::Apart }
    }
}

/// The kernel with buffers of its own for each memory; its code is compiled once.
pub(crate) fn sets<'memory>(
    cuda: &Cuda,
    case: &Case,
    memories: impl IntoIterator<Item = &'memory Memory>,
    code: Code,
) -> Result<Vec<Loaded>, cuda::Error> {
    let mut sets: Vec<Loaded> = Vec::new();
    for memory in memories {
        let mut loaded = match sets.first() {
            None => launch::backend::Backend::load(cuda, &case.kernel)?,
            Some(first) if code == Code::Shared => cuda.load_beside(&case.kernel, first)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = "//@ [buffer.x]\n//@ type = \"u32\"\n//@ shape = [64]\n//@ [[launch]]\n//@ grid = [1, 1, 1]\n\
                          //@ block = [32, 1, 1]\n//@ args = [{ buffer = \"x\" }]\n";

    fn code(head: &str, body: &str) -> Code {
        let module = format!(
            "{RECIPE}.version 7.0\n.target sm_80\n.address_size 64\n{head}\n.visible .entry one(.param .u64 x)\n{{\n{body}\nret;\n}}\n"
        );
        Code::of(&Kernel::parse("one.ptx", &module).unwrap())
    }

    #[test]
    fn a_kernel_that_can_remember_has_its_code_loaded_for_each_call() {
        assert_eq!(code("", ""), Code::Shared);
        assert_eq!(code(".shared .align 16 .b8 stage[64];\n.const .u32 table[2] = {1, 2};", ""), Code::Shared);
        assert_eq!(code(".global .u32 calls;", ""), Code::Apart);
        assert_eq!(code("", ".global .u32 calls;"), Code::Apart);
    }
}
