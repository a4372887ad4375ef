//! Loads and stores of whole warps: bounds and alignment once per instruction, bytes that lie one behind the other moved
//! as one. Whatever is not plain is left to the definition, which also words what the checks find.

mod books;

use super::lanes::{Aligned, File};
use super::vector;
use crate::Detector;
use crate::audit::{Audit, Column};
use crate::memory::{Bytes, GlobalMemory};
use happens_before::{Kind, Lanes, Places, Site, Space};

/// A weak load or store of whole words, or of one value of up to two bytes.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub space: Space,
    /// Bytes per lane: 1, 2, 4, 8 or 16.
    pub bytes: u32,
    /// Where each word comes from or goes to.
    pub words: [u32; 4],
    /// Added to the address.
    pub offset: u64,
    pub site: u32,
}

impl Traffic {
    /// How many of the words count.
    pub fn count(&self) -> usize {
        (self.bytes as usize).div_ceil(4)
    }
}

/// Memory as one warp sees it.
pub struct View<'a> {
    /// Of its block, whose rank in the cluster is `rank`.
    pub shared: &'a mut Bytes,
    pub rank: u64,
    pub global: &'a mut GlobalMemory,
    pub warp: u32,
    /// None: nobody looks for races and unwritten bytes.
    pub detector: Option<&'a mut Detector>,
    /// Compares what moves with what the checks see, if somebody wants to know.
    pub audit: Option<&'a Audit>,
}

/// A page of global memory, by allocation and number.
type Page = (usize, usize);

/// Where the bytes of an instruction lie.
struct Found {
    /// None is shared memory.
    page: Option<Page>,
    /// The address of the first byte, as the detector counts.
    base: u64,
    spread: Spread,
}

/// How lanes lie to each other: offsets from the first byte.
enum Spread {
    /// All lanes, one behind the other.
    Row(u32),
    /// All lanes at one place.
    Same(u32),
    /// Anywhere; lanes that do not take part are where one is that does.
    Apart([u32; 32]),
}

impl Spread {
    #[inline(always)]
    fn offset(&self, lane: usize, bytes: u32) -> u32 {
        match self {
            Spread::Row(offset) => offset + lane as u32 * bytes,
            Spread::Same(offset) => *offset,
            Spread::Apart(offsets) => offsets[lane],
        }
    }

    /// Do several lanes write to one place? Whether they agree, the definition sees.
    #[inline(always)]
    fn meets(&self, mask: u32, bytes: u32) -> bool {
        match self {
            Spread::Row(_) => false,
            Spread::Same(_) => true,
            Spread::Apart(offsets) => any_meet(offsets, mask, bytes),
        }
    }
}

/// Two lanes at one place. Lanes in rising order and places near each other, as most are, are told apart at once.
#[cold]
#[inline(never)]
fn any_meet(offsets: &[u32; 32], mask: u32, bytes: u32) -> bool {
    if mask == u32::MAX && offsets.windows(2).fold(true, |rises, pair| rises & (pair[0] < pair[1])) {
        return false;
    }
    let size = bytes.trailing_zeros();
    let (mut taken, mut twice) = ([0u64; 4], 0);
    let taking_part = || (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| offsets[lane] >> size);
    for place in taking_part() {
        let (word, bit) = ((place >> 6) as usize & 3, 1 << (place & 63));
        twice |= taken[word] & bit;
        taken[word] |= bit;
    }
    if twice == 0 {
        return false;
    }
    let mut places: Vec<u32> = taking_part().collect();
    places.sort_unstable();
    places.windows(2).any(|pair| pair[0] == pair[1])
}

impl View<'_> {
    /// False if the definition must do it.
    #[inline(always)]
    pub fn load<const LEVEL: u8, const CHECKED: bool>(
        &mut self,
        file: &mut File,
        traffic: &Traffic,
        address: u32,
        mask: u32,
    ) -> bool {
        if mask == 0 {
            return true;
        }
        let Some(found) = self.find::<LEVEL>(file, traffic, address, mask) else { return false };
        if CHECKED && self.audit.is_some() {
            self.open_books(traffic);
        }
        if CHECKED && self.detector.is_some() && !self.passes(&found, traffic, mask, Kind::Read) {
            return false;
        }
        let data = self.lend::<CHECKED>(&found, traffic, mask);
        match (&found.spread, traffic.bytes) {
            (Spread::Row(offset), 4) => load_row::<LEVEL, 1>(file, traffic, data, *offset),
            (Spread::Row(offset), 8) => load_row::<LEVEL, 2>(file, traffic, data, *offset),
            (Spread::Row(offset), 16) => load_row::<LEVEL, 4>(file, traffic, data, *offset),
            (Spread::Same(offset), 4..) => load_same(file, traffic, data, *offset),
            (spread, 4) => gather::<4>(file, traffic, data, spread, mask),
            (spread, 8) => gather::<8>(file, traffic, data, spread, mask),
            (spread, 16) => gather::<16>(file, traffic, data, spread, mask),
            (spread, 2) => gather::<2>(file, traffic, data, spread, mask),
            (spread, _) => gather::<1>(file, traffic, data, spread, mask),
        }
        true
    }

    /// False if the definition must do it.
    #[inline(always)]
    pub fn store<const LEVEL: u8, const CHECKED: bool>(
        &mut self,
        file: &mut File,
        traffic: &Traffic,
        address: u32,
        mask: u32,
    ) -> bool {
        if mask == 0 {
            return true;
        }
        let Some(found) = self.find::<LEVEL>(file, traffic, address, mask) else { return false };
        if CHECKED && self.detector.is_some() && found.spread.meets(mask, traffic.bytes) {
            return false;
        }
        if CHECKED && self.audit.is_some() {
            self.open_books(traffic);
        }
        if CHECKED && self.detector.is_some() {
            self.passes(&found, traffic, mask, Kind::Write);
        }
        let data = self.lend_to_write::<CHECKED>(&found, traffic, mask);
        match (&found.spread, traffic.bytes) {
            (Spread::Row(offset), 4) => store_row::<LEVEL, 1>(file, traffic, data, *offset),
            (Spread::Row(offset), 8) => store_row::<LEVEL, 2>(file, traffic, data, *offset),
            (Spread::Row(offset), 16) => store_row::<LEVEL, 4>(file, traffic, data, *offset),
            (spread, 4) => scatter::<4>(file, traffic, data, spread, mask),
            (spread, 8) => scatter::<8>(file, traffic, data, spread, mask),
            (spread, 16) => scatter::<16>(file, traffic, data, spread, mask),
            (spread, 2) => scatter::<2>(file, traffic, data, spread, mask),
            (spread, _) => scatter::<1>(file, traffic, data, spread, mask),
        }
        true
    }

    /// None where an address is outside, unaligned, or the lanes reach several allocations.
    #[inline(always)]
    fn find<const LEVEL: u8>(&self, file: &File, traffic: &Traffic, address: u32, mask: u32) -> Option<Found> {
        let first = mask.trailing_zeros() as usize;
        let (page, base, length, start) = match traffic.space {
            // The detector tells the blocks of a cluster apart by their rank.
            Space::Shared => (None, self.rank << 32, self.shared.len(), 0u64.wrapping_sub(traffic.offset)),
            Space::Global => {
                let (low, high) = (file.words(address)[first], file.words(address + 1)[first]);
                let place = (u64::from(high) << 32 | u64::from(low)).wrapping_add(traffic.offset);
                let (page, base) = self.global.find_page(place, u64::from(traffic.bytes))?;
                (Some(page), base, self.global.page(page).data().len(), base.wrapping_sub(traffic.offset))
            }
        };
        let (largest, all, spread) = match even::<LEVEL>(file, traffic, address, mask) {
            Even::Row if row_fits(file, traffic, address) => {
                let offset = file.words(address)[0].wrapping_sub(start as u32);
                (u64::from(offset) + 31 * u64::from(traffic.bytes), offset, Spread::Row(offset))
            }
            Even::Same => {
                let offset = file.words(address)[0].wrapping_sub(start as u32);
                (offset.into(), offset, Spread::Same(offset))
            }
            _ => apart(file, traffic, address, start, mask)?,
        };
        let inside = largest + u64::from(traffic.bytes) <= length as u64;
        let aligned = all & (traffic.bytes - 1) == 0;
        (inside && aligned).then_some(Found { page, base, spread })
    }

    /// The bytes of an instruction, and those around them.
    #[inline(always)]
    fn lend<const CHECKED: bool>(&self, found: &Found, traffic: &Traffic, mask: u32) -> &[u8] {
        if CHECKED && let Some(audit) = self.audit {
            self.note(audit, found, traffic, mask, Column::Read);
        }
        match found.page {
            Some(page) => self.global.page(page).data(),
            None => self.shared.data(),
        }
    }

    #[inline(always)]
    fn lend_to_write<const CHECKED: bool>(&mut self, found: &Found, traffic: &Traffic, mask: u32) -> &mut [u8] {
        if CHECKED && let Some(audit) = self.audit {
            self.note(audit, found, traffic, mask, Column::Written);
        }
        self.own(found.page).data_mut()
    }

    /// The bytes, to write to.
    #[inline(always)]
    fn own(&mut self, page: Option<Page>) -> &mut Bytes {
        match page {
            Some(page) => self.global.page_mut(page).own(),
            None => &mut *self.shared,
        }
    }

    /// Shows an access to the checks; false if it reads what nobody wrote, which the definition words.
    #[inline(always)]
    fn passes(&mut self, found: &Found, traffic: &Traffic, mask: u32, kind: Kind) -> bool {
        let Found { page, base, .. } = *found;
        match &found.spread {
            Spread::Row(offset) => {
                self.passes_even(page, *offset, Places::Row(base + u64::from(*offset)), traffic, kind)
            }
            Spread::Same(offset) => {
                self.passes_even(page, *offset, Places::Same(base + u64::from(*offset)), traffic, kind)
            }
            Spread::Apart(offsets) => self.passes_apart(page, base, offsets, (traffic, mask), kind),
        }
    }

    /// All lanes in a row, or at one place. Cold, so that it lies outside of the loop over kernels: that is 4 % faster.
    #[cold]
    #[inline(never)]
    fn passes_even(&mut self, page: Option<Page>, offset: u32, places: Places, traffic: &Traffic, kind: Kind) -> bool {
        let bytes = traffic.bytes * if matches!(places, Places::Row(_)) { 32 } else { 1 };
        if kind == Kind::Read && !self.is_written(page, offset, bytes) {
            return false;
        }
        self.watch(places, traffic, u32::MAX, kind);
        if kind == Kind::Write {
            self.own(page).mark_written(offset as usize, bytes as usize);
        }
        true
    }

    /// Likewise, lanes anywhere.
    #[cold]
    #[inline(never)]
    fn passes_apart(
        &mut self,
        page: Option<Page>,
        base: u64,
        offsets: &[u32; 32],
        (traffic, mask): (&Traffic, u32),
        kind: Kind,
    ) -> bool {
        let lanes = || (0..32).filter(|lane| mask >> lane & 1 == 1);
        if kind == Kind::Read && !lanes().all(|lane| self.is_written(page, offsets[lane], traffic.bytes)) {
            return false;
        }
        let addresses = offsets.map(|offset| base + u64::from(offset));
        self.watch(Places::Each(&addresses), traffic, mask, kind);
        if kind == Kind::Write {
            let all = self.own(page);
            lanes().for_each(|lane| all.mark_written(offsets[lane] as usize, traffic.bytes as usize));
        }
        true
    }

    fn is_written(&self, page: Option<Page>, offset: u32, bytes: u32) -> bool {
        if let Some(audit) = self.audit {
            self.note_range(audit, Column::Asked, page, offset, (bytes, 1));
        }
        self.counts_as_written(page, offset, bytes)
    }

    fn counts_as_written(&self, page: Option<Page>, offset: u32, bytes: u32) -> bool {
        match page {
            Some(page) => self.global.page(page).is_written(offset as usize, bytes as usize),
            None => self.shared.is_written(offset as usize, bytes as usize),
        }
    }

    fn watch(&mut self, places: Places, traffic: &Traffic, mask: u32, kind: Kind) {
        if let Some(detector) = &mut self.detector {
            let (who, site) = (Lanes { warp: self.warp, mask }, Site(traffic.site));
            detector.access(who, site, kind, traffic.space, places, traffic.bytes);
        }
    }
}

/// What a glance at the addresses tells.
enum Even {
    Row,
    Same,
    Neither,
}

/// Do all lanes lie one behind the other, or at one place? Low words are compared, and that high words are equal.
#[inline(always)]
fn even<const LEVEL: u8>(file: &File, traffic: &Traffic, address: u32, mask: u32) -> Even {
    if mask != u32::MAX {
        return Even::Neither;
    }
    if traffic.space == Space::Global && !vector::is_same::<LEVEL>(file.words(address + 1)) {
        return Even::Neither;
    }
    if traffic.bytes >= 4 && vector::is_row::<LEVEL>(file.words(address), traffic.bytes.trailing_zeros()) {
        Even::Row
    } else if vector::is_same::<LEVEL>(file.words(address)) {
        Even::Same
    } else {
        Even::Neither
    }
}

/// A row whose low words do not pass 2^32.
#[inline(always)]
fn row_fits(file: &File, traffic: &Traffic, address: u32) -> bool {
    file.words(address)[0].checked_add(32 * traffic.bytes).is_some()
}

/// Addresses anywhere, seen from `start`: the largest, all bits that occur, and each. None if one that counts lies before
/// the start, or 4 GiB behind.
#[inline(always)]
fn apart(file: &File, traffic: &Traffic, address: u32, start: u64, mask: u32) -> Option<(u64, u32, Spread)> {
    let (low, high) = (file.words(address), file.words(address + 1));
    let (start_low, start_high) = (start as u32, (start >> 32) as u32);
    let (mut offsets, mut far) = ([0; 32], 0);
    for lane in 0..32 {
        offsets[lane] = low[lane].wrapping_sub(start_low);
        let borrow = u32::from(low[lane] < start_low);
        let counts = u32::from(mask & 1 << lane != 0).wrapping_neg();
        far |= high[lane].wrapping_sub(start_high).wrapping_sub(borrow) & counts;
    }
    if far != 0 && traffic.space == Space::Global {
        return None;
    }
    let known = offsets[mask.trailing_zeros() as usize & 31];
    let (mut largest, mut all) = (0, 0);
    for lane in 0..32 {
        offsets[lane] = if mask & 1 << lane != 0 { offsets[lane] } else { known };
        largest = offsets[lane].max(largest);
        all |= offsets[lane];
    }
    Some((largest.into(), all, Spread::Apart(offsets)))
}

#[inline(always)]
fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// `WORDS` words per lane, one lane behind the other.
#[inline(always)]
fn load_row<const LEVEL: u8, const WORDS: usize>(file: &mut File, traffic: &Traffic, data: &[u8], offset: u32) {
    let row = &data[offset as usize..offset as usize + 128 * WORDS];
    let mut all = Aligned([[0; WORDS]; 32]);
    for lane in 0..32 {
        for part in 0..WORDS {
            let at = 4 * (lane * WORDS + part);
            all.0[lane][part] = word(&row[at..at + 4]);
        }
    }
    let parts = vector::apart::<LEVEL, WORDS>(&all.0).0;
    for part in 0..WORDS {
        file.write(traffic.words[part], u32::MAX, &parts[part]);
    }
}

#[inline(always)]
fn store_row<const LEVEL: u8, const WORDS: usize>(file: &File, traffic: &Traffic, data: &mut [u8], offset: u32) {
    let row = &mut data[offset as usize..offset as usize + 128 * WORDS];
    let mut words = [file.words(traffic.words[0]); WORDS];
    for part in 1..WORDS {
        words[part] = file.words(traffic.words[part]);
    }
    let mut all = vector::together::<LEVEL, WORDS>(&words);
    for lane in 0..32 {
        for part in 0..WORDS {
            all.0[lane][part] = all.0[lane][part].to_le();
        }
    }
    // SAFETY: plain words are bytes, and there are as many.
    let bytes = unsafe { std::slice::from_raw_parts(all.0.as_ptr().cast::<u8>(), 128 * WORDS) };
    row.copy_from_slice(bytes);
}

/// The same words for every lane.
#[inline(always)]
fn load_same(file: &mut File, traffic: &Traffic, data: &[u8], offset: u32) {
    for part in 0..traffic.count() {
        let at = offset as usize + 4 * part;
        file.write(traffic.words[part], u32::MAX, &[[word(&data[at..at + 4]); 16]; 2]);
    }
}

/// `BYTES` bytes per lane, wherever they lie.
#[inline(always)]
fn gather<const BYTES: usize>(file: &mut File, traffic: &Traffic, data: &[u8], spread: &Spread, mask: u32) {
    let mut words = [[[0; 16]; 2]; 4];
    for lane in 0..32 {
        let (half, place) = (lane / 16, lane % 16);
        let at = spread.offset(lane, BYTES as u32) as usize;
        let bytes = &data[at..at + BYTES];
        match BYTES {
            1 => words[0][half][place] = bytes[0].into(),
            2 => words[0][half][place] = u16::from_le_bytes([bytes[0], bytes[1]]).into(),
            _ => {
                for part in 0..BYTES / 4 {
                    words[part][half][place] = word(&bytes[4 * part..4 * part + 4]);
                }
            }
        }
    }
    for part in 0..BYTES.div_ceil(4) {
        file.write(traffic.words[part], mask, &words[part]);
    }
}

/// Lanes in their order: where several write to one place, the last remains.
#[inline(always)]
fn scatter<const BYTES: usize>(file: &File, traffic: &Traffic, data: &mut [u8], spread: &Spread, mask: u32) {
    let [first, second, third, fourth] = traffic.words;
    let words = [file.words(first), file.words(second), file.words(third), file.words(fourth)];
    for lane in 0..32 {
        if mask >> lane & 1 == 0 {
            continue;
        }
        let at = spread.offset(lane, BYTES as u32) as usize;
        let bytes = &mut data[at..at + BYTES];
        match BYTES {
            1 | 2 => bytes.copy_from_slice(&words[0][lane].to_le_bytes()[..BYTES]),
            _ => {
                for part in 0..BYTES / 4 {
                    bytes[4 * part..4 * part + 4].copy_from_slice(&words[part][lane].to_le_bytes());
                }
            }
        }
    }
}
