//! The judge: what attention is by definition in float64, and how far from it a kernel may be.
//!
//! Tolerance is a rule, not a constant. Beside the exact result ([`exact`](Oracle::exact)) stands the plain computation
//! in the problem's own dtype ([`plain`](Oracle::plain)); a kernel may be twice as wrong as that, plus one rounding
//! (`tolerance.rs`). Whether the rule is sharp enough is asked each time: the plain computation with one error injected
//! must fail it (`controls.rs`).

mod controls;
mod exact;
mod plain;
mod precision;
mod tensors;
mod tolerance;

pub use controls::{Control, Outcome};
pub use tensors::{Inputs, Outputs};
pub use tolerance::{Bound, Comparison, Parity, Place};

use crate::scoring::Scoring;
use crate::visibility::Visibility;
use crate::{Error, Problem};

/// Everything that judging results of one problem on one set of inputs needs, computed once.
pub struct Oracle<'a> {
    problem: &'a Problem,
    inputs: &'a Inputs,
    visibility: &'a dyn Visibility,
    scoring: &'a dyn Scoring,
    exact: Outputs,
    plain: Outputs,
}

impl<'a> Oracle<'a> {
    /// With the mask and the score that the problem names.
    pub fn new(problem: &'a Problem, inputs: &'a Inputs) -> Result<Oracle<'a>, Error> {
        Oracle::with(problem, inputs, problem.visibility(), problem.scoring())
    }

    /// With a mask and a score of the caller's own, instead of those that the problem names.
    pub fn with(
        problem: &'a Problem,
        inputs: &'a Inputs,
        visibility: &'a dyn Visibility,
        scoring: &'a dyn Scoring,
    ) -> Result<Oracle<'a>, Error> {
        inputs.check(problem)?;
        let exact = exact::compute(problem, inputs, visibility, scoring);
        let plain = plain::compute(problem, inputs, &plain::Method::new(problem, visibility, scoring));
        Ok(Oracle { problem, inputs, visibility, scoring, exact, plain })
    }

    /// The result by definition, in float64.
    pub fn exact(&self) -> &Outputs {
        &self.exact
    }

    /// The result of the plain computation in the problem's dtype.
    pub fn plain(&self) -> &Outputs {
        &self.plain
    }

    /// Compares a kernel's result with the exact one, by the rule.
    pub fn judge(&self, actual: &Outputs) -> Result<Parity, Error> {
        actual.check(self.problem)?;
        Ok(tolerance::judge(self, actual))
    }

    /// The plain computation with one error injected, judged by the same rule.
    pub fn control(&self, control: Control) -> Outcome {
        controls::run(self, control)
    }
}
