//! What becomes of an entrant before anything is timed: stages on a small problem of the same kind.

use attention::Problem;
use attention::configs::{Config, Math};

use super::entrants::Entrant;
use crate::outcome::State;
use crate::witness::witness;
use crate::{Case, Error, Progress, Request, Settings, Stage, Toolbox, prove};

/// Stages that an entrant must not fail, in the order in which they kill.
const DEADLY: [Stage; 5] = [Stage::Assemble, Stage::Parity, Stage::Sanitize, Stage::Resources, Stage::Code];

/// Why an entrant is not timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    pub name: String,
    /// The stage, or `room` where the configuration does not take the problem, or `gpu`.
    pub stage: String,
    pub why: String,
}

/// Who lives, who does not, and which stages nobody went through.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub living: Vec<Entrant>,
    pub deaths: Vec<Death>,
    pub not_run: Vec<(Stage, String)>,
}

/// Takes every entrant through the stages. `tried` hears of each.
pub fn survey(
    problem: &Problem,
    entrants: Vec<Entrant>,
    tools: &Toolbox,
    target: &str,
    progress: &dyn Progress,
    tried: &dyn Fn(),
) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    for entrant in entrants {
        let death = match attention::kernels::check(problem, &entrant.config) {
            Err(error) => Some(("room".to_string(), error.to_string())),
            Ok(()) => survey.stages(problem, &entrant, tools, target, progress)?,
        };
        match death {
            Some((stage, why)) => survey.deaths.push(Death { name: entrant.name, stage, why }),
            None => survey.living.push(entrant),
        }
        tried();
    }
    Ok(survey)
}

impl Survey {
    /// The first deadly stage that an entrant fails.
    fn stages(
        &mut self,
        problem: &Problem,
        entrant: &Entrant,
        tools: &Toolbox,
        target: &str,
        progress: &dyn Progress,
    ) -> Result<Option<(String, String)>, Error> {
        let case = witness(problem, &entrant.config)?;
        let states = states(case, tools, target, progress)?;
        for stage in DEADLY.into_iter().filter(|stage| is_deadly(*stage, &entrant.config)) {
            match &states[stage as usize] {
                State::Fail { why } => return Ok(Some((stage.name().into(), why.clone()))),
                State::Pass => {}
                state if self.not_run.iter().all(|(known, _)| *known != stage) => {
                    self.not_run.push((stage, state.why().unwrap_or_default().into()));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// The stage `code` asks for tensor cores, which the baseline is there to do without.
fn is_deadly(stage: Stage, config: &Config) -> bool {
    stage != Stage::Code || config.math != Math::Scalar
}

/// The states of all stages on one case, in a pack that nobody keeps.
fn states(case: Case, tools: &Toolbox, target: &str, progress: &dyn Progress) -> Result<Vec<State>, Error> {
    let folder = tempfile::tempdir().map_err(|error| Error::folder(std::path::Path::new("."), error))?;
    let settings = Settings {
        targets: vec![target.into()],
        seeds: vec![0, 1],
        rounds: 1,
        mutation_budget: 1,
        ..Settings::default()
    };
    let request = Request { settings, tools: tools.clone(), ..Request::new(vec![case], folder.path().join("pack")) };
    Ok(prove(&request, progress)?.outcomes.iter().map(|outcome| outcome.state().clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::leaderboard::{Field, entrants};
    use attention::planner::Gpu;

    fn surveyed(problem: &str, keep: fn(&Entrant) -> bool) -> Survey {
        let problem = problem.parse().unwrap();
        let all: Vec<Entrant> =
            entrants(&problem, &Gpu::A100, Field::Runnable).unwrap().into_iter().filter(keep).collect();
        survey(&problem, all, &Toolbox::none(), "sm_80", &Silent, &|| {}).unwrap()
    }

    #[test]
    fn who_has_no_room_is_dead_before_anything_runs() {
        let survey = surveyed("B2 H8 S512 D256", |entrant| {
            [1, 6].contains(&entrant.config.id) && entrant.config.math == Math::Tensor
        });
        let living: Vec<&str> = survey.living.iter().map(|entrant| entrant.name.as_str()).collect();
        assert_eq!(living, ["config 6"]);
        let Death { name, stage, why } = &survey.deaths[0];
        assert_eq!((name.as_str(), stage.as_str()), ("config 1", "room"));
        assert!(why.contains("bytes of shared memory"), "{why}");
    }

    #[test]
    fn stages_that_nobody_went_through_are_said_once() {
        let survey = surveyed("B2 H8 S512 D64 causal", |entrant| entrant.config.id == 5);
        assert!(survey.deaths.is_empty(), "{:?}", survey.deaths);
        assert_eq!(survey.living.len(), 2, "on tensor cores and on plain ones");
        let stages: Vec<Stage> = survey.not_run.iter().map(|(stage, _)| *stage).collect();
        assert_eq!(stages, [Stage::Resources, Stage::Code]);
        assert!(survey.not_run[0].1.contains("ptxas was not found"), "{:?}", survey.not_run);
    }
}
