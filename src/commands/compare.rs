//! `compare`: two packs, and whether anything got worse from the first to the second.

use super::Exit;
use super::output::{Format, print_json};
use lab::compare::{Change, Circumstance, Comparison, Duel, KernelPair, Speed, StagePair, Verdict, compare};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Compares two packs: kernels, stages, findings, resources, machine code, speeds, settings and machines
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash compare packs/old packs/new\n  veriflash compare old new --format json\n\nBoth packs are checked first as by `veriflash verify --no-rerun`. Exit codes: 0 nothing got worse; 1 something did: a stage\nthat passed does not any more, a new finding, more registers, spills or stack, fewer blocks a processor, a\nratio of speeds whose interval lies below the old one; 4 not decided: a pack is broken, or lacks a kernel or a figure of the\nother, or intervals of speeds overlap, or were measured on another GPU or against other versions."
)]
pub struct Arguments {
    /// The folder of the first pack, the old one
    first: PathBuf,

    /// The folder of the second pack, the new one
    second: PathBuf,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let comparison = compare(&arguments.first, &arguments.second)?;
    let exit = match comparison.verdict() {
        Verdict::Same | Verdict::Changed | Verdict::Better => Exit::Clean,
        Verdict::Worse => Exit::Findings,
        Verdict::Undecided => Exit::Undecided,
    };
    match arguments.format {
        Format::Json => print_json("compare", exit.verdict(), exit, document(&comparison)),
        Format::Text => print!("{}", text(&comparison)),
    }
    Ok(exit)
}

fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    comparison.kernels.iter().for_each(|pair| text.push_str(&kernel(pair)));
    let _ = writeln!(text, "\n{:<10} {:<10} {:<10} verdict", "stage", "first", "second");
    comparison.stages.iter().for_each(|pair| text.push_str(&stage(pair)));
    for pair in &comparison.kernels {
        let own = comparison.changes.iter().filter(|change| change.kernel == pair.name());
        let (worse, others): (Vec<&Change>, Vec<&Change>) = own.partition(|change| change.verdict == Verdict::Worse);
        if !worse.is_empty() || !others.is_empty() {
            let _ = writeln!(text, "\n{}", pair.name());
        }
        worse.into_iter().chain(others).for_each(|change| text.push_str(&figure(change)));
    }
    text.push_str(&speeds(&comparison.speeds));
    if !comparison.circumstances.is_empty() {
        text.push('\n');
    }
    for Circumstance { what, left, right } in &comparison.circumstances {
        let _ = writeln!(text, "differs: {what}: {left}, now {right}");
    }
    text + "\n" + &comparison.sentence() + "\n"
}

fn kernel(pair: &KernelPair) -> String {
    let now = pair.right.as_ref().map(|subject| subject.kernel.as_str()).filter(|name| *name != pair.name());
    let now = now.map_or(String::new(), |name| format!(", now {name}"));
    format!("kernel {}{now}: {}\n", pair.name(), pair.sentence())
}

fn figure(change: &Change) -> String {
    let value = |value: Option<u64>| value.map_or("none".into(), |value| value.to_string());
    let (left, right) = (value(change.left), value(change.right));
    format!("  {:<9} {}: {left}, now {right}\n", change.verdict.word(), change.figure)
}

/// A line for each problem and peer, the worst first.
fn speeds(all: &[Speed]) -> String {
    let rank = |verdict: Verdict| match verdict {
        Verdict::Worse => 0,
        Verdict::Undecided => 1,
        Verdict::Better | Verdict::Changed => 2,
        Verdict::Same => 3,
    };
    let mut sorted: Vec<&Speed> = all.iter().collect();
    sorted.sort_by_key(|speed| rank(speed.verdict));
    let head = if all.is_empty() { "" } else { "\nspeed over a peer's: ratio, 95 % interval, verdict, time\n" };
    let line = |speed: &&Speed| {
        let Speed { problem, peer, left, right, verdict, why } = speed;
        let (left, right) = (duel(left.as_ref()), duel(right.as_ref()));
        format!("  {:<9} {problem}, {peer}: {left}, now {right}: {why}\n", verdict.word())
    };
    head.to_string() + &sorted.iter().map(line).collect::<String>()
}

fn duel(duel: Option<&Duel>) -> String {
    let shown = |duel: &Duel| format!("{} {} {:.2} µs", duel.ratio, duel.verdict, duel.seconds * 1e6);
    duel.map_or("none".into(), shown)
}

/// A line, and what each pack says where it is not the same.
fn stage(pair: &StagePair) -> String {
    let (left, right) = (&pair.left, &pair.right);
    let (name, verdict) = (pair.stage(), pair.verdict());
    let mut text = format!("{name:<10} {:<10} {:<10} {}\n", left.state().word(), right.state().word(), verdict.word());
    if verdict != Verdict::Same {
        let _ = writeln!(text, "  first:  {}\n  second: {}", left.sentence(), right.sentence());
    }
    text
}

fn document(comparison: &Comparison) -> Value {
    let word = |verdict: Verdict| verdict.word().to_lowercase();
    let kernel = |pair: &KernelPair| {
        let module = |side: &Option<_>| side.as_ref().map(|subject: &lab::Subject| subject.module.clone());
        let (first, second) = (module(&pair.left), module(&pair.right));
        json!({ "kernel": pair.name(), "result": pair.sentence(), "first": first, "second": second })
    };
    let stage = |pair: &StagePair| {
        let side = |outcome: &lab::Outcome| {
            let state = outcome.state();
            json!({ "state": state.word().to_lowercase(), "why": state.why(), "figures": outcome.figures() })
        };
        let (first, second) = (side(&pair.left), side(&pair.right));
        json!({ "stage": pair.stage().name(), "verdict": word(pair.verdict()), "first": first, "second": second })
    };
    let change = |one: &Change| {
        let Change { stage, kernel, figure, left, right, verdict } = one;
        let (stage, verdict) = (stage.name(), word(*verdict));
        json!({ "stage": stage, "kernel": kernel, "figure": figure, "first": left, "second": right, "verdict": verdict })
    };
    let duel = |duel: &Duel| {
        let Duel { ratio, verdict, seconds, .. } = duel;
        let [ratio, low, high] = [ratio.ratio, ratio.low, ratio.high].map(|ratio| ratio.value());
        json!({ "ratio": ratio, "low": low, "high": high, "verdict": verdict.to_string(), "seconds": seconds })
    };
    let speed = |one: &Speed| {
        let Speed { problem, peer, left, right, verdict, why } = one;
        let (first, second, verdict) = (left.as_ref().map(duel), right.as_ref().map(duel), word(*verdict));
        json!({ "problem": problem, "peer": peer, "first": first, "second": second, "verdict": verdict, "why": why })
    };
    let differs = |one: &Circumstance| json!({ "what": one.what, "first": one.left, "second": one.right });
    json!({
        "result": word(comparison.verdict()),
        "kernels": comparison.kernels.iter().map(kernel).collect::<Vec<_>>(),
        "stages": comparison.stages.iter().map(stage).collect::<Vec<_>>(),
        "changes": comparison.changes.iter().map(change).collect::<Vec<_>>(),
        "speeds": comparison.speeds.iter().map(speed).collect::<Vec<_>>(),
        "differs": comparison.circumstances.iter().map(differs).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::measure::{Interval, Verdict as Measured};

    fn speed(peer: &str, verdict: Verdict) -> Speed {
        let ratio = Interval::of_pairs(&[(1.0, 1.24), (1.0, 1.26), (1.0, 1.25)]).expect("times");
        let (identity, doubt) = (String::new(), None);
        let duel = Duel { ratio, verdict: Measured::Faster, seconds: 7.68e-6, identity, doubt };
        let (problem, why) = ("B2 H8 S512 D64 full".into(), "-5.1 % to -3.2 %".into());
        Speed { problem, peer: peer.into(), left: Some(duel), right: None, verdict, why }
    }

    #[test]
    fn speeds_that_got_worse_come_first() {
        let all = [speed("fa2", Verdict::Same), speed("triton", Verdict::Worse)];
        let text = speeds(&all);
        let mut lines = text.lines().skip(1);
        assert_eq!(lines.next(), Some("speed over a peer's: ratio, 95 % interval, verdict, time"));
        let first =
            "  WORSE     B2 H8 S512 D64 full, triton: 1.250 [1.225, 1.275] FASTER 7.68 µs, now none: -5.1 % to -3.2 %";
        assert_eq!(lines.next(), Some(first));
        assert_eq!(speeds(&[]), "");
        let comparison =
            Comparison { kernels: vec![], stages: vec![], changes: vec![], speeds: all.into(), circumstances: vec![] };
        let one = &document(&comparison)["speeds"][1];
        assert_eq!((one["verdict"].as_str(), one["first"]["verdict"].as_str()), (Some("worse"), Some("FASTER")));
        assert!(one["second"].is_null() && one["first"]["seconds"] == 7.68e-6, "{one}");
    }
}
