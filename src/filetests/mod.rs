//! Filetests: kernels that carry their own verdict and their own cure.
//!
//! The first folder under `filetests/` is the kind of a case. `//~ error[check]: TEXT` judges its own line, and
//! `//~^ missing: TEXT` below it says what would have ordered the two events. `//@ fix` lines are the cure, with which the case must be silent. Recipes under `corpus/` are cases
//! of one kind, for PTX that another compiler wrote.

mod bless;
mod case;
pub mod corpus;
mod coverage;
mod expectation;
mod verdict;

pub use bless::blessed;
pub use case::{Case, Kind, find};
pub use coverage::{Coverage, Executed, FormCoverage};
pub use verdict::{Judge, Verdict};
