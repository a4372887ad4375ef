//! A record of every byte that the detector looks at, for whoever proves that nothing passes it by. It is kept at the doors
//! of the shadow, behind everything that could skip an access.

use std::cell::RefCell;
use std::ops::Range;

use super::mark::{Item, Mark};
use super::{Detector, Space};

/// How bytes were looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    Read,
    Write,
    /// As the object of an mbarrier.
    Barrier,
}

/// Bytes that were looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub space: Space,
    pub range: Range<u64>,
    /// How many lanes touched each of them.
    pub lanes: u32,
    pub sight: Sight,
}

/// What one shadow was asked; none if nobody keeps a record.
#[derive(Clone, Default)]
pub struct Record(Option<Vec<(Range<u64>, u32, bool)>>);

impl Record {
    /// Whole granules or a word, with the lanes of their mark.
    #[inline(always)]
    pub fn mark(&mut self, start: u64, bytes: u64, mark: &Mark, write: bool) {
        if self.0.is_some() {
            self.add(start..start + bytes, if mark.pattern().is_every() { 32 } else { 1 }, write);
        }
    }

    /// Bytes of one word.
    #[inline(always)]
    pub fn item(&mut self, word: u64, item: &Item) {
        if self.0.is_some() {
            let start = word * 4 + u64::from(item.bytes.trailing_zeros());
            self.add(start..start + u64::from(item.bytes.count_ones()), item.mask.count_ones(), item.write);
        }
    }

    #[cold]
    fn add(&mut self, range: Range<u64>, lanes: u32, write: bool) {
        self.0.iter_mut().for_each(|all| all.push((range.clone(), lanes, write)));
    }
}

/// The objects of mbarriers that were used or asked for; none if nobody keeps a record.
#[derive(Clone, Default)]
pub struct Objects(Option<RefCell<Vec<u64>>>);

impl Objects {
    #[inline]
    pub fn add(&self, barrier: u64) {
        self.0.iter().for_each(|all| all.borrow_mut().push(barrier));
    }
}

/// Bytes of the object of an mbarrier.
const OBJECT: u64 = 8;

impl Detector {
    /// From now on everything that is looked at is recorded.
    pub fn keep_record(&mut self) {
        self.shadows.iter_mut().for_each(|shadow| shadow.record = Record(Some(vec![])));
        self.objects = Objects(Some(RefCell::default()));
    }

    /// What was looked at since the last call.
    pub fn take_record(&mut self) -> Vec<Seen> {
        let mut all = vec![];
        for space in [Space::Shared, Space::Global] {
            let entries = self.shadows[space as usize].record.0.iter_mut().flat_map(|record| record.drain(..));
            all.extend(entries.map(|(range, lanes, write)| {
                let sight = if write { Sight::Write } else { Sight::Read };
                Seen { space, range, lanes, sight }
            }));
        }
        let objects = self.objects.0.iter_mut().flat_map(|objects| std::mem::take(objects.get_mut()));
        all.extend(objects.map(|start| {
            let range = start..start + OBJECT;
            Seen { space: Space::Shared, range, lanes: 1, sight: Sight::Barrier }
        }));
        all
    }
}
