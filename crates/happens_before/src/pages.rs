//! Where the shadow of an address lies: pages of 4 KiB, made at first touch.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Granules of 16 bytes in a page of 4 KiB.
pub const PAGE: u64 = 256;
/// Pages of a block found without hashing: more than the shared memory of any CTA (227 KiB on sm_90).
const DIRECT: u64 = 64;
/// Bits of an address that name the block begin above bit 32; more blocks than any cluster has are found directly.
const BLOCK_SHIFT: u32 = 32 - 12;
const BLOCKS: u64 = 16;

/// Page numbers are unique already: spreading their bits is enough.
#[derive(Clone, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(*byte as u64));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// From page number to the page's place among the pages made so far.
#[derive(Clone, Default)]
pub struct Pages {
    direct: Vec<Option<u32>>,
    sparse: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    made: u32,
}

impl Pages {
    /// The place of a granule, and whether its page is new.
    #[inline]
    pub fn place(&mut self, granule: u64) -> (usize, bool) {
        let page = granule / PAGE;
        let before = self.made;
        let (block, within) = (page >> BLOCK_SHIFT, page & ((1 << BLOCK_SHIFT) - 1));
        let place = match block < BLOCKS && within < DIRECT {
            true => self.direct((block * DIRECT + within) as usize),
            false => self.sparse(page),
        };
        (place as usize * PAGE as usize + (granule % PAGE) as usize, self.made != before)
    }

    /// The pages made so far, by number: where the granules of each begin.
    pub fn in_order(&self) -> Vec<(u64, usize)> {
        let direct = self.direct.iter().zip(0u64..).filter_map(|(place, index)| {
            let page = ((index / DIRECT) << BLOCK_SHIFT) | (index % DIRECT);
            place.map(|place| (page, place))
        });
        let mut pages: Vec<_> = direct.chain(self.sparse.iter().map(|(page, place)| (*page, *place))).collect();
        pages.sort_unstable();
        pages.into_iter().map(|(page, place)| (page, place as usize * PAGE as usize)).collect()
    }

    /// Bytes that are allocated to find pages.
    pub fn allocated(&self) -> usize {
        // The table fills seven eighths of its room, and has a byte beside every entry.
        let sparse = self.sparse.capacity() * 8 / 7 * (size_of::<(u64, u32)>() + 1);
        self.direct.capacity() * size_of::<Option<u32>>() + sparse
    }

    #[inline]
    fn direct(&mut self, page: usize) -> u32 {
        if let Some(Some(place)) = self.direct.get(page) {
            return *place;
        }
        self.direct.resize(self.direct.len().max(page + 1), None);
        self.made += 1;
        *self.direct[page].insert(self.made - 1)
    }

    fn sparse(&mut self, page: u64) -> u32 {
        *self.sparse.entry(page).or_insert_with(|| {
            self.made += 1;
            self.made - 1
        })
    }
}
