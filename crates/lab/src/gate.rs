//! Gates: which stages must have passed for what. A gate is a conjunction; nothing makes up for a stage that lacks.

use std::fmt;

use crate::outcome::{Outcome, State};
use crate::stages::Stage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The kernel may become part of a code base.
    Merge,
}

/// What a gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateResult {
    Held,
    /// A required stage failed.
    Failed(Vec<Stage>),
    /// None failed, but these were not run or not decided.
    Undecided(Vec<Stage>),
}

impl Gate {
    pub const ALL: [Gate; 1] = [Gate::Merge];

    pub fn name(self) -> &'static str {
        match self {
            Gate::Merge => "merge",
        }
    }

    pub fn by_name(name: &str) -> Option<Gate> {
        Gate::ALL.into_iter().find(|gate| gate.name() == name)
    }

    /// The stages that must have passed.
    pub fn requires(self) -> &'static [Stage] {
        match self {
            Gate::Merge => {
                &[Stage::Assemble, Stage::Parity, Stage::Sanitize, Stage::Stress, Stage::Resources, Stage::Code]
            }
        }
    }

    pub fn judge(self, outcomes: &[Outcome]) -> GateResult {
        let state = |stage: &Stage| outcomes.iter().find(|one| one.stage() == *stage).map(Outcome::state);
        let required = || self.requires().iter().copied();
        let failed: Vec<Stage> = required().filter(|stage| matches!(state(stage), Some(State::Fail { .. }))).collect();
        let lacking: Vec<Stage> = required().filter(|stage| state(stage) != Some(&State::Pass)).collect();
        match (failed.is_empty(), lacking.is_empty()) {
            (false, _) => GateResult::Failed(failed),
            (true, false) => GateResult::Undecided(lacking),
            (true, true) => GateResult::Held,
        }
    }
}

impl fmt::Display for GateResult {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let list = |stages: &[Stage]| stages.iter().map(|stage| stage.name()).collect::<Vec<_>>().join(", ");
        match self {
            GateResult::Held => f.write_str("held"),
            GateResult::Failed(stages) => write!(f, "failed: {}", list(stages)),
            GateResult::Undecided(stages) => write!(f, "undecided: lacks {}", list(stages)),
        }
    }
}
