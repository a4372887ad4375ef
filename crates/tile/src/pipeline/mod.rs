//! Layer 3: rings of tiles that hide stages, wait counts and barriers.

mod begun;
mod copy_ring;
mod tile_ring;

pub use begun::{Begun, begin};
pub use copy_ring::{CopyRing, Full};
pub use tile_ring::{Arrived, Kept, Loads, Relay, Tiles, cluster_ring, lanes_have_read, noted_ring, tile_ring};
