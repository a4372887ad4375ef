//! How a stage ended. An outcome is made from the log of a run and from nothing else.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bench::Duel;
use crate::figures::{Figure, Subject};
use crate::guard::{Guard, Objection, Objections};
use crate::stages::half::{GpuLog, Half};
use crate::stages::{Log, Record, Stage, bench};

/// Exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum State {
    Pass,
    Fail {
        why: String,
    },
    /// A tool or a GPU is missing, or nothing shows that the kernel ran.
    NotRun {
        why: String,
    },
    /// Measured, not decided.
    Ambiguous {
        why: String,
    },
    /// Belongs to another kernel or recipe.
    Stale {
        why: String,
    },
}

impl State {
    pub(crate) fn fail(why: impl Into<String>) -> State {
        State::Fail { why: why.into() }
    }

    pub(crate) fn not_run(why: impl Into<String>) -> State {
        State::NotRun { why: why.into() }
    }

    /// The word in tables.
    pub fn word(&self) -> &'static str {
        match self {
            State::Pass => "pass",
            State::Fail { .. } => "FAIL",
            State::NotRun { .. } => "not run",
            State::Ambiguous { .. } => "ambiguous",
            State::Stale { .. } => "stale",
        }
    }

    /// Why it is not a pass.
    pub fn why(&self) -> Option<&str> {
        match self {
            State::Pass => None,
            State::Fail { why } | State::NotRun { why } | State::Ambiguous { why } | State::Stale { why } => Some(why),
        }
    }
}

/// What a stage showed: its state, and its figures in one sentence.
///
/// The fields are private: nobody outside this crate can write down a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    stage: Stage,
    state: State,
    figures: String,
    measures: Vec<(&'static str, Figure)>,
    duels: Vec<Duel>,
}

impl Outcome {
    /// The only door: a record, and the kernels that it must speak of.
    pub(crate) fn of<L: Log>(record: &Record<L>, subjects: &[Subject]) -> Outcome {
        match record {
            Record::NotRun { why } => Outcome::without_measures(L::STAGE, State::not_run(why.as_str()), String::new()),
            Record::Ran(log) => {
                let (state, measures) = (objections(log, subjects).judge(), log.measures());
                Outcome { stage: L::STAGE, state, figures: log.figures(), measures, duels: duels(log) }
            }
        }
    }

    /// The same of a stage that has a half of its own on a GPU.
    pub(crate) fn of_both<L: Log, G: GpuLog>(
        record: &Record<L>,
        subjects: &[Subject],
        gpu: &Half<G>,
        on_gpu: &[Subject],
    ) -> Outcome {
        match record {
            Record::NotRun { .. } => Outcome::of(record, subjects),
            Record::Ran(log) => {
                let objections = objections(log, subjects).and(gpu.objections(on_gpu));
                let figures = format!("{}{}", log.figures(), gpu.figures());
                let (state, measures) = (objections.judge(), log.measures());
                Outcome { stage: L::STAGE, state, figures, measures, duels: duels(log) }
            }
        }
    }

    /// What a GPU alone shows.
    pub(crate) fn of_half<G: GpuLog>(gpu: &Half<G>, subjects: &[Subject]) -> Outcome {
        let state = Objections::of_parts(gpu.objections(subjects)).judge();
        Outcome::without_measures(G::STAGE, state, gpu.figures())
    }

    /// A back door for those who try what judges outcomes: tests, and the red team.
    pub(crate) fn ended(stage: Stage, state: State) -> Outcome {
        Outcome::without_measures(stage, state, String::new())
    }

    fn without_measures(stage: Stage, state: State, figures: String) -> Outcome {
        Outcome { stage, state, figures, measures: vec![], duels: vec![] }
    }

    /// The same with figures that a gate may ask something of.
    #[cfg(test)]
    pub(crate) fn with_measures(self, measures: Vec<(&'static str, Figure)>) -> Outcome {
        Outcome { measures, ..self }
    }

    /// The same with comparisons.
    #[cfg(test)]
    pub(crate) fn with_duels(self, duels: Vec<Duel>) -> Outcome {
        Outcome { duels, ..self }
    }

    /// A figure by its name, where the stage has it.
    pub fn measure(&self, name: &str) -> Option<f64> {
        self.measures.iter().find(|(other, _)| *other == name).map(|(_, figure)| figure.value())
    }

    /// Who won, of every kernel and peer that the stage timed.
    pub fn duels(&self) -> &[Duel] {
        &self.duels
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// The figures in one sentence; empty if it was not run.
    pub fn figures(&self) -> &str {
        &self.figures
    }

    /// What a table says of it: why it is not a pass, or else its figures.
    pub fn sentence(&self) -> &str {
        self.state.why().unwrap_or(&self.figures)
    }
}

/// Those of a log of `bench`; no other has any.
fn duels<L: Log>(log: &L) -> Vec<Duel> {
    if L::STAGE != Stage::Bench {
        return vec![];
    }
    // A log is known by its stage alone: as a file it is read again as what it is.
    let report = serde_json::to_value(log).and_then(serde_json::from_value::<bench::Report>);
    report.map(|report| report.duels()).unwrap_or_default()
}

/// What speaks against a log that should be about these kernels; one that is about others is not read further.
pub(crate) fn objections<L: Log>(log: &L, subjects: &[Subject]) -> Objections {
    let spoken_of = log.subjects();
    let stale = |why: String| Objections::of([Objection { guard: Guard::Stale, state: State::Stale { why } }]);
    match subjects.iter().find(|subject| !spoken_of.contains(subject)) {
        _ if subjects.is_empty() => Objections::of([Objection::not_run(Guard::Witness, "there is no kernel")]),
        Some(missing) => stale(format!("the log does not speak of kernel {}", missing.describe())),
        None if spoken_of.len() != subjects.len() => stale("the log speaks of other kernels too".into()),
        None => log.objections(),
    }
}

/// How many stages ended in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub not_run: usize,
    /// Ambiguous or stale.
    pub undecided: usize,
}

impl Tally {
    pub fn of(outcomes: &[Outcome]) -> Tally {
        let mut tally = Tally::default();
        for outcome in outcomes {
            *match outcome.state {
                State::Pass => &mut tally.passed,
                State::Fail { .. } => &mut tally.failed,
                State::NotRun { .. } => &mut tally.not_run,
                State::Ambiguous { .. } | State::Stale { .. } => &mut tally.undecided,
            } += 1;
        }
        tally
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} not run", self.passed, self.failed, self.not_run)?;
        if self.undecided > 0 {
            write!(f, ", {} undecided", self.undecided)?;
        }
        Ok(())
    }
}
