//! Who asks: the knowledge of the lanes that execute or issue an access, compared with earlier marks.

use super::clock::{Clock, Row, bits};
use super::mark::{Item, Mark, Pattern};

/// Lanes of one warp that know the same, except each of itself.
pub struct Actor<'a> {
    pub view: &'a Clock,
    /// The row of the warp's lanes; the row of its copies is the next one.
    pub lanes: Row,
    /// Each lane knows its own copies up to this batch.
    pub waited: u32,
}

impl Actor<'_> {
    /// Up to when a lane knows what it did itself in this row.
    fn own_time(&self, row: Row) -> u32 {
        match row.wrapping_sub(self.lanes) {
            0 => u32::MAX, // program order
            1 => self.waited,
            _ => 0,
        }
    }

    /// One answer for a whole mark: true means that every byte's earlier access is known to the lane that touches it
    /// now, false means that a closer look is needed.
    pub fn follows(&self, prior: &Mark, pattern: Pattern) -> bool {
        prior.time <= self.view.floor(prior.row())
            || prior.pattern() == pattern && prior.time <= self.own_time(prior.row())
            || self.view.unknown(prior.row(), prior.time, prior.lanes()) == 0
    }

    /// Lanes of the earlier access which no lane of `asking` follows.
    pub fn unfollowed(&self, prior: &Item, asking: u32) -> u32 {
        let unknown = self.view.unknown(prior.row, prior.time, prior.mask);
        if prior.time <= self.own_time(prior.row) { unknown & !asking } else { unknown }
    }

    /// A lane of the earlier access and a lane of `asking` that does not know of it.
    pub fn unordered(&self, prior: &Item, asking: u32) -> Option<(u8, u8)> {
        let unknown = self.view.unknown(prior.row, prior.time, prior.mask);
        let own = prior.time <= self.own_time(prior.row);
        let strangers = |first: u8| if own { asking & !(1 << first) } else { asking };
        let first = bits(unknown).find(|first| strangers(*first) != 0)?;
        Some((first, strangers(first).trailing_zeros() as u8))
    }
}

/// `Actor::follows` for many granules: remembers the epoch that it last found known, so that a tile costs one lookup.
pub struct Quick<'a> {
    pub actor: &'a Actor<'a>,
    own_tag: u32,
    known: (u32, Row),
}

impl<'a> Quick<'a> {
    pub fn new(actor: &'a Actor<'a>) -> Quick<'a> {
        Quick { actor, own_tag: (actor.lanes as u32) << 16, known: (0, 0) }
    }

    /// Takes the pattern by value: a mark whose address escapes would be stored and loaded again for every granule.
    #[inline(always)]
    pub fn follows(&mut self, prior: &Mark, pattern: Pattern) -> bool {
        let own = prior.tag == self.own_tag | pattern.0;
        own || prior.time == 0 || (prior.time, prior.row()) == self.known || self.look_up(*prior, pattern)
    }

    #[inline(never)]
    fn look_up(&mut self, prior: Mark, pattern: Pattern) -> bool {
        if prior.time <= self.actor.view.floor(prior.row()) {
            self.known = (prior.time, prior.row());
            return true;
        }
        self.actor.follows(&prior, pattern)
    }
}
