//! Layer 3: rings of tiles that hide stages, wait counts and barriers.

mod begun;
mod copy_ring;

pub use begun::{Begun, begin};
pub use copy_ring::{CopyRing, Full};
