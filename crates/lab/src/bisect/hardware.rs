//! Runs setups on a GPU. A kernel that traps ends the context for good, so each trial is a process of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use launch::Kernel;
use launch::buffer::Init;
use launch::expectation::Expect;
use launch::recipe::ArgumentValue;

use super::bench::{Bench, refusal};
use super::setup::{Between, Setup, in_a_row};
use super::symptom::{Symptom, Trial};

/// A kernel that waits for ever is stopped after so long: to start, compile and run takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The GPU, through the command that runs one kernel there.
pub struct OnHardware {
    /// `veriflash` itself.
    pub program: PathBuf,
    /// Where trials are written.
    pub folder: PathBuf,
    pub number: AtomicU64,
}

impl Bench for OnHardware {
    fn trial(&self, setup: &Setup) -> Trial {
        if let Some(refusal) = refusal(&setup.kernel) {
            return Ok(vec![refusal]);
        }
        let file = self.folder.join(format!("trial{}.ptx", self.number.fetch_add(1, Ordering::Relaxed)));
        let mut kernel = with_whole_paths(&in_a_row(&setup.kernel, setup.calls));
        // After several calls in a row, a buffer that was filled before the first may rightly hold something else.
        let is_judged = |init: &Init| setup.judged && (setup.calls == 1 || *init == Init::Poison);
        kernel
            .recipe
            .buffers
            .iter_mut()
            .filter(|buffer| !is_judged(&buffer.init))
            .for_each(|buffer| buffer.expect = None);
        if !setup.judged {
            kernel.recipe.attention = None;
        }
        let text = format!("{}{}", kernel.recipe.to_header(), ptx::print(kernel.module()));
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        self.run(&file, setup)
    }

    fn is_emulator(&self) -> bool {
        false
    }
}

impl OnHardware {
    pub fn new(program: PathBuf, folder: &Path) -> OnHardware {
        OnHardware { program, folder: folder.into(), number: AtomicU64::new(0) }
    }

    /// What the command prints goes to files beside the trial: a pipe that nobody reads might hold it up.
    fn run(&self, file: &Path, setup: &Setup) -> Trial {
        let fail = |error: std::io::Error| format!("{} did not run: {error}", self.program.display());
        let [out, complaints] = ["out", "err"].map(|kind| file.with_extension(kind));
        let child = Command::new(&self.program)
            .arg("run")
            .arg(file)
            .args(["--backend", "cuda", "--format", "json", "--data-seed"])
            .arg(setup.data_seed.to_string())
            .args(streams(setup))
            .stdout(File::create(&out).map_err(fail)?)
            .stderr(File::create(&complaints).map_err(fail)?)
            .spawn();
        let Some(status) = ended(child.map_err(fail)?).map_err(fail)? else {
            return Ok(vec![Symptom::LaunchFailure(format!("it does not end within {} s", PATIENCE.as_secs()))]);
        };
        let [said, complaint] = [out, complaints].map(|path| std::fs::read_to_string(path).unwrap_or_default());
        understood(status.code(), said.trim(), complaint.trim())
    }
}

/// What `run` is told of streams.
fn streams(setup: &Setup) -> Vec<String> {
    let several = (setup.streams > 1).then(|| ["--streams".into(), setup.streams.to_string()]);
    let apart = (setup.streams > 1 && setup.between == Between::Module).then(|| "--apart".into());
    several.into_iter().flatten().chain(apart).collect()
}

/// Waits for a process; nothing if it had to be killed.
fn ended(mut child: Child) -> std::io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What the exit code and the words of `run` mean. 0: as expected; 1: a wrong result, or a launch that ended with an error.
fn understood(code: Option<i32>, said: &str, complaint: &str) -> Trial {
    match code {
        Some(0) => Ok(vec![]),
        Some(1) if said.is_empty() => Ok(vec![Symptom::LaunchFailure(complaint.into())]),
        Some(1) => Ok(vec![Symptom::WrongResult(wrong(said))]),
        None => Ok(vec![Symptom::LaunchFailure(format!("the process was killed: {complaint}"))]),
        Some(_) => Err(complaint.into()),
    }
}

/// The first expectation that fails, or what the oracle says.
fn wrong(json: &str) -> String {
    let document: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().map(String::from);
    text(&document["failures"][0]).or_else(|| text(&document["parity"])).unwrap_or_else(|| "not as expected".into())
}

/// The recipe stands in another folder than its files.
fn with_whole_paths(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    let folder = std::path::absolute(kernel.recipe.source.folder()).unwrap_or_default();
    let whole = |path: &mut String| *path = folder.join(&*path).display().to_string();
    for buffer in &mut kernel.recipe.buffers {
        if let Init::File(path) = &mut buffer.init {
            whole(path);
        }
        if let Some(Expect::File(path)) = &mut buffer.expect {
            whole(path);
        }
    }
    for argument in kernel.recipe.launches.iter_mut().flat_map(|launch| &mut launch.args) {
        if let ArgumentValue::Bytes { file, .. } = &mut argument.value {
            whole(file);
        }
    }
    kernel.recipe.ptx = None;
    kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: &str = "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [32, 1, 1]\n.version 7.0\n.target sm_80\n\
                        .address_size 64\n.visible .entry idle()\n{\n    ret;\n}\n";

    #[cfg(unix)]
    #[test]
    fn each_trial_is_a_process() {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup { calls: 3, ..Setup::new(Kernel::parse("idle.ptx", IDLE).unwrap(), 1) };
        let trial = |program: &str| OnHardware::new(program.into(), folder.path()).trial(&setup);
        assert_eq!(trial("/bin/true"), Ok(vec![]));
        assert!(matches!(&trial("/bin/false"), Ok(symptoms) if matches!(symptoms[..], [Symptom::LaunchFailure(_)])));
        assert!(trial("/no/such/program").unwrap_err().contains("did not run"));
        // What was run is a complete case, with every call in it.
        let written = Kernel::open(&folder.path().join("trial0.ptx")).unwrap();
        assert_eq!(written.recipe.launches.len(), 3);
    }

    #[test]
    fn streams_are_told() {
        let setup = Setup::new(Kernel::parse("idle.ptx", IDLE).unwrap(), 1);
        assert!(streams(&setup).is_empty() && streams(&Setup { between: Between::Module, ..setup.clone() }).is_empty());
        let several = Setup { streams: 8, ..setup };
        assert_eq!(streams(&several), ["--streams", "8"]);
        assert_eq!(streams(&Setup { between: Between::Module, ..several }), ["--streams", "8", "--apart"]);
    }

    #[test]
    fn what_run_says_becomes_a_symptom() {
        assert_eq!(understood(Some(0), "{}", ""), Ok(vec![]));
        let lost = "error: launch of `f`: CUDA_ERROR_LAUNCH_FAILED";
        assert_eq!(understood(Some(1), "", lost), Ok(vec![Symptom::LaunchFailure(lost.into())]));
        let said = r#"{"failures": ["buffer `y`: element 3 is 1"], "parity": null}"#;
        assert_eq!(understood(Some(1), said, ""), Ok(vec![Symptom::WrongResult("buffer `y`: element 3 is 1".into())]));
        let said = r#"{"failures": [], "parity": "fail: output 3"}"#;
        assert_eq!(understood(Some(1), said, ""), Ok(vec![Symptom::WrongResult("fail: output 3".into())]));
        assert_eq!(understood(Some(4), "", "error: no GPU"), Err("error: no GPU".into()));
        assert!(matches!(understood(None, "", ""), Ok(symptoms) if symptoms.len() == 1));
    }
}
