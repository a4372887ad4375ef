//! What Nsight Compute counted, against what the gate `publication` asks for.

use serde::Serialize;

use crate::figures::Figure;
use crate::gate::LEAST_BUSY;
use crate::report::Facts;
use crate::stages::Record;
use crate::stages::profile::{Entry, Profiled, Stall};

#[derive(Serialize)]
pub(super) struct View {
    nothing: String,
    ncu: String,
    least: String,
    launches: Vec<Launch>,
}

/// One launch, as bars.
#[derive(Serialize)]
struct Launch {
    problem: String,
    about: String,
    shares: Vec<Bar>,
    stalls: Vec<Bar>,
}

#[derive(Serialize)]
struct Bar {
    name: String,
    value: String,
    /// In percent of the room.
    width: String,
    /// Where the threshold is, in percent of the room.
    mark: Option<f64>,
    /// Whether it is met, in a word and as a class.
    word: &'static str,
    class: &'static str,
}

pub(super) fn view(facts: &Facts) -> View {
    let (mut nothing, mut ncu, mut launches) = (String::new(), String::new(), vec![]);
    match &facts.evidence.profile {
        Record::NotRun { why } => nothing = format!("profile was not run: {why}"),
        Record::Ran(log) => {
            ncu = log.ncu.clone();
            let all = log.kernels.iter().flat_map(|entry| entry.launches.iter().map(move |launch| (entry, launch)));
            launches.extend(all.map(|(entry, one)| launch(entry, one)));
            if launches.is_empty() {
                nothing = "ncu saw no launch".into();
            }
        }
    }
    View { nothing, ncu, least: LEAST_BUSY.to_string(), launches }
}

fn launch(entry: &Entry, one: &Profiled) -> Launch {
    let size = if entry.largest { "; the most work of all that were measured" } else { "" };
    let about =
        format!("{}, grid {}, block {}, {:.2} µs{size}", one.entry, one.grid, one.block, one.microseconds.value());
    let asked = |least: f64| entry.largest.then_some(least);
    // Who are asked for more than nothing are told so.
    let shares = [
        ("SM active", one.active, None),
        ("SM busy", one.busy, asked(LEAST_BUSY)),
        ("tensor pipe", one.tensor, Some(0.0)),
        ("DRAM", one.memory, None),
        ("L2 cache", one.cache, None),
    ];
    let longest = one.stalls.iter().map(|stall| stall.cycles.value()).fold(f64::MIN_POSITIVE, f64::max);
    Launch {
        problem: entry.problem.clone(),
        about,
        shares: shares.map(|(name, share, least)| of_share(name, share, least)).into(),
        stalls: one.stalls.iter().map(|stall| of_stall(stall, longest)).collect(),
    }
}

fn of_share(name: &str, share: Figure, least: Option<f64>) -> Bar {
    let value = share.value();
    let (word, class) = match least {
        None => ("", ""),
        Some(0.0) if value > 0.0 => ("in use", "pass"),
        Some(0.0) => ("idle", "fail"),
        Some(least) if value >= least => ("enough", "pass"),
        Some(_) => ("too little", "fail"),
    };
    let mark = least.filter(|least| *least > 0.0);
    Bar { name: name.into(), value: format!("{value:.1} %"), width: width(value, 100.0), mark, word, class }
}

fn of_stall(stall: &Stall, longest: f64) -> Bar {
    let cycles = stall.cycles.value();
    let value = format!("{cycles:.2}");
    Bar { name: stall.reason.clone(), value, width: width(cycles, longest), mark: None, word: "", class: "" }
}

/// A log says what it likes; the bar stays within its room.
fn width(value: f64, most: f64) -> String {
    format!("{:.1}", (value / most * 100.0).clamp(0.0, 100.0))
}
