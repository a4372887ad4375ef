//! # bench
//!
//! Time against peers, by a protocol of paired rounds with an interval. This version does not do it, and says so: what
//! was not run never counts as a pass.

use super::{Log, Never, Record, Stage};
use crate::figures::Subject;
use crate::outcome::State;

const WHY: &str = "needs a GPU and peers to compare with; this version of veriflash does not measure time yet";

/// There is none in this version.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Report(Never);

impl Log for Report {
    const STAGE: Stage = Stage::Bench;

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
