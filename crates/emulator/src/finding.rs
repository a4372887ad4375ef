//! Findings of a run: equal ones are merged and counted, and they come out in the order of the text.

use crate::audit::Tally;
use crate::checks::Check;
use crate::cost::Costs;
use launch::backend::Options;
use launch::finding::{Event, Finding, Severity};
use launch::{Assertions, Kernel, OperandSite, Operands, Policy};
use ptx::forms::Control;
use ptx::{Op, Operand, Parsed, Statement, StatementId};
use std::collections::BTreeMap;

/// Where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A byte of the recipe's text.
    Recipe(usize),
    /// The line that begins the entry.
    Entry,
    Statement(u32),
    /// A statement of a function that another launch runs.
    Elsewhere(usize, u32),
}

/// Who did something, and where: one side of a finding.
#[derive(Clone, Debug)]
pub struct Actor {
    pub place: Place,
    pub cta: [u32; 3],
    pub warp: u32,
    pub lanes: u32,
    /// What happened there, in a few words.
    pub label: String,
}

impl Actor {
    /// A place where no thread stands.
    pub fn nobody(place: Place, label: impl Into<String>) -> Actor {
        Actor { place, cta: [0; 3], warp: 0, lanes: 0, label: label.into() }
    }
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
    pub severity: Severity,
}

impl Report {
    /// Something that happened once, in one place.
    pub fn new(check: &'static Check, message: String, second: Actor) -> Report {
        Report { check, message, first: None, second, missing: None, help: None, count: 1, severity: check.severity }
    }

    pub fn severity(self, severity: Severity) -> Report {
        Report { severity, ..self }
    }

    pub fn first(self, first: impl Into<Option<Actor>>) -> Report {
        Report { first: first.into(), ..self }
    }

    pub fn missing(self, missing: impl Into<String>) -> Report {
        Report { missing: Some(missing.into()), ..self }
    }

    pub fn help(self, help: impl Into<String>) -> Report {
        Report { help: Some(help.into()), ..self }
    }

    pub fn count(self, count: u64) -> Report {
        Report { count, ..self }
    }
}

/// Collects the findings of the launches of one kernel.
pub struct Findings<'a> {
    kernel: &'a Kernel,
    function: usize,
    /// First step and index of each function of the program.
    layout: Vec<(u32, usize)>,
    seed: u64,
    policy: Policy,
    found: BTreeMap<(usize, Place, Place, &'static str), Finding>,
    /// Of the launch that runs.
    pub costs: Costs,
    /// Arrivals at mbarriers whose phase did not end.
    pub stray_arrivals: u64,
    /// Of the cluster that has most.
    pub faults: u64,
    /// What the instructions of the launch that runs moved, if somebody counts.
    pub operands: Tally,
}

impl<'a> Findings<'a> {
    pub fn new(kernel: &'a Kernel, options: &Options) -> Findings<'a> {
        let policy = options.policy.unwrap_or(Policy::of_seed(options.seed));
        Findings {
            kernel,
            function: 0,
            layout: vec![(0, 0)],
            seed: options.seed,
            policy,
            found: BTreeMap::new(),
            costs: Costs::default(),
            stray_arrivals: 0,
            faults: 0,
            operands: Tally::default(),
        }
    }

    /// A place for the findings of a part of the launch.
    pub fn empty(&self) -> Findings<'a> {
        let layout = self.layout.clone();
        let (costs, operands) = (Costs::default(), Tally::default());
        Findings { found: BTreeMap::new(), layout, costs, stray_arrivals: 0, faults: 0, operands, ..*self }
    }

    /// Adds what was found in a part of the launch, as if it had been found here.
    pub fn absorb(&mut self, part: Findings<'a>) {
        self.costs.absorb(part.costs);
        self.stray_arrivals += part.stray_arrivals;
        self.faults = self.faults.max(part.faults);
        self.operands.absorb(part.operands);
        for (key, finding) in part.found {
            let count = finding.count;
            self.found.entry(key).and_modify(|known| known.count += count).or_insert(finding);
        }
    }

    /// What the kernel asserts of itself, where its recipe says so.
    pub fn assertions(&self) -> Option<&'a Assertions> {
        self.kernel.recipe.assertions.as_ref()
    }

    /// A launch is over: what it cost is known.
    pub fn settle_costs(&mut self) {
        std::mem::take(&mut self.costs).reports().for_each(|report| self.add(report));
    }

    /// A launch is over: what its instructions moved.
    pub fn settle_operands(&mut self) -> Operands {
        let (sites, orphans) = std::mem::take(&mut self.operands).into_parts();
        let mut operands = Operands { orphans, ..Operands::default() };
        for (step, site) in sites {
            let (function, _, statement) = self.locate(step);
            let Some(Statement::Instruction(one)) = self.body(function).get(statement as usize) else {
                if !site.is_idle() {
                    operands.orphans.add(format!("what step {step} moved, which is no instruction"));
                }
                continue;
            };
            let names_memory = |one: &Operand| matches!(one, Operand::Address(_) | Operand::TensorAddress(..));
            if site.is_idle() && !one.operands.iter().any(names_memory) {
                continue;
            }
            let (line, mnemonic, form) = (self.line(step), one.mnemonic(), format!("{:?}", one.form.op));
            operands.sites.insert((function, statement as usize), OperandSite { line, mnemonic, form, ..site });
        }
        operands
    }

    /// Says which entry runs from now on.
    pub fn enter(&mut self, function: usize) {
        self.function = function;
        self.layout = vec![(0, function)];
    }

    /// Says which functions stand behind the entry, and at which steps they begin.
    pub fn lay_out(&mut self, layout: Vec<(u32, usize)>) {
        self.layout = layout;
    }

    /// The function of a step, its first step, and the statement in it.
    fn locate(&self, step: u32) -> (usize, u32, u32) {
        let index = self.layout.partition_point(|(base, _)| *base <= step).saturating_sub(1);
        let (base, function) = self.layout[index];
        (function, base, step - base)
    }

    /// The first example of a pair of places is kept, unless a graver one comes; others are counted. Which of two unordered events ran first
    /// is luck, so the pair counts, whatever its order.
    pub fn add(&mut self, report: Report) {
        let second = report.second.place;
        let first = report.first.as_ref().filter(|_| !report.check.by_second).map_or(second, |actor| actor.place);
        let key = (self.function, first.min(second), first.max(second), report.check.name);
        let mut count = report.count;
        if let Some(known) = self.found.get_mut(&key) {
            known.count += count;
            if known.severity >= report.severity {
                return;
            }
            count = known.count;
        }
        let second = self.event(&report.second);
        let (first, second) = match report.first {
            Some(first) => (self.event(&first), Some(second)),
            None => (second, None),
        };
        let Report { check, message, missing, help, .. } = report;
        let (check, severity, seed, policy) = (check.name, report.severity, self.seed, self.policy);
        let finding = Finding { check, severity, message, first, second, missing, help, count, seed, policy };
        self.found.insert(key, finding);
    }

    fn event(&self, actor: &Actor) -> Event {
        let source = &self.kernel.parsed.source;
        let (file, position) = match actor.place {
            Place::Recipe(offset) => {
                let recipe = ptx::Source::new(self.kernel.recipe.source.name(), self.kernel.recipe.source.text());
                let position = recipe.position(offset as u32);
                (recipe.name, position)
            }
            Place::Entry => (source.name.clone(), source.position(self.entry_offset())),
            Place::Statement(statement) => (source.name.clone(), source.position(self.offset(statement))),
            Place::Elsewhere(function, statement) => {
                (source.name.clone(), source.position(self.offset_in(function, statement)))
            }
        };
        Event {
            label: actor.label.clone(),
            file,
            in_recipe: matches!(actor.place, Place::Recipe(_)),
            line: position.line,
            column: position.column,
            source: match actor.place {
                Place::Statement(statement) => self.source(statement),
                Place::Elsewhere(function, statement) => self.source_in(function, statement),
                Place::Recipe(_) | Place::Entry => None,
            },
            cta: actor.cta,
            warp: actor.warp,
            lanes: actor.lanes,
        }
    }

    /// The line that generated a statement, if `.loc` tells.
    pub fn source(&self, statement: u32) -> Option<String> {
        let (function, _, statement) = self.locate(statement);
        self.source_in(function, statement)
    }

    fn source_in(&self, function: usize, statement: u32) -> Option<String> {
        let module = &self.kernel.parsed.module;
        module.functions[function].body.get(statement as usize)?;
        let (number, line, column) = module.functions[function].location(StatementId(statement))?;
        let (_, name) = module.files.iter().find(|(known, _)| *known == number)?;
        Some(format!("{name}:{line}:{column}"))
    }

    fn body(&self, function: usize) -> &[Statement] {
        &self.kernel.parsed.module.functions[function].body
    }

    fn entry_offset(&self) -> u32 {
        self.kernel.parsed.places.entries.get(self.function).map(|places| places.name.start).unwrap_or_default()
    }

    fn offset(&self, statement: u32) -> u32 {
        let (function, _, statement) = self.locate(statement);
        self.offset_in(function, statement)
    }

    fn offset_in(&self, function: usize, statement: u32) -> u32 {
        let all = &self.kernel.parsed.spans[function];
        // Whoever runs behind the last statement has come from it.
        let spans = all.get(statement as usize).or(all.last());
        spans.map(|spans| spans.head.start).unwrap_or_default()
    }

    /// The name of a register of the entry.
    pub fn register(&self, register: ptx::RegisterId) -> String {
        self.kernel.parsed.module.functions[self.function][register].name.clone()
    }

    /// The line of a statement, for sentences that name it.
    pub fn line(&self, statement: u32) -> u32 {
        self.kernel.parsed.source.position(self.offset(statement)).line
    }

    /// The text of a statement without its end.
    pub fn text(&self, statement: u32) -> &str {
        let Parsed { source, spans, .. } = &self.kernel.parsed;
        let (function, _, statement) = self.locate(statement);
        let spans = spans[function].get(statement as usize);
        let text = spans.and_then(|spans| source.text.get(spans.whole.range())).unwrap_or_default();
        text.trim_end_matches(';')
    }

    /// Does a block barrier stand between two statements?
    pub fn barrier_between(&self, first: u32, second: u32) -> bool {
        let ((function, _, first), (other, _, second)) = (self.locate(first), self.locate(second));
        let between = self.body(function).iter().take(second as usize).skip(first as usize + 1);
        let mut between = between.filter(|_| function == other);
        between.any(|one| matches!(one, Statement::Instruction(one) if matches!(one.form.op, Op::Barrier(_))))
    }

    /// The jump back of the innermost loop that contains both statements.
    pub fn loop_around(&self, first: u32, second: u32) -> Option<u32> {
        let ((function, base, first), (other, _, second)) = (self.locate(first), self.locate(second));
        if function != other {
            return None;
        }
        let body = self.body(function);
        let head = |at: usize| match &body[at] {
            Statement::Instruction(one) if one.form.op == Op::Control(Control::Branch) => match one.operands.first() {
                Some(Operand::Label(label)) => body.iter().position(|other| *other == Statement::Label(*label)),
                _ => None,
            },
            _ => None,
        };
        (second as usize..body.len())
            .find(|at| head(*at).is_some_and(|head| head <= first as usize))
            .map(|at| base + at as u32)
    }

    /// How much was found that is worse than a cost?
    pub fn count_faults(&self) -> u64 {
        self.found.values().filter(|finding| finding.severity > Severity::Lint).count() as u64
    }

    pub fn into_vec(self) -> Vec<Finding> {
        self.found.into_values().collect()
    }
}
