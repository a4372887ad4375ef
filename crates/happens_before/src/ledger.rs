//! Clusters that know nothing of each other: a byte that one of them writes and another touches is a race, whichever ran
//! first. Each cluster leaves a summary; they are compared in the order of the clusters, on any number of threads.

use super::actor::Gap;
use super::crossing::{Crossing, Crossings, Told, Visitor};
use super::earlier::{Layer, Touches};
use super::summary::{Stretches, Summary, Touched};

/// What all clusters did. A cluster is compared before it is remembered, so that one writer and one reader of each byte are
/// enough: they are never its own.
#[derive(Default)]
pub struct Ledger {
    all: Touches,
    crossings: Crossings,
}

impl Ledger {
    /// Compares what a cluster did with what those before it did.
    pub fn add(&mut self, cluster: u64, summary: &Summary) {
        let Touches { writes, reads, .. } = &self.all;
        let mut found = Vec::new();
        for (mine, write, layer, wrote) in [
            (&summary.writes, true, writes, true),
            (&summary.writes, true, reads, false),
            (&summary.reads, false, writes, true),
        ] {
            compare((cluster, mine, write), (layer, wrote), &mut found);
        }
        self.all.add(summary);
        found.into_iter().for_each(|crossing| self.crossings.note(crossing));
    }

    /// What was found, in the order of discovery, and what the clusters did.
    pub fn into_parts(mut self) -> (Vec<Crossing>, Touches) {
        (self.crossings.take(), self.all)
    }
}

fn compare((cluster, mine, write): (u64, &Stretches, bool), (layer, wrote): (&Layer, bool), found: &mut Vec<Crossing>) {
    let visitor = |cluster, one: &Touched, address, write| {
        let Touched { warp, site, unit, .. } = *one;
        Visitor { cluster, warp, lane: one.lane_at(address), site, write, unit, strong: None }
    };
    for new in &mine.0 {
        for part in layer.overlaps(new.start..new.end()) {
            let address = part.start;
            let bytes = part.lane_bytes(address).min(new.lane_bytes(address));
            let (first, second) =
                (visitor(part.cluster.into(), &part, address, wrote), visitor(cluster, new, address, write));
            found.push(Crossing { address, bytes, first, second, gap: Gap::Order, told: Told::Apart, count: 1 });
        }
    }
}
