//! Gates: what must have been shown for what. A gate is a conjunction; nothing makes up for what lacks.

mod agreement;
mod second_run;
mod settings;

use std::fmt;

use agreement::Disagreement;

use crate::bench::Grid;
use crate::outcome::{Outcome, State};
use crate::stages::{Stage, profile};

pub use second_run::{Made, SecondRun};
pub use settings::{SETTINGS, gates_of};

/// A list of demands that a pack is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    name: String,
    /// Stages that must have passed.
    require: Vec<Stage>,
    /// Stages that must have passed if they were run.
    allow_not_run: Vec<Stage>,
    /// What figures must reach.
    least: Vec<Threshold>,
    /// Lists of problems at all of which the kernel was timed.
    covers: Vec<Grid>,
    /// A pack from another day or machine must meet the same demands.
    second_run: bool,
}

/// The least that a figure of a stage may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    stage: Stage,
    measure: &'static str,
    least: f64,
}

/// What a gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateResult {
    Held,
    /// A demand was tried and not met.
    Failed(Vec<Unmet>),
    /// None failed, but these were not run or not decided.
    Undecided(Vec<Unmet>),
}

/// A demand of a gate that a pack does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet {
    Stage(Stage),
    /// A figure that is too small, in words.
    Figure {
        why: String,
    },
    /// Problems that were not timed, in words.
    Problems {
        why: String,
    },
    SecondRun {
        why: String,
    },
}

impl From<Stage> for Unmet {
    fn from(stage: Stage) -> Unmet {
        Unmet::Stage(stage)
    }
}

/// In percent: below it a kernel with enough work leaves too much of the GPU idle.
pub(crate) const LEAST_BUSY: f64 = 70.0;

const MERGE: [Stage; 6] =
    [Stage::Assemble, Stage::Parity, Stage::Sanitize, Stage::Stress, Stage::Resources, Stage::Code];

impl Gate {
    /// The kernel may become part of a code base.
    pub fn merge() -> Gate {
        Gate {
            name: "merge".into(),
            require: MERGE.into(),
            allow_not_run: Vec::new(),
            least: vec![],
            covers: vec![],
            second_run: false,
        }
    }

    /// Its speed may be told to others.
    pub fn publication() -> Gate {
        let least = [(profile::BUSY, LEAST_BUSY), (profile::TENSOR, f64::MIN_POSITIVE)];
        let least = least.map(|(measure, least)| Threshold { stage: Stage::Profile, measure, least }).into();
        Gate {
            name: "publication".into(),
            require: Stage::ALL.into(),
            allow_not_run: vec![],
            least,
            covers: vec![Grid::Small, Grid::Main],
            second_run: true,
        }
    }

    /// The gates that need no settings.
    pub fn built_in() -> [Gate; 2] {
        [Gate::merge(), Gate::publication()]
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does it ask for a second run?
    pub fn wants_second_run(&self) -> bool {
        self.second_run
    }

    pub fn judge(&self, outcomes: &[Outcome], second: &SecondRun) -> GateResult {
        let mut missed = self.missed(outcomes);
        if self.second_run {
            self.judge_second_run(outcomes, second, &mut missed);
        }
        match (missed.failed.is_empty(), missed.lacking.is_empty()) {
            (false, _) => GateResult::Failed(missed.failed),
            (true, false) => GateResult::Undecided(missed.lacking),
            (true, true) => GateResult::Held,
        }
    }

    /// What one run does not meet.
    fn missed(&self, outcomes: &[Outcome]) -> Missed {
        let mut missed = self.stages(outcomes);
        self.ask_figures(outcomes, &mut missed);
        missed.lacking.extend(self.uncovered(outcomes));
        missed
    }

    /// Figures that do not reach what they must. Those of a stage that was not run lack with it.
    fn ask_figures(&self, outcomes: &[Outcome], missed: &mut Missed) {
        for Threshold { stage, measure, least } in &self.least {
            let Some(outcome) = ran(outcomes, *stage) else { continue };
            let expected = if *least < 0.01 { "more than 0".into() } else { format!("{least} or more") };
            let figure =
                |found: String| Unmet::Figure { why: format!("{stage}: {measure} is {found}, expected {expected}") };
            match outcome.measure(measure) {
                Some(found) if found >= *least => {}
                Some(found) => missed.failed.push(figure(format!("{found:.1} %"))),
                None if *outcome.state() == State::Pass => missed.lacking.push(figure("not known".into())),
                None => {}
            }
        }
    }

    /// Problems that nothing was timed at; where the stage was not run, it lacks as a whole.
    fn uncovered(&self, outcomes: &[Outcome]) -> Option<Unmet> {
        let timed = ran(outcomes, Stage::Bench)?.duels();
        let asked = self.covers.iter().flat_map(|grid| grid.problems().unwrap_or_default());
        let asked: Vec<String> = asked.map(|problem| problem.to_string()).collect();
        let lacks = |problem: &&String| !timed.iter().any(|duel| duel.problem == **problem);
        let lacking: Vec<&String> = asked.iter().filter(lacks).collect();
        let first = lacking.first()?;
        let lists = self.covers.iter().map(|grid| format!("`{}`", grid.name())).collect::<Vec<_>>().join(" and ");
        let (lacking, asked) = (lacking.len(), asked.len());
        Some(Unmet::Problems {
            why: format!(
                "{lacking} of the {asked} problems of the lists {lists}, which bench did not time, such as {first}"
            ),
        })
    }

    fn judge_second_run(&self, outcomes: &[Outcome], second: &SecondRun, missed: &mut Missed) {
        let unmet = |why: String| Unmet::SecondRun { why };
        match second {
            SecondRun::NotGiven => {
                missed.lacking.push(unmet("on another day or machine: `--second PACK` names it".into()))
            }
            SecondRun::Unfit { why } => missed.lacking.push(unmet(why.clone())),
            SecondRun::Rejected { why } => missed.failed.push(unmet(format!("its pack is rejected: {why}"))),
            SecondRun::Apart { outcomes: again } => {
                let own = self.missed(again);
                let Disagreement { contradicted, open } = self.disagreement(outcomes, again);
                let failed = [said("it failed ", &own.failed), first_of(&contradicted)];
                let lacking = [said("it lacks ", &own.lacking), first_of(&open)];
                missed.failed.extend(failed.into_iter().flatten().map(unmet));
                missed.lacking.extend(lacking.into_iter().flatten().map(unmet));
            }
        }
    }

    /// A gate that does not speak of `bench` does not ask who won.
    fn disagreement(&self, first: &[Outcome], second: &[Outcome]) -> Disagreement {
        if !self.require.iter().chain(&self.allow_not_run).any(|stage| *stage == Stage::Bench) {
            return Disagreement::default();
        }
        let [first, second] = [first, second].map(|run| ran(run, Stage::Bench).map_or(&[][..], Outcome::duels));
        Disagreement::of(first, second)
    }

    /// The stages that do not meet its demands.
    fn stages(&self, outcomes: &[Outcome]) -> Missed {
        let mut missed = Missed::default();
        let required = self.required().into_iter().map(|stage| (stage, false));
        for (stage, may_lack) in required.chain(self.allow_not_run.iter().map(|stage| (*stage, true))) {
            match outcomes.iter().find(|outcome| outcome.stage() == stage).map(Outcome::state) {
                Some(State::Pass) => {}
                Some(State::NotRun { .. }) if may_lack => {}
                Some(State::Fail { .. }) => missed.failed.push(stage.into()),
                Some(State::NotRun { .. } | State::Ambiguous { .. } | State::Stale { .. }) | None => {
                    missed.lacking.push(stage.into())
                }
            }
        }
        missed
    }

    /// The stages that must have passed: those that it names, and those whose figures it asks for.
    fn required(&self) -> Vec<Stage> {
        let mut stages = self.require.clone();
        for Threshold { stage, .. } in &self.least {
            if !stages.contains(stage) && !self.allow_not_run.contains(stage) {
                stages.push(*stage);
            }
        }
        stages
    }
}

/// Demands that are not met.
#[derive(Default)]
struct Missed {
    failed: Vec<Unmet>,
    lacking: Vec<Unmet>,
}

/// The outcome of a stage that was run.
fn ran(outcomes: &[Outcome], stage: Stage) -> Option<&Outcome> {
    let outcome = outcomes.iter().find(|outcome| outcome.stage() == stage)?;
    (!matches!(outcome.state(), State::NotRun { .. })).then_some(outcome)
}

fn said(what: &str, unmet: &[Unmet]) -> Option<String> {
    (!unmet.is_empty()).then(|| format!("{what}{}", list(unmet)))
}

/// The first, and how many there are more.
fn first_of(whys: &[String]) -> Option<String> {
    let first = whys.first()?;
    Some(if whys.len() == 1 { first.clone() } else { format!("{first}; and {} more", whys.len() - 1) })
}

impl fmt::Display for GateResult {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            GateResult::Held => f.write_str("held"),
            GateResult::Failed(unmet) => write!(f, "failed: {}", list(unmet)),
            GateResult::Undecided(unmet) => write!(f, "undecided: lacks {}", list(unmet)),
        }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unmet::Stage(stage) => write!(f, "{stage}"),
            Unmet::Figure { why } | Unmet::Problems { why } => f.write_str(why),
            Unmet::SecondRun { why } => write!(f, "a second run that agrees ({why})"),
        }
    }
}

fn list(items: &[impl fmt::Display]) -> String {
    items.iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
