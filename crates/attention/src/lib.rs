//! Attention: problems, kernels, and the float64 oracle that judges them.

pub mod configs;
pub mod kernels;
