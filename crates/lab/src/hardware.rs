//! A GPU, and what is run on it beside the kernels: peers, and tools that watch a process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cuda::{Assembler, Cuda};

use crate::assembly;
use crate::case::Case;
use crate::gpu::Workers;
use crate::pack::recipe_text;
use crate::process;
use crate::tools::{self, Tool};

/// Everything that stages need of a GPU.
#[derive(Clone, Debug)]
pub struct Hardware {
    pub cuda: Cuda,
    pub workers: Workers,
    /// By name, as [`Workers::start`] knows them.
    pub peers: Vec<String>,
    /// What tools watch: this program, which runs a kernel with `run FILE --backend cuda`.
    pub program: PathBuf,
    pub compute_sanitizer: Option<Tool>,
    pub ncu: Option<Tool>,
}

impl Hardware {
    /// The first GPU, or why there is none; an error if there is one that cannot be used, or what runs beside it cannot be made.
    pub fn find(python: &Path, peers: Vec<String>) -> std::io::Result<Result<Hardware, String>> {
        let cuda = match open_gpu() {
            Ok(cuda) => cuda,
            Err(error @ (cuda::Error::NoDriver | cuda::Error::NoGpu)) => return Ok(Err(error.to_string())),
            Err(error) => return Err(std::io::Error::other(error)),
        };
        Ok(Ok(Hardware {
            cuda,
            workers: Workers::unpack(python)?,
            peers,
            program: std::env::current_exe()?,
            compute_sanitizer: tools::find("compute-sanitizer"),
            ncu: tools::find("ncu"),
        }))
    }

    /// Runs a kernel in a process of its own that a tool watches; what the process printed.
    pub(crate) fn watched(&self, tool: &Tool, options: &[&str], kernel: &Path, more: &[&str]) -> Result<Said, String> {
        let mut command = Command::new(&tool.path);
        command.args(options).arg(&self.program).arg("run").arg(kernel).args(["--backend", "cuda", "--format", "json"]);
        let output = process::ended(command.args(more), TOOL_TIME)?;
        Ok(Said { code: output.status.code(), output: String::from_utf8_lossy(&output.stdout).into_owned() })
    }
}

/// The first GPU, with ptxas, where it is found, for what the driver's linker gets wrong.
pub fn open_gpu() -> Result<Cuda, cuda::Error> {
    Ok(Cuda::open(0)?.with_assembler(Assembler::new(assembled)))
}

fn assembled(text: &str, target: &str) -> Result<Vec<u8>, String> {
    let ptxas = tools::find("ptxas").ok_or("ptxas was not found")?;
    let made = assembly::run_ptxas(text, target, &ptxas)?;
    made.cubin.ok_or_else(|| made.said.join("; "))
}

/// A case as files, so that another process can run it.
pub(crate) fn write_case(folder: &Path, case: &Case) -> Result<PathBuf, String> {
    let folder = folder.join(&case.name);
    let recipe = folder.join("kernel.toml");
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("kernel.ptx"), &case.kernel.parsed.source.text))
        .and_then(|()| std::fs::write(&recipe, recipe_text(case)));
    written.map(|()| recipe).map_err(|error| format!("{}: {error}", folder.display()))
}

/// How long a watched process may take.
const TOOL_TIME: Duration = Duration::from_secs(120);

/// What a process left.
pub(crate) struct Said {
    /// Nothing if it was killed.
    pub code: Option<i32>,
    pub output: String,
}
