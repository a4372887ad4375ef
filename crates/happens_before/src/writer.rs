//! Who wrote some bytes: asked when they turn out to be written and should not be.

use std::ops::Range;

use super::mark::Item;
use super::rows::Channel;
use super::shadow::Remembered;
use super::{Detector, Lanes, Site, Space};

impl Detector {
    /// The first write, in the order of the text, that is remembered of some bytes of shared memory.
    pub fn writer(&self, bytes: &Range<u64>) -> Option<(Lanes, Site)> {
        let mut items: Vec<Item> = Vec::new();
        self.shadows[Space::Shared as usize].visit(|address, remembered| {
            let words = if matches!(remembered, Remembered::Marks { bytes: 16, .. }) { 0..4 } else { 0..1 };
            for word in words.filter(|word| bytes.contains(&(address + 4 * word))) {
                items.extend(remembered.items_at(word as u8).into_iter().filter(|item| item.write && item.mask != 0));
            }
        });
        let item = items.iter().min_by_key(|item| (item.site, item.name, item.time))?;
        let lane = item.mask.trailing_zeros() as u8;
        let warp = match self.rows.channel(item.name as super::clock::Row) {
            Channel::Lanes(warp) | Channel::Track(warp, _) | Channel::Products(warp) => warp,
            Channel::Mbarrier(barrier) => self.mbarriers.start(barrier, item.time, lane, Site(item.site))?.warp,
        };
        Some((Lanes { warp, mask: 1 << lane }, Site(item.site)))
    }
}
