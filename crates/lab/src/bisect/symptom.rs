//! What went wrong with a setup, or that nothing did.

use std::fmt;

use launch::Finding;

/// One way to fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Symptom {
    /// A check says so.
    Finding(Box<Finding>),
    /// It ran to its end, and left something else than is expected.
    WrongResult(String),
    /// It is not launched at all, or the launch ends with an error.
    LaunchFailure(String),
}

impl Symptom {
    /// What makes two of them the same: where it stands, not who stood there.
    pub fn key(&self) -> (&str, u32, u32) {
        match self {
            Symptom::Finding(finding) => (finding.check, finding.first.line, finding.primary().line),
            Symptom::WrongResult(_) => ("wrong result", 0, 0),
            Symptom::LaunchFailure(_) => ("launch failure", 0, 0),
        }
    }

    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Symptom::Finding(finding) => Some(finding),
            _ => None,
        }
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Symptom::Finding(finding) => {
                write!(out, "{}[{}] at line {}", finding.severity.word(), finding.check, finding.primary().line)
            }
            Symptom::WrongResult(how) => write!(out, "wrong result: {how}"),
            Symptom::LaunchFailure(why) => write!(out, "launch failure: {}", why.lines().next().unwrap_or_default()),
        }
    }
}

/// What a setup showed: how it fails, or that it does not; an error says why it could not be tried.
pub type Trial = Result<Vec<Symptom>, String>;
