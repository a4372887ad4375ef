//! Which bytes anybody ever wrote: one bit for each, and none where all were from the start.

use std::ops::Range;

#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Every byte: there are no bits.
    all: bool,
    bits: Vec<u64>,
}

impl Written {
    pub fn none(size: usize) -> Written {
        Written { all: false, bits: vec![0; size.div_ceil(64)] }
    }

    pub fn all() -> Written {
        Written { all: true, bits: vec![] }
    }

    /// Forgets what lies from `size` on.
    pub fn cut(&mut self, size: usize) {
        self.bits.truncate(size.div_ceil(64));
        if let Some(last) = self.bits.get_mut(size / 64) {
            *last &= low(size % 64);
        }
    }

    /// Grows to `size` with bytes that nobody wrote.
    pub fn extend(&mut self, old: usize, size: usize) {
        if self.all {
            *self = Written::none(old);
            self.mark(0, old);
        }
        self.bits.resize(size.div_ceil(64), 0);
    }

    pub fn mark(&mut self, offset: usize, bytes: usize) {
        if self.all {
            return;
        }
        pieces(offset, bytes).for_each(|(word, mask)| self.bits[word] |= mask);
    }

    /// As if nobody had ever written them.
    pub fn unmark(&mut self, offset: usize, bytes: usize) {
        if !self.all {
            pieces(offset, bytes).for_each(|(word, mask)| self.bits[word] &= !mask);
        }
    }

    /// What others wrote is written, too.
    pub fn unite(&mut self, other: &Written) {
        self.all |= other.all;
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, more)| *bits |= more);
    }

    /// Are all bytes of a range written?
    pub fn covers(&self, offset: usize, bytes: usize) -> bool {
        self.all || pieces(offset, bytes).all(|(word, mask)| !self.bits[word] & mask == 0)
    }

    /// The first bytes of a range that nobody wrote.
    pub fn first_gap(&self, offset: usize, bytes: usize) -> Option<Range<usize>> {
        if self.covers(offset, bytes) {
            return None;
        }
        let (end, is_written) = (offset + bytes, |byte: &usize| self.bits[byte / 64] >> (byte % 64) & 1 == 1);
        let first = (offset..end).find(|byte| !is_written(byte))?;
        Some(first..(first..end).find(is_written).unwrap_or(end))
    }
}

/// The words of bits that a range touches, with its bits in each.
#[inline(always)]
fn pieces(offset: usize, bytes: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + bytes;
    (offset / 64..end.div_ceil(64)).map(move |word| {
        let (from, to) = (offset.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
        (word, low(to) & !low(from))
    })
}

/// So many ones, at most 64.
#[inline(always)]
fn low(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found_across_words() {
        let mut written = Written::none(300);
        written.mark(10, 150);
        assert_eq!(written.first_gap(0, 20), Some(0..10));
        assert_eq!(written.first_gap(10, 150), None);
        assert_eq!(written.first_gap(100, 100), Some(160..200));
        written.mark(170, 100);
        assert_eq!(written.first_gap(100, 200), Some(160..170));
        assert!(written.covers(64, 64) && !written.covers(159, 2));
    }

    #[test]
    fn what_is_cut_and_grows_again_is_unwritten() {
        let mut written = Written::none(100);
        written.mark(0, 100);
        written.cut(70);
        written.extend(70, 200);
        assert_eq!(written.first_gap(0, 200), Some(70..200));
    }

    #[test]
    fn what_was_written_from_the_start_stays_so() {
        let mut written = Written::all();
        assert!(written.covers(5, 1000));
        written.extend(10, 20);
        assert_eq!(written.first_gap(0, 20), Some(10..20));
    }
}
