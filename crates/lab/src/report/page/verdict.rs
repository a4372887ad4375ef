//! What holds, what does not, and what was not run: the first screen.

use serde::Serialize;

use crate::gate::{Gate, GateResult, SecondRun};
use crate::outcome::{Outcome, State, Tally};

#[derive(Serialize)]
pub(super) struct View {
    /// `held`, `failed` or `undecided`: what the gate `merge` says.
    class: &'static str,
    headline: &'static str,
    plain: &'static str,
    lead: String,
    stages: Vec<Stage>,
    groups: Vec<Group>,
    publication: String,
}

#[derive(Serialize)]
pub(super) struct Stage {
    name: &'static str,
    word: &'static str,
    class: &'static str,
    symbol: &'static str,
    proves: &'static str,
    sentence: String,
}

/// Stages that ended alike, the worst first.
#[derive(Serialize)]
struct Group {
    title: &'static str,
    class: &'static str,
    stages: Vec<Stage>,
}

pub(super) fn view(outcomes: &[Outcome]) -> View {
    let judged = |gate: Gate| gate.judge(outcomes, &SecondRun::NotGiven);
    let (class, headline, plain) = match judged(Gate::merge()) {
        GateResult::Held => ("held", "Gate merge holds", "Every stage that a merge asks for has passed."),
        GateResult::Failed(_) => ("failed", "Gate merge failed", "A stage that a merge asks for has failed."),
        GateResult::Undecided(_) => (
            "undecided",
            "Gate merge is undecided",
            "Nothing failed, but a stage that a merge asks for was not run or not decided.",
        ),
    };
    View {
        class,
        headline,
        plain,
        lead: lead(outcomes),
        stages: outcomes.iter().map(stage).collect(),
        groups: groups(outcomes),
        publication: format!(
            "gate `publication`, which also asks for measured speed and a second run: {}",
            judged(Gate::publication())
        ),
    }
}

/// `6 of 8 stages passed, none failed. Not run: bench, profile.`
fn lead(outcomes: &[Outcome]) -> String {
    let tally = Tally::of(outcomes);
    let failed = if tally.failed == 0 { "none".into() } else { tally.failed.to_string() };
    let names = |class: &str| -> String {
        let of = outcomes.iter().filter(|outcome| look(outcome.state()).0 == class);
        of.map(|outcome| outcome.stage().name()).collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("{} of {} stages passed, {failed} failed.", tally.passed, outcomes.len());
    for (title, class) in [("Failed", "fail"), ("Not decided", "open"), ("Not run", "not-run")] {
        let names = names(class);
        if !names.is_empty() {
            text += &format!(" {title}: {names}.");
        }
    }
    text
}

fn groups(outcomes: &[Outcome]) -> Vec<Group> {
    let kinds = [
        ("What fails", "fail"),
        ("What is not decided", "open"),
        ("What holds", "pass"),
        ("What was not run", "not-run"),
    ];
    let group = |(title, class)| Group {
        title,
        class,
        stages: outcomes.iter().filter(|outcome| look(outcome.state()).0 == class).map(stage).collect(),
    };
    kinds.map(group).into_iter().filter(|group| !group.stages.is_empty()).collect()
}

pub(super) fn stage(outcome: &Outcome) -> Stage {
    let (class, symbol) = look(outcome.state());
    Stage {
        name: outcome.stage().name(),
        word: outcome.state().word(),
        class,
        symbol,
        proves: outcome.stage().proves(),
        sentence: outcome.sentence().into(),
    }
}

/// A class for the colour, and a sign for those who see none.
fn look(state: &State) -> (&'static str, &'static str) {
    match state {
        State::Pass => ("pass", "✓"),
        State::Fail { .. } => ("fail", "✕"),
        State::NotRun { .. } => ("not-run", "–"),
        State::Ambiguous { .. } | State::Stale { .. } => ("open", "?"),
    }
}
