//! What each kernel takes on each target, and where that differs.

use serde::Serialize;

use crate::report::Facts;
use crate::stages::Record;
use crate::stages::resources::Used;

#[derive(Serialize)]
pub(super) struct View {
    nothing: String,
    rows: Vec<Row>,
}

/// One entry of some kernels, which take the same, on one target.
#[derive(Serialize)]
struct Row {
    kernels: Vec<String>,
    /// The rows of these kernels, of which this is the first; else none.
    span: usize,
    target: String,
    registers: u32,
    spilled: u32,
    stack: u32,
    shared: u32,
    threads: u32,
    blocks: String,
    occupancy: String,
    /// Against the first kernel on the same target, and against the same kernel on its first target.
    kernel_difference: String,
    target_difference: String,
}

/// Kernels that take the same on every target.
struct Group<'a> {
    kernels: Vec<String>,
    used: &'a [Used],
}

pub(super) fn view(facts: &Facts) -> View {
    let log = match &facts.evidence.resources {
        Record::NotRun { why } => return View { nothing: format!("resources was not run: {why}."), rows: vec![] },
        Record::Ran(log) => log,
    };
    let mut groups: Vec<Group> = Vec::new();
    for entry in &log.kernels {
        match groups.iter_mut().find(|group| group.used == entry.used) {
            Some(group) => group.kernels.push(entry.subject.kernel.clone()),
            None => groups.push(Group { kernels: vec![entry.subject.kernel.clone()], used: &entry.used }),
        }
    }
    let first = groups.first().map_or(&[][..], |group| group.used);
    View { nothing: String::new(), rows: groups.iter().flat_map(|group| rows(group, first)).collect() }
}

fn rows(group: &Group, first: &[Used]) -> Vec<Row> {
    let row = |(place, used): (usize, &Used)| {
        let optional = |value: Option<u32>, unit: &str| value.map_or("?".into(), |value| format!("{value}{unit}"));
        let same_entry = |other: &&Used| other.entry == used.entry;
        let of_first = first.iter().find(|other| other.target == used.target);
        let of_target = group.used.iter().find(same_entry);
        Row {
            kernels: group.kernels.clone(),
            span: if place == 0 { group.used.len() } else { 0 },
            target: used.target.clone(),
            registers: used.registers,
            spilled: used.spill_store_bytes + used.spill_load_bytes,
            stack: used.stack_bytes,
            shared: used.shared_bytes,
            threads: used.threads,
            blocks: optional(used.blocks_per_processor, ""),
            occupancy: optional(used.occupancy_percent, " %"),
            kernel_difference: of_first.map_or(String::new(), |other| difference(other, used)),
            target_difference: of_target.map_or(String::new(), |other| difference(other, used)),
        }
    };
    group.used.iter().enumerate().map(row).collect()
}

/// `+46 registers, −8 % occupancy`; empty where nothing differs.
fn difference(from: &Used, to: &Used) -> String {
    let spilled = |used: &Used| used.spill_store_bytes + used.spill_load_bytes;
    let figures = [
        (from.registers, to.registers, "registers"),
        (spilled(from), spilled(to), "spilled"),
        (from.stack_bytes, to.stack_bytes, "stack"),
        (from.shared_bytes, to.shared_bytes, "shared"),
        (from.threads, to.threads, "threads"),
        (from.occupancy_percent.unwrap_or(0), to.occupancy_percent.unwrap_or(0), "% occupancy"),
    ];
    let signed = |(from, to, what): (u32, u32, &str)| match i64::from(to) - i64::from(from) {
        0 => None,
        more @ 1.. => Some(format!("+{more} {what}")),
        less => Some(format!("−{} {what}", -less)),
    };
    figures.into_iter().filter_map(signed).collect::<Vec<_>>().join(", ")
}
