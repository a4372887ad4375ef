//! What ptxas makes of a kernel: one cubin per target, made once and read by every stage that speaks of machine code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ptx::{Module, Target};
use rayon::prelude::*;

use crate::case::Case;
use crate::cubin;
use crate::tools::Tool;

/// One run of ptxas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// What ptxas said, without how long it took.
    pub said: Vec<String>,
    /// Nothing if it refused.
    pub cubin: Option<Vec<u8>>,
}

/// By the hash of the module and the target: kernels that differ in their recipe alone share a cubin.
pub type Assembly = BTreeMap<(String, String), Assembled>;

/// The code of every function, by the name of its section.
pub type MachineCode = Vec<(String, Vec<u8>)>;

/// What ptxas makes of a module for its own target; none if it refuses.
pub fn machine_code(module: &Module, ptxas: &Tool) -> Result<Option<MachineCode>, String> {
    let assembled = run_ptxas(&ptx::print(module), &module.target.to_string(), ptxas)?;
    Ok(assembled.cubin.as_deref().and_then(cubin::code))
}

/// The targets among `asked` that code for this kernel's target runs on.
pub fn targets(case: &Case, asked: &[Target]) -> Vec<Target> {
    let own = case.kernel.module().target;
    if own.specific {
        return vec![own];
    }
    asked.iter().copied().filter(|target| target.provides(own)).collect()
}

/// Assembles every kernel for every target that it is asked for.
pub fn assemble(cases: &[Case], asked: &[Target], ptxas: &Tool) -> Result<Assembly, String> {
    let mut jobs: BTreeMap<(String, String), &Case> = BTreeMap::new();
    for case in cases {
        let module = case.kernel.hash();
        jobs.extend(targets(case, asked).iter().map(|target| ((module.clone(), target.to_string()), case)));
    }
    let run = |(key, case): ((String, String), &Case)| {
        let assembled = run_ptxas(&ptx::print(case.kernel.module()), &key.1, ptxas)?;
        Ok((key, assembled))
    };
    jobs.into_par_iter().map(run).collect()
}

pub(crate) fn run_ptxas(text: &str, target: &str, ptxas: &Tool) -> Result<Assembled, String> {
    let folder = scratch()?;
    let (source, cubin) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
    fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
    let arch = format!("-arch={target}");
    let arguments = ["-v".as_ref(), arch.as_ref(), source.as_os_str(), "-o".as_ref(), cubin.as_os_str()];
    let output = ptxas.run(folder.path(), &arguments)?;
    let said = said(&output.stderr, folder.path()).chain(said(&output.stdout, folder.path())).collect();
    let cubin = if output.status.success() { fs::read(&cubin).ok() } else { None };
    Ok(Assembled { said, cubin })
}

/// Lines that are the same each time: no folder, no duration.
fn said<'a>(bytes: &'a [u8], folder: &Path) -> impl Iterator<Item = String> + use<'a> {
    let prefix = format!("{}/", folder.display());
    let lines = std::str::from_utf8(bytes).unwrap_or("ptxas said something that is not text").lines();
    lines.filter(|line| !line.contains("Compile time = ")).map(move |line| line.replace(&prefix, ""))
}

/// The machine code of a cubin as text.
pub fn disassemble(cubin: &[u8], nvdisasm: &Tool) -> Result<String, String> {
    let folder = scratch()?;
    let path = folder.path().join("kernel.cubin");
    fs::write(&path, cubin).map_err(|error| format!("{}: {error}", path.display()))?;
    let output = nvdisasm.run(folder.path(), &["-c".as_ref(), path.as_os_str()])?;
    if !output.status.success() {
        return Err(format!("nvdisasm refused the cubin: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| "nvdisasm said something that is not text".into())
}

fn scratch() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))
}
