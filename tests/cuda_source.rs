//! Kernels in CUDA C++. What compiles needs NVRTC and is ignored unless asked for, as `.ci/run` does; what is refused is always tested.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const ATTENTION: &str = "examples/cuda/attention.cu";

fn veriflash(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_veriflash"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

/// As on a machine that has neither a compiler nor a Python that could have one.
fn without_compiler(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    for name in ["CUDA_HOME", "LD_LIBRARY_PATH", "VERIFLASH_TOOLS"] {
        command.env_remove(name);
    }
    command.env("PATH", "/nonexistent").output().unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_a_compiler_nothing_is_decided_and_the_cure_is_named() {
    let commands: [&[&str]; 5] = [&["run"], &["sanitize"], &["inspect"], &["bisect"], &["prove", "--kernel"]];
    for command in commands {
        let output = without_compiler(&[command, &[ATTENTION]].concat());
        assert_eq!(output.status.code(), Some(4), "{command:?}: {}", complaint(&output));
        assert!(complaint(&output).contains("pip install nvidia-cuda-nvrtc"), "{}", complaint(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_source_needs_a_recipe_and_only_a_source_an_architecture() {
    let bare = veriflash(&["run", "corpus/cuda/wmma_local.cu"]);
    assert_eq!(bare.status.code(), Some(2));
    assert!(complaint(&bare).contains("no recipe"), "{}", complaint(&bare));
    for arguments in [
        &["run", "corpus/wmma_local.sm_80.toml", "--arch", "sm_90"][..],
        &["prove", "--kernel", "corpus/wmma_local.sm_80.toml", "--arch", "sm_90"],
        &["prove", "--arch", "sm_90"],
        &["run", ATTENTION, "--arch", "sm_12"],
    ] {
        let refused = veriflash(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(complaint(&refused).contains("arch"), "{}", complaint(&refused));
    }
}

/// The example with one part replaced, in a folder of its own.
fn edited(folder: &Path, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(ATTENTION)).unwrap();
    assert!(text.contains(from), "{from}");
    let path = folder.join("attention.cu");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    path.display().to_string()
}

#[test]
#[ignore = "needs NVRTC: pip install nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88"]
fn the_example_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("pack").display().to_string();
    let output = veriflash(&["prove", "--kernel", ATTENTION, "--out", &pack, "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", complaint(&output)));
    let stages = document["stages"].as_array().unwrap();
    let state = |name: &str| stages.iter().find(|stage| stage["stage"] == name).unwrap()["state"].clone();
    for stage in ["assemble", "parity", "sanitize", "stress"] {
        assert_eq!(state(stage), "pass", "{stage}: {document:#}");
    }
    assert_eq!(veriflash(&["verify", &pack]).status.code(), Some(0));
    let ptx = std::fs::read_to_string(format!("{pack}/kernels/attention/kernel.ptx")).unwrap();
    assert!(ptx.contains(".target sm_80") && ptx.contains("\"examples/cuda/attention.cu\""), "{ptx}");
}

#[test]
#[ignore = "needs NVRTC: pip install nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88"]
fn the_architecture_decides_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("pack").display().to_string();
    veriflash(&["prove", "--kernel", ATTENTION, "--arch", "sm_90a", "--out", &pack]);
    let ptx = std::fs::read_to_string(format!("{pack}/kernels/attention/kernel.ptx")).unwrap();
    assert!(ptx.contains(".target sm_90a"), "{ptx}");
}

#[test]
#[ignore = "needs NVRTC: pip install nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88"]
fn the_compilers_message_is_shown_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = edited(folder.path(), "sum = sum * shrink", "sum = sun * shrink");
    let output = veriflash(&["run", &path]);
    assert_eq!(output.status.code(), Some(2));
    let said = complaint(&output);
    assert!(said.contains("attention.cu(70): error: identifier \"sun\" is undefined"), "{said}");
}

#[test]
#[ignore = "needs NVRTC: pip install nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88"]
fn a_finding_points_into_the_source() {
    let folder = tempfile::tempdir().unwrap();
    // One row too far.
    let path = edited(folder.path(), "lse[row] =", "lse[row + 1] =");
    let output = veriflash(&["sanitize", &path]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("error[out-of-bounds]") && text.contains("attention.cu:76"), "{text}");
}

#[test]
#[ignore = "needs NVRTC: pip install nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88"]
fn bisect_shows_the_warning_behind_a_trap() {
    let arguments = ["--arg", "x=f16[256]:normal(1)", "--arg", "y=f32[256]:zeros", "--block", "32"];
    let output = veriflash(&[&["bisect", "corpus/cuda/wmma_local.cu"][..], &arguments].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = complaint(&output).to_lowercase();
    assert!(said.contains("cannot perform wmma load or store on local memory"), "{said}");
}
