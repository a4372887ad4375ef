//! From a closure to a module.

use crate::assertion::{self, Assertion};
use crate::builder::{self, Builder, Options};
use crate::error::{BuildError, Place};
use crate::instructions;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// What a closure described: a module with one entry, and what its launch must provide.
#[derive(Debug)]
pub struct Built {
    pub module: ptx::Module,
    pub threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// What the kernel asserts of itself; none where checks are off. A report counts them from one.
    pub assertions: Vec<Assertion>,
}

/// Runs `body`, which describes what one thread does.
#[track_caller]
pub fn build(name: &str, options: Options, body: impl FnOnce()) -> Result<Built, BuildError> {
    let at = Location::caller();
    check_threads(options.threads, at)?;
    let outer = builder::install(Some(Builder::new(options, at)));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        assertion::declare_report();
        body();
        instructions::ret();
    }));
    let built = builder::install(outer);
    match (outcome, built) {
        (Ok(()), Some(mut built)) => {
            let (shared_bytes, assertions) = (built.shared_bytes, std::mem::take(&mut built.assertions));
            let module = builder::finish(name, built);
            verify(&module, at)?;
            Ok(Built { module, threads: options.threads, shared_bytes, assertions })
        }
        (Ok(()), None) => unreachable!("the builder installed above stays until it is taken"),
        (Err(payload), _) => Err(*payload.downcast::<BuildError>().unwrap_or_else(|other| resume_unwind(other))),
    }
}

/// Shuffles and products take whole warps. CUDA C++ Programming Guide, "Compute Capabilities".
fn check_threads(threads: u32, at: Place) -> Result<(), BuildError> {
    match (1..=1024).contains(&threads) && threads.is_multiple_of(32) {
        true => Ok(()),
        false => Err(BuildError::new(format!("a block of {threads} threads: expected whole warps, up to 1024"), at)),
    }
}

/// What is printed reads back and keeps the rules of the form table: types of operands, names, targets.
fn verify(module: &ptx::Module, at: Place) -> Result<(), BuildError> {
    let source = ptx::Source::new("kernel.ptx", ptx::print(module));
    let all = match ptx::parse(&source) {
        Ok(parsed) => ptx::verify(&parsed),
        Err(errors) => errors.all,
    };
    match all.is_empty() {
        true => Ok(()),
        false => Err(BuildError::new(format!("the kernel is not sound\n{}", ptx::Diagnostics { source, all }), at)),
    }
}
