//! Why a kernel fails: one thing is changed at a time, and the smallest change that turns the failure on or off is told.
//!
//! [`subject`] is the kernel and how it was given, [`setup`] one way to run it, [`symptom`] what went wrong, [`bench`]
//! runs setups, `axes` has one file for each thing that is varied, [`search`] puts them together.

mod axes;
mod bench;
mod hardware;
mod search;
mod setup;
mod subject;
mod symptom;

pub use axes::{Axis, Variation, left_by_compiler};
pub use bench::{Bench, OnEmulator};
pub use hardware::OnHardware;
pub use search::{Bisection, Effect, Spectator, Tried, bisect};
pub use setup::{Between, Schedule, Setup};
pub use subject::{Design, Subject};
pub use symptom::{Symptom, Trial};
