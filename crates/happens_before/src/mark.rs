//! What the shadow stores: marks of whole granules and words, and items for everything that a mark cannot tell.

use super::clock::Row;
use super::scope::{Scope, Seat};

/// The access to a whole granule or word, in 12 bytes.
///
/// `tag` packs name, flags and lanes into one register: fields stored one by one would stall the next wide load.
/// `time` 0 means "nobody"; a link to a side table keeps its index in `site`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mark {
    pub time: u32,
    pub tag: u32,
    pub site: u32,
}

/// The granule is described word by word.
pub const SPLIT: u32 = 1 << 8;
/// The granule has concurrent whole-granule readers.
pub const MANY: u32 = 2 << 8;
/// The word is described by a list of items.
pub const LIST: u32 = 4 << 8;
/// The access was made through the async proxy.
pub const ASYNC: u32 = 8 << 8;
/// Above the flags stands whose mark it is.
const NAME_SHIFT: u32 = 12;
/// How many can be told apart.
pub const NAMES: usize = 1 << (32 - NAME_SHIFT);

/// Which lanes touched which byte of the granule or word, in 8 bits: byte b was touched by lane `first + (b >> unit)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern(pub u32);

const ONE: u32 = 4;
const EVERY: u32 = 5;

impl Pattern {
    /// One lane touched all of it.
    pub fn one(lane: u8) -> Pattern {
        Pattern(lane as u32 | ONE << 5)
    }

    /// Every lane of the warp touched all of it.
    pub fn every() -> Pattern {
        Pattern(EVERY << 5)
    }

    /// Consecutive lanes from `first`, each with `1 << unit` bytes (at most 16).
    pub fn consecutive(first: u8, unit: u32) -> Pattern {
        Pattern(first as u32 | unit << 5)
    }

    fn first(self) -> u32 {
        self.0 & 31
    }

    fn unit(self) -> u32 {
        self.0 >> 5
    }

    pub fn is_every(self) -> bool {
        self.unit() == EVERY
    }

    /// The lane that touched the first byte, and how many bytes it touched at most.
    pub fn first_lane(self) -> (u8, u32) {
        if self.is_every() { (0, u32::MAX) } else { (self.first() as u8, 1 << self.unit()) }
    }

    /// Bytes per lane within a word: 1 or 2, else 4.
    pub fn bytes_in_word(self) -> u8 {
        1 << self.unit().min(2)
    }

    /// The lanes that touched byte `byte`.
    pub fn lanes_at(self, byte: u8) -> u32 {
        if self.is_every() { u32::MAX } else { 1 << (self.first() + (byte as u32 >> self.unit())) }
    }

    /// All lanes that touched a granule; more than all for a word of one-byte or two-byte accesses.
    fn lanes(self) -> u32 {
        match self.unit() {
            EVERY => u32::MAX,
            unit => ((1 << (16 >> unit)) - 1) << self.first(),
        }
    }

    /// The pattern within one word of a granule.
    fn at_word(self, word: u8) -> Pattern {
        match self.unit() {
            EVERY => self,
            unit => {
                let first = self.first() + ((word as u32 * 4) >> unit);
                Pattern(first | (if unit < 2 { unit } else { ONE }) << 5)
            }
        }
    }
}

impl Mark {
    pub fn new(access: &Access, pattern: Pattern) -> Mark {
        let proxy = if access.asynchronous { ASYNC } else { 0 };
        Mark { time: access.time, tag: Mark::tag_of(access.name) | proxy | pattern.0, site: access.site }
    }

    /// The part of a tag that says who.
    pub fn tag_of(name: u32) -> u32 {
        name << NAME_SHIFT
    }

    pub fn link(flag: u32, index: u32) -> Mark {
        Mark { time: 0, tag: flag, site: index }
    }

    #[inline(always)]
    pub fn is(&self, flag: u32) -> bool {
        self.tag & flag != 0
    }

    #[inline(always)]
    pub fn name(&self) -> u32 {
        self.tag >> NAME_SHIFT
    }

    #[inline(always)]
    pub fn pattern(&self) -> Pattern {
        Pattern(self.tag & 0xff)
    }

    /// The lanes that touched some byte of the granule; of a word, possibly more than those.
    pub fn lanes(&self) -> u32 {
        self.pattern().lanes()
    }

    /// The same lanes at the same time: who follows one follows the other.
    #[inline(always)]
    pub fn same_epoch(&self, other: &Mark) -> bool {
        self.time == other.time && self.tag == other.tag
    }

    /// The same statement and lanes at that time or later: who follows this one follows the other.
    pub fn outlasts(&self, other: &Mark) -> bool {
        self.tag == other.tag && (self.time == other.time || self.time > other.time && self.site == other.site)
    }

    /// The mark of the granule that lies `lanes` lanes further on.
    #[inline(always)]
    pub fn advance(self, lanes: u32) -> Mark {
        Mark { tag: self.tag + lanes, ..self }
    }

    pub fn at_word(self, word: u8) -> Mark {
        Mark { tag: self.tag & !0xff | self.pattern().at_word(word).0, ..self }
    }

    /// The items that say the same of one word.
    pub fn items(self, write: bool) -> impl Iterator<Item = Item> {
        let (pattern, bytes) = (self.pattern(), self.pattern().bytes_in_word());
        (0..4u8).step_by(bytes as usize).filter(move |_| self.time != 0).map(move |byte| Item {
            time: self.time,
            site: self.site,
            name: self.name(),
            mask: pattern.lanes_at(byte),
            bytes: ((1 << bytes) - 1) << byte,
            write,
            asynchronous: self.is(ASYNC),
            strong: None,
            chain: Chain::default(),
        })
    }
}

/// One instruction's access, whatever its addresses: by which row, when, and how.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub row: Row,
    /// The row in the shadow that is touched: those of global memory tell clusters apart.
    pub name: u32,
    pub time: u32,
    pub site: u32,
    pub write: bool,
    /// By the async proxy.
    pub asynchronous: bool,
    pub strong: Option<Sharers>,
    /// Reads what it replaces: `atom`, `red`.
    pub atomic: bool,
    /// Lanes write equal values where they write the same bytes.
    pub agreed: bool,
}

impl Access {
    /// A weak access by threads, as the shadow of shared memory knows it.
    pub fn weak(row: Row, time: u32, site: u32, write: bool) -> Access {
        Access {
            row,
            name: row.into(),
            time,
            site,
            write,
            asynchronous: false,
            strong: None,
            atomic: false,
            agreed: false,
        }
    }
}

/// With whom a strong access may share its location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharers {
    pub scope: Scope,
    pub block: u8,
}

/// Where a strong access lies, seen from one of its words. Accesses that overlap in part are never morally strong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strong {
    pub sharers: Sharers,
    /// Start of the access relative to the word.
    pub offset: i8,
    pub size: u8,
}

/// What strong accesses have in common that may share their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    start: u64,
    size: u8,
    asynchronous: bool,
}

/// An access to some bytes of one word, by any lanes of a row.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    pub time: u32,
    pub site: u32,
    pub name: u32,
    pub mask: u32,
    pub bytes: u8,
    pub write: bool,
    pub asynchronous: bool,
    pub strong: Option<Strong>,
    pub chain: Chain,
}

/// Which atomics have read what the one before them left, in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Chain(u8);

impl Chain {
    const SUPERSEDED: u8 = 1 << 7;
    /// An atomic that reads what none of those before it left.
    pub const FIRST: Chain = Chain(1);

    /// The chain that begins when there are others; none, if there are too many.
    pub fn next(self) -> Chain {
        Chain((self.number() + 1) % Chain::SUPERSEDED)
    }

    /// The same chain, for one that nothing stands for yet.
    pub fn continued(self) -> Chain {
        Chain(self.number())
    }

    /// 0 if it is not an atomic.
    pub fn number(self) -> u8 {
        self.0 & !Chain::SUPERSEDED
    }

    /// A later access stands for it, and it is kept for those before it.
    pub fn superseded(self) -> Chain {
        Chain(self.0 | Chain::SUPERSEDED)
    }

    pub fn is_superseded(self) -> bool {
        self.0 & Chain::SUPERSEDED != 0
    }
}

impl Item {
    /// PTX ISA, "Conflict and Data-races": morally strong accesses of the same location do not race.
    pub fn morally_strong_with(&self, other: &Item, same_cluster: bool) -> bool {
        let (Some(one), Some(two)) = (self.strong, other.strong) else { return false };
        let [here, there] = [one.sharers, two.sharers];
        let includes = |from: Sharers, to: Sharers| match same_cluster {
            true => from.scope.includes(Seat::here(from.block.into()), Seat::here(to.block.into())),
            false => from.scope == Scope::Gpu,
        };
        (one.offset, one.size) == (two.offset, two.size)
            && self.asynchronous == other.asynchronous
            && includes(here, there)
            && includes(there, here)
    }

    /// The location of a strong access, seen from its word at an address, if all other clusters and grids may share it.
    pub fn shared_by_all(&self, address: u64) -> Option<Location> {
        let Strong { offset, size, .. } = self.strong.filter(|strong| strong.sharers.scope == Scope::Gpu)?;
        Some(Location { start: address.wrapping_add_signed(offset.into()), size, asynchronous: self.asynchronous })
    }

    pub fn is_atomic(&self) -> bool {
        self.chain.number() != 0
    }

    /// Has this atomic read what an earlier one left, or what was left by one that had?
    pub fn continues(&self, earlier: &Item) -> bool {
        let same = self.chain.number() == earlier.chain.number() && self.bytes & earlier.bytes != 0;
        same && !self.is_of_the_instruction(earlier)
    }

    /// Lanes of one instruction, or of the same one in a loop that releases nothing.
    pub fn is_of_the_instruction(&self, other: &Item) -> bool {
        let instruction = |item: &Item| (item.time, item.site, item.name);
        instruction(self) == instruction(other)
    }

    /// Lanes race among themselves if several write.
    pub fn races_with_itself(&self) -> bool {
        self.write && self.strong.is_none() && self.mask.count_ones() > 1
    }

    /// The same statement at that time or later, and in the same row: who follows a lane of it follows that lane of the
    /// other.
    pub fn outlasts(&self, other: &Item) -> bool {
        let key = |item: &Item| (item.site, item.name, item.write, item.asynchronous, item.strong);
        key(self) == key(other) && self.time > other.time
    }

    /// Equal but for the lanes.
    pub fn merges_with(&self, other: &Item) -> bool {
        let how = |item: &Item| (item.bytes, item.write, item.asynchronous, item.strong, item.chain);
        self.is_of_the_instruction(other) && how(self) == how(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_falls_apart_into_the_lanes_of_its_words() {
        let access = Access::weak(3, 7, 9, true);
        let lanes = |mark: Mark| mark.items(true).map(|item| (item.mask, item.bytes)).collect::<Vec<_>>();
        let halves = Mark::new(&access, Pattern::consecutive(8, 1));
        assert_eq!(lanes(halves.at_word(1)), [(1 << 10, 0b0011), (1 << 11, 0b1100)]);
        let words = Mark::new(&access, Pattern::consecutive(8, 2));
        assert_eq!((lanes(words.at_word(3)), words.lanes()), (vec![(1 << 11, 0b1111)], 0xf00));
        let doubles = Mark::new(&access, Pattern::consecutive(30, 3));
        assert_eq!((lanes(doubles.at_word(3)), doubles.lanes()), (vec![(1 << 31, 0b1111)], 3 << 30));
        let every = Mark::new(&access, Pattern::every());
        assert_eq!(lanes(every.at_word(2)), [(u32::MAX, 0b1111)]);
    }
}
