//! Attention: problems, kernels, and the float64 oracle that judges them.

mod error;
pub mod oracle;
pub mod problem;
pub mod visibility;

pub use error::Error;
pub use problem::Problem;
