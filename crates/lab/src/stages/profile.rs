//! # profile
//!
//! What Nsight Compute counts while the kernel runs on a GPU. This version does not do it, and says so: what was not
//! run never counts as a pass.

use super::{Log, Never, Record, Stage};
use crate::figures::Subject;
use crate::outcome::State;

const WHY: &str = "needs a GPU and Nsight Compute; this version of veriflash does not read profiles yet";

/// There is none in this version.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Report(Never);

impl Log for Report {
    const STAGE: Stage = Stage::Profile;

    fn subjects(&self) -> Vec<Subject> {
        match self.0 {}
    }

    fn judge(&self) -> State {
        match self.0 {}
    }

    fn figures(&self) -> String {
        match self.0 {}
    }
}

pub(crate) fn run() -> Record<Report> {
    Record::NotRun { why: WHY.into() }
}
