//! `veriflash leaderboard` where there is no GPU: nobody is ranked, and the dead are told with what they died of.

use serde_json::Value;
use std::process::{Command, Output};

fn leaderboard(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_veriflash")).arg("leaderboard").args(arguments).output().unwrap()
}

fn has_gpu() -> bool {
    cuda::Cuda::open(0).is_ok()
}

#[test]
fn without_a_gpu_nobody_is_ranked_and_deaths_are_told() {
    if has_gpu() {
        return; // There it ranks.
    }
    let output = leaderboard(&["--problem", "B2 H8 S512 D256", "--format", "json"]);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((document["command"].as_str(), document["verdict"].as_str()), (Some("leaderboard"), Some("undecided")));
    assert!(document["ranking"].is_null() && document["point"].is_null());
    assert_eq!(document["alive"][0]["name"], "config 6");
    assert_eq!(document["alive"][0]["planned"], true);
    let deaths = document["deaths"].as_array().unwrap();
    assert!(deaths.len() >= 10, "{document:#}");
    assert!(
        deaths.iter().all(|death| death["stage"] == "room" && !death["why"].as_str().unwrap().is_empty()),
        "{document:#}"
    );
    let text = String::from_utf8(leaderboard(&["--problem", "B2 H8 S512 D256"]).stdout).unwrap();
    assert!(
        text.contains("not ranked: times need a GPU") && text.contains("not timed, and what it died of:"),
        "{text}"
    );
}

#[test]
fn bad_input_is_refused() {
    assert_eq!(leaderboard(&["--problem", "B2 H8 S512 D68.5"]).status.code(), Some(2));
    assert_eq!(leaderboard(&["--contract", "guess"]).status.code(), Some(2));
    let help = String::from_utf8(leaderboard(&["--help"]).stdout).unwrap();
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
}

#[test]
fn wrong_arguments_are_named_before_the_stages_run() {
    for (arguments, word) in [
        (["--peers", "foo"], "--peers"),
        (["--csv", "/nonexistent/a.csv"], "`--csv /nonexistent/a.csv`: there is no folder /nonexistent"),
        (["--python", "/nonexistent"], "`--python /nonexistent` does not run"),
    ] {
        let output = leaderboard(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains(word), "{said}");
    }
}
