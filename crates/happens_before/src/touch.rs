//! From the addresses of an instruction to the largest pieces that one mark describes.

use std::ops::Range;

use super::actor::{Actor, Quick};
use super::clock::bits;
use super::mark::{Access, Chain, Item, Mark, Pattern, Strong};
use super::places::Places;
use super::shadow::Shadow;

/// The access of lanes that know the same. Places count for the lanes of `mask` only.
pub struct Touch<'a> {
    pub actor: &'a Actor<'a>,
    pub access: Access,
    pub mask: u32,
    pub places: Places<'a>,
    pub bytes: u32,
}

impl Touch<'_> {
    pub fn apply(&self, shadow: &mut Shadow) {
        if self.bytes == 0 || self.mask == 0 {
            return;
        }
        if self.actor.agrees() {
            return bits(self.mask).for_each(|lane| self.exactly(shadow, lane.into()));
        }
        let mut quick = Quick::new(self.actor);
        let first = self.at(self.mask.trailing_zeros());
        match self.places {
            Places::Row(_) if self.mask == u32::MAX => return self.consecutive(shadow, &mut quick, 0, 32),
            Places::Row(_) => {}
            _ if self.is_same(first) => return self.broadcast(shadow, first),
            _ => {}
        }
        let mut rest = self.mask;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let lanes = self.run(rest, first);
            self.consecutive(shadow, &mut quick, first, lanes);
            rest &= ((u64::MAX << (first + lanes)) & u32::MAX as u64) as u32;
        }
    }

    fn at(&self, lane: u32) -> u64 {
        self.places.at(lane as u8, self.bytes)
    }

    /// Do several lanes touch the same bytes?
    fn is_same(&self, first: u64) -> bool {
        self.mask.count_ones() > 1 && bits(self.mask).all(|lane| self.at(lane.into()) == first)
    }

    /// How many lanes from `first` on touch bytes that lie one behind the other.
    fn run(&self, mask: u32, first: u32) -> u32 {
        if let Places::Each(addresses) = self.places
            && mask == u32::MAX
            && is_contiguous(addresses, self.bytes)
        {
            return 32;
        }
        let goes_on = |lane: &u32| {
            let before = self.at(lane - 1);
            mask >> lane & 1 == 1 && self.at(*lane) == before.wrapping_add(self.bytes as u64)
        };
        (first + 1..32).take_while(goes_on).count() as u32 + 1
    }

    /// All lanes touch the same bytes.
    fn broadcast(&self, shadow: &mut Shadow, start: u64) {
        let Access { write, strong, .. } = self.access;
        let every = self.mask == u32::MAX && strong.is_none();
        if every && !write && (start | self.bytes as u64).is_multiple_of(16) {
            let (mark, mut quick) = (Mark::new(&self.access, Pattern::every()), Quick::new(self.actor));
            return shadow.granules(&mut quick, start / 16, self.bytes as u64 / 16, mark, 0, write);
        }
        self.pieces(start, |word, item| match item.bytes {
            15 if every => shadow.word(self.actor, word, Mark::new(&self.access, Pattern::every()), write),
            _ => shadow.list(self.actor, word, Item { mask: self.mask, ..item }),
        });
    }

    /// Lanes whose bytes lie one behind the other: whole granules at once, the rest lane by lane.
    fn consecutive(&self, shadow: &mut Shadow, quick: &mut Quick, first: u32, lanes: u32) {
        let (start, size) = (self.at(first), self.bytes as u64);
        let end = start + lanes as u64 * size;
        let (from, to) = (start.next_multiple_of(16), end / 16 * 16);
        let even = size.is_power_of_two() && size <= 16 && start & (size - 1) == 0 && self.access.strong.is_none();
        if !even || from >= to {
            return (first..first + lanes).for_each(|lane| self.lane(shadow, lane));
        }
        // Divisions by the size would take as long as everything else here.
        let unit = size.trailing_zeros();
        let (head, tail) = (first + ((from - start) >> unit) as u32, first + ((to - start) >> unit) as u32);
        let (mark, step) = (Mark::new(&self.access, Pattern::consecutive(head as u8, unit)), 16 >> unit);
        shadow.granules(quick, from / 16, (to - from) / 16, mark, step, self.access.write);
        (first..head).chain(tail..first + lanes).for_each(|lane| self.lane(shadow, lane));
    }

    fn lane(&self, shadow: &mut Shadow, lane: u32) {
        let whole = Mark::new(&self.access, Pattern::one(lane as u8));
        self.pieces(self.at(lane), |word, item| match item.bytes {
            15 if self.access.strong.is_none() => shadow.word(self.actor, word, whole, self.access.write),
            _ => shadow.list(self.actor, word, Item { mask: 1 << lane, ..item }),
        });
    }

    fn exactly(&self, shadow: &mut Shadow, lane: u32) {
        self.pieces(self.at(lane), |word, item| shadow.list(self.actor, word, Item { mask: 1 << lane, ..item }));
    }

    /// Cuts a lane's bytes into words.
    fn pieces(&self, start: u64, piece: impl FnMut(u64, Item)) {
        pieces(&self.access, start, self.bytes as u64, piece);
    }
}

/// All lanes one behind the other, the common case: without branches, so that the compiler makes it a few wide compares.
fn is_contiguous(addresses: &[u64; 32], bytes: u32) -> bool {
    let expected = (0..32).map(|lane| addresses[0].wrapping_add(lane * bytes as u64));
    addresses.iter().zip(expected).fold(0, |differs, (found, expected)| differs | (found ^ expected)) == 0
}

/// Cuts bytes that one access touches into words; the lanes are left to the caller.
fn pieces(access: &Access, start: u64, bytes: u64, mut piece: impl FnMut(u64, Item)) {
    let Access { name, time, site, write, asynchronous, strong, atomic, .. } = *access;
    let end = start + bytes;
    let chain = if atomic { Chain::FIRST } else { Chain::default() };
    for word in start / 4..end.div_ceil(4) {
        let (from, to) = (start.max(word * 4) - word * 4, end.min(word * 4 + 4) - word * 4);
        let location = |sharers| Strong { sharers, offset: start.wrapping_sub(word * 4) as i8, size: bytes as u8 };
        let strong = strong.map(location);
        let bytes = ((1u32 << to) - (1 << from)) as u8;
        piece(word, Item { time, site, name, mask: 0, bytes, write, asynchronous, strong, chain });
    }
}

/// One lane, or a collective under the name of one lane, touches all bytes from `start` to `end`.
pub fn touch_range(shadow: &mut Shadow, quick: &mut Quick, access: &Access, lane: u8, range: &Range<u64>) {
    let (actor, whole) = (quick.actor, Mark::new(access, Pattern::one(lane)));
    let by_word = |shadow: &mut Shadow, start: u64, end: u64| {
        pieces(access, start, end.saturating_sub(start), |word, item| match item.bytes {
            15 => shadow.word(actor, word, whole, access.write),
            _ => shadow.list(actor, word, Item { mask: 1 << lane, ..item }),
        });
    };
    let (from, to) = (range.start.next_multiple_of(16).min(range.end), range.end / 16 * 16);
    by_word(shadow, range.start, from);
    if from < to {
        shadow.granules(quick, from / 16, (to - from) / 16, whole, 0, access.write);
    }
    by_word(shadow, to.max(from), range.end);
}

/// Elements that are added to memory one by one: each is a strong access of its own.
pub fn touch_elements(shadow: &mut Shadow, actor: &Actor, access: &Access, lane: u8, range: &Range<u64>, bytes: u64) {
    for start in range.clone().step_by(bytes as usize) {
        pieces(access, start, bytes, |word, item| shadow.list(actor, word, Item { mask: 1 << lane, ..item }));
    }
}
