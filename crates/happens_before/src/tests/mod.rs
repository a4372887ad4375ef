//! The detector against the definition: every program runs on both, and they must agree on every byte.

mod clusters;
mod differential;
mod grids;
mod litmus;
mod machine;
mod proxies;
mod recorded;
mod rings;
mod skeleton;
mod wording;

use std::rc::Rc;
use std::sync::Arc;

use super::clock::bits;
use super::definition::{Accesses, Early, Event, Faulty, Found, Oracle, agree, agree_early, never_quiet};
use super::{Bulk, Detector, Places, Site, Summary, Touches};

const ALL: u32 = u32::MAX;

/// Addresses by their shape, as an engine tells them that knows it.
fn shaped(mask: u32, addresses: &[u64; 32], bytes: u32) -> Places<'_> {
    let first = mask.trailing_zeros() as u8 & 31;
    let same = Places::Same(addresses[first as usize]);
    let start = addresses[first as usize].checked_sub(u64::from(first) * u64::from(bytes));
    let fits = |places: &Places| bits(mask).all(|lane| places.at(lane, bytes) == addresses[lane as usize]);
    start.map(Places::Row).into_iter().chain([same]).find(fits).unwrap_or(Places::Each(addresses))
}

/// A grid that may still run, as detector and oracle know it.
#[derive(Clone)]
struct Before {
    touches: Arc<Touches>,
    accesses: Rc<Accesses>,
}

impl Before {
    /// `early`: it lets others start while its blocks run.
    fn new(summary: &Summary, oracle: &Oracle, early: bool) -> Before {
        let (mut touches, mut accesses) = (Touches::default(), Accesses::default());
        touches.add(summary);
        accesses.add(0, oracle);
        if !early {
            (touches, accesses) = (touches.of_ended_blocks(), accesses.of_ended_blocks());
        }
        Before { touches: Arc::new(touches), accesses: Rc::new(accesses) }
    }

    fn begin_behind(all: &[Before], detectors: &mut [Detector], oracle: &mut Oracle) {
        let touches: Vec<Arc<Touches>> = all.iter().map(|before| before.touches.clone()).collect();
        detectors.iter_mut().for_each(|detector| detector.begin_behind(touches.clone()));
        oracle.begin_behind(&all.iter().map(|before| before.accesses.clone()).collect::<Vec<_>>());
    }
}

/// Detector and oracle, side by side.
#[derive(Clone)]
struct Duel {
    detector: Detector,
    oracle: Oracle,
}

impl Duel {
    fn new(lanes: &[u32], warps_per_block: u32) -> Duel {
        let mut detector = Detector::new(lanes, warps_per_block);
        never_quiet(&mut detector);
        Duel { detector, oracle: Oracle::new(lanes, warps_per_block) }
    }

    /// Executes an event on both; returns the faulty bytes, or how they disagree.
    fn step(&mut self, event: &Event, site: Site) -> Result<Faulty, String> {
        let races = self.oracle.step(event, site);
        self.run(event, site);
        let mut faulty = agree(&races, &Found::by(&self.detector, event, site))?;
        faulty.extend(agree_early(&self.oracle.early, &Early::by(&self.detector, event))?);
        Ok(faulty)
    }

    fn run(&mut self, event: &Event, site: Site) {
        let detector = &mut self.detector;
        match event {
            Event::Access { at, kind, semantics, space, addresses, bytes } => {
                detector.ordered_access(
                    *at,
                    site,
                    (*kind, *semantics),
                    *space,
                    shaped(at.mask, addresses, *bytes),
                    *bytes,
                );
            }
            Event::Fence(at, semantics) => detector.fence(*at, site, *semantics),
            Event::ProxyFence(at, which) => detector.fence_proxy_async(*at, *which),
            Event::MapRelease(at) => detector.fence_tensormap_release(*at),
            Event::MapAcquire { at, map } => detector.fence_tensormap_acquire(*at, *map),
            Event::Copy { at, from, from_bytes, to, bytes } => {
                detector.copy(*at, site, from, from_bytes, to, *bytes);
            }
            Event::Commit(at) => detector.commit(*at),
            Event::Wait(at, pending) => detector.wait(*at, site, *pending),
            Event::WaitAll(at) => detector.wait_all(*at, site),
            Event::WarpSync(at) => detector.warp_sync(*at, site),
            Event::GridWait(at) => detector.wait_for_grids(*at),
            Event::Arrive { at, id } => detector.barrier_arrive(*at, site, *id),
            Event::Complete { id, waiters } => detector.barrier_complete(*id, waiters),
            Event::Exit(at) => detector.exit(*at),
            event => self.run_asynchronous(event, site),
        }
    }

    fn run_asynchronous(&mut self, event: &Event, site: Site) {
        let detector = &mut self.detector;
        match event {
            Event::ClusterArrive(at, semantics) => detector.cluster_arrive(*at, site, *semantics),
            Event::ClusterComplete { waiters, .. } => detector.cluster_complete(waiters),
            Event::ClusterWait(at) => detector.cluster_wait(*at),
            Event::MbarrierInit { at, barrier } => detector.mbarrier_init(*at, *barrier),
            Event::MbarrierInvalidate { barrier } => detector.mbarrier_invalidate(*barrier),
            Event::InitFence(at) => detector.fence_mbarrier_init(*at),
            Event::MbarrierArrive { at, barrier, semantics } => {
                detector.mbarrier_arrive(*at, site, *barrier, *semantics);
            }
            Event::CopyArrive { at, barrier } => detector.copy_arrive(*at, *barrier),
            Event::MbarrierComplete(barrier) => detector.mbarrier_phase_complete(*barrier),
            Event::MbarrierWait { at, barrier, semantics } => detector.mbarrier_wait(*at, *barrier, *semantics),
            Event::Load { at, barrier, reads, writes, map } => {
                detector.bulk_load(*at, site, *barrier, &Bulk { reads, writes, map: *map, element: None });
            }
            Event::RemoteStore { at, barrier, to } => detector.remote_store(*at, site, *barrier, to.clone()),
            Event::Store { at, reads, writes, map, element } => {
                detector.bulk_store(*at, site, &Bulk { reads, writes, map: *map, element: *element });
            }
            Event::BulkCommit(at) => detector.bulk_commit(*at),
            Event::BulkWait { at, pending, read } => detector.bulk_wait(*at, site, *pending, *read),
            Event::Wgmma { at, reads } => detector.wgmma(*at, site, reads),
            Event::WgmmaCommit(at) => detector.wgmma_commit(*at),
            Event::WgmmaWait(at, pending) => detector.wgmma_wait(*at, *pending),
            event => unreachable!("{event:?}"),
        }
    }
}
