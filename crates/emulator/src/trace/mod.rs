//! A timeline of a run: when each warp ran and what it waited for, and which copies and products were in flight.
//!
//! Time is the machine's own: one unit for each instruction that a warp of the cluster executes, and one for each
//! operation that lands. A trace is therefore the same for the same seed, on every machine, and says nothing about the
//! speed of a GPU; it shows who waited for whom.
//!
//! `hooks` is called by the machine at the few places where a warp stops or goes on and where an operation starts or
//! ends; without a recorder these calls do nothing. `Recorder` keeps what happened in one cluster, and `Timeline` puts
//! clusters and launches together and writes them as Chrome trace events, which Perfetto opens.

mod hooks;
mod recorder;
mod render;

pub use recorder::Recorder;
pub use render::Timeline;
