//! Filetests: kernels that carry their own verdict and their own cure.
//!
//! The first folder under `filetests/` is the kind of a case. `//~ error[check]: TEXT` judges its own line;
//! `//@ fix` lines are the cure, with which the case must be silent.

mod bless;
mod case;
mod coverage;
mod expectation;
mod verdict;

pub use bless::blessed;
pub use case::{Case, Kind, find};
pub use coverage::Coverage;
pub use verdict::{Judge, Verdict};
