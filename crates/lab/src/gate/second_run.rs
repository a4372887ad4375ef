//! A second run: the same kernels, on another day or machine.

use crate::figures::Subject;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::verify::Verification;

/// What, where and when, as a manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub(crate) kernels: Vec<Subject>,
    pub(crate) machine: Machine,
    /// Seconds since 1970.
    pub(crate) time: u64,
}

/// What a second pack says about the first.
#[derive(Clone, Debug, PartialEq)]
pub enum SecondRun {
    NotGiven,
    /// It tells nothing: other kernels, or the same machine on the same day.
    Unfit {
        why: String,
    },
    /// It does not hold what it claims.
    Rejected {
        why: String,
    },
    /// The same kernels, another day or machine.
    Apart {
        outcomes: Vec<Outcome>,
    },
}

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

impl SecondRun {
    pub fn of(first: &Verification, second: &Verification) -> SecondRun {
        if let Some(why) = second.fault() {
            return SecondRun::Rejected { why: why.into() };
        }
        match (&first.made, &second.made) {
            (Some(one), Some(other)) => match one.unfit(other) {
                Some(why) => SecondRun::Unfit { why: why.into() },
                None => SecondRun::Apart { outcomes: second.outcomes.clone() },
            },
            _ => SecondRun::Unfit { why: "a manifest cannot be read".into() },
        }
    }
}

impl Made {
    /// Why another run is no second one.
    fn unfit(&self, other: &Made) -> Option<&'static str> {
        let days = [self, other].map(|made| made.time / SECONDS_PER_DAY);
        if self.kernels != other.kernels {
            Some("its pack is about other kernels")
        } else if days[0] == days[1] && self.machine.is(&other.machine) {
            Some("its pack is of the same day (UTC) and machine")
        } else {
            None
        }
    }
}
