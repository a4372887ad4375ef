//! `barrier.cluster`: what was done before the arrival is known after the wait; what lies between is not covered.

use super::scope::{Offer, Scope, Semantics};
use super::warp::Meeting;
use super::{Detector, Lanes, Means, Site};

/// The barrier of the cluster.
#[derive(Clone, Default)]
pub struct Cluster {
    generation: u32,
    /// What the arrivals of the open generation offer.
    filling: Vec<Offer>,
    /// What those of the complete one offered. Nobody arrives at the next before having waited.
    done: Vec<Offer>,
}

impl Detector {
    /// `barrier.cluster.arrive`; a relaxed one passes on what earlier fences have released.
    pub fn cluster_arrive(&mut self, at: Lanes, site: Site, semantics: Semantics) {
        if self.idle {
            return;
        }
        let meeting = Meeting::Cluster { generation: self.cluster.generation };
        let semantics = Semantics { scope: Scope::Cluster, ..semantics };
        let (warp, mask) = self.warp(at);
        let offers = warp.offers(mask, site, meeting, semantics);
        offers.into_iter().for_each(|offer| Offer::gather(&mut self.cluster.filling, offer));
        self.published(Lanes { mask, ..at }, site, Means::Cluster);
    }

    /// The generation is complete. Those who already wait go on; others wait later.
    pub fn cluster_complete(&mut self, waiters: &[Lanes]) {
        if self.idle {
            return;
        }
        self.cluster.generation += 1;
        self.cluster.done = std::mem::take(&mut self.cluster.filling);
        waiters.iter().for_each(|at| self.cluster_wait(*at));
    }

    /// `barrier.cluster.wait` behind a complete generation.
    pub fn cluster_wait(&mut self, at: Lanes) {
        if self.idle {
            return;
        }
        let Detector { warps, cluster, .. } = self;
        let warp = &mut warps[at.warp as usize];
        warp.accept(at.mask & warp.live, &cluster.done, Scope::Cluster);
    }
}
