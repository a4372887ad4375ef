//! Kernels against peers, by the measuring protocol.

mod field;
mod grid;
mod point;
mod run;
mod samples;

pub use field::Field;
pub use grid::Grid;
#[cfg(test)]
pub(crate) use point::tests;
pub use point::{Contender, Missing, Point};
pub use run::{Bencher, Patience};
pub use samples::csv;
