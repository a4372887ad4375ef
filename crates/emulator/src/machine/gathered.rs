//! What clusters leave to be judged when all of them have run.

use crate::checks::earlier_grid::{self, EarlierGrid};
use crate::checks::race_global::{self, Scene};
use crate::checks::uninitialised_memory::{self, Suspect};
use crate::finding::Findings;
use happens_before::{Crossing, Footprint, Ledger, Summary, Touches};

/// What one cluster leaves.
pub struct Left {
    /// What it did to global memory.
    pub touched: Summary,
    /// What it did to memory that an earlier grid, with this number, may still use.
    pub too_early: Vec<(usize, Crossing)>,
    /// Its races with those that ran before, and what it read with `.nc` of what it wrote.
    pub crossings: Vec<Crossing>,
    pub suspects: Vec<Suspect>,
    /// Of its detector.
    pub footprint: Footprint,
}

/// What all clusters of a launch left, in their order.
#[derive(Default)]
pub struct Gathered {
    ledger: Ledger,
    crossings: Vec<Crossing>,
    too_early: Vec<(usize, Crossing)>,
    suspects: Vec<Suspect>,
    footprint: Footprint,
}

impl Gathered {
    /// A cluster that knew nothing of the others.
    pub fn add_apart(&mut self, number: u64, left: Left) {
        self.ledger.add(number, &left.touched);
        let footprint = self.footprint.or(left.footprint);
        self.add(left);
        self.footprint = footprint;
    }

    /// What was found when all had run.
    pub fn note(&mut self, crossings: Vec<Crossing>) {
        self.crossings.extend(crossings);
    }

    pub fn add(&mut self, left: Left) {
        self.crossings.extend(left.crossings);
        self.too_early.extend(left.too_early);
        self.suspects.extend(left.suspects);
        self.footprint = self.footprint.and(left.footprint);
    }

    /// The shadow that clusters in turns have in common.
    pub fn add_common(&mut self, footprint: Footprint) {
        self.footprint = self.footprint.and(footprint);
    }

    /// Of the cluster that needed most for its memory; of all together, if they ran in turns.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Races between clusters and with earlier grids, and reads of unwritten bytes that are none. Returns what clusters that
    /// ran apart did to global memory.
    pub fn report(self, scene: &Scene, earlier: &[EarlierGrid], findings: &mut Findings) -> Touches {
        let (between, touches) = self.ledger.into_parts();
        let crossings: Vec<Crossing> = between.into_iter().chain(self.crossings).collect();
        for (grid, crossing) in &self.too_early {
            findings.add(earlier_grid::report(scene, &earlier[*grid], crossing));
        }
        for crossing in &crossings {
            let report = race_global::report(scene, findings, crossing);
            findings.add(report);
        }
        let racing: Vec<u32> = crossings.iter().flat_map(|one| [one.first.site.0, one.second.site.0]).collect();
        uninitialised_memory::settle_global(findings, scene.global, self.suspects, &racing);
        touches
    }
}
