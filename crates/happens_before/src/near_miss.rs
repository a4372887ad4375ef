//! What a warp last read of another cluster's releases: if that did not synchronise, it explains the race that follows.

use std::collections::BTreeMap;

use super::Site;
use super::scope::{Scope, Semantics};
use super::words::Published;

/// A release and the access that read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NearMiss {
    pub release: Site,
    pub read: Site,
    /// The scope of the release; none if the write that carries it does not synchronise with the read.
    pub scope: Option<Scope>,
    pub semantics: Semantics,
}

/// By warp and the other cluster.
#[derive(Clone, Default)]
pub struct NearMisses(BTreeMap<(u32, u32), NearMiss>);

impl NearMisses {
    pub fn note(&mut self, warp: u32, cluster: u32, one: &Published, (read, semantics): (Site, Semantics)) {
        let from = one.offer.seat.cluster;
        if from != cluster {
            let miss = NearMiss { release: one.site, read, scope: one.offer.scope, semantics };
            self.0.insert((warp, from), miss);
        }
    }

    pub fn of(&self, warp: u32, from: u32) -> Option<NearMiss> {
        self.0.get(&(warp, from)).copied()
    }
}
