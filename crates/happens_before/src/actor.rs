//! Who asks: the knowledge of the lanes that execute or issue an access, compared with earlier marks.

use super::abroad::Origin;
use super::clock::{Row, bits};
use super::commons::Member;
use super::mark::{ASYNC, Item, LIST, Mark, Pattern, SPLIT};
use super::view::{Cover, Own, ROWS, View};

/// What lies between two accesses that conflict, from the least to the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Gap {
    /// They are ordered, but no proxy fence lies on the way.
    Fence,
    /// Something synchronises, but its scope or its semantics does not reach the other thread.
    Reach,
    /// Nothing orders them.
    Order,
}

/// Lanes of one warp that know the same, except each of itself.
pub struct Actor<'a> {
    pub view: &'a View,
    pub own: &'a Own,
    /// The first row of the warp.
    pub rows: Row,
    /// The block of the warp.
    pub block: u32,
    pub cluster: u32,
    /// Who is who in the shadow of global memory; in that of shared memory a name is the number of a row.
    pub members: Option<&'a [Member]>,
    /// The warp's lanes in the shadow.
    pub name: u32,
    /// The fence that earlier generic accesses need, if this access is asynchronous.
    pub needed: Option<Cover>,
    /// The access is made by a unit that will tell of it: who learns of its completion does not learn what the lanes knew.
    pub detached: bool,
    /// What all lanes of the instruction know, if they write equal values where they write the same bytes.
    pub agreed: &'a [&'a View],
    /// A collective: all these lanes ask, though the mark names one.
    pub collective: Option<u32>,
}

impl Actor<'_> {
    fn needed(&self, asynchronous: bool) -> Option<Cover> {
        self.needed.filter(|_| !asynchronous)
    }

    /// The lanes that ask, where an access is remembered as that of `mask`.
    pub fn asking(&self, mask: u32) -> u32 {
        self.collective.unwrap_or(mask)
    }

    /// Whose mark it is.
    pub fn origin(&self, name: u32) -> Origin {
        match self.members.map(|members| members[name as usize]) {
            None => Origin::home(name as Row),
            Some(member) => member.seen_from(self.cluster),
        }
    }

    /// Was it somebody of the same cluster?
    pub fn is_at_home(&self, name: u32) -> bool {
        self.origin(name).abroad.is_none()
    }

    /// Up to when a lane knows what it did itself in this row.
    fn own_time(&self, origin: Origin, needed: Option<Cover>) -> u32 {
        match (origin.row.wrapping_sub(self.rows) as usize, needed) {
            _ if origin.abroad.is_some() => 0,
            (own, None) if own < ROWS => self.own.time(own),
            (own, Some(needed)) if own < ROWS => self.own.fenced_time(own, needed, self.block),
            _ => 0,
        }
    }

    fn unknown(&self, origin: Origin, time: u32, mask: u32, needed: Option<Cover>) -> u32 {
        match needed {
            None => self.view.seen.unknown_at(origin, time, mask),
            Some(needed) => self.view.unfenced(needed, origin, time, mask),
        }
    }

    /// One answer for a whole mark: true means that every byte's earlier access is known to the lane that touches it
    /// now, and fenced if need be; false means that a closer look is needed.
    pub fn follows(&self, prior: &Mark, pattern: Pattern) -> bool {
        let (needed, origin) = (self.needed(prior.is(ASYNC)), self.origin(prior.name()));
        let same = || prior.pattern() == pattern && self.collective.is_none();
        needed.is_none() && prior.time <= self.view.seen.floor_at(origin)
            || same() && prior.time <= self.own_time(origin, needed)
            || self.unknown(origin, prior.time, prior.lanes(), needed) == 0
    }

    /// Does nobody who asks know of any lane of the mark?
    pub fn ignores(&self, prior: &Mark) -> bool {
        let (needed, origin) = (self.needed(prior.is(ASYNC)), self.origin(prior.name()));
        let lanes = prior.lanes();
        self.own_time(origin, needed) < prior.time && self.unknown(origin, prior.time, lanes, needed) == lanes
    }

    pub fn agrees(&self) -> bool {
        !self.agreed.is_empty()
    }

    /// Lanes of the earlier access which no lane of `mask` follows. Lanes that agree do not race with each other, so that
    /// none of them stands for what another one does not follow.
    pub fn unfollowed(&self, prior: &Item, mask: u32) -> u32 {
        let (needed, origin) = (self.needed(prior.asynchronous), self.origin(prior.name));
        if self.agrees() {
            let unknown = |view: &&View| view.seen.unknown_at(origin, prior.time, prior.mask);
            return self.agreed.iter().fold(0, |unfollowed, view| unfollowed | unknown(view));
        }
        let unknown = self.unknown(origin, prior.time, prior.mask, needed);
        let own = prior.time <= self.own_time(origin, needed);
        if own { unknown & !self.asking(mask) } else { unknown }
    }

    /// A lane of the earlier access, one of those that ask and does not follow it, and the worst that lies between them.
    pub fn unordered(&self, prior: &Item, asking: u32) -> Option<(u8, u8, Gap)> {
        let (ordered, origin) = (None, self.origin(prior.name));
        let unknown = self.unknown(origin, prior.time, prior.mask, ordered);
        let unexplained = self.view.loose.unknown_at(origin, prior.time, unknown);
        let pair = |lanes, needed| self.strangers(prior, lanes, asking, needed);
        let gap = |gap| move |(first, second)| (first, second, gap);
        pair(unexplained, ordered).map(gap(Gap::Order)).or_else(|| pair(unknown, ordered).map(gap(Gap::Reach))).or_else(
            || {
                let needed = self.needed(prior.asynchronous);
                needed?;
                pair(self.unknown(origin, prior.time, prior.mask, needed), needed).map(gap(Gap::Fence))
            },
        )
    }

    /// What lies between a lane that asks and the lane of the earlier access that it knows best.
    pub fn nearest(&self, prior: &Item, asks: u8) -> Option<Gap> {
        let origin = self.origin(prior.name);
        let itself = |needed| prior.mask >> asks & 1 == 1 && prior.time <= self.own_time(origin, needed);
        let knows = |needed| itself(needed) || self.unknown(origin, prior.time, prior.mask, needed) != prior.mask;
        if !knows(None) {
            let loosely = self.view.loose.unknown_at(origin, prior.time, prior.mask) != prior.mask;
            return Some(if loosely { Gap::Reach } else { Gap::Order });
        }
        let needed = self.needed(prior.asynchronous);
        (needed.is_some() && !knows(needed)).then_some(Gap::Fence)
    }

    /// One of `lanes` of the earlier access and another lane that asks, or the same if it does not know itself.
    fn strangers(&self, prior: &Item, lanes: u32, asking: u32, needed: Option<Cover>) -> Option<(u8, u8)> {
        let own = prior.time <= self.own_time(self.origin(prior.name), needed);
        let strangers = |first: u8| if own { asking & !(1 << first) } else { asking };
        let first = bits(lanes).find(|first| strangers(*first) != 0)?;
        Some((first, strangers(first).trailing_zeros() as u8))
    }
}

/// `Actor::follows` for many granules: remembers the epoch that it last found known, so that a tile costs one lookup.
pub struct Quick<'a> {
    pub actor: &'a Actor<'a>,
    own_tag: u32,
    /// Time, row and proxy.
    known: (u32, u32),
}

/// A tag that no mark has.
const NOBODY: u32 = SPLIT | LIST;

impl<'a> Quick<'a> {
    pub fn new(actor: &'a Actor<'a>) -> Quick<'a> {
        let by_program_order = actor.needed.is_none() && actor.collective.is_none();
        Quick { actor, own_tag: if by_program_order { Mark::tag_of(actor.name) } else { NOBODY }, known: (0, 0) }
    }

    /// Takes the pattern by value: a mark whose address escapes would be stored and loaded again for every granule.
    #[inline(always)]
    pub fn follows(&mut self, prior: &Mark, pattern: Pattern) -> bool {
        let own = prior.tag == self.own_tag | pattern.0;
        own || prior.time == 0 || (prior.time, prior.tag >> 8) == self.known || self.look_up(*prior, pattern)
    }

    #[inline(never)]
    fn look_up(&mut self, prior: Mark, pattern: Pattern) -> bool {
        let (needed, origin) = (self.actor.needed(prior.is(ASYNC)), self.actor.origin(prior.name()));
        let all = match needed {
            None => prior.time <= self.actor.view.seen.floor_at(origin),
            Some(_) => self.actor.unknown(origin, prior.time, u32::MAX, needed) == 0,
        };
        if all {
            self.known = (prior.time, prior.tag >> 8);
        }
        all || self.actor.follows(&prior, pattern)
    }
}
