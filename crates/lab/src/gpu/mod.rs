//! Kernels on a GPU, timed by rules that leave them no way to pass for faster than they are.
//!
//! Every call of a sample has buffers of its own: inputs freshly drawn, outputs poisoned before the sample, and all of them checked
//! after the last one, so that a call that did nothing, or the work of another, shows.

mod candidate;
mod clocks;
mod peer;
mod plan;
mod rows;
mod stamp;

pub use candidate::Candidate;
pub(crate) use clocks::Clocks;
pub use peer::{Peer, PeerError, Workers};
pub use plan::{Contract, Plan};
pub(crate) use plan::{floor, peaks};
