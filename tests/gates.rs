//! `prove --gate` and `verify --gate`: gates of one's own, exit codes, second runs.

use std::path::Path;
use std::process::{Command, Output};

const SETTINGS: &str = "[gate.emulated]\nrequire = ['assemble', 'parity', 'sanitize']\nallow_not_run = ['profile']\n
[gate.measured]\nrequire = ['parity', 'bench']\n
[gate.twice]\nrequire = ['parity']\nsecond_run = true\n";

/// Runs in a folder, as on a machine without tools.
fn veriflash(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
    command.env("PATH", "/nowhere").env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS");
    command.output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The exit code and what was said.
fn judged(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = veriflash(folder, arguments);
    (output.status.code().expect("it was not killed"), text(&output))
}

/// A folder with a pack and settings.
fn workshop() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("veriflash.toml"), SETTINGS).expect("a file");
    let prove = ["prove", "--problem", "B1 H1 Sq5 Sk70 D64 causal", "--out", "pack", "--gate", "emulated"];
    let (exit, said) = judged(folder.path(), &prove);
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("\ngate emulated: held\n") && !said.contains("gate merge"), "{said}");
    folder
}

#[test]
fn a_gate_decides_the_exit_code_of_prove_and_verify() {
    let workshop = workshop();
    let verify = |more: &[&str]| judged(workshop.path(), &[&["verify", "pack", "--no-rerun"], more].concat());
    assert_eq!(verify(&["--gate", "emulated"]).0, 0);
    let (exit, said) = verify(&["--gate", "measured"]);
    assert!(exit == 4 && said.contains("gate measured: undecided: lacks bench\n"), "{exit}: {said}");
    let (exit, said) = verify(&[]);
    assert_eq!(exit, 0, "{said}");
    for line in ["gate merge: undecided: lacks ", "gate publication: undecided: lacks ", "gate emulated: held"] {
        assert!(said.contains(line), "{said}");
    }
    std::fs::write(workshop.path().join("pack/REPORT.md"), "all is well").expect("a file");
    let (exit, said) = verify(&["--gate", "emulated"]);
    assert!(exit == 1 && said.ends_with("REJECTED\n") && !said.contains("held"), "{exit}: {said}");
}

#[test]
fn a_failed_stage_fails_the_gates_that_require_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernel = veriflash(folder.path(), &["ptx", "--config", "1", "--problem", "B1 H1 Sq5 Sk70 D64 causal"]);
    let wrong = String::from_utf8_lossy(&kernel.stdout).replacen("bar.sync 0;", "", 1);
    std::fs::write(folder.path().join("k.ptx"), wrong).expect("a file");
    std::fs::write(folder.path().join("mine.toml"), "[gate.reads]\nrequire = ['assemble']").expect("a file");
    let prove = |gate: &str| {
        let settings = ["prove", "--kernel", "k.ptx", "--settings", "mine.toml", "--gate", gate];
        judged(folder.path(), &settings)
    };
    let (exit, said) = prove("merge");
    assert!(exit == 1 && said.contains("\ngate merge: failed: "), "{exit}: {said}");
    assert_eq!(prove("reads").0, 0, "a gate asks for what it names and nothing else");
}

#[test]
fn a_second_run_of_the_same_day_and_machine_decides_nothing() {
    let workshop = workshop();
    let verify = |more: &[&str]| judged(workshop.path(), &[&["verify", "pack", "--no-rerun", "--gate"], more].concat());
    let (exit, said) = verify(&["twice"]);
    assert!(exit == 4 && said.contains("on another day or machine: `--second PACK` names it"), "{exit}: {said}");
    let (exit, said) = verify(&["twice", "--second", "pack"]);
    assert!(exit == 4 && said.contains("its pack is of the same day (UTC) and machine"), "{exit}: {said}");
    let (exit, said) = verify(&["twice", "--second", "nowhere"]);
    assert!(exit == 2 && said.contains("nowhere: expected the folder of a pack"), "{exit}: {said}");
    let (exit, said) = verify(&["emulated", "--second", "pack"]);
    assert!(exit == 2 && said.contains("does not ask for a second run"), "{exit}: {said}");
}

#[test]
fn wrong_names_and_settings_exit_2_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prove = |more: &[&str]| judged(folder.path(), &[&["prove", "--out", "pack"], more].concat());
    let (exit, said) = prove(&["--gate", "marge"]);
    assert_eq!(exit, 2, "{said}");
    assert!(said.contains("unknown gate `marge`: expected one of merge, publication;"), "{said}");
    assert!(said.contains("[gate.marge] in veriflash.toml"), "{said}");
    let (exit, said) = prove(&["--settings", "nowhere.toml"]);
    assert!(exit == 2 && said.contains("nowhere.toml: "), "{exit}: {said}");
    std::fs::write(folder.path().join("veriflash.toml"), "[gate.a]\nrequire = ['spped']\n").expect("a file");
    let (exit, said) = prove(&[]);
    assert!(exit == 2 && said.contains("veriflash.toml:2:12: unknown variant `spped`, expected one of"), "{said}");
    assert!(!folder.path().join("pack").exists());
}
