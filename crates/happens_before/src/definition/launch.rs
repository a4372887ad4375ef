//! Whole launches: what all detectors heard and found, judged by the definition.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::rc::Rc;
use std::sync::Arc;

use super::earlier::{Accesses, Early, agree_early};
use super::event::{Event, Shift};
use super::found::{Found, agree};
use super::oracle::Oracle;
use crate::actor::Gap;
use crate::summary::Stretches;
use crate::{Crossing, Ledger, Site, Space, Stretch, Summary};

/// One event, and what the detector found at it.
pub struct Note {
    /// Its place among those of all clusters.
    pub sequence: u64,
    pub site: Site,
    pub event: Event,
    pub found: Vec<Found>,
    /// What it touched of earlier grids.
    pub early: Vec<Early>,
}

/// All that one detector heard.
pub struct Notes {
    lanes: Vec<u32>,
    warps_per_block: u32,
    /// The clusters of the launch share one shadow of global memory.
    pub in_turns: bool,
    pub all: Vec<Note>,
    /// What it says in the end of global memory.
    pub summary: Summary,
}

impl Notes {
    pub fn new(lanes: &[u32], warps_per_block: u32) -> Notes {
        let (in_turns, all, summary) = (false, Vec::new(), Summary::default());
        Notes { lanes: lanes.to_vec(), warps_per_block, in_turns, all, summary }
    }

    fn blocks(&self) -> u32 {
        (self.lanes.len() as u32).div_ceil(self.warps_per_block)
    }
}

/// What the detectors of one launch heard and found, by cluster.
#[derive(Default)]
pub struct Launch {
    pub(super) clusters: BTreeMap<u32, Arc<Notes>>,
    /// The launches that it may overlap with.
    before: Vec<Before>,
    ticks: u64,
}

/// A launch that need not be complete when the next one starts.
pub struct Before {
    pub clusters: BTreeMap<u32, Arc<Notes>>,
    /// Does it let the next one start while its blocks run?
    pub early: bool,
}

impl Before {
    /// What it did, in pieces between cuts.
    fn accesses(&self, cuts: &Rc<Cuts>) -> Accesses {
        let mut accesses = Accesses::default();
        for (number, notes) in &self.clusters {
            let mut oracle = Oracle::new(&notes.lanes, notes.warps_per_block);
            oracle.cuts = Some(cuts.clone());
            notes.all.iter().for_each(|note| drop(oracle.step(&note.event, note.site)));
            accesses.add(*number, &oracle);
        }
        if self.early { accesses } else { accesses.of_ended_blocks() }
    }
}

/// Where accesses begin and end.
type Cuts = BTreeSet<(Space, u64)>;

fn cuts<'a>(events: impl Iterator<Item = &'a Event>) -> Cuts {
    let touched = events.flat_map(|event| event.touched());
    touched.flat_map(|((space, range), _)| [(space, range.start), (space, range.end)]).collect()
}

/// How much was compared.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Compared {
    pub events: usize,
    /// Bytes at which an access was unordered with an earlier one, by what lies between: a fence, a scope, everything.
    pub faulty: [usize; 3],
    /// Bytes of global memory that clusters without order both touched, and one of them wrote.
    pub crossed: usize,
    /// Bytes that an earlier grid might still have touched.
    pub early: usize,
}

impl AddAssign for Compared {
    fn add_assign(&mut self, other: Compared) {
        self.events += other.events;
        self.faulty.iter_mut().zip(other.faulty).for_each(|(all, here)| *all += here);
        self.crossed += other.crossed;
        self.early += other.early;
    }
}

impl Launch {
    pub(super) fn behind(before: Vec<Before>) -> Launch {
        Launch { before, ..Launch::default() }
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    #[cfg(test)]
    pub fn notes_mut(&mut self, cluster: u32) -> &mut Vec<Note> {
        let notes = self.clusters.get_mut(&cluster).expect("the cluster was recorded");
        &mut Arc::get_mut(notes).expect("no later launch overlaps with this one").all
    }

    pub fn events(&self) -> usize {
        self.clusters.values().map(|notes| notes.all.len()).sum()
    }

    /// What the definition has to do, roughly: accesses of lanes and units to pieces of memory.
    pub fn touches(&self) -> usize {
        let all = self.clusters.values().flat_map(|notes| &notes.all);
        all.map(|note| note.event.touched().len()).sum()
    }

    /// How many events of each kind there are.
    pub fn kinds(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for note in self.clusters.values().flat_map(|notes| &notes.all) {
            *counts.entry(note.event.kind()).or_default() += 1;
        }
        counts
    }

    /// Has the definition judge all events.
    pub fn compare(&self) -> Result<Compared, String> {
        if self.clusters.values().any(|notes| notes.in_turns) {
            return self.compare_together();
        }
        let (behind, mut compared) = (self.earlier(), Compared::default());
        let mut touched = Vec::new();
        for (number, notes) in &self.clusters {
            let nowhere = Shift { cluster: 0, warps: 0, blocks: 0 };
            let all = notes.all.iter().map(|note| (nowhere, note)).collect();
            let oracle = behind.begin(Oracle::new(&notes.lanes, notes.warps_per_block));
            let one = judge(oracle, all, |_| nowhere);
            compared += one.map_err(|difference| format!("cluster {number}: {difference}"))?;
            touched.push((*number, Touched::of(notes)));
        }
        compared.crossed = self.compare_apart(&touched)?;
        Ok(compared)
    }

    /// What earlier launches did, if there are such.
    fn earlier(&self) -> Behind {
        let launches = self.before.iter().map(|before| &before.clusters).chain([&self.clusters]);
        let notes = launches.flat_map(|clusters| clusters.values()).flat_map(|notes| &notes.all);
        let cuts = if self.before.is_empty() { Cuts::new() } else { cuts(notes.map(|note| &note.event)) };
        let cuts = Rc::new(cuts);
        let grids = self.before.iter().map(|before| Rc::new(before.accesses(&cuts))).collect();
        Behind { cuts, grids }
    }

    /// Clusters that take turns: one graph for all of them.
    fn compare_together<'a>(&'a self) -> Result<Compared, String> {
        let Some(first) = self.clusters.values().next() else { return Ok(Compared::default()) };
        let (warps, blocks) = (first.lanes.len() as u32, first.blocks());
        let shift = |cluster: u32| Shift { cluster, warps: cluster * warps, blocks: cluster * blocks };
        let count = self.clusters.keys().max().map_or(0, |last| last + 1);
        let lanes = first.lanes.repeat(count as usize);
        let of_cluster = |(number, notes): (&u32, &'a Arc<Notes>)| {
            let here = shift(*number);
            notes.all.iter().map(move |note| (here, note))
        };
        let mut all: Vec<(Shift, &Note)> = self.clusters.iter().flat_map(of_cluster).collect();
        all.sort_by_key(|(_, note)| note.sequence);
        judge(self.earlier().begin(Oracle::grid(&lanes, first.warps_per_block, blocks)), all, shift)
    }

    /// Clusters that know nothing of each other: what each says of global memory, and what the ledger makes of it.
    fn compare_apart(&self, touched: &[(u32, Touched)]) -> Result<usize, String> {
        let (mut ledger, mut crossed, mut before) = (Ledger::default(), 0, Touched::default());
        for (number, one) in touched {
            let notes = &self.clusters[number];
            one.is_told_by(&notes.summary).map_err(|difference| format!("cluster {number}: {difference}"))?;
            let clash = |byte: &&u64| before.written.contains(byte) || before.read.contains(byte);
            crossed += one.written.iter().filter(clash).count();
            crossed += one.read.difference(&one.written).filter(|byte| before.written.contains(byte)).count();
            ledger.add((*number).into(), &notes.summary);
            before.written.extend(&one.written);
            before.read.extend(&one.read);
        }
        let crossings = ledger.into_parts().0;
        if crossings.is_empty() != (crossed == 0) {
            return Err(format!("{crossed} bytes are touched by two clusters, and these are found: {crossings:?}"));
        }
        for crossing in &crossings {
            is_conflict(crossing)?;
            for side in [&crossing.first, &crossing.second] {
                let notes = &self.clusters[&(side.cluster as u32)];
                let here = |((space, range), write): &(Stretch, bool)| {
                    *space == Space::Global && range.contains(&crossing.address) && *write == side.write
                };
                let is = |note: &Note| note.site == side.site && note.event.touched().iter().any(here);
                if !notes.all.iter().any(is) {
                    return Err(format!("no such access as {side:?} in {crossing:?}"));
                }
            }
        }
        Ok(crossed)
    }
}

/// Earlier grids, and all pieces of global memory that they or this one touched.
struct Behind {
    cuts: Rc<Cuts>,
    grids: Vec<Rc<Accesses>>,
}

impl Behind {
    fn begin(&self, mut oracle: Oracle) -> Oracle {
        oracle.begin_behind(&self.grids);
        oracle.cuts = Some(self.cuts.clone());
        oracle
    }
}

/// Two clusters, and one of them writes.
fn is_conflict(crossing: &Crossing) -> Result<(), String> {
    let (first, second) = (&crossing.first, &crossing.second);
    if first.cluster == second.cluster {
        return Err(format!("one cluster on both sides of {crossing:?}"));
    }
    if !(first.write || second.write) {
        return Err(format!("nobody writes in {crossing:?}"));
    }
    Ok(())
}

/// Has the definition judge events in their order. `home` says where a cluster's warps begin.
fn judge(mut oracle: Oracle, all: Vec<(Shift, &Note)>, home: impl Fn(u32) -> Shift) -> Result<Compared, String> {
    let events: Vec<Event> = all.iter().map(|(shift, note)| note.event.shifted(*shift)).collect();
    let known = oracle.cuts.take().unwrap_or_default();
    oracle.cuts = Some(Rc::new(cuts(events.iter()).union(&known).copied().collect()));
    let mut compared = Compared::default();
    for (event, (shift, note)) in events.iter().zip(&all) {
        let races = oracle.step(event, note.site);
        let found: Vec<Found> = note.found.iter().map(|found| found.shifted(*shift, home(found.cluster))).collect();
        let judged = agree(&races, &found).and_then(|faulty| Ok((faulty, agree_early(&oracle.early, &note.early)?)));
        let (faulty, early) =
            judged.map_err(|difference| format!("event {}, {event:x?}: {difference}", compared.events))?;
        compared.events += 1;
        compared.early += early.len();
        faulty.values().for_each(|gap: &Gap| compared.faulty[*gap as usize] += 1);
    }
    Ok(compared)
}

/// The bytes of global memory that a cluster touched.
#[derive(Default)]
struct Touched {
    written: BTreeSet<u64>,
    read: BTreeSet<u64>,
}

impl Touched {
    fn of(notes: &Notes) -> Touched {
        let mut touched = Touched::default();
        let all = notes.all.iter().flat_map(|note| note.event.touched());
        for ((_, range), write) in all.filter(|((space, _), _)| *space == Space::Global) {
            if write { touched.written.extend(range) } else { touched.read.extend(range) }
        }
        touched
    }

    /// A summary names a writer of each byte that was written, and a reader of each that was only read.
    fn is_told_by(&self, summary: &Summary) -> Result<(), String> {
        let bytes = |all: &Stretches| all.0.iter().flat_map(|one| one.start..one.end()).collect::<BTreeSet<u64>>();
        let (written, read) = (bytes(&summary.writes), bytes(&summary.reads));
        let only_read: Vec<&u64> = self.read.difference(&self.written).collect();
        if written != self.written {
            return Err(format!("written are {:x?}, and {written:x?} in the summary", self.written));
        }
        match only_read.iter().find(|byte| !read.contains(byte)).or(read.difference(&self.read).next().as_ref()) {
            Some(byte) => Err(format!("who read byte {byte:#x}: the summary is wrong")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Told, Unit, Visitor};

    #[test]
    fn a_crossing_needs_two_clusters_and_a_write() {
        let crossing = |clusters: [u64; 2], writes: [bool; 2]| {
            let side = |at: usize| {
                let (cluster, write, site) = (clusters[at], writes[at], Site(0));
                Visitor { cluster, warp: 0, lane: 0, site, write, unit: Unit::Thread, strong: None }
            };
            let (first, second) = (side(0), side(1));
            Crossing { address: 0, bytes: 4, first, second, gap: Gap::Order, told: Told::Apart, count: 1 }
        };
        assert!(is_conflict(&crossing([0, 1], [false, true])).is_ok());
        assert!(is_conflict(&crossing([0, 1], [false, false])).is_err());
        assert!(is_conflict(&crossing([1, 1], [true, true])).is_err());
    }
}
