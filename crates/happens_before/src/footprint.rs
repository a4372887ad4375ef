//! How much room the shadow takes: what is allocated for it, used or not. Nothing of it is given back before the cluster
//! ends, so that the end is the peak.

use super::shadow::Shadow;
use super::{Detector, Space};

/// Global memory is counted in pages of 64 KiB.
const PAGE_SHIFT: u32 = 16;

/// A shadow and the memory that it is the shadow of, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Footprint {
    pub shadow: u64,
    pub memory: u64,
}

impl Footprint {
    pub fn ratio(&self) -> f64 {
        if self.memory == 0 { 0.0 } else { self.shadow as f64 / self.memory as f64 }
    }

    /// Both at a time.
    pub fn and(self, other: Footprint) -> Footprint {
        Footprint { shadow: self.shadow + other.shadow, memory: self.memory + other.memory }
    }

    /// The one that is larger for its memory.
    pub fn or(self, other: Footprint) -> Footprint {
        if other.ratio() > self.ratio() { other } else { self }
    }
}

impl Detector {
    /// Of the shared memory of all blocks, so many bytes together, and of the pages of global memory that were touched.
    pub fn footprint(&self, shared: u64) -> Footprint {
        let mut pages: Vec<u64> =
            self.shadows[Space::Global as usize].pages().iter().map(|address| address >> PAGE_SHIFT).collect();
        pages.dedup();
        let shadow = self.shadows.iter().map(Shadow::allocated).sum::<usize>() as u64;
        Footprint { shadow, memory: shared + ((pages.len() as u64) << PAGE_SHIFT) }
    }
}
