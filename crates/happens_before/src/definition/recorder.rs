//! A detector that writes down what it is told, and what it finds.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use super::earlier::Early;
use super::event::Event;
use super::found::Found;
use super::launch::{Before, Launch, Note, Notes};
use crate::{
    Bulk, Commons, Crossing, Detector, Fault, Kind, Lanes, Places, ProxyFence, Seen, Semantics, Site, Space, Stretch,
    Touches,
};

/// The launches since somebody asked for them.
static LAUNCHES: Mutex<Option<Vec<Launch>>> = Mutex::new(None);
/// Who asks first is served first.
static TURN: Mutex<()> = Mutex::new(());

fn with_last<T>(use_it: impl FnOnce(&mut Launch) -> T) -> Option<T> {
    let mut launches = LAUNCHES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    launches.as_mut().and_then(|all| all.last_mut()).map(use_it)
}

/// Records all launches that `run` makes, which must come one after the other.
pub fn record<T>(run: impl FnOnce() -> T) -> (T, Vec<Launch>) {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let launches = || LAUNCHES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *launches() = Some(vec![]);
    let result = run();
    (result, launches().take().unwrap_or_default())
}

/// The detectors from now on belong to a new launch. It may overlap with as many of those before it as there are answers to
/// whether they let it start while their blocks run.
pub fn begin_launch(early: &[bool]) {
    let mut launches = LAUNCHES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(all) = launches.as_mut() {
        let before = all[all.len() - early.len()..].iter().zip(early);
        let before =
            before.map(|(launch, early)| Before { clusters: launch.clusters.clone(), early: *early }).collect();
        all.push(Launch::behind(before));
    }
}

/// In the place of a [`Detector`]. It does not lend it to be changed, so that nothing can be told past the record.
pub struct Recorder {
    detector: Detector,
    /// None if nobody asked for it.
    notes: Option<Box<Notes>>,
}

impl Deref for Recorder {
    type Target = Detector;

    fn deref(&self) -> &Detector {
        &self.detector
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(mut notes) = self.notes.take() {
            notes.summary = self.detector.summary();
            with_last(|launch| launch.clusters.insert(self.detector.number, Arc::new(*notes)));
        }
    }
}

impl Recorder {
    /// One that is asked, and told nothing.
    pub fn numbered(number: u32, lanes: &[u32], warps_per_block: u32) -> Recorder {
        Recorder { detector: Detector::numbered(number, lanes, warps_per_block), notes: None }
    }

    pub fn watching(number: u32, lanes: &[u32], warps_per_block: u32, watches: bool) -> Recorder {
        let mut detector = Detector::watching(number, lanes, warps_per_block, watches);
        let mut notes = None;
        if watches && with_last(|_| ()).is_some() {
            never_quiet(&mut detector);
            notes = Some(Box::new(Notes::new(lanes, warps_per_block)));
        }
        Recorder { detector, notes }
    }

    /// Tells the detector something; `event` says what.
    #[inline]
    fn tell(&mut self, site: Site, event: impl FnOnce() -> Event, tell: impl FnOnce(&mut Detector)) {
        let event = self.notes.is_some().then(event);
        tell(&mut self.detector);
        if let (Some(notes), Some(event)) = (&mut self.notes, event) {
            let found = Found::by(&self.detector, &event, site);
            let sequence = with_last(|launch| launch.tick()).unwrap_or_default();
            let early = Early::by(&self.detector, &event);
            notes.all.push(Note { sequence, site, event, found, early });
        }
    }

    pub fn exchange(&mut self, commons: &mut Commons) {
        self.detector.exchange(commons);
        self.notes.iter_mut().for_each(|notes| notes.in_turns = true);
    }

    pub fn take_faults(&mut self) -> Vec<Fault> {
        self.detector.take_faults()
    }

    pub fn take_crossings(&mut self) -> Vec<Crossing> {
        self.detector.take_crossings()
    }

    pub fn take_too_early(&mut self) -> Vec<(usize, Crossing)> {
        self.detector.take_too_early()
    }

    pub fn begin_behind(&mut self, touches: Vec<Arc<Touches>>) {
        self.detector.begin_behind(touches);
    }

    pub fn keep_record(&mut self) {
        self.detector.keep_record();
    }

    pub fn take_record(&mut self) -> Vec<Seen> {
        self.detector.take_record()
    }
}

/// The definition does not tire of a word that is raced for all the time.
pub fn never_quiet(detector: &mut Detector) {
    detector.shadows.iter_mut().for_each(|shadow| shadow.lists.patience = u32::MAX);
}

/// Where no statement is named.
const NOWHERE: Site = Site(u32::MAX);

/// All that a detector is told.
impl Recorder {
    #[inline]
    pub fn access(&mut self, at: Lanes, site: Site, kind: Kind, space: Space, places: Places, bytes: u32) {
        let event = || access(at, (kind, Semantics::default()), space, places, bytes);
        self.tell(site, event, |detector| detector.access(at, site, kind, space, places, bytes));
    }

    pub fn ordered_access(
        &mut self,
        at: Lanes,
        site: Site,
        what: (Kind, Semantics),
        space: Space,
        places: Places,
        bytes: u32,
    ) {
        let event = || access(at, what, space, places, bytes);
        self.tell(site, event, |detector| detector.ordered_access(at, site, what, space, places, bytes));
    }

    pub fn fence(&mut self, at: Lanes, site: Site, semantics: Semantics) {
        self.tell(site, || Event::Fence(at, semantics), |detector| detector.fence(at, site, semantics));
    }

    pub fn fence_proxy_async(&mut self, at: Lanes, which: ProxyFence) {
        self.tell(NOWHERE, || Event::ProxyFence(at, which), |detector| detector.fence_proxy_async(at, which));
    }

    /// A fence that is missing and reported counts as there.
    pub fn heal_missed_fence(&mut self, at: Lanes) {
        if self.detector.missed_fence {
            let event = || Event::ProxyFence(at, ProxyFence::All);
            self.tell(NOWHERE, event, |detector| detector.heal_missed_fence(at));
        }
    }

    pub fn fence_tensormap_release(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::MapRelease(at), |detector| detector.fence_tensormap_release(at));
    }

    pub fn fence_tensormap_acquire(&mut self, at: Lanes, map: u64) {
        self.tell(NOWHERE, || Event::MapAcquire { at, map }, |detector| detector.fence_tensormap_acquire(at, map));
    }

    pub fn fence_mbarrier_init(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::InitFence(at), |detector| detector.fence_mbarrier_init(at));
    }

    pub fn copy(
        &mut self,
        at: Lanes,
        site: Site,
        from: &[u64; 32],
        from_bytes: &[u32; 32],
        to: &[u64; 32],
        bytes: u32,
    ) {
        let event = || {
            let (from, from_bytes, to) = (Box::new(*from), Box::new(*from_bytes), Box::new(*to));
            Event::Copy { at, from, from_bytes, to, bytes }
        };
        self.tell(site, event, |detector| detector.copy(at, site, from, from_bytes, to, bytes));
    }

    pub fn commit(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::Commit(at), |detector| detector.commit(at));
    }

    pub fn wait(&mut self, at: Lanes, site: Site, pending: u32) {
        self.tell(site, || Event::Wait(at, pending), |detector| detector.wait(at, site, pending));
    }

    pub fn wait_all(&mut self, at: Lanes, site: Site) {
        self.tell(site, || Event::WaitAll(at), |detector| detector.wait_all(at, site));
    }

    pub fn warp_sync(&mut self, at: Lanes, site: Site) {
        self.tell(site, || Event::WarpSync(at), |detector| detector.warp_sync(at, site));
    }

    pub fn wait_for_grids(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::GridWait(at), |detector| detector.wait_for_grids(at));
    }

    pub fn exit(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::Exit(at), |detector| detector.exit(at));
    }

    pub fn barrier_arrive(&mut self, at: Lanes, site: Site, id: u32) {
        self.tell(site, || Event::Arrive { at, id }, |detector| detector.barrier_arrive(at, site, id));
    }

    pub fn barrier_complete(&mut self, id: u32, waiters: &[Lanes]) {
        let event = || Event::Complete { id, waiters: waiters.to_vec() };
        self.tell(NOWHERE, event, |detector| detector.barrier_complete(id, waiters));
    }

    pub fn cluster_arrive(&mut self, at: Lanes, site: Site, semantics: Semantics) {
        let event = || Event::ClusterArrive(at, semantics);
        self.tell(site, event, |detector| detector.cluster_arrive(at, site, semantics));
    }

    pub fn cluster_complete(&mut self, waiters: &[Lanes]) {
        let event = || Event::ClusterComplete { cluster: 0, waiters: waiters.to_vec() };
        self.tell(NOWHERE, event, |detector| detector.cluster_complete(waiters));
    }

    pub fn cluster_wait(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::ClusterWait(at), |detector| detector.cluster_wait(at));
    }

    pub fn mbarrier_init(&mut self, at: Lanes, barrier: u64) {
        self.tell(NOWHERE, || Event::MbarrierInit { at, barrier }, |detector| detector.mbarrier_init(at, barrier));
    }

    pub fn mbarrier_invalidate(&mut self, barrier: u64) {
        let event = || Event::MbarrierInvalidate { barrier };
        self.tell(NOWHERE, event, |detector| detector.mbarrier_invalidate(barrier));
    }

    pub fn mbarrier_arrive(&mut self, at: Lanes, site: Site, barrier: u64, semantics: Semantics) {
        let event = || Event::MbarrierArrive { at, barrier, semantics };
        self.tell(site, event, |detector| detector.mbarrier_arrive(at, site, barrier, semantics));
    }

    pub fn copy_arrive(&mut self, at: Lanes, barrier: u64) {
        self.tell(NOWHERE, || Event::CopyArrive { at, barrier }, |detector| detector.copy_arrive(at, barrier));
    }

    pub fn mbarrier_phase_complete(&mut self, barrier: u64) {
        let event = || Event::MbarrierComplete(barrier);
        self.tell(NOWHERE, event, |detector| detector.mbarrier_phase_complete(barrier));
    }

    pub fn mbarrier_wait(&mut self, at: Lanes, barrier: u64, semantics: Semantics) {
        let event = || Event::MbarrierWait { at, barrier, semantics };
        self.tell(NOWHERE, event, |detector| detector.mbarrier_wait(at, barrier, semantics));
    }

    pub fn bulk_load(&mut self, at: Lanes, site: Site, barrier: u64, bulk: &Bulk) {
        let (reads, writes, map) = (bulk.reads, bulk.writes, bulk.map);
        let event = || Event::Load { at, barrier, reads: reads.to_vec(), writes: writes.to_vec(), map };
        self.tell(site, event, |detector| detector.bulk_load(at, site, barrier, bulk));
    }

    pub fn remote_store(&mut self, at: Lanes, site: Site, barrier: u64, to: Stretch) {
        let event = || Event::RemoteStore { at, barrier, to: to.clone() };
        self.tell(site, event, |detector| detector.remote_store(at, site, barrier, to.clone()));
    }

    pub fn bulk_store(&mut self, at: Lanes, site: Site, bulk: &Bulk) {
        let Bulk { map, element, .. } = *bulk;
        let event = || Event::Store { at, reads: bulk.reads.to_vec(), writes: bulk.writes.to_vec(), map, element };
        self.tell(site, event, |detector| detector.bulk_store(at, site, bulk));
    }

    /// To the definition, a copy of nothing.
    pub fn refuse_bulk(&mut self, at: Lanes, site: Site, map: u64) {
        let event = || Event::Store { at, reads: vec![], writes: vec![], map: Some(map), element: None };
        self.tell(site, event, |detector| detector.refuse_bulk(at, site, map));
    }

    pub fn bulk_commit(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::BulkCommit(at), |detector| detector.bulk_commit(at));
    }

    pub fn bulk_wait(&mut self, at: Lanes, site: Site, pending: u32, read: bool) {
        let event = || Event::BulkWait { at, pending, read };
        self.tell(site, event, |detector| detector.bulk_wait(at, site, pending, read));
    }

    pub fn wgmma(&mut self, at: Lanes, site: Site, reads: &[Stretch]) {
        let event = || Event::Wgmma { at, reads: reads.to_vec() };
        self.tell(site, event, |detector| detector.wgmma(at, site, reads));
    }

    pub fn wgmma_commit(&mut self, at: Lanes) {
        self.tell(NOWHERE, || Event::WgmmaCommit(at), |detector| detector.wgmma_commit(at));
    }

    pub fn wgmma_wait(&mut self, at: Lanes, pending: u32) {
        self.tell(NOWHERE, || Event::WgmmaWait(at, pending), |detector| detector.wgmma_wait(at, pending));
    }
}

fn access(at: Lanes, (kind, semantics): (Kind, Semantics), space: Space, places: Places, bytes: u32) -> Event {
    let addresses = Box::new(std::array::from_fn(|lane| places.at(lane as u8, bytes)));
    Event::Access { at, kind, semantics, space, addresses, bytes }
}
