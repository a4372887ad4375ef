//! Gates: what must have been shown for what. A gate is a conjunction; nothing makes up for what lacks.

mod second_run;
mod settings;

use std::fmt;

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
            second_run: false,
        }
    }

    /// Its speed may be told to others.
    pub fn publication() -> Gate {
        let least = [(profile::BUSY, LEAST_BUSY), (profile::TENSOR, f64::MIN_POSITIVE)];
        let least = least.map(|(measure, least)| Threshold { stage: Stage::Profile, measure, least }).into();
        Gate { name: "publication".into(), require: Stage::ALL.into(), allow_not_run: vec![], least, second_run: true }
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
        let Stages { failed, lacking } = self.stages(outcomes);
        let [mut failed, mut lacking]: [Vec<Unmet>; 2] =
            [failed, lacking].map(|list| list.into_iter().map(Unmet::Stage).collect());
        failed.extend(self.too_small(outcomes));
        if self.second_run {
            self.judge_second_run(second, &mut failed, &mut lacking);
        }
        match (failed.is_empty(), lacking.is_empty()) {
            (false, _) => GateResult::Failed(failed),
            (true, false) => GateResult::Undecided(lacking),
            (true, true) => GateResult::Held,
        }
    }

    /// Figures that do not reach what they must; those of a stage that was not run lack with it.
    fn too_small(&self, outcomes: &[Outcome]) -> Vec<Unmet> {
        let unmet = |threshold: &Threshold| {
            let Threshold { stage, measure, least } = threshold;
            let outcome = outcomes.iter().find(|outcome| outcome.stage() == *stage)?;
            let found = outcome.measure(measure).filter(|found| found < least)?;
            let least = if *least < 0.01 { "more than 0".into() } else { format!("{least} or more") };
            Some(Unmet::Figure { why: format!("{stage}: {measure} is {found:.1} %, expected {least}") })
        };
        self.least.iter().filter_map(unmet).collect()
    }

    fn judge_second_run(&self, second: &SecondRun, failed: &mut Vec<Unmet>, lacking: &mut Vec<Unmet>) {
        let unmet = |why: String| Unmet::SecondRun { why };
        match second {
            SecondRun::NotGiven => lacking.push(unmet("on another day or machine: `--second PACK` names it".into())),
            SecondRun::Unfit { why } => lacking.push(unmet(why.clone())),
            SecondRun::Rejected { why } => failed.push(unmet(format!("its pack is rejected: {why}"))),
            SecondRun::Apart { outcomes } => {
                let stages = self.stages(outcomes);
                if !stages.failed.is_empty() {
                    failed.push(unmet(format!("it failed {}", list(&stages.failed))));
                } else if !stages.lacking.is_empty() {
                    lacking.push(unmet(format!("it lacks {}", list(&stages.lacking))));
                }
            }
        }
    }

    /// The stages that do not meet its demands.
    fn stages(&self, outcomes: &[Outcome]) -> Stages {
        let mut unmet = Stages::default();
        let required = self.require.iter().map(|stage| (*stage, false));
        for (stage, may_lack) in required.chain(self.allow_not_run.iter().map(|stage| (*stage, true))) {
            match outcomes.iter().find(|outcome| outcome.stage() == stage).map(Outcome::state) {
                Some(State::Pass) => {}
                Some(State::NotRun { .. }) if may_lack => {}
                Some(State::Fail { .. }) => unmet.failed.push(stage),
                Some(State::NotRun { .. } | State::Ambiguous { .. } | State::Stale { .. }) | None => {
                    unmet.lacking.push(stage)
                }
            }
        }
        unmet
    }
}

#[derive(Default)]
struct Stages {
    failed: Vec<Stage>,
    lacking: Vec<Stage>,
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
            Unmet::Figure { why } => f.write_str(why),
            Unmet::SecondRun { why } => write!(f, "a second run that agrees ({why})"),
        }
    }
}

fn list(items: &[impl fmt::Display]) -> String {
    items.iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
