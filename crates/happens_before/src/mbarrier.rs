//! mbarriers: arrivals release into the open phase, a successful wait takes all complete phases.
//!
//! An mbarrier is also the channel that tells of the bulk copies it counts: its row's time is the number of complete
//! phases, and a copy is an access at the phase that was open when it was issued. Its completion tells of the copy and
//! of nothing that its issuer did, and it reaches whoever acquires.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::clock::{Row, bits};
use super::copies::Flight;
use super::rows::Rows;
use super::scope::{Offer, Scope, Semantics};
use super::view::View;
use super::warp::{Meeting, Track, remember};
use super::{Detector, Lanes, Means, Places, Site, Space, Unfinished, Waitable};

/// Bytes of an mbarrier. PTX ISA, "Size and alignment of mbarrier object".
const MBARRIER: u32 = 8;

/// A lane's operation.
#[derive(Clone, Copy)]
struct Epoch {
    warp: u32,
    lane: u8,
    time: u32,
}

/// Who issued a copy, for the wording of faults.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Issue {
    time: u32,
    warp: u32,
    mask: u32,
    site: Site,
    /// The batch of a `cp.async`, which its lane may wait for as well.
    batch: Option<u32>,
}

/// A copy that was issued, and what is remembered of its start.
#[derive(Clone, Copy)]
pub struct Start {
    issue: Issue,
    /// The warp that issued it, and its time.
    pub warp: u32,
    pub time: u32,
}

#[derive(Clone)]
struct Mbarrier {
    row: Row,
    /// Complete phases of the row before the initialisation.
    before: u32,
    /// Complete phases of the row.
    complete: u32,
    /// Tells of all complete phases of the row.
    told: Arc<View>,
    /// What the arrivals of the open phase offer, and those of the complete phases.
    filling: Vec<Offer>,
    done: Vec<Offer>,
    /// Copies were issued in the open phase.
    in_flight: bool,
    initialised: Option<Epoch>,
    /// The `fence.mbarrier_init` after that.
    fenced: Option<Epoch>,
    starts: VecDeque<Start>,
    /// Warps that have taken a phase.
    listeners: BTreeSet<u32>,
    /// Copies that no wait has covered yet.
    unwaited: Vec<Issue>,
}

impl Mbarrier {
    fn new(row: Row, complete: u32) -> Mbarrier {
        Mbarrier {
            row,
            before: complete,
            complete,
            told: Arc::default(),
            filling: Vec::new(),
            done: Vec::new(),
            in_flight: false,
            initialised: None,
            fenced: None,
            starts: VecDeque::new(),
            listeners: BTreeSet::new(),
            unwaited: Vec::new(),
        }
    }

    /// The open phase, counted from the initialisation.
    fn phase(&self) -> u32 {
        self.complete - self.before
    }

    /// Copies that wait to be waited for; those of other lanes of the same statement join them.
    fn leave(&mut self, issue: Issue) {
        let same = |old: &&mut Issue| Issue { mask: issue.mask, ..**old } == issue;
        match self.unwaited.last_mut().filter(same) {
            Some(old) => old.mask |= issue.mask,
            None => self.unwaited.push(issue),
        }
    }
}

/// All mbarriers, by address.
#[derive(Clone, Default)]
pub struct Mbarriers {
    all: BTreeMap<u64, Mbarrier>,
}

impl Mbarriers {
    /// The mbarrier at an address, initialised or not. When rows run out, mbarriers share the last one.
    fn at(&mut self, barrier: u64, rows: &mut Rows) -> &mut Mbarrier {
        self.all.entry(barrier).or_insert_with(|| Mbarrier::new(rows.add_mbarrier(barrier).unwrap_or(Row::MAX - 1), 0))
    }

    /// The phase, since the initialisation, that a time of the row stands for.
    pub fn phase_of(&self, barrier: u64, time: u32) -> u32 {
        let before = self.all.get(&barrier).map_or(0, |barrier| barrier.before);
        time.saturating_sub(before + 1)
    }

    /// Copies that no wait for a phase has covered, and their batch if they are `cp.async`.
    pub fn unwaited(&self) -> impl Iterator<Item = (Unfinished, Option<u32>)> {
        let of_one = |(barrier, found): (&u64, &Mbarrier)| {
            let (barrier, before) = (*barrier, found.before);
            let unfinished = move |issue: &Issue| {
                let by = Waitable::Phase { barrier, phase: issue.time.saturating_sub(before + 1) };
                (Unfinished { warp: issue.warp, mask: issue.mask, site: issue.site, by }, issue.batch)
            };
            found.unwaited.iter().map(unfinished).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of_one)
    }

    /// The start of a copy, as far as that is remembered.
    pub fn start(&self, barrier: u64, time: u32, lane: u8, site: Site) -> Option<&Start> {
        let fits =
            |Start { issue, .. }: &&Start| (issue.time, issue.site) == (time, site) && issue.mask >> lane & 1 == 1;
        self.all.get(&barrier)?.starts.iter().rev().find(fits)
    }

    /// Has the warp taken a phase since the initialisation?
    pub fn has_told(&self, barrier: u64, warp: u32) -> bool {
        self.all.get(&barrier).is_some_and(|found| found.listeners.contains(&warp))
    }
}

impl Detector {
    /// `mbarrier.init` by one lane.
    pub fn mbarrier_init(&mut self, at: Lanes, barrier: u64) {
        if self.idle {
            return;
        }
        self.objects.add(barrier);
        let lane = at.mask.trailing_zeros() as u8;
        let (warp, _) = self.warp(at);
        let epoch = Epoch { warp: at.warp, lane, time: warp.time };
        let view = warp.group(lane).map(|group| group.view.clone());
        let old = self.mbarriers.at(barrier, &mut self.rows);
        // A row is used again only if nothing of its past can be mistaken for the new object's.
        let settled = !old.in_flight && view.is_some_and(|view| old.complete <= view.seen.floor(old.row));
        let row = Some(old.row).filter(|_| settled).or_else(|| self.rows.add_mbarrier(barrier)).unwrap_or(old.row);
        let complete = if row == old.row { old.complete } else { 0 };
        let starts = std::mem::take(&mut old.starts);
        *old = Mbarrier { initialised: Some(epoch), starts, ..Mbarrier::new(row, complete) };
    }

    /// `mbarrier.inval`: the object is no mbarrier until it is initialised again.
    pub fn mbarrier_invalidate(&mut self, barrier: u64) {
        if self.idle {
            return;
        }
        self.objects.add(barrier);
        let old = self.mbarriers.at(barrier, &mut self.rows);
        (old.initialised, old.fenced) = (None, None);
    }

    /// `fence.mbarrier_init.release.cluster`: the lanes' initialisations reach whoever is synchronised in any way.
    pub fn fence_mbarrier_init(&mut self, at: Lanes) {
        if self.idle {
            return;
        }
        let (warp, mask) = self.warp(at);
        let time = warp.time;
        warp.time += 1;
        for barrier in self.mbarriers.all.values_mut() {
            let own = |init: &Epoch| init.warp == at.warp && mask >> init.lane & 1 == 1;
            if let Some(init) = barrier.initialised.filter(own) {
                barrier.fenced = Some(Epoch { time, ..init });
            }
        }
    }

    /// Is the initialisation of an mbarrier known to all these lanes? Asked before they use it.
    pub fn mbarrier_is_initialised(&self, at: Lanes, barrier: u64) -> bool {
        self.objects.add(barrier);
        let Some(found) = self.mbarriers.all.get(&barrier) else { return false };
        let Some(init) = found.initialised else { return false };
        let row = self.warps[init.warp as usize].lanes_row();
        let user = &self.warps[at.warp as usize];
        let loosely = |view: &View, epoch: Epoch| {
            let unknown = view.seen.unknown(row, epoch.time, 1 << epoch.lane);
            view.loose.unknown(row, epoch.time, unknown) == 0
        };
        bits(at.mask & user.live).all(|lane| {
            let group = user.group(lane);
            user.knows(lane, row, init.lane, init.time)
                || found.fenced.is_some_and(|fence| group.is_some_and(|group| loosely(&group.view, fence)))
        })
    }

    /// `mbarrier.arrive` in any form that counts as an arrival; a relaxed one passes on what earlier fences released.
    pub fn mbarrier_arrive(&mut self, at: Lanes, site: Site, barrier: u64, semantics: Semantics) {
        if self.idle {
            return;
        }
        self.objects.add(barrier);
        let semantics = self.narrowed(semantics);
        self.remote_access(at, site, Places::Same(barrier), MBARRIER);
        let found = self.mbarriers.at(barrier, &mut self.rows);
        let (phase, warp) = (found.phase(), &mut self.warps[at.warp as usize]);
        let mask = at.mask & warp.live;
        let offers = warp.offers(mask, site, Meeting::Mbarrier { barrier, phase }, semantics);
        offers.into_iter().for_each(|offer| Offer::gather(&mut found.filling, offer));
        self.published(Lanes { mask, ..at }, site, Means::Mbarrier { barrier, phase });
    }

    /// `cp.async.mbarrier.arrive`: the phase will tell of the lanes' copies, and of nothing else.
    pub fn copy_arrive(&mut self, at: Lanes, barrier: u64) {
        if self.idle {
            return;
        }
        self.objects.add(barrier);
        let found = self.mbarriers.at(barrier, &mut self.rows);
        let (phase, warp) = (found.phase(), &mut self.warps[at.warp as usize]);
        let (mask, row, seat) = (at.mask & warp.live, warp.track_row(Track::Copies), warp.seat());
        let time = found.complete + 1;
        let left = |flight: &&Flight| flight.mask & mask != 0;
        for flight in warp.track(Track::Copies).flights.iter().filter(left) {
            let (mask, site, batch) = (flight.mask & mask, flight.site, Some(flight.batch));
            found.leave(Issue { time, warp: at.warp, mask, site, batch });
        }
        let batch = warp.track_mut(Track::Copies).hand_over(mask, barrier, phase);
        let mut view = View::default();
        view.seen.raise(row, mask, batch);
        let scope = if self.blocks > 1 { Scope::Cta } else { Scope::Cluster };
        Offer::gather(&mut found.filling, Offer { view: Arc::new(view), scope: Some(scope), seat });
    }

    /// The open phase is complete: its arrivals are in, and its bytes.
    pub fn mbarrier_phase_complete(&mut self, barrier: u64) {
        if self.idle {
            return;
        }
        let found = self.mbarriers.at(barrier, &mut self.rows);
        let filled = std::mem::take(&mut found.filling);
        filled.into_iter().for_each(|offer| Offer::gather(&mut found.done, offer));
        found.complete += 1;
        found.in_flight = false;
        found.told = Arc::new(View::of_row(found.row, found.complete));
    }

    /// `mbarrier.test_wait` or `try_wait` that returned true. It gives what complete phases hold, which may be nothing: a
    /// fresh mbarrier lets the wait for the phase before the first pass.
    pub fn mbarrier_wait(&mut self, at: Lanes, barrier: u64, semantics: Semantics) {
        if self.idle {
            return;
        }
        self.objects.add(barrier);
        let semantics = self.narrowed(semantics);
        let found = self.mbarriers.at(barrier, &mut self.rows);
        let warp = &mut self.warps[at.warp as usize];
        let (mask, seat) = (at.mask & warp.live, warp.seat());
        let complete = found.complete;
        found.unwaited.retain(|issue| issue.time > complete);
        if complete > found.before {
            found.listeners.insert(at.warp);
        }
        let told = Offer { view: found.told.clone(), scope: Some(Scope::Cluster), seat };
        let offers: Vec<Offer> = found.done.iter().cloned().chain([told]).collect();
        if semantics.acquire {
            return warp.accept(mask, &offers, semantics.scope);
        }
        let linked = |offer: Offer| if offer.reaches(seat, semantics.scope) { offer } else { offer.broken() };
        let offers: Vec<Offer> = offers.into_iter().map(linked).collect();
        for lane in bits(mask) {
            offers.iter().for_each(|offer| warp.pend(lane, (Space::Shared, barrier), offer.clone(), semantics));
        }
    }

    /// A lane issues a copy that an mbarrier will tell of: its row and the time at which it will.
    pub(super) fn issue_load(&mut self, at: Lanes, site: Site, barrier: u64) -> (Row, u32) {
        self.objects.add(barrier);
        let found = self.mbarriers.at(barrier, &mut self.rows);
        found.in_flight = true;
        let time = found.complete + 1;
        let issue = Issue { time, warp: at.warp, mask: at.mask, site, batch: None };
        if found.starts.back().map(|start| start.issue) != Some(issue) {
            let warp = &self.warps[at.warp as usize];
            remember(&mut found.starts, Start { issue, warp: at.warp, time: warp.time });
            found.unwaited.push(issue);
        }
        (found.row, time)
    }
}
