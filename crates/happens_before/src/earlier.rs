//! The grid before this one, where the two may overlap: whoever touches what it wrote, or writes what it read, waits for it
//! first, with `griddepcontrol.wait`, or follows somebody who has. PTX ISA, "griddepcontrol"; CUDA C++ Programming Guide,
//! "Programmatic Dependent Launch".

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::actor::Gap;
use super::crossing::{Crossing, Told, Visitor};
use super::mark::{Access, Item, Location, Mark};
use super::summary::{Summary, Touched};
use super::{Detector, Lanes, Site, Space};

/// Stretches of several clusters that do not overlap, by their start.
#[derive(Default, Debug)]
pub struct Layer(BTreeMap<u64, Touched>);

impl Layer {
    /// The parts that overlap with some bytes, by address.
    pub fn overlaps(&self, bytes: Range<u64>) -> impl Iterator<Item = Touched> {
        let Range { start, end } = bytes;
        let before = self.0.range(..start).next_back().filter(|(_, one)| one.end() > start);
        let part = move |(_, one): (&u64, &Touched)| one.cut(one.start.max(start), one.end().min(end));
        before.into_iter().chain(self.0.range(start..end)).map(part)
    }

    /// The parts of a stretch of which nothing is remembered yet.
    fn gaps(&self, new: &Touched) -> Vec<Touched> {
        let taken = self.overlaps(new.start..new.end()).map(|part| part.start..part.end());
        let (mut from, mut gaps) = (new.start, vec![]);
        for Range { start, end } in taken.chain(std::iter::once(new.end()..new.end())) {
            if from < start {
                gaps.push(new.cut(from, start));
            }
            from = end;
        }
        gaps
    }

    /// Remembers a stretch where nothing is remembered yet.
    pub fn fill(&mut self, new: &Touched) {
        for gap in self.gaps(new) {
            self.0.insert(gap.start, gap);
        }
    }
}

/// Who touched each byte of global memory: one of its writers, and one of its readers.
#[derive(Default, Debug)]
pub struct Touches {
    pub writes: Layer,
    pub reads: Layer,
    /// The same of another location, where those are strong: nobody shares both.
    other_writes: Layer,
    other_reads: Layer,
}

impl Touches {
    pub fn add(&mut self, summary: &Summary) {
        summary.writes.0.iter().for_each(|one| remember(one, &mut self.writes, &mut self.other_writes));
        summary.reads.0.iter().for_each(|one| remember(one, &mut self.reads, &mut self.other_reads));
    }

    /// Of a grid that lets nobody start before its blocks have ended: only what it wrote may not have arrived.
    pub fn of_ended_blocks(self) -> Touches {
        Touches { reads: Layer::default(), other_reads: Layer::default(), ..self }
    }

    /// The bytes at which an access conflicts with one of these, who that was, and whether it wrote.
    fn conflicts(&self, bytes: Range<u64>, write: bool, shared: Option<Location>) -> Vec<(Touched, bool)> {
        let layers =
            [(&self.writes, true), (&self.other_writes, true), (&self.reads, false), (&self.other_reads, false)];
        let (mut told, mut found) = (Layer::default(), vec![]);
        for (layer, wrote) in layers.into_iter().filter(|(_, wrote)| write || *wrote) {
            for one in layer.overlaps(bytes.clone()).filter(|one| shared.is_none() || one.shared != shared) {
                found.extend(told.gaps(&one).into_iter().map(|gap| (gap, wrote)));
                told.fill(&one);
            }
        }
        found
    }
}

/// Remembers one who touched each byte, and another one where whoever shares the location of the first does not conflict.
fn remember(new: &Touched, first: &mut Layer, other: &mut Layer) {
    let differs = |known: &Touched| known.shared.is_some() && known.shared != new.shared;
    first.overlaps(new.start..new.end()).filter(differs).for_each(|part| other.fill(&new.cut(part.start, part.end())));
    first.fill(new);
}

/// An access to bytes of a grid that may still run.
#[derive(Clone, Copy)]
pub struct TooEarly {
    pub grid: usize,
    pub first: Touched,
    pub wrote: bool,
    pub lane: u8,
}

/// What one shadow compares with, and what it found. Nothing, where grids do not overlap.
#[derive(Clone, Default)]
pub struct Earlier {
    /// One for each grid that may still run.
    touches: Vec<Arc<Touches>>,
    /// By the current instruction, and how many of them are noted.
    pub found: Vec<TooEarly>,
    noted: usize,
}

impl Earlier {
    /// Whole granules or a word; each granule begins `step` lanes behind the one before.
    #[inline(always)]
    pub fn mark(&mut self, waited: bool, start: u64, bytes: u64, (mark, step): (&Mark, u32), write: bool) {
        if !self.touches.is_empty() && !waited {
            let lane = |at: u64| {
                let granule = mark.advance(((at - start) / 16) as u32 * step);
                granule.pattern().lanes_at((at - start) as u8 % 16).trailing_zeros() as u8
            };
            self.look(start..start + bytes, (write, None), lane);
        }
    }

    /// Bytes of one word.
    #[inline(always)]
    pub fn item(&mut self, waited: bool, word: u64, item: &Item) {
        if !self.touches.is_empty() && !waited {
            let start = word * 4 + u64::from(item.bytes.trailing_zeros());
            let bytes = start..start + u64::from(item.bytes.count_ones());
            self.look(bytes, (item.write, item.shared_by_all(word * 4)), |_| item.mask.trailing_zeros() as u8);
        }
    }

    fn is_asked(&self) -> bool {
        !self.touches.is_empty()
    }

    #[cold]
    fn look(&mut self, bytes: Range<u64>, (write, shared): (bool, Option<Location>), lane: impl Fn(u64) -> u8) {
        for (grid, touches) in self.touches.iter().enumerate() {
            let conflicts = touches.conflicts(bytes.clone(), write, shared).into_iter();
            self.found.extend(conflicts.map(|(first, wrote)| TooEarly { grid, first, wrote, lane: lane(first.start) }));
        }
    }

    /// Another instruction begins.
    #[inline]
    pub fn forget(&mut self) {
        self.found.clear();
        self.noted = 0;
    }
}

impl Detector {
    /// The grid may have started before those that touched this were complete.
    pub fn begin_behind(&mut self, touches: Vec<Arc<Touches>>) {
        self.shadows[Space::Global as usize].earlier.touches = touches;
    }

    /// `griddepcontrol.wait`: the grid before is complete, and what it wrote is visible.
    pub fn wait_for_grids(&mut self, at: Lanes) {
        if self.shadows[Space::Global as usize].earlier.is_asked() {
            let (warp, mask) = self.warp(at);
            warp.learn(mask, |view| view.grids = true);
        }
    }

    /// Notes what an access of a warp touched too early.
    #[inline]
    pub(super) fn report_too_early(&mut self, warp: u32, access: &Access) {
        let earlier = &self.shadows[Space::Global as usize].earlier;
        if earlier.found.len() > earlier.noted {
            self.note_too_early(warp, access);
        }
    }

    #[cold]
    fn note_too_early(&mut self, warp: u32, access: &Access) {
        let earlier = &mut self.shadows[Space::Global as usize].earlier;
        let new = earlier.found[earlier.noted..].to_vec();
        earlier.noted = earlier.found.len();
        for TooEarly { grid, first, wrote, lane } in new {
            let (address, site) = (first.start, Site(access.site));
            let (_, unit) = self.issuer(access.row, access.time, lane, site);
            let second =
                Visitor { cluster: self.number.into(), warp, lane, site, write: access.write, unit, strong: None };
            let bytes = first.lane_bytes(address);
            let first = Visitor {
                cluster: first.cluster.into(),
                warp: first.warp,
                lane: first.lane_at(address),
                site: first.site,
                write: wrote,
                unit: first.unit,
                strong: None,
            };
            let found = self.too_early.entry(grid).or_default();
            found.note(Crossing { address, bytes, first, second, gap: Gap::Order, told: Told::Apart, count: 1 });
        }
    }

    /// Accesses to what an earlier grid may still touch, with its number, in the order of discovery. First parties are of
    /// that grid.
    pub fn take_too_early(&mut self) -> Vec<(usize, Crossing)> {
        let all = std::mem::take(&mut self.too_early);
        all.into_iter().flat_map(|(grid, mut found)| found.take().into_iter().map(move |one| (grid, one))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Places, Semantics};

    const ALL: Lanes = Lanes { warp: 0, mask: u32::MAX };

    /// A grid of one warp that has read 128 bytes at 0 and written 128 bytes at 128, and counted at 256.
    fn before() -> Arc<Touches> {
        let mut detector = Detector::new(&[u32::MAX], 1);
        detector.access(ALL, Site(1), Kind::Read, Space::Global, Places::Row(0), 4);
        detector.access(ALL, Site(2), Kind::Write, Space::Global, Places::Row(128), 4);
        count(&mut detector, Site(3));
        let mut touches = Touches::default();
        touches.add(&detector.summary());
        Arc::new(touches)
    }

    fn count(detector: &mut Detector, site: Site) {
        let what = (Kind::Atomic, Semantics::relaxed(crate::Scope::Gpu));
        detector.ordered_access(Lanes { mask: 1, ..ALL }, site, what, Space::Global, Places::Row(256), 4);
    }

    fn found(act: impl FnOnce(&mut Detector)) -> Vec<(u32, u32, u64, u8)> {
        let mut detector = Detector::new(&[u32::MAX; 2], 2);
        detector.begin_behind(vec![before()]);
        act(&mut detector);
        assert!(detector.take_crossings().is_empty());
        let told = |(_, one): &(usize, Crossing)| (one.first.site.0, one.second.site.0, one.address, one.second.lane);
        detector.take_too_early().iter().map(told).collect()
    }

    #[test]
    fn what_the_grid_before_touched_must_be_waited_for() {
        let touch = |kind, place| {
            move |detector: &mut Detector| {
                detector.access(ALL, Site(9), kind, Space::Global, Places::Row(place), 4);
            }
        };
        assert_eq!(found(touch(Kind::Read, 128)), [(2, 9, 128, 0)]);
        assert_eq!(found(touch(Kind::Read, 64)), [(2, 9, 128, 16)], "the lane that comes there");
        assert_eq!(found(touch(Kind::Write, 0)), [(1, 9, 0, 0)]);
        assert_eq!(found(touch(Kind::Read, 0)), [], "both read");
        assert_eq!(found(touch(Kind::Write, 512)), []);
        assert_eq!(found(|detector| count(detector, Site(9))), [], "both count");
        let waited = |detector: &mut Detector| {
            detector.wait_for_grids(ALL);
            touch(Kind::Read, 128)(detector);
        };
        assert_eq!(found(waited), []);
    }

    #[test]
    fn strong_accesses_of_two_grids_share_a_location_if_it_is_the_same() {
        let strong = |kind, scope, place, bytes| {
            move |detector: &mut Detector| {
                let what = (kind, Semantics::relaxed(scope));
                let one = Lanes { mask: 1, ..ALL };
                detector.ordered_access(one, Site(9), what, Space::Global, Places::Row(place), bytes);
            }
        };
        let (gpu, cluster) = (crate::Scope::Gpu, crate::Scope::Cluster);
        assert_eq!(found(strong(Kind::StrongRead, gpu, 256, 4)), []);
        assert_eq!(found(strong(Kind::StrongRead, cluster, 256, 4)), [(3, 9, 256, 0)]);
        assert_eq!(
            found(strong(Kind::Atomic, gpu, 256, 8)),
            [(3, 9, 256, 0)],
            "the word before it is the same, no more"
        );
        assert_eq!(found(strong(Kind::Atomic, gpu, 252, 4)), [(2, 9, 252, 0)], "written without an atomic");
    }

    /// Bytes that were counted as one word and as part of a wider one.
    #[test]
    fn nobody_shares_two_locations() {
        let mut earlier = Detector::new(&[u32::MAX], 1);
        let count = |detector: &mut Detector, site, bytes| {
            let what = (Kind::Atomic, Semantics::relaxed(crate::Scope::Gpu));
            detector.ordered_access(Lanes { mask: 1, ..ALL }, site, what, Space::Global, Places::Row(0), bytes);
        };
        let mut touches = Touches::default();
        (1..).zip([4, 8]).for_each(|(site, bytes)| count(&mut earlier, Site(site), bytes));
        touches.add(&earlier.summary());
        let touches = Arc::new(touches);
        let against = |bytes| {
            let mut detector = Detector::new(&[u32::MAX], 1);
            detector.begin_behind(vec![touches.clone()]);
            count(&mut detector, Site(9), bytes);
            let found = detector.take_too_early();
            found.iter().map(|(_, one)| (one.first.site.0, one.address)).collect::<Vec<_>>()
        };
        assert_eq!((against(4), against(8)), (vec![(2, 0)], vec![(1, 0)]));
    }

    #[test]
    fn whoever_follows_one_who_waited_has_waited() {
        let [one, two] = [0, 1].map(|warp| Lanes { warp, mask: u32::MAX });
        let read = |detector: &mut Detector| {
            detector.access(two, Site(9), Kind::Read, Space::Global, Places::Row(128), 4);
        };
        let waits = |detector: &mut Detector| detector.wait_for_grids(Lanes { mask: 1, ..one });
        assert_eq!(
            found(|detector| {
                waits(detector);
                read(detector)
            })
            .len(),
            1
        );
        let told = |detector: &mut Detector| {
            waits(detector);
            [one, two].iter().for_each(|at| detector.barrier_arrive(*at, Site(5), 0));
            detector.barrier_complete(0, &[one, two]);
            read(detector);
        };
        assert_eq!(found(told), []);
    }
}
