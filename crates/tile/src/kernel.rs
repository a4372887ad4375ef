//! From a closure to a module.

use crate::assertion::{self, Assertion};
use crate::builder::{self, Builder, Named, Options};
use crate::error::{BuildError, Place};
use crate::instructions;
use ptx::Statement;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// What a closure described: a module with an entry, and what its launch must provide.
#[derive(Debug)]
pub struct Built {
    pub module: ptx::Module,
    pub threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// What the kernel asserts of itself; none where checks are off. A report counts them from one.
    pub assertions: Vec<Assertion>,
}

impl Built {
    /// With the entries of another module behind its own. Threads and shared memory stay those of the first.
    pub fn with(mut self, other: Built) -> Built {
        self.module.version = self.module.version.max(other.module.version);
        let mut numbers = HashMap::new();
        for (number, file) in other.module.files {
            numbers.insert(number, self.file_number(file));
        }
        // All that a module of ours can have is the block's dynamic shared memory.
        if self.module.variables.is_empty() {
            self.module.variables = other.module.variables;
        }
        for mut function in other.module.functions {
            for statement in &mut function.body {
                if let Statement::Location { file, .. } = statement {
                    *file = numbers[file];
                }
            }
            self.module.functions.push(function);
        }
        self
    }

    fn file_number(&mut self, file: String) -> u32 {
        let files = &mut self.module.files;
        if let Some((number, _)) = files.iter().find(|(_, known)| *known == file) {
            return *number;
        }
        let number = files.len() as u32 + 1;
        files.push((number, file));
        number
    }
}

/// Runs `body`, which describes what one thread does.
#[track_caller]
pub fn build(name: &str, options: Options, body: impl FnOnce()) -> Result<Built, BuildError> {
    let at = Location::caller();
    check_threads(options.threads, at)?;
    check_blocks(options.blocks_per_processor, at)?;
    check_cluster(&options, at)?;
    let outer = builder::install(Some(Builder::new(options, at)));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        builder::check_name(Named::Entry, name, at);
        assertion::declare_report();
        body();
        instructions::ret();
    }));
    let built = builder::install(outer);
    match (outcome, built) {
        (Ok(()), Some(mut built)) => {
            check_shared(&built)?;
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

fn check_blocks(blocks: Option<u32>, at: Place) -> Result<(), BuildError> {
    let help = "expected at least one, or `None` to leave it to ptxas";
    match blocks {
        Some(0) => Err(BuildError::new("a processor that holds no block of the kernel", at).help(help)),
        _ => Ok(()),
    }
}

/// PTX ISA, "Cluster Dimension Directives"; more than eight blocks not every GPU holds. CUDA C++ Programming Guide, "Thread Block Clusters".
fn check_cluster(options: &Options, at: Place) -> Result<(), BuildError> {
    let wrong = |message: String| {
        Err(BuildError::new(message, at).help("expected 1 to 8 blocks, above one for sm_90 or newer"))
    };
    match options.cluster {
        1 => Ok(()),
        2..=8 if options.target.sm >= 90 => Ok(()),
        blocks => wrong(format!("a cluster of {blocks} blocks on {}", options.target)),
    }
}

fn check_shared(built: &Builder) -> Result<(), BuildError> {
    let help = "allocate some with `SharedVector::new`, `SharedTile::new` or `CopyRing::new`";
    match built.missing_shared() {
        Some(at) => Err(BuildError::new("the kernel has no shared memory that this could point to", at).help(help)),
        None => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    fn built(name: &str, body: impl FnOnce()) -> Built {
        let options =
            Options { target: ptx::Target::SM_80, threads: 32, cluster: 1, blocks_per_processor: None, checks: false };
        build(name, options, body).unwrap()
    }

    /// Files of the second are numbered behind those of the first, and its lines know it.
    #[test]
    fn modules_are_joined_with_their_lines() {
        let store = |name: &str| built(name, || Slice::<u32>::parameter("out").store(thread_index(), 1.into()));
        let (mut first, second) = (store("first"), store("second"));
        first.module.files[0].1 = "crates/other.rs".into();
        let expected = second.module.files[0].1.clone();
        let joined = first.with(second).module;
        assert_eq!(joined.files, [(1, "crates/other.rs".into()), (2, expected)]);
        let source = ptx::Source::new("joined.ptx", ptx::print(&joined));
        let parsed = ptx::parse(&source).unwrap();
        assert!(parsed.module == joined && ptx::verify(&parsed).is_empty());
        let file = |function: &ptx::Function| {
            function.body.iter().find_map(|statement| match statement {
                Statement::Location { file, .. } => Some(*file),
                _ => None,
            })
        };
        assert_eq!(joined.functions.iter().map(file).collect::<Vec<_>>(), [Some(1), Some(2)]);
    }

    /// Whichever of the two takes shared memory, the module declares it once.
    #[test]
    fn joined_modules_declare_shared_memory_once() {
        let shared = |name: &str| built(name, || SharedVector::<f32>::new(32).store(thread_index(), 0, 1.0.into()));
        let plain = |name: &str| built(name, || Slice::<u32>::parameter("out").store(thread_index(), 1.into()));
        for joined in [shared("a").with(shared("b")), shared("a").with(plain("b")), plain("a").with(shared("b"))] {
            assert_eq!((joined.module.variables.len(), joined.module.functions.len()), (1, 2));
        }
    }
}
