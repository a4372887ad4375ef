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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Lanes, Places, Site};

    #[test]
    fn a_page_of_shared_memory_costs_its_cells_and_gaps_cost_more() {
        let mut detector = Detector::new(&[u32::MAX], 1);
        let mut write = |places| {
            let at = Lanes { warp: 0, mask: u32::MAX };
            detector.access(at, Site(0), Kind::Write, Space::Shared, places, 2);
            detector.footprint(4096)
        };
        let even = write(Places::Row(0));
        assert_eq!(even.memory, 4096);
        assert!((1.5..2.0).contains(&even.ratio()), "{even:?}");
        let odd = write(Places::Each(&std::array::from_fn(|lane| lane as u64 * 8 + 2)));
        assert!(odd.shadow > even.shadow, "{odd:?}");
    }

    #[test]
    fn global_memory_counts_by_pages_that_are_touched() {
        let mut detector = Detector::new(&[u32::MAX], 1);
        for address in [0x7000_0000, 0x7000_f000, 0x7005_0000] {
            let at = Lanes { warp: 0, mask: u32::MAX };
            detector.access(at, Site(0), Kind::Read, Space::Global, Places::Row(address), 4);
        }
        assert_eq!(detector.footprint(0).memory, 2 << 16);
    }

    #[test]
    fn together_and_the_worse_of_two() {
        let [small, large] = [(10, 100), (300, 100)].map(|(shadow, memory)| Footprint { shadow, memory });
        assert_eq!((small.or(large), large.or(small), Footprint::default().or(small)), (large, large, small));
        assert_eq!(small.and(large).ratio(), 1.55);
    }
}
