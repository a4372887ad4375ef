//! What the driver makes of kernels: the code that is launched and timed, which may be other code than ptxas makes.

use cuda::{Cuda, Resources};
use launch::hash;
use rayon::prelude::*;

use crate::case::Case;
use crate::cubin;

/// One kernel, as it is loaded.
#[derive(Clone, Debug)]
pub struct Driven {
    pub cubin: Vec<u8>,
    /// Of each launch of the recipe, in order.
    pub resources: Vec<Resources>,
}

impl Driven {
    /// SHA-256 of the cubin, as every other log has it.
    pub fn hash(&self) -> String {
        hash::hex(&self.cubin)
    }

    /// SHA-256 of what runs alone: a cubin also holds the text that it was made of, recipe included.
    pub fn code(&self) -> Option<String> {
        code_hash(&self.cubin)
    }
}

/// SHA-256 of every section that holds code, with its name; nothing of bytes that are no cubin.
pub fn code_hash(bytes: &[u8]) -> Option<String> {
    let sections = cubin::code(bytes)?;
    let told = sections.iter().flat_map(|(name, code)| [name.as_bytes(), &code.len().to_le_bytes(), code].concat());
    Some(hash::hex(&told.collect::<Vec<u8>>()))
}

/// Of a text that only the driver's loader takes.
const UNSEEN: &str = "the driver does not show the machine code that it makes: install ptxas (`pip install nvidia-cuda-nvcc`), whose code is then loaded";

/// All kernels, in their order.
pub fn drive(cuda: &Cuda, cases: &[&Case]) -> Result<Vec<Driven>, String> {
    cases.par_iter().map(|case| one(cuda, case).map_err(|why| format!("{}: {why}", case.name))).collect()
}

fn one(cuda: &Cuda, case: &Case) -> Result<Driven, String> {
    let words = |error: cuda::Error| error.to_string();
    let module = cuda.module(&case.kernel).map_err(words)?;
    let cubin = module.cubin().ok_or_else(|| format!("{UNSEEN}: {}", module.log()))?.to_vec();
    let resources = |launch| {
        let entry = case.kernel.entry(launch).map_err(|error| error.to_string())?;
        module.function(entry.name.as_str()).and_then(|function| function.resources()).map_err(words)
    };
    let resources = case.resolved.launches.iter().map(resources).collect::<Result<_, String>>()?;
    Ok(Driven { cubin, resources })
}
