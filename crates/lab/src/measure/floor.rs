//! What no kernel can beat.

use serde::{Deserialize, Serialize};

use crate::figures::Figure;

/// The most that a GPU does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peaks {
    /// Operations of tensor cores in f16 per second.
    pub operations: Figure,
    /// Bytes of its memory per second.
    pub bytes: Figure,
}

impl Peaks {
    /// By compute capability, as NVIDIA's white papers list the tensor cores: operations of f16 per multiprocessor and cycle,
    /// without sparsity.
    pub fn operations_per_cycle(capability: (u32, u32)) -> Option<u32> {
        match capability {
            (8, 0) => Some(2048),
            (8, 6..=9) | (12, 0) => Some(1024),
            (9, 0) => Some(4096),
            (10, _) => Some(8192),
            _ => None,
        }
    }
}

/// The least time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Operations that the problem needs.
    pub operations: Figure,
    /// Bytes that must be read and written; none where they may lie in a cache.
    pub bytes: Option<Figure>,
}

impl Floor {
    pub fn seconds(&self, peaks: &Peaks) -> f64 {
        let computed = self.operations.value() / peaks.operations.value();
        let moved = self.bytes.map_or(0.0, |bytes| bytes.value() / peaks.bytes.value());
        computed.max(moved)
    }

    /// The share of the roofline that a call of so many seconds reaches.
    pub fn share(&self, peaks: &Peaks, seconds: f64) -> f64 {
        self.seconds(peaks) / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_both_decides() {
        let peaks = Peaks { operations: Figure::new(1e15), bytes: Figure::new(4e12) };
        let floor = |operations, bytes: Option<f64>| {
            Floor { operations: Figure::new(operations), bytes: bytes.map(Figure::new) }.seconds(&peaks)
        };
        assert_eq!(floor(1e12, Some(4e9)), 1e-3);
        assert_eq!(floor(1e12, Some(8e9)), 2e-3);
        assert_eq!(floor(1e12, None), 1e-3);
    }
}
