//! `compare` as a user meets it: what it prints, and its exit codes.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Without tools, so that every machine prints the same.
fn veriflash(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).env("PATH", "/nowhere").env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS");
    command.output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The pack of a kernel, in a folder called after it.
fn prove(folder: &Path, name: &str, kernel: &str) -> String {
    let (file, pack) = (folder.join("kernel.ptx"), folder.join(name));
    std::fs::write(&file, kernel).expect("the kernel is written");
    let (file, pack) = (file.to_str().expect("a path"), pack.to_str().expect("a path"));
    let output = veriflash(&["prove", "--kernel", file, "--out", pack]);
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", text(&output));
    pack.into()
}

#[test]
fn two_packs_are_compared_and_the_exit_code_tells() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let printed = veriflash(&["ptx", "--problem", "B1 H1 Sq33 Sk130 D64", "--config", "1"]);
    let kernel = String::from_utf8(printed.stdout).expect("text");
    let old = prove(folder.path(), "old", &kernel);
    let new = prove(folder.path(), "new", &kernel.replacen("bar.sync 0;", "", 1));

    let same = veriflash(&["compare", &old, &old]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same));
    assert!(
        text(&same).starts_with("kernel kernel: same\n\nstage      first      second     verdict\n"),
        "{}",
        text(&same)
    );
    assert!(text(&same).contains("\nparity     pass       pass       same\n"), "{}", text(&same));
    assert!(text(&same).ends_with("\n\nsame: kernels, stages and figures\n"), "{}", text(&same));

    let worse = veriflash(&["compare", &old, &new]);
    assert_eq!(worse.status.code(), Some(1), "{}", text(&worse));
    assert!(
        text(&worse).contains("\nsanitize   pass       FAIL       WORSE\n  first:  0 findings in "),
        "{}",
        text(&worse)
    );
    assert!(text(&worse).contains("\nkernel\n  WORSE     findings error[race-shared]: none, now "), "{}", text(&worse));

    let json = veriflash(&["compare", &old, &new, "--format", "json"]);
    let document: Value = serde_json::from_slice(&json.stdout).expect("a document");
    assert_eq!((&document["verdict"], &document["result"]), (&"fail".into(), &"worse".into()));
    assert_eq!(document["kernels"][0]["result"], "other module, same recipe");
    assert_eq!(document["stages"][2]["second"]["state"], "fail");

    let better = veriflash(&["compare", &new, &old]);
    assert_eq!(better.status.code(), Some(0), "{}", text(&better));

    std::fs::remove_file(Path::new(&new).join("REPORT.md")).expect("it was there");
    let broken = veriflash(&["compare", &old, &new]);
    assert_eq!(broken.status.code(), Some(4), "{}", text(&broken));
    assert!(text(&broken).contains("the pack is broken: "), "{}", text(&broken));
    let folder = folder.path().to_str().expect("a path");
    assert_eq!(veriflash(&["compare", &old, folder]).status.code(), Some(2));
}
