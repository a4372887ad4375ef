//! Kernels against peers, by the measuring protocol.

pub(crate) mod data;
mod grid;
mod point;
mod run;
mod samples;

pub use grid::Grid;
pub use point::{Contender, Missing, Point};
pub use run::{Bencher, Patience};
pub use samples::csv;
