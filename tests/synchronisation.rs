//! Every wait, commit and barrier that the kernel prints is needed: without it, `prove --kernel` fails and names what
//! is missing, with both lines.

use std::path::Path;
use std::process::Command;

/// Three key tiles, ragged tails, stage wrap-around; small, because there are many mutants.
const PROBLEMS: [&str; 2] = ["B1 H1 Sq33 Sk161 D64 full", "B1 H1 Sq33 Sk161 D64 causal"];
const SYNCHRONISATION: [&str; 3] = ["cp.async.wait_group", "cp.async.commit_group", "bar.sync"];

#[test]
fn every_wait_commit_and_barrier_is_needed() {
    for problem in PROBLEMS {
        let text = printed(problem);
        let places = synchronisations(&text);
        assert!(SYNCHRONISATION.iter().all(|word| places.iter().any(|place| line(&text, *place).starts_with(word))));
        places.iter().for_each(|place| check_mutant(problem, &text, *place));
        println!("{problem}: {} of {} removals found and named", places.len(), places.len());
    }
}

fn veriflash(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_veriflash")).args(arguments).env("NO_COLOR", "1").output();
    let output = output.expect("the binary runs");
    (output.status.code().expect("it was not killed"), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn printed(problem: &str) -> String {
    let (code, text) = veriflash(&["ptx", "--problem", problem, "--config", "1"]);
    assert_eq!(code, 0);
    text
}

/// Lines, from zero, that wait, commit or meet.
fn synchronisations(text: &str) -> Vec<usize> {
    let is_one = |line: &str| SYNCHRONISATION.iter().any(|word| line.trim().starts_with(word));
    text.lines().enumerate().filter(|(_, line)| is_one(line)).map(|(number, _)| number).collect()
}

fn line(text: &str, number: usize) -> &str {
    text.lines().nth(number).unwrap_or_default().trim()
}

/// The same text with one line emptied, so that all others keep their numbers.
fn without(text: &str, place: usize) -> String {
    text.lines()
        .enumerate()
        .map(|(number, line)| if number == place { "\n".into() } else { format!("{line}\n") })
        .collect()
}

fn check_mutant(problem: &str, text: &str, place: usize) {
    let removed = line(text, place);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("mutant.ptx");
    std::fs::write(&path, without(text, place)).expect("the mutant is written");
    let pack = folder.path().join("pack");
    let (code, report) = veriflash(&["prove", "--kernel", shown(&path), "--out", shown(&pack), "--format", "json"]);
    let about = format!("{problem}: without `{removed}` (line {}):\n{report}", place + 1);
    assert_eq!(code, 1, "{about}");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    assert!(findings.iter().any(|finding| names_what_is_missing(finding, removed)), "{about}");
}

/// A finding about two lines whose missing edge is of the kind that was removed.
fn names_what_is_missing(finding: &serde_json::Value, removed: &str) -> bool {
    let missing = finding["missing"].as_str().unwrap_or_default();
    let message = finding["message"].as_str().unwrap_or_default();
    let both = finding["first"]["line"].is_u64() && finding["second"]["line"].is_u64();
    let named = match removed.starts_with("bar.sync") {
        true => missing.contains("bar.sync") || message.contains("barrier"),
        false => missing.contains("cp.async.wait_group") || missing.contains("cp.async.commit_group"),
    };
    both && named
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}
