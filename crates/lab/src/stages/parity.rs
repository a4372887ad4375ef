//! # parity
//!
//! The emulator runs each kernel on poisoned outputs; output and log-sum-exp are compared with float64 attention by the
//! rule of `attention::oracle`. Whether that rule is sharp is asked in the same run: results with one error injected
//! must fail, and so must the kernel itself when it is called with a scale that is 1 % too large.

pub mod gpu;

use attention::oracle::{Bound, Comparison, Control, Oracle, Outcome};
use launch::backend::Options;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, counted, sanitize};
use crate::case::Case;
use crate::figures::{Figure, Seen, Subject};
use crate::guard::{Guard, Objection, Objections};
use crate::harness::{self, Emulated, Poison, Rig};
use crate::shapes;

/// The control that goes through the kernel's own argument.
const SCALE_ARGUMENT: &str = "kernel called with a scale off by 1 %";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    pub problem: String,
    pub data_seed: u64,
    pub seen: Seen,
    pub output: Compared,
    /// Nothing if the kernel has none.
    pub log_sum_exp: Option<Compared>,
    /// Elements of the outputs that nobody has written.
    pub poisoned: usize,
    /// The same kernel on other shapes, drawn with the seed of the data.
    pub shapes: Vec<Shaped>,
    pub controls: Vec<Controlled>,
}

/// Another shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaped {
    pub problem: String,
    /// How wrong the results are, in units of what is allowed.
    pub error: Figure,
}

/// One output against float64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    pub element_error: Figure,
    pub element_allowed: Figure,
    pub worst: String,
    pub frobenius_error: Figure,
    pub frobenius_allowed: Figure,
}

/// What became of a wrong result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controlled {
    pub control: String,
    pub result: Noticed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Noticed {
    /// How wrong it was, in units of what is allowed: noticed above 1.
    Ratio(Figure),
    DoesNotApply(String),
}

impl Compared {
    fn new(comparison: &Comparison) -> Compared {
        let Comparison { element, frobenius, .. } = comparison;
        Compared {
            element_error: Figure::new(element.error),
            element_allowed: Figure::new(element.allowed),
            worst: comparison.worst.to_string(),
            frobenius_error: Figure::new(frobenius.error),
            frobenius_allowed: Figure::new(frobenius.allowed),
        }
    }

    fn bounds(&self) -> [Bound; 2] {
        let bound = |error: Figure, allowed: Figure| Bound { error: error.value(), allowed: allowed.value() };
        [bound(self.element_error, self.element_allowed), bound(self.frobenius_error, self.frobenius_allowed)]
    }

    /// Why it does not pass, and who says so.
    fn faults(&self, what: &str) -> Vec<(Guard, String)> {
        let both =
            self.bounds().into_iter().zip([self.element_error, self.frobenius_error]).zip(["element", "Frobenius"]);
        let broken = both.filter(|((bound, _), _)| !bound.holds());
        let words = |((bound, error), kind): ((Bound, Figure), &str)| {
            (error.guard(), format!("{what} is wrong: {kind} error {bound}, worst at {}", self.worst))
        };
        broken.map(words).collect()
    }

    fn ratio(&self) -> f64 {
        self.bounds().iter().map(Bound::ratio).fold(0.0, f64::max)
    }
}

/// Steps of a run, for progress.
pub(crate) fn steps(cases: &[Case]) -> usize {
    cases.len() * 2
}

/// One kernel. The error is one of ours or of the recipe: the kernel was not judged.
pub(crate) fn run(case: &Case, data_seed: u64, budget: u64, step: &dyn Fn()) -> Result<Entry, String> {
    let options = Options { seed: 0, instruction_budget: budget, ..Options::default() };
    examine(case, data_seed, &Emulated { options, poison: Poison::Signalling }, step)
}

/// The same wherever it runs.
pub(crate) fn examine(case: &Case, data_seed: u64, rig: &dyn Rig, step: &dyn Fn()) -> Result<Entry, String> {
    let before = rig.memory(case, data_seed)?;
    let inputs = case.read_inputs(&before).map_err(|error| error.to_string())?;
    let oracle = Oracle::new(&case.problem, &inputs).map_err(|error| error.to_string())?;
    let judge = |memory: &launch::Memory| -> Result<_, attention::Error> {
        oracle.judge(&case.read_outputs(memory, oracle.exact())?)
    };

    let run = rig.execute(case, &case.kernel, &before)?;
    let parity = judge(&run.memory).map_err(|error| error.to_string())?;
    step();
    let through_argument = match case.with_scale_times(1.01) {
        None => Noticed::DoesNotApply("no argument carries the scale".into()),
        Some(wrong) => {
            let run = rig.execute(case, &wrong, &before)?;
            Noticed::Ratio(Figure::new(judge(&run.memory).map_err(|error| error.to_string())?.ratio()))
        }
    };
    step();
    let mut controls = vec![Controlled { control: SCALE_ARGUMENT.into(), result: through_argument }];
    controls.extend(Control::ALL.map(|control| controlled(&oracle, control)));
    Ok(Entry {
        subject: case.subject(),
        problem: case.problem.to_string(),
        data_seed,
        poisoned: harness::still_poisoned(case, &run.memory),
        shapes: shapes::drawn(case, data_seed)
            .iter()
            .map(|case| shaped(case, data_seed, rig))
            .collect::<Result<_, _>>()?,
        seen: run.seen,
        output: Compared::new(&parity.output),
        log_sum_exp: case.contract.lse.as_ref().map(|_| Compared::new(&parity.log_sum_exp)),
        controls,
    })
}

fn shaped(case: &Case, data_seed: u64, rig: &dyn Rig) -> Result<Shaped, String> {
    let before = rig.memory(case, data_seed)?;
    let run = rig.execute(case, &case.kernel, &before)?;
    let error = sanitize::error(case, &before, &run.memory).map_err(|error| error.to_string())?;
    Ok(Shaped { problem: case.problem.to_string(), error: Figure::new(error) })
}

fn controlled(oracle: &Oracle, control: Control) -> Controlled {
    let result = match oracle.control(control) {
        Outcome::Applies(parity) => Noticed::Ratio(Figure::new(parity.ratio())),
        Outcome::DoesNotApply(why) => Noticed::DoesNotApply(why.into()),
    };
    Controlled { control: control.to_string(), result }
}

impl Entry {
    fn objections(&self) -> Vec<Objection> {
        let (name, problem) = (&self.subject.kernel, &self.problem);
        let unseen =
            self.seen.missing().map(|missing| Objection::not_run(Guard::Witness, format!("{name}: {missing}")));
        let lse = self.log_sum_exp.iter().flat_map(|compared| compared.faults("the log-sum-exp"));
        let poisoned = format!("the kernel left {} of its outputs as they were", counted(self.poisoned, "element"));
        let poisoned = (self.poisoned > 0).then_some((Guard::Poison, poisoned));
        let faults =
            self.seen.offences().into_iter().chain(poisoned).chain(self.output.faults("the output")).chain(lse);
        let faults = faults.map(|(guard, fault)| Objection::fail(guard, format!("{name}: {fault} ({problem})")));
        unseen.into_iter().chain(faults).chain(self.elsewhere()).chain(self.uncontrolled()).collect()
    }

    /// Right here, and wrong on another shape.
    fn elsewhere(&self) -> Option<Objection> {
        let wrong = self.shapes.iter().find(|shaped| shaped.error.value() > 1.0).filter(|_| self.ratio() <= 1.0)?;
        let Shaped { problem, error } = wrong;
        let why = format!(
            "{error} times as wrong as allowed on another shape, {problem} (drawn with seed {})",
            self.data_seed
        );
        Some(Objection::fail(Guard::Shapes, format!("{}: {why}", self.subject.kernel)))
    }

    /// Why the rule may be too loose to tell anything.
    fn uncontrolled(&self) -> Option<Objection> {
        let (name, problem) = (&self.subject.kernel, &self.problem);
        let asked = std::iter::once(SCALE_ARGUMENT.to_string()).chain(Control::ALL.map(|control| control.to_string()));
        if !asked.eq(self.controls.iter().map(|one| one.control.clone())) {
            return Some(Objection::not_run(Guard::Controls, format!("{name}: not every wrong result was tried")));
        }
        if let Some(missed) = self.controls.iter().find(|one| one.is_missed()) {
            let why = format!("{name}: the rule lets a wrong result pass: {}", missed.control);
            return Some(Objection::fail(Guard::Controls, why));
        }
        let idle = self.controls.iter().all(|one| matches!(one.result, Noticed::DoesNotApply(_)));
        idle.then(|| Objection::ambiguous(Guard::Controls, format!("{name}: no wrong result applies to {problem}")))
    }

    fn ratio(&self) -> f64 {
        self.output.ratio().max(self.log_sum_exp.as_ref().map_or(0.0, Compared::ratio))
    }
}

impl Controlled {
    fn is_missed(&self) -> bool {
        matches!(&self.result, Noticed::Ratio(ratio) if ratio.value() <= 1.0)
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Parity;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Objections {
        Objections::of_parts(self.kernels.iter().map(Entry::objections))
    }

    fn figures(&self) -> String {
        let worst = self.kernels.iter().map(Entry::ratio).fold(0.0, f64::max);
        let controls = self.kernels.iter().flat_map(|entry| &entry.controls);
        let noticed: Vec<f64> = controls
            .filter_map(|one| match &one.result {
                Noticed::Ratio(ratio) => Some(ratio.value()),
                Noticed::DoesNotApply(_) => None,
            })
            .collect();
        let least = noticed.iter().copied().fold(f64::INFINITY, f64::min);
        format!(
            "{}: largest error {} of what is allowed; {} tried, the least wrong at {} times what is allowed",
            counted(self.kernels.len(), "problem"),
            Figure::new(worst),
            counted(noticed.len(), "wrong result"),
            Figure::new(least),
        )
    }
}
