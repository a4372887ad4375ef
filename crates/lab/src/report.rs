//! What people read: the table on a terminal, `REPORT.md`, and the page `report.html`.

mod chart;
mod page;
mod printed;

use std::fmt::Write;

use crate::case::Case;
use crate::cost::Cost;
use crate::gate::{Gate, SecondRun};
use crate::outcome::{Outcome, State, Tally};
use crate::stages::parity::{Compared, Controlled, Noticed};
use crate::stages::profile::Profiled;
use crate::stages::{Evidence, Record};

pub(crate) use page::html;
pub use printed::{Format, report};

/// Stage, result and one sentence, a line each; `(kept)` where the stage was not run again.
pub fn table(outcomes: &[Outcome], cost: &Cost) -> String {
    let mut text = format!("{:<10} {:<9} what it shows\n", "stage", "result");
    for outcome in outcomes {
        let kept = if cost.is_kept(outcome.stage()) { " (kept)" } else { "" };
        let _ = writeln!(text, "{:<10} {:<9} {}{kept}", outcome.stage(), outcome.state().word(), outcome.sentence());
    }
    text
}

/// Everything in `REPORT.md` and `report.html`; of this only the cost differs between two runs, and the page has it not.
pub(crate) struct Facts<'a> {
    pub version: &'a str,
    pub command: &'a str,
    pub cases: &'a [Case],
    pub evidence: &'a Evidence,
    pub outcomes: &'a [Outcome],
    pub cost: &'a Cost,
}

/// The report as Markdown; `verify` renders it again and compares.
pub(crate) fn markdown(facts: &Facts) -> String {
    let mut text = String::from("# Evidence\n\n");
    let (command, tally) = (cell(facts.command).replace('`', "'"), Tally::of(facts.outcomes));
    let _ = writeln!(text, "Made by veriflash {} with `{command}`: **{tally}**.\n", facts.version);
    for gate in Gate::built_in() {
        let _ = writeln!(text, "Gate `{}`: {}.\n", gate.name(), gate.judge(facts.outcomes, &SecondRun::NotGiven));
    }
    stages(&mut text, facts.outcomes);
    kernels(&mut text, facts.cases);
    parity(&mut text, facts.evidence);
    resources(&mut text, facts.evidence);
    speed(&mut text, facts.evidence);
    profile(&mut text, facts.evidence);
    not_run(&mut text, facts.outcomes);
    cost(&mut text, facts.cost);
    text.push_str(
        "## How to check this\n\n`veriflash verify FOLDER` recomputes every hash, derives every verdict again from \
         `logs/`, and runs the emulator stages again. Machine and time are in `manifest.json`. A consistent \
         forgery of what was measured on other hardware is found only through a signature; there is none.\n",
    );
    text
}

fn stages(text: &mut String, outcomes: &[Outcome]) {
    text.push_str("| stage | result | what it shows | a pass means |\n|---|---|---|---|\n");
    for outcome in outcomes {
        let (stage, state) = (outcome.stage(), outcome.state().word());
        let _ = writeln!(text, "| {stage} | {state} | {} | {} |", cell(outcome.sentence()), stage.proves());
    }
    text.push('\n');
}

fn kernels(text: &mut String, cases: &[Case]) {
    text.push_str("## Kernels\n\n| kernel | problem | module | recipe |\n|---|---|---|---|\n");
    for case in cases {
        let subject = case.subject();
        let _ = writeln!(
            text,
            "| [{0}](kernels/{0}/kernel.ptx) | {1} | `{2:.16}` | `{3:.16}` |",
            subject.kernel, case.problem, subject.module, subject.recipe
        );
    }
    text.push('\n');
}

fn parity(text: &mut String, evidence: &Evidence) {
    let Record::Ran(report) = &evidence.parity else { return };
    text.push_str(
        "## Parity\n\n| kernel | output: error, allowed | log-sum-exp: error, allowed | wrong results |\n\
         |---|---|---|---|\n",
    );
    for entry in &report.kernels {
        let bound = |compared: &Compared| format!("{}, {}", compared.element_error, compared.element_allowed);
        let lse = entry.log_sum_exp.as_ref().map_or("none".into(), bound);
        let controls: Vec<String> = entry.controls.iter().map(describe).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {lse} | {} |",
            entry.subject.kernel,
            bound(&entry.output),
            cell(&controls.join("; "))
        );
    }
    text.push('\n');
}

fn resources(text: &mut String, evidence: &Evidence) {
    let Record::Ran(report) = &evidence.resources else { return };
    text.push_str(
        "## Resources\n\n| kernel | target | registers | spilled | stack | shared memory | blocks | occupancy |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (entry, used) in report.kernels.iter().flat_map(|entry| entry.used.iter().map(move |used| (entry, used))) {
        let optional =
            |value: Option<u32>, unit: &str| value.map_or("unknown".into(), |value| format!("{value}{unit}"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            entry.subject.kernel,
            used.target,
            used.registers,
            used.spill_store_bytes + used.spill_load_bytes,
            used.stack_bytes,
            used.shared_bytes,
            optional(used.blocks_per_processor, ""),
            optional(used.occupancy_percent, " %"),
        );
    }
    text.push('\n');
}

/// Each problem with its time, and the candidate's speed over each peer's.
fn speed(text: &mut String, evidence: &Evidence) {
    let Record::Ran(report) = &evidence.bench else { return };
    let peers: Vec<&str> = report.peers.iter().map(|peer| peer.split(':').next().unwrap_or_default()).collect();
    let _ = writeln!(text, "## Speed\n\nOn {}; {}.\n", cell(&report.gpu), cell(&report.peers.join("; ")));
    text.push_str(
        "The candidate's speed over the peer's, with its 95 % interval: above 1, the candidate is faster.\n\n",
    );
    let _ = writeln!(text, "| problem | µs | TFLOP/s | {} |", peers.join(" | "));
    let _ = writeln!(text, "|---|---|---|{}", "---|".repeat(peers.len()));
    for point in &report.points {
        let against = |peer: &&str| {
            let duel = point.duels().find(|(other, _)| other.name == **peer);
            duel.map_or("not measured".into(), |(_, versus)| format!("{} {}", versus.time, versus.verdict))
        };
        let duels: Vec<String> = peers.iter().map(against).collect();
        let microseconds = point.percentile(0, 0.5).unwrap_or(f64::NAN) * 1e6;
        let teraflops = point.teraflops(0).unwrap_or(f64::NAN);
        let _ = writeln!(text, "| {} | {microseconds:.2} | {teraflops:.1} | {} |", point.problem, duels.join(" | "));
    }
    text.push('\n');
}

fn profile(text: &mut String, evidence: &Evidence) {
    let Record::Ran(report) = &evidence.profile else { return };
    text.push_str("## Profile\n\n| problem | µs | busy | tensor cores | memory | L2 | waits for |\n|---|---|---|---|---|---|---|\n");
    for entry in &report.kernels {
        for launch in &entry.launches {
            let stalls: Vec<String> =
                launch.stalls.iter().map(|stall| format!("{} {}", stall.reason, stall.cycles)).collect();
            let Profiled { microseconds, busy, tensor, memory, cache, .. } = launch;
            let shares = [busy, tensor, memory, cache].map(|share| format!("{share} %")).join(" | ");
            let _ = writeln!(text, "| {} | {microseconds} | {shares} | {} |", entry.problem, stalls.join(", "));
        }
    }
    text.push('\n');
}

fn not_run(text: &mut String, outcomes: &[Outcome]) {
    let lacking: Vec<&Outcome> = outcomes.iter().filter(|one| matches!(one.state(), State::NotRun { .. })).collect();
    if lacking.is_empty() {
        return;
    }
    text.push_str("## Not run\n\n");
    for outcome in lacking {
        let _ = writeln!(text, "- {}: {}", outcome.stage(), outcome.sentence());
    }
    text.push('\n');
}

fn cost(text: &mut String, cost: &Cost) {
    let _ = writeln!(text, "## Cost\n\n{cost}.\n\n| stage | seconds |\n|---|---|");
    for one in &cost.stages {
        let kept = if one.kept { ", in an earlier run" } else { "" };
        let _ = writeln!(text, "| {} | {:.1}{kept} |", one.stage, one.seconds());
    }
    text.push('\n');
}

/// Text that stays within one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// `heads swapped: 41.00 times`.
fn describe(control: &Controlled) -> String {
    match &control.result {
        Noticed::Ratio(ratio) if ratio.value().is_infinite() => format!("{}: infinitely wrong", control.control),
        Noticed::Ratio(ratio) => format!("{}: {ratio} times", control.control),
        Noticed::DoesNotApply(why) => format!("{}: does not apply, {why}", control.control),
    }
}
