//! Which row belongs to whom: four for each warp, one for each warpgroup, then one for each mbarrier.

use super::clock::Row;
use super::view::ROWS;
use super::warp::Track;

/// Warps of a warpgroup.
const WARPGROUP: u32 = 4;

/// Whose row it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// The lanes of a warp.
    Lanes(u32),
    /// What the lanes of a warp have in flight.
    Track(u32, Track),
    /// The products of the warpgroup that begins with this warp.
    Products(u32),
    /// What the mbarrier at this address tells of.
    Mbarrier(u64),
}

#[derive(Clone)]
pub struct Rows {
    warps: u32,
    warps_per_block: u32,
    /// The addresses of mbarriers, in the order of their rows.
    mbarriers: Vec<u64>,
}

impl Rows {
    pub fn new(warps: u32, warps_per_block: u32) -> Rows {
        Rows { warps, warps_per_block, mbarriers: Vec::new() }
    }

    fn warpgroups_per_block(&self) -> u32 {
        self.warps_per_block.div_ceil(WARPGROUP)
    }

    /// How many rows there are without mbarriers.
    pub fn fixed(&self) -> usize {
        let blocks = self.warps.div_ceil(self.warps_per_block);
        self.warps as usize * ROWS + (blocks * self.warpgroups_per_block()) as usize
    }

    /// The row of the products of a warp's warpgroup.
    pub fn products(&self, warp: u32) -> Row {
        let (block, within) = (warp / self.warps_per_block, warp % self.warps_per_block);
        let group = block * self.warpgroups_per_block() + within / WARPGROUP;
        (self.warps as usize * ROWS) as Row + group as Row
    }

    /// A row for an mbarrier; none when there are too many.
    pub fn add_mbarrier(&mut self, barrier: u64) -> Option<Row> {
        let row = Row::try_from(self.fixed() + self.mbarriers.len()).ok().filter(|row| *row < Row::MAX)?;
        self.mbarriers.push(barrier);
        Some(row)
    }

    pub fn channel(&self, row: Row) -> Channel {
        let (index, warp) = (row as usize, row as u32 / ROWS as u32);
        if warp < self.warps {
            return match row as usize % ROWS {
                0 => Channel::Lanes(warp),
                1 => Channel::Track(warp, Track::Copies),
                2 => Channel::Track(warp, Track::StoreReads),
                _ => Channel::Track(warp, Track::StoreWrites),
            };
        }
        match index.checked_sub(self.fixed()) {
            Some(place) => Channel::Mbarrier(self.mbarriers[place]),
            None => {
                let group = (index - self.warps as usize * ROWS) as u32;
                let (block, within) = (group / self.warpgroups_per_block(), group % self.warpgroups_per_block());
                Channel::Products(block * self.warps_per_block + within * WARPGROUP)
            }
        }
    }
}
