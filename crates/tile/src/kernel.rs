//! From a closure to a module.

use crate::builder::{self, Builder, Options};
use crate::error::BuildError;
use crate::instructions;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// What a closure described: a module with one entry, and what its launch must provide.
#[derive(Debug)]
pub struct Built {
    pub module: ptx::Module,
    pub threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

/// Runs `body`, which describes what one thread does.
#[track_caller]
pub fn build(name: &str, options: Options, body: impl FnOnce()) -> Result<Built, BuildError> {
    let outer = builder::install(Some(Builder::new(options, Location::caller())));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        body();
        instructions::ret();
    }));
    let built = builder::install(outer);
    match (outcome, built) {
        (Ok(()), Some(built)) => {
            let shared_bytes = built.shared_bytes;
            Ok(Built { module: builder::finish(name, built), threads: options.threads, shared_bytes })
        }
        (Ok(()), None) => unreachable!("the builder installed above stays until it is taken"),
        (Err(payload), _) => Err(*payload.downcast::<BuildError>().unwrap_or_else(|other| resume_unwind(other))),
    }
}
