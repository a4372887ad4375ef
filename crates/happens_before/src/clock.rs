//! Clocks over rows of 32 agents: how much of every row somebody knows.

use super::abroad::{Abroad, Origin};

/// Number of a row: a warp's lanes, what they have in flight, a warpgroup's products, or what an mbarrier tells of.
pub type Row = u16;

/// `floor` is what is known of all lanes of a row; `ragged` holds the rows whose lanes are known to different times.
/// Nothing is known of rows beyond the floor's end, so that an empty clock costs nothing.
#[derive(Clone, Default, Debug)]
pub struct Clock {
    floor: Vec<u32>,
    ragged: Vec<(Row, [u32; 32])>,
    /// What is known of other clusters.
    abroad: Abroad,
}

impl Clock {
    pub fn new(rows: usize) -> Clock {
        Clock { floor: vec![0; rows], ..Clock::default() }
    }

    /// The clock of a cluster as another one learns it: each knows its own rows apart from all others'.
    pub fn carried(&self, from: u32, to: u32) -> Clock {
        let (mut clock, mut abroad) = self.abroad.parted(to);
        let home = Clock { abroad: Abroad::default(), ..self.clone() };
        if !home.is_empty() {
            abroad.join_one(from, &home);
        }
        clock.abroad = abroad;
        clock
    }

    pub fn floor_at(&self, origin: Origin) -> u32 {
        match origin.abroad {
            None => self.floor(origin.row),
            Some(cluster) => self.abroad.of(cluster).map_or(0, |clock| clock.floor(origin.row)),
        }
    }

    /// The lanes of `mask` whose operations up to `time` are not all known.
    pub fn unknown_at(&self, origin: Origin, time: u32, mask: u32) -> u32 {
        match origin.abroad {
            None => self.unknown(origin.row, time, mask),
            Some(cluster) => self.abroad.of(cluster).map_or(mask, |clock| clock.unknown(origin.row, time, mask)),
        }
    }

    #[inline(always)]
    pub fn floor(&self, row: Row) -> u32 {
        self.floor.get(row as usize).copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.floor.is_empty() && self.ragged.is_empty() && self.abroad.is_empty()
    }

    fn grow(&mut self, rows: usize) {
        if self.floor.len() < rows {
            self.floor.resize(rows, 0);
        }
    }

    /// The lanes of `mask` whose operations up to `time` are not all known.
    pub fn unknown(&self, row: Row, time: u32, mask: u32) -> u32 {
        if time <= self.floor(row) {
            return 0;
        }
        match self.ragged.iter().find(|(ragged, _)| *ragged == row) {
            Some((_, times)) => bits(mask).filter(|lane| times[*lane as usize] < time).fold(0, |m, lane| m | 1 << lane),
            None => mask,
        }
    }

    /// Learns everything that the lanes of `mask` did up to `time`.
    pub fn raise(&mut self, row: Row, mask: u32, time: u32) {
        let floor = self.floor(row);
        if time <= floor || mask == 0 {
            return;
        }
        self.grow(row as usize + 1);
        if mask == u32::MAX {
            self.floor[row as usize] = time;
        } else {
            let times = self.ragged_row(row, floor);
            bits(mask).for_each(|lane| times[lane as usize] = times[lane as usize].max(time));
        }
        self.settle();
    }

    fn ragged_row(&mut self, row: Row, floor: u32) -> &mut [u32; 32] {
        let found = self.ragged.iter().position(|(ragged, _)| *ragged == row);
        let slot = found.unwrap_or_else(|| {
            self.ragged.push((row, [floor; 32]));
            self.ragged.len() - 1
        });
        &mut self.ragged[slot].1
    }

    pub fn join(&mut self, other: &Clock) {
        self.abroad.join(&other.abroad);
        self.grow(other.floor.len());
        for (mine, theirs) in self.floor.iter_mut().zip(&other.floor) {
            *mine = (*mine).max(*theirs);
        }
        for (row, times) in &other.ragged {
            let mine = self.ragged_row(*row, 0);
            mine.iter_mut().zip(times).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        }
        self.settle();
    }

    /// Lifts ragged rows to their floor and floors to the least lane, and drops rows that are even again.
    fn settle(&mut self) {
        if self.ragged.is_empty() {
            return;
        }
        for (row, times) in &mut self.ragged {
            let least = times.iter().copied().fold(u32::MAX, u32::min);
            let floor = &mut self.floor[*row as usize];
            *floor = (*floor).max(least);
            times.iter_mut().for_each(|time| *time = (*time).max(*floor));
        }
        self.ragged.retain(|(_, times)| times.iter().any(|time| *time != times[0]));
    }
}

/// The lanes of a mask, lowest first.
pub fn bits(mut mask: u32) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_ragged_until_its_last_lane_follows() {
        let mut clock = Clock::new(2);
        clock.raise(1, 0xffff_fff0, 3);
        assert_eq!((clock.floor(1), clock.unknown(1, 3, u32::MAX), clock.unknown(0, 1, 5)), (0, 0xf, 5));
        clock.raise(1, 0xf, 2);
        assert_eq!((clock.floor(1), clock.unknown(1, 2, u32::MAX), clock.unknown(1, 3, u32::MAX)), (2, 0, 0xf));
        clock.raise(1, 0xf, 3);
        assert_eq!((clock.floor(1), clock.ragged.len()), (3, 0));
    }

    #[test]
    fn joining_keeps_the_later_time_of_every_lane() {
        let (mut left, mut right) = (Clock::new(1), Clock::new(1));
        left.raise(0, 0xffff_0000, 4);
        right.raise(0, u32::MAX, 2);
        right.raise(0, 0x0000_ffff, 4);
        left.join(&right);
        assert_eq!((left.floor(0), left.ragged.len()), (4, 0));
    }
}
