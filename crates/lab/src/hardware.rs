//! A GPU, and what is run on it beside the kernels: peers, and tools that watch a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cuda::Cuda;

use crate::case::Case;
use crate::gpu::Workers;
use crate::pack::recipe_text;
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
    /// The first GPU, or why there is none.
    pub fn find(workers: Workers, peers: Vec<String>) -> Result<Hardware, String> {
        Ok(Hardware {
            cuda: Cuda::open(0).map_err(|error| error.to_string())?,
            workers,
            peers,
            program: std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?,
            compute_sanitizer: tools::find("compute-sanitizer"),
            ncu: tools::find("ncu"),
        })
    }

    /// Runs a kernel in a process of its own that a tool watches; what the process printed.
    pub(crate) fn watched(&self, tool: &Tool, options: &[&str], kernel: &Path, more: &[&str]) -> Result<Said, String> {
        let mut command = Command::new(&tool.path);
        command.args(options).arg(&self.program).arg("run").arg(kernel).args(["--backend", "cuda", "--format", "json"]);
        ended(command.args(more), TOOL_TIME)
    }
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
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a process left.
pub(crate) struct Said {
    /// Nothing if it was killed.
    pub code: Option<i32>,
    pub output: String,
}

/// Waits for a process, and ends one that takes too long.
fn ended(command: &mut Command, limit: Duration) -> Result<Said, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(|error| format!("{name} did not start: {error}"))?;
    // Read from a thread: a pipe that nobody reads holds the process up.
    let mut pipe = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.as_mut().map(|pipe| std::io::Read::read_to_end(pipe, &mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Said { code: status.code(), output: reader.join().unwrap_or_default() }),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK_AGAIN),
            Ok(None) => {
                let _ = child.kill().and_then(|()| child.wait().map(|_| ()));
                return Err(format!("{name} did not end within {} s", limit.as_secs()));
            }
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Said, String> {
        ended(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn what_a_process_says_and_how_it_ends_is_kept() {
        let said = shell("echo hello; exit 3", TOOL_TIME).unwrap();
        assert_eq!((said.code, said.output.as_str()), (Some(3), "hello\n"));
    }

    #[test]
    fn a_process_that_hangs_is_ended() {
        let why = shell("exec sleep 1000", Duration::ZERO).err().unwrap();
        assert!(why.contains("sh did not end within 0 s"), "{why}");
    }
}
