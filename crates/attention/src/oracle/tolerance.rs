//! The rule: a kernel may be twice as wrong as the plain computation, plus one rounding.
//!
//! Two questions for each of O and log-sum-exp. Every element: its error is at most twice the largest error of the plain
//! computation plus its own rounding. All together: the Frobenius norm of the errors is at most twice that of the plain
//! computation plus that of the roundings, each relative to the norm of the exact result. One rounding is half a step of
//! the dtype for O, and 2^-19 · max(1, |LSE|) for the log-sum-exp.
//!
//! What has no distance has no tolerance either: NaN and a wrong infinity are infinitely wrong, a query that sees no key
//! gives zeros and −∞ exactly, and a bound that is itself not finite holds for nothing.

use std::fmt;

use super::precision::Precision;
use super::{Oracle, Outputs};
use crate::Problem;
use crate::problem::Located;

/// What truncating tensor cores and the special-function unit may add to a log-sum-exp, relative to max(1, |LSE|).
const LOG_SUM_EXP_ROUNDING: f64 = 1.0 / (1 << 19) as f64;

/// An error, and how large it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub error: f64,
    pub allowed: f64,
}

impl Bound {
    pub fn holds(&self) -> bool {
        self.error.is_finite() && self.allowed.is_finite() && self.error <= self.allowed
    }

    /// The error in units of what is allowed; infinite where either is.
    pub fn ratio(&self) -> f64 {
        if !(self.error.is_finite() && self.allowed.is_finite()) {
            f64::INFINITY
        } else if self.error == 0.0 {
            0.0
        } else {
            self.error / self.allowed
        }
    }
}

/// Where an element is; the log-sum-exp has no columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub batch: u32,
    pub head: u32,
    pub query: u32,
    pub column: Option<u32>,
}

/// One output against the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The element that comes nearest to its bound, or exceeds it most.
    pub element: Bound,
    pub worst: Place,
    /// All elements: relative to the exact norm, or absolute where that is zero.
    pub frobenius: Bound,
}

impl Comparison {
    pub fn passes(&self) -> bool {
        self.element.holds() && self.frobenius.holds()
    }

    /// The larger error in units of what is allowed: at most 1 if it passes.
    pub fn ratio(&self) -> f64 {
        self.element.ratio().max(self.frobenius.ratio())
    }
}

/// A result against the oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parity {
    pub output: Comparison,
    pub log_sum_exp: Comparison,
    /// A kernel that writes none is given the right one, of which nothing is said.
    pub has_log_sum_exp: bool,
}

impl Parity {
    /// The same of a kernel that writes no log-sum-exp.
    pub fn of_output_alone(self) -> Parity {
        Parity { has_log_sum_exp: false, ..self }
    }

    pub fn passes(&self) -> bool {
        self.output.passes() && self.log_sum_exp.passes()
    }

    /// The largest error in units of what is allowed: at most 1 if it passes.
    pub fn ratio(&self) -> f64 {
        self.output.ratio().max(self.log_sum_exp.ratio())
    }
}

pub fn judge(oracle: &Oracle, actual: &Outputs) -> Parity {
    let Oracle { problem, exact, plain, .. } = oracle;
    let precision = Precision::of(problem.dtype());
    let columns = problem.value_dim() as usize;
    let sees_a_key = |row: usize| exact.log_sum_exp[row] != f64::NEG_INFINITY;

    let half_step = |(at, &exact): (usize, &f64)| sees_a_key(at / columns).then(|| precision.half_step(exact));
    let slack = exact.output.iter().enumerate().map(half_step).collect();
    let output = Tensors { exact: &exact.output, plain: &plain.output, actual: &actual.output, slack }
        .compare(|at| place(problem, at / columns, Some((at % columns) as u32)));

    let rounding = |(row, &exact): (usize, &f64)| sees_a_key(row).then(|| LOG_SUM_EXP_ROUNDING * exact.abs().max(1.0));
    let slack = exact.log_sum_exp.iter().enumerate().map(rounding).collect();
    let log_sum_exp =
        Tensors { exact: &exact.log_sum_exp, plain: &plain.log_sum_exp, actual: &actual.log_sum_exp, slack }
            .compare(|row| place(problem, row, None));
    Parity { output, log_sum_exp, has_log_sum_exp: true }
}

fn place(problem: &Problem, row: usize, column: Option<u32>) -> Place {
    let Located { batch, head, query, .. } = problem.locate(row);
    let [batch, head, query] = [batch, head, query].map(|index| index as u32);
    Place { batch, head, query, column }
}

/// The same output three times, and what each element may add to twice the plain error: `None` where it must be equal.
struct Tensors<'a> {
    exact: &'a [f64],
    plain: &'a [f64],
    actual: &'a [f64],
    slack: Vec<Option<f64>>,
}

impl Tensors<'_> {
    fn compare(&self, place: impl Fn(usize) -> Place) -> Comparison {
        let (errors, plain_errors) = (self.errors(self.actual), self.errors(self.plain));
        let plain_max = plain_errors.iter().copied().fold(0.0, f64::max);
        let roundings: Vec<f64> = self.slack.iter().map(|slack| slack.unwrap_or(0.0)).collect();
        let bound = |at: usize| Bound { error: errors[at], allowed: 2.0 * plain_max + roundings[at] };
        // A problem has at least one query, so there is a first element.
        let worse = |worst, at| if bound(at).ratio() > bound(worst).ratio() { at } else { worst };
        let worst = (1..errors.len()).fold(0, worse);

        let finite: Vec<f64> = self.exact.iter().copied().filter(|value| value.is_finite()).collect();
        let exact_norm = norm(&finite);
        let unit = if exact_norm > 0.0 { exact_norm } else { 1.0 };
        let allowed = (2.0 * norm(&plain_errors) + norm(&roundings)) / unit;
        let frobenius = Bound { error: norm(&errors) / unit, allowed };
        Comparison { element: bound(worst), worst: place(worst), frobenius }
    }

    fn errors(&self, values: &[f64]) -> Vec<f64> {
        let error = |at: usize| error(self.exact[at], values[at], self.slack[at].is_some());
        (0..self.exact.len()).map(error).collect()
    }
}

/// How wrong one element is. NaN becomes infinite here, because a maximum would drop it.
fn error(exact: f64, actual: f64, may_differ: bool) -> f64 {
    let distance = (actual - exact).abs();
    if actual == exact {
        0.0
    } else if may_differ && distance.is_finite() {
        distance
    } else {
        f64::INFINITY
    }
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sign = if self.holds() { "≤" } else { "exceeds" };
        write!(f, "{:.2e} {sign} {:.2e}", self.error, self.allowed)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "batch {} head {} query {}", self.batch, self.head, self.query)?;
        self.column.map_or(Ok(()), |column| write!(f, " column {column}"))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "element error {} at {}, frobenius {}", self.element, self.worst, self.frobenius)
    }
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let verdict = if self.passes() { "pass" } else { "fail" };
        write!(f, "{verdict}: output {}", self.output)?;
        if self.has_log_sum_exp { write!(f, "; lse {}", self.log_sum_exp) } else { Ok(()) }
    }
}
