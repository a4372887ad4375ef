//! Figures of both packs, kernel by kernel: findings, resources, machine code. One function for each such stage.

use std::collections::{BTreeMap, BTreeSet};

use super::{KernelPair, Verdict};
use crate::sass::Census;
use crate::stages::resources::Used;
use crate::stages::{Evidence, Record, Stage};

/// A figure that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub stage: Stage,
    pub kernel: String,
    /// `registers of attention_forward on sm_80`.
    pub figure: String,
    /// None where the pack has no such figure.
    pub left: Option<u64>,
    pub right: Option<u64>,
    pub verdict: Verdict,
}

/// What more of something means.
#[derive(Clone, Copy)]
enum More {
    Worse,
    Better,
    /// Neither.
    Other,
}

/// Every figure of a kernel, and what more of it means.
type Figures = BTreeMap<String, (u64, More)>;

/// The figures of a kernel by its name; none if the stage did not run.
type Read = fn(&Evidence, &str) -> Option<Figures>;

pub fn changes(kernels: &[KernelPair], left: &Evidence, right: &Evidence) -> Vec<Change> {
    let stages: [(Stage, Read); 3] = [(Stage::Sanitize, findings), (Stage::Resources, resources), (Stage::Code, code)];
    let mut changes = Vec::new();
    for pair in kernels {
        let Some((left_name, right_name)) = pair.both() else { continue };
        for (stage, figures) in stages {
            // A stage that one of them did not run is judged as a stage.
            if let (Some(left), Some(right)) = (figures(left, left_name), figures(right, right_name)) {
                changes.extend(differences(stage, pair.name(), &left, &right));
            }
        }
    }
    changes
}

fn differences(stage: Stage, kernel: &str, left: &Figures, right: &Figures) -> Vec<Change> {
    let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let mut changes = Vec::new();
    for figure in names {
        let (old, new) = (left.get(figure), right.get(figure));
        let verdict = match (old, new) {
            (Some((old, more)), Some((new, _))) => more.judge(*old, *new),
            // Nothing is found where nothing is listed.
            (None, Some((new, more))) if stage == Stage::Sanitize => more.judge(0, *new),
            (Some((old, more)), None) if stage == Stage::Sanitize => more.judge(*old, 0),
            (None, _) => Verdict::Changed,
            (_, None) => Verdict::Undecided,
        };
        if verdict != Verdict::Same {
            let value = |one: Option<&(u64, More)>| one.map(|(value, _)| *value);
            let (kernel, figure) = (kernel.into(), figure.clone());
            changes.push(Change { stage, kernel, figure, left: value(old), right: value(new), verdict });
        }
    }
    changes
}

impl More {
    fn judge(self, old: u64, new: u64) -> Verdict {
        match (self, new.cmp(&old)) {
            (_, std::cmp::Ordering::Equal) => Verdict::Same,
            (More::Other, _) => Verdict::Changed,
            (More::Worse, std::cmp::Ordering::Greater) | (More::Better, std::cmp::Ordering::Less) => Verdict::Worse,
            _ => Verdict::Better,
        }
    }
}

/// How many pairs of lines each check speaks of: lines move when a kernel changes, their number does not.
fn findings(evidence: &Evidence, kernel: &str) -> Option<Figures> {
    let Record::Ran(report) = &evidence.sanitize else { return None };
    let entry = report.kernels.iter().find(|entry| entry.subject.kernel == kernel)?;
    let mut places: BTreeMap<String, BTreeSet<(u32, Option<u32>)>> = BTreeMap::new();
    for found in entry.runs.iter().flat_map(|run| &run.findings) {
        let lines = (found.first.line, found.second.as_ref().map(|second| second.line));
        places.entry(format!("findings {}[{}]", found.severity, found.check)).or_default().insert(lines);
    }
    Some(places.into_iter().map(|(check, lines)| (check, (lines.len() as u64, More::Worse))).collect())
}

fn resources(evidence: &Evidence, kernel: &str) -> Option<Figures> {
    let Record::Ran(report) = &evidence.resources else { return None };
    let entry = report.kernels.iter().find(|entry| entry.subject.kernel == kernel)?;
    let of = |used: &Used| {
        let all = [
            ("registers", Some(used.registers), More::Worse),
            ("bytes of stack", Some(used.stack_bytes), More::Worse),
            ("bytes spilled", Some(used.spill_store_bytes), More::Worse),
            ("bytes loaded back", Some(used.spill_load_bytes), More::Worse),
            ("bytes of shared memory", Some(used.shared_bytes), More::Other),
            ("blocks a processor", used.blocks_per_processor, More::Better),
        ];
        all.into_iter()
            .filter_map(|(name, value, more)| {
                Some((format!("{name} of {} on {}", used.entry, used.target), (u64::from(value?), more)))
            })
            .collect::<Vec<_>>()
    };
    Some(entry.used.iter().flat_map(of).collect())
}

fn code(evidence: &Evidence, kernel: &str) -> Option<Figures> {
    let Record::Ran(report) = &evidence.code else { return None };
    let entry = report.kernels.iter().find(|entry| entry.subject.kernel == kernel)?;
    let mut figures = Figures::new();
    for cubin in &entry.cubins {
        let Census { instructions, loops, tensor, tensor_in_loop, async_copies, async_copies_in_loop, local, .. } =
            cubin.census;
        for (name, value, more) in [
            ("instructions", instructions, More::Other),
            ("loops", loops, More::Other),
            ("tensor-core instructions", tensor, More::Other),
            ("tensor-core instructions in the loop", tensor_in_loop, More::Other),
            ("asynchronous copies", async_copies, More::Other),
            ("asynchronous copies in the loop", async_copies_in_loop, More::Other),
            ("accesses of local memory", local, More::Worse),
        ] {
            figures.insert(format!("{name} on {}", cubin.target), (value as u64, more));
        }
    }
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stage: Stage, left: &[(&str, u64, More)], right: &[(&str, u64, More)]) -> Vec<(String, Verdict)> {
        let figures = |all: &[(&str, u64, More)]| -> Figures {
            all.iter().map(|(name, value, more)| (name.to_string(), (*value, *more))).collect()
        };
        let changes = differences(stage, "k", &figures(left), &figures(right));
        changes.into_iter().map(|change| (change.figure, change.verdict)).collect()
    }

    #[test]
    fn more_is_worse_better_or_neither() {
        let (worse, better, other) = (More::Worse, More::Better, More::Other);
        let left = [("blocks", 2, better), ("registers", 96, worse), ("shared", 1, other), ("spilled", 0, worse)];
        let right = [("blocks", 1, better), ("registers", 90, worse), ("shared", 2, other), ("spilled", 0, worse)];
        let expected = [("blocks", Verdict::Worse), ("registers", Verdict::Better), ("shared", Verdict::Changed)];
        assert_eq!(of(Stage::Resources, &left, &right), expected.map(|(name, verdict)| (name.to_string(), verdict)));
    }

    #[test]
    fn a_figure_that_is_gone_is_not_decided_but_a_finding_that_is_gone_is_better() {
        let one = [("figure", 1, More::Worse)];
        let verdict = |stage, left: &[_], right: &[_]| of(stage, left, right)[0].1;
        assert_eq!(verdict(Stage::Resources, &one, &[]), Verdict::Undecided);
        assert_eq!(verdict(Stage::Resources, &[], &one), Verdict::Changed);
        assert_eq!(verdict(Stage::Sanitize, &one, &[]), Verdict::Better);
        assert_eq!(verdict(Stage::Sanitize, &[], &one), Verdict::Worse);
    }
}
