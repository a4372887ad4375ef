//! What whole-warp kernels tell whoever keeps the books ([`crate::audit`]): what is handed out to them. Addresses are made
//! from the page, not from what the race detector is told.

use super::{Found, Page, Spread, Traffic, View};
use crate::audit::{Audit, Column, Region};
use launch::PAGE_BYTES;

impl View<'_> {
    #[cold]
    pub(super) fn open_books(&mut self, traffic: &Traffic) {
        if let (Some(audit), Some(detector)) = (self.audit, &mut self.detector) {
            audit.begin(traffic.site, detector);
        }
    }

    pub fn close_books(self) {
        if let (Some(audit), Some(detector)) = (self.audit, self.detector) {
            audit.end(detector);
        }
    }

    /// Bytes that are handed out; those that will be written count as written already.
    #[cold]
    pub(super) fn note(&self, audit: &Audit, found: &Found, traffic: &Traffic, mask: u32, column: Column) {
        let note = |offset: u32, bytes: u32, lanes: u32| {
            self.note_range(audit, column, found.page, offset, (bytes, lanes));
            if column == Column::Written && self.counts_as_written(found.page, offset, bytes) {
                self.note_range(audit, Column::Marked, found.page, offset, (bytes, lanes));
            }
        };
        match &found.spread {
            Spread::Row(offset) => note(*offset, 32 * traffic.bytes, 1),
            Spread::Same(offset) => note(*offset, traffic.bytes, mask.count_ones()),
            Spread::Apart(offsets) => {
                let lanes = (0..32).filter(|lane| mask >> lane & 1 == 1);
                lanes.for_each(|lane| note(offsets[lane], traffic.bytes, 1));
            }
        }
    }

    pub(super) fn note_range(
        &self,
        audit: &Audit,
        column: Column,
        page: Option<Page>,
        offset: u32,
        (bytes, lanes): (u32, u32),
    ) {
        let (region, base) = match page {
            Some((allocation, number)) => (Region::Global, self.global.address(allocation, number * PAGE_BYTES)),
            None => (Region::Shared, self.rank << 32),
        };
        let start = base + u64::from(offset);
        audit.note(column, region, start..start + u64::from(bytes), lanes);
    }
}
