//! `veriflash bisect` from the outside: what it prints, and its exit codes.

use serde_json::Value;
use std::process::{Command, Output};

fn bisect(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_veriflash");
    let command = Command::new(program).arg("bisect").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    command.unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_second_call_that_fails_is_told_with_the_buffer_and_the_finding() {
    let output = bisect(&["examples/bisect/second_call.ptx"]);
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output);
    for line in [
        "examples/bisect/second_call.ptx does not fail as it is",
        "smallest change that turns it on: 2 calls on the same buffers instead of 1",
        "smallest change that turns it off again: before each call buffer `phase` is as at first",
        "error[race-shared]",
        "ld.shared.u32 %value, [%other];",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_trap_in_compiled_code_is_told_with_what_it_means() {
    let text = text(&bisect(&["corpus/wmma_local.sm_80.toml"]));
    assert!(text.contains("smallest change that turns it off: `trap` at line 23 deleted"), "{text}");
    assert!(text.contains("error[trap]") && text.contains("all that is left of `wmma_local`"), "{text}");
}

#[test]
fn json_has_everything_that_was_tried() {
    let output = bisect(&["examples/bisect/second_call.ptx", "--format", "json", "--seeds", "1"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((document["command"].as_str(), document["verdict"].as_str()), (Some("bisect"), Some("fail")));
    assert_eq!(document["exit"], 1);
    assert_eq!(document["given"], serde_json::json!([]));
    assert_eq!(document["on"]["axis"], "calls");
    assert_eq!(document["off"]["axis"], "state");
    assert_eq!(document["finding"]["check"], "race-shared");
    let tried = document["tried"].as_array().unwrap();
    assert!(tried.iter().any(|one| one["sought"] == "on" && one["result"] == "FAILS"), "{document:#}");
    assert!(tried.iter().any(|one| one["sought"] == "off" && one["failure"].is_null()), "{document:#}");
}

#[test]
fn exit_codes_say_what_happened() {
    let sound = bisect(&["--problem", "B1 H1 Sq17 Sk65 D64", "--config", "1", "--seeds", "1"]);
    assert_eq!(sound.status.code(), Some(0), "{}", text(&sound));
    assert!(text(&sound).contains("nothing that was tried makes it fail"), "{}", text(&sound));
    assert_eq!(bisect(&["no-such.ptx"]).status.code(), Some(2));
    assert_eq!(bisect(&["corpus/wmma_local.sm_80.toml", "--config", "1"]).status.code(), Some(2));
    let help = text(&bisect(&["--help"]));
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
}

#[test]
fn without_a_gpu_hardware_decides_nothing() {
    if cuda::Cuda::open(0).is_ok() {
        return; // There it decides.
    }
    let output = bisect(&["examples/bisect/second_call.ptx", "--backend", "cuda"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stdout.is_empty());
}

/// A right kernel whose recipe expects something else: that a barrier matters is a finding of a trial, not of the kernel.
#[test]
fn a_finding_of_a_trial_is_told_as_one() {
    let text_of = std::fs::read_to_string("examples/bisect/second_call.ptx").unwrap();
    let wrong = text_of.replacen("expect = [32,", "expect = [7,", 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.ptx");
    std::fs::write(&path, wrong).unwrap();
    let path = path.to_str().unwrap();
    let said = text(&bisect(&[path, "--seeds", "1"]));
    assert!(said.contains("fails as it is"), "{said}");
    let (before, _) = said.split_once("\nerror[").expect("a trial has a finding");
    let last = before.lines().last().unwrap_or_default();
    assert!(last.starts_with("in the trial with this change, not in the kernel as it is given: "), "{said}");
    let output = bisect(&[path, "--seeds", "1", "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["finding"].is_object() && document["finding_of"]["change"].is_string(), "{document:#}");
}
