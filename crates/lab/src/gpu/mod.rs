//! Kernels on a GPU, timed by rules that leave them no way to pass for faster than they are.
//!
//! Every call of a sample has buffers of its own: inputs freshly drawn, outputs poisoned before the sample, and all of them checked
//! after the last one, so that a call that did nothing, or the work of another, shows.

mod buffers;
mod calls;
mod candidate;
mod delay;
mod driven;
mod keepsakes;
mod launches;
mod peer;
mod plan;
pub(crate) mod rows;
mod scripts;
mod signs;
mod stamp;

pub(crate) use buffers::{BufferKernels, Fingerprint};
pub(crate) use calls::{Code, numbers, sets};
pub use candidate::{Candidate, Refusal};
pub(crate) use delay::Delay;
pub(crate) use driven::{Driven, code_hash, drive};
pub(crate) use launches::launch_cycles;
pub use peer::{Peer, PeerError, Workers};
pub use plan::{Contract, Plan, WARM_UP};
pub(crate) use plan::{floor, peaks};
