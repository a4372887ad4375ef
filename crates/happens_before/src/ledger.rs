//! Clusters that know nothing of each other: a byte that one of them writes and another touches is a race, whichever ran
//! first. Each cluster leaves a summary; they are compared in the order of the clusters, on any number of threads.

use std::collections::BTreeMap;

use super::actor::Gap;
use super::crossing::{Crossing, Crossings, Told, Visitor};
use super::summary::{Stretches, Summary, Touched};

/// Stretches of several clusters that do not overlap, by their start.
#[derive(Default)]
struct Layer(BTreeMap<u64, (u64, Touched)>);

impl Layer {
    /// The parts that overlap with a stretch, by address.
    fn overlaps(&self, with: &Touched) -> impl Iterator<Item = (u64, Touched)> {
        let (start, end) = (with.start, with.end());
        let before = self.0.range(..start).next_back().filter(|(_, (_, one))| one.end() > start);
        let part = move |(_, (cluster, one)): (&u64, &(u64, Touched))| {
            (*cluster, one.cut(one.start.max(start), one.end().min(end)))
        };
        before.into_iter().chain(self.0.range(start..end)).map(part)
    }

    /// Remembers a stretch where nothing is remembered yet.
    fn fill(&mut self, cluster: u64, new: &Touched) {
        let taken: Vec<(u64, u64)> = self.overlaps(new).map(|(_, part)| (part.start, part.end())).collect();
        let mut from = new.start;
        for (start, end) in taken.into_iter().chain([(new.end(), new.end())]) {
            if from < start {
                self.0.insert(from, (cluster, new.cut(from, start)));
            }
            from = end;
        }
    }
}

/// Who touched each byte of global memory: one of its writers, and one of its readers. A cluster is compared before it is
/// remembered, so that one of each is enough: they are never its own.
#[derive(Default)]
pub struct Ledger {
    writes: Layer,
    reads: Layer,
    crossings: Crossings,
}

impl Ledger {
    /// Compares what a cluster did with what those before it did.
    pub fn add(&mut self, cluster: u64, summary: &Summary) {
        let Ledger { writes, reads, .. } = self;
        let mut found = Vec::new();
        for (mine, write, layer, wrote) in [
            (&summary.writes, true, &*writes, true),
            (&summary.writes, true, &*reads, false),
            (&summary.reads, false, &*writes, true),
        ] {
            compare((cluster, mine, write), (layer, wrote), &mut found);
        }
        summary.writes.0.iter().for_each(|one| writes.fill(cluster, one));
        summary.reads.0.iter().for_each(|one| reads.fill(cluster, one));
        found.into_iter().for_each(|crossing| self.crossings.note(crossing));
    }

    /// What was found, in the order of discovery.
    pub fn into_crossings(mut self) -> Vec<Crossing> {
        self.crossings.take()
    }
}

fn compare((cluster, mine, write): (u64, &Stretches, bool), (layer, wrote): (&Layer, bool), found: &mut Vec<Crossing>) {
    let visitor = |cluster, one: &Touched, address, write| {
        let Touched { warp, site, unit, .. } = *one;
        Visitor { cluster, warp, lane: one.lane_at(address), site, write, unit, strong: None }
    };
    for new in &mine.0 {
        for (other, part) in layer.overlaps(new) {
            let address = part.start;
            let bytes = part.lane_bytes(address).min(new.lane_bytes(address));
            let (first, second) = (visitor(other, &part, address, wrote), visitor(cluster, new, address, write));
            found.push(Crossing { address, bytes, first, second, gap: Gap::Order, told: Told::Apart, count: 1 });
        }
    }
}
