//! Findings of a run: equal ones are merged and counted, and they come out in the order of the text.

use crate::checks::Check;
use launch::finding::{Event, Finding};
use ptx::{Parsed, StatementId};
use std::collections::BTreeMap;

/// Who did something, and where: one side of a finding.
#[derive(Clone, Debug)]
pub struct Actor {
    pub statement: u32,
    pub cta: [u32; 3],
    pub warp: u32,
    pub lanes: u32,
    /// What happened there, in a few words.
    pub label: String,
}

/// A finding before its places are looked up.
#[derive(Clone, Debug)]
pub struct Report {
    pub check: &'static Check,
    pub message: String,
    /// What happened before, if the finding is about two events.
    pub first: Option<Actor>,
    /// Where it went wrong.
    pub second: Actor,
    pub missing: Option<String>,
    pub help: Option<String>,
    pub count: u64,
}

/// Collects the findings of the launches of one kernel.
pub struct Findings<'a> {
    parsed: &'a Parsed,
    function: usize,
    seed: u64,
    found: BTreeMap<(u32, u32, &'static str), Finding>,
}

impl<'a> Findings<'a> {
    pub fn new(parsed: &'a Parsed, seed: u64) -> Findings<'a> {
        Findings { parsed, function: 0, seed, found: BTreeMap::new() }
    }

    /// Says which entry runs from now on.
    pub fn enter(&mut self, function: usize) {
        self.function = function;
    }

    /// The first example of a pair of statements is kept; later ones are counted. Which of two unordered events ran
    /// first is luck, so the pair counts, whatever its order.
    pub fn add(&mut self, report: Report) {
        let second = report.second.statement;
        let first = report.first.as_ref().map_or(second, |actor| actor.statement);
        let key = (first.min(second), first.max(second), report.check.name);
        if let Some(known) = self.found.get_mut(&key) {
            known.count += report.count;
            return;
        }
        let second = self.event(&report.second);
        let (first, second) = match report.first {
            Some(first) => (self.event(&first), Some(second)),
            None => (second, None),
        };
        let Report { check, message, missing, help, count, .. } = report;
        let (severity, seed) = (check.severity, self.seed);
        let finding = Finding { check: check.name, severity, message, first, second, missing, help, count, seed };
        self.found.insert(key, finding);
    }

    fn event(&self, actor: &Actor) -> Event {
        let Parsed { module, source, spans, .. } = self.parsed;
        let function = &module.functions[self.function];
        let span = spans[self.function].get(actor.statement as usize).map(|spans| spans.head).unwrap_or_default();
        let position = source.position(span.start);
        let file = |number: u32| module.files.iter().find(|(known, _)| *known == number).map(|(_, name)| name.clone());
        let location = function.location(StatementId(actor.statement));
        let written = location.and_then(|(number, line, column)| Some(format!("{}:{line}:{column}", file(number)?)));
        Event {
            label: actor.label.clone(),
            file: source.name.clone(),
            line: position.line,
            column: position.column,
            source: written,
            cta: actor.cta,
            warp: actor.warp,
            lanes: actor.lanes,
        }
    }

    /// The line of a statement, for sentences that name it.
    pub fn line(&self, statement: u32) -> u32 {
        let spans = self.parsed.spans[self.function].get(statement as usize);
        self.parsed.source.position(spans.map(|spans| spans.head.start).unwrap_or_default()).line
    }

    /// The text of a statement without its end.
    pub fn text(&self, statement: u32) -> &str {
        let spans = self.parsed.spans[self.function].get(statement as usize);
        let text = spans.and_then(|spans| self.parsed.source.text.get(spans.whole.range())).unwrap_or_default();
        text.trim_end_matches(';')
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.found.into_values().collect()
    }
}
