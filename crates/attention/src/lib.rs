//! Attention: problems, kernels, and the float64 oracle that judges them.

pub mod configs;
pub mod cpu;
mod error;
pub mod features;
pub mod kernels;
pub mod oracle;
pub mod planner;
pub mod problem;
pub mod scoring;
pub mod visibility;

pub use error::Error;
pub use problem::Problem;
