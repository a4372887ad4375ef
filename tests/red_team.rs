//! `prove --red-team` on a machine without tools.

use std::process::{Command, Output};

fn red_team(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(["prove", "--red-team"]).args(arguments).env("NO_COLOR", "1").env("PATH", "/nowhere");
    command.env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS");
    command.output().expect("the binary runs")
}

/// The table in the documentation is what the command prints where there is neither ptxas nor a GPU.
#[test]
fn the_documented_table_is_what_the_command_prints() {
    let output = red_team(&[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = said.trim_end().lines().last().unwrap_or_default().to_string();
    let [caught, of] = [1, 3].map(|word| last.split(' ').nth(word).and_then(|number| number.parse::<usize>().ok()));
    assert!(last.starts_with("caught ") && caught == of && caught >= Some(25), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/red-team.md")).expect("the page");
    let table = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let has_gpu = !said.contains("not run: needs a GPU");
    assert!(has_gpu || table == said, "put this into docs/red-team.md:\n{said}");
}

#[test]
fn what_it_would_ignore_is_refused() {
    for other in [["--kernel", "ampere"], ["--gate", "merge"], ["--out", "pack"], ["--peers", "fa2"]] {
        let output = red_team(&other);
        assert_eq!(output.status.code(), Some(2), "{other:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn json_has_every_attack_with_its_check() {
    let output = red_team(&["--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let attacks = document["attacks"].as_array().expect("a list");
    assert!(attacks.len() >= 25, "{document:#}");
    let here = attacks.iter().filter(|attack| attack["where"] != "GPU" && attack["where"] != "ptxas");
    assert!(here.clone().all(|attack| attack["state"] == "caught" && attack["checks"][0].is_string()), "{document:#}");
}
