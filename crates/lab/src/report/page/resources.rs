//! What each kernel takes on each target, and where that differs.

use serde::Serialize;

use crate::report::Facts;
use crate::stages::Record;
use crate::stages::resources::Used;

/// The columns, each with its unit.
const FIGURES: [(&str, Figure); 7] = [
    ("registers", |used| Some(used.registers)),
    ("spilled", |used| Some(used.spill_store_bytes + used.spill_load_bytes)),
    ("stack", |used| Some(used.stack_bytes)),
    ("shared", |used| Some(used.shared_bytes)),
    ("threads", |used| Some(used.threads)),
    ("blocks", |used| used.blocks_per_processor),
    ("% occupancy", |used| used.occupancy_percent),
];

type Figure = fn(&Used) -> Option<u32>;

#[derive(Serialize)]
pub(super) struct View {
    nothing: String,
    columns: [&'static str; FIGURES.len()],
    groups: Vec<Group>,
}

/// Kernels that take the same on every target.
#[derive(Serialize)]
struct Group {
    kernels: Vec<String>,
    /// Against the first kernel, on the first target.
    difference: String,
    rows: Vec<Row>,
}

/// One entry on one target.
#[derive(Serialize)]
struct Row {
    target: String,
    /// Each with what it is more or less than on the first target.
    cells: Vec<(String, String)>,
}

pub(super) fn view(facts: &Facts) -> View {
    let (mut nothing, mut groups) = (String::new(), Vec::new());
    match &facts.evidence.resources {
        Record::NotRun { why } => nothing = format!("resources was not run: {why}"),
        Record::Ran(log) => {
            let mut known: Vec<(&[Used], Vec<String>)> = Vec::new();
            for entry in &log.kernels {
                match known.iter_mut().find(|(used, _)| *used == entry.used) {
                    Some((_, kernels)) => kernels.push(entry.subject.kernel.clone()),
                    None => known.push((&entry.used, vec![entry.subject.kernel.clone()])),
                }
            }
            let first = known.first().map_or(&[][..], |(used, _)| *used);
            groups.extend(known.iter().map(|(used, kernels)| group(used, kernels, first)));
        }
    }
    View { nothing, columns: FIGURES.map(|(name, _)| name), groups }
}

fn group(used: &[Used], kernels: &[String], first: &[Used]) -> Group {
    let row = |one: &Used| {
        let base = used.iter().find(|other| other.entry == one.entry).unwrap_or(one);
        let cell = |(_, of): (&str, Figure)| {
            let value = of(one).map_or("?".into(), |value| value.to_string());
            (value, change(of(base), of(one)))
        };
        Row { target: one.target.clone(), cells: FIGURES.map(cell).into() }
    };
    let difference = match (first.first(), used.first()) {
        (Some(from), Some(to)) if from.target == to.target => difference(from, to),
        _ => String::new(),
    };
    Group { kernels: kernels.to_vec(), difference, rows: used.iter().map(row).collect() }
}

/// `+46 registers, −8 % occupancy`; empty where nothing differs.
fn difference(from: &Used, to: &Used) -> String {
    let changes = FIGURES.map(|(name, of)| (change(of(from), of(to)), name));
    let told = changes.iter().filter(|(change, _)| !change.is_empty()).map(|(change, name)| format!("{change} {name}"));
    told.collect::<Vec<_>>().join(", ")
}

/// `+9`, `−9`, or nothing.
fn change(from: Option<u32>, to: Option<u32>) -> String {
    match from.zip(to).map_or(0, |(from, to)| i64::from(to) - i64::from(from)) {
        0 => String::new(),
        more @ 1.. => format!("+{more}"),
        less => format!("−{}", -less),
    }
}
