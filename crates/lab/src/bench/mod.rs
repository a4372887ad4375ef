//! Kernels against peers, by the measuring protocol.

mod ahead;
mod calibration;
mod clocks;
pub(crate) mod data;
mod duel;
mod field;
mod grid;
pub(crate) mod lock;
mod point;
mod run;
mod samples;

pub(crate) use ahead::Ahead;
pub use calibration::{Calibration, SLOWDOWN};
pub use duel::Duel;
pub use field::Field;
pub use grid::Grid;
pub use lock::PEERS;
#[cfg(test)]
pub(crate) use point::tests;
pub use point::{CANDIDATES, Contender, Missing, Point};
pub use run::{Bencher, Patience};
pub use samples::csv;

#[cfg(test)]
pub(crate) use point::tests::point as test_point;
