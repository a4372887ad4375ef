//! What tests of rings begin with.

use tile::prelude::*;

/// A ring of tiles of 64 rows of 64.
pub fn ring(name: &str, stages: u32) -> CopyRing<F16> {
    let k = Tensor::<F16>::parameter(name);
    CopyRing::new(name, stages, 64, k.matrix(0.into(), 0.into(), 64.into(), 64))
}

/// As many tiles as the kernel is told.
pub fn tiles() -> std::ops::Range<U32> {
    0.into()..parameter::<u32>("tiles")
}
