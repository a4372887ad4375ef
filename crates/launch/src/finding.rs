//! What a check found: both events, what is missing between them, and how to repeat it.

use crate::policy::Policy;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Right, but poor style or slow.
    Lint,
    /// Allowed, but hardly meant.
    Warning,
    /// Wrong by the rules of the machine.
    Error,
}

impl Severity {
    /// The word in reports and expectations.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Lint => "lint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check's name, such as `missing-wait`.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What happened.
    pub message: String,
    /// The only event, or the first of two that conflict.
    pub first: Event,
    /// The second of two: where it goes wrong.
    pub second: Option<Event>,
    /// What would have ordered them.
    pub missing: Option<String>,
    /// What to do.
    pub help: Option<String>,
    /// How many times it happened at this pair of places.
    pub count: u64,
    /// The seed of the run that showed it.
    pub seed: u64,
    /// What the adversary of that run was after.
    pub policy: Policy,
}

impl Finding {
    /// Where it goes wrong: what an expectation judges.
    pub fn primary(&self) -> &Event {
        self.second.as_ref().unwrap_or(&self.first)
    }
}

/// One side of a finding: a place in the PTX and who stood there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened at the place, in a few words.
    pub label: String,
    /// The PTX file, or that of the recipe.
    pub file: String,
    /// Whether it is a place in the recipe.
    pub in_recipe: bool,
    /// The line, from one.
    pub line: u32,
    /// The column, from one.
    pub column: u32,
    /// The line that generated the PTX, `file:line:column`, where `.loc` tells.
    pub source: Option<String>,
    /// The block.
    pub cta: [u32; 3],
    /// The warp in the block.
    pub warp: u32,
    /// The lanes of the warp, one bit each.
    pub lanes: u32,
}
