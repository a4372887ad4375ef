//! What entrants die of before anything is timed.
#![cfg(unix)]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod support;

use attention::configs::Math;
use attention::planner::Gpu;
use lab::leaderboard::{Entrant, Field, Survey, entrants, survey};
use lab::{Silent, Stage};
use support::{CODE, SAID, tools};

/// Config 1 on tensor cores and on plain ones, with tools that say this.
fn surveyed(said: &str, code: &str) -> Survey {
    let (folder, problem) = (tempfile::tempdir().unwrap(), "B2 H8 S512 D64".parse().unwrap());
    let first = |entrant: &Entrant| entrant.config.id == 1;
    let all = entrants(&problem, &Gpu::A100, Field::Runnable).unwrap().into_iter().filter(first).collect();
    survey(&problem, all, &tools(folder.path(), said, code), "sm_80", &Silent, &|| {}).unwrap()
}

/// Name and stage of each death.
fn deaths(survey: &Survey) -> Vec<(&str, &str)> {
    survey.deaths.iter().map(|death| (death.name.as_str(), death.stage.as_str())).collect()
}

#[test]
fn who_passes_every_stage_lives() {
    let survey = surveyed(SAID, CODE);
    assert_eq!(deaths(&survey), []);
    assert_eq!((survey.living.len(), survey.not_run.len()), (2, 0));
}

#[test]
fn the_first_stage_that_fails_is_the_cause_of_death() {
    let refused = surveyed("ptxas error : too wide", CODE);
    assert_eq!(deaths(&refused), [("config 1", "assemble"), ("config 1 scalar", "assemble")]);
    assert!(refused.deaths[0].why.contains("too wide"), "{}", refused.deaths[0].why);
    let spilled = surveyed(&SAID.replace("0 bytes spill stores", "8 bytes spill stores"), CODE);
    assert_eq!(deaths(&spilled)[0], ("config 1", Stage::Resources.name()));
}

#[test]
fn plain_cores_do_without_tensor_cores() {
    let survey = surveyed(SAID, &CODE.replace("HMMA.16816.F32", "FFMA"));
    assert_eq!(deaths(&survey), [("config 1", "code")]);
    assert_eq!(survey.living[0].config.math, Math::Scalar);
}
