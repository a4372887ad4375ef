//! What is varied: one file for each kind of change, smallest first.

mod calls;
mod data;
mod design;
mod instructions;
mod schedules;
mod shape;
mod streams;
mod traps;

use super::bench::Bench;
use super::setup::Setup;
use super::subject::Subject;
use super::symptom::Symptom;

pub(super) use calls::buffers;
pub use traps::left_by_compiler;

/// One thing that is varied. Of two that change the outcome, the first is the smaller change to tell: it says most of why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    Instruction,
    State,
    Calls,
    Streams,
    Schedule,
    Data,
    Debug,
    Math,
    Stages,
    Splits,
    Tile,
    Shape,
    Target,
    Trap,
    Checks,
}

impl Axis {
    pub fn name(self) -> &'static str {
        match self {
            Axis::Instruction => "instruction",
            Axis::State => "state",
            Axis::Calls => "calls",
            Axis::Streams => "streams",
            Axis::Schedule => "schedule",
            Axis::Data => "data",
            Axis::Debug => "debug",
            Axis::Math => "math",
            Axis::Stages => "stages",
            Axis::Splits => "splits",
            Axis::Tile => "tile",
            Axis::Shape => "shape",
            Axis::Target => "target",
            Axis::Trap => "trap",
            Axis::Checks => "checks",
        }
    }

    /// Without checks there is nothing that they find: that is no cure.
    pub fn is_telling(self) -> bool {
        self != Axis::Checks
    }
}

/// A setup that differs in one thing.
#[derive(Clone, Debug)]
pub struct Variation {
    pub axis: Axis,
    /// The change in a few words: `2 calls instead of 1`.
    pub what: String,
    pub setup: Setup,
}

impl Variation {
    fn new(axis: Axis, what: impl Into<String>, setup: Setup) -> Variation {
        Variation { axis, what: what.into(), setup }
    }
}

/// What may turn a failure on.
pub fn provoking(subject: &Subject, bench: &dyn Bench) -> Vec<Variation> {
    let given = &subject.setup;
    let mut all = calls::more(given);
    all.extend(streams::more(given, bench));
    all.extend(schedules::others(given, bench));
    all.extend(data::others(given, None));
    all.extend(design::others(subject, given));
    all
}

/// What may turn a failure off.
pub fn curing(subject: &Subject, failing: &Setup, symptom: &Symptom, bench: &dyn Bench) -> Vec<Variation> {
    let mut all = instructions::edits(failing, symptom);
    all.extend(calls::renewed(failing, bench));
    all.extend(streams::fewer(failing));
    all.extend(schedules::others(failing, bench));
    all.extend(data::others(failing, Some(symptom)));
    all.extend(design::others(subject, failing));
    all.extend(shape::smaller(failing, symptom, bench));
    all.extend(shape::targets(failing));
    all.extend(traps::without(failing, symptom));
    all.extend(schedules::unchecked(failing, symptom, bench));
    all
}
