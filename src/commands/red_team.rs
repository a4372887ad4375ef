//! `prove --red-team`: is the lab fooled?

use super::Exit;
use super::output::{PackFormat, print_json};
use lab::red_team::{self, Attack, Ended, Report};
use serde_json::{Value, json};

pub fn execute(format: &PackFormat) -> anyhow::Result<Exit> {
    let report = red_team::run();
    let exit = Exit::of_findings(!report.holds());
    match format {
        PackFormat::Json => print_json("prove", exit.verdict(), exit, report_json(&report)),
        PackFormat::Text => println!("{report}"),
        PackFormat::Github => anyhow::bail!("`--format github` is for kernels, not for `--red-team`: use text or json"),
    }
    Ok(exit)
}

fn report_json(report: &Report) -> Value {
    let tried: Vec<Value> = report.tried.iter().map(|(attack, ended)| attack_json(attack, ended)).collect();
    json!({ "attacks": tried, "caught": report.caught(), "ran": report.ran(), "not_run": report.not_run() })
}

fn attack_json(attack: &Attack, ended: &Ended) -> Value {
    let (state, by, why) = match ended {
        Ended::Caught { by, why } => ("caught", Some(by.name()), Some(why)),
        Ended::CaughtByOther { by, why } => ("caught by another check", Some(by.name()), Some(why)),
        Ended::Passed => ("passed", None, None),
        Ended::NotRun { why } => ("not run", None, Some(why)),
    };
    let named: Vec<&str> = attack.guards.iter().map(|guard| guard.name()).collect();
    json!({
        "attack": attack.name, "pretends": attack.pretends, "where": attack.place.to_string(), "checks": named,
        "state": state, "caught_by": by, "why": why,
    })
}
