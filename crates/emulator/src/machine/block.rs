//! A block of threads: its warps, shared memory, barriers and copies, run to its end.

use super::program::{AddressSource, Program, Source};
use super::{State, Values, Warp};
use crate::async_engines::{Copies, Flight};
use crate::checks;
use crate::checks::uninitialised_memory::UnwrittenReads;
use crate::exec::{self, Accessed, At, Ballot, Next};
use crate::finding::{Actor, Findings, Place};
use crate::happens_before::{Detector, Lanes, Site};
use crate::memory::{GlobalMemory, SharedMemory};
use crate::scheduler::Adversary;
use std::collections::BTreeMap;

/// At the end of the instruction budget so many instructions are watched, to tell which loop does not end.
const WATCHED: u64 = 4096;

/// Multiprocessors of an H200, over which blocks are spread in turn.
const PROCESSORS: u32 = 132;

/// A block barrier that is filling.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    /// Threads it needs, if the instruction says so.
    pub expected: Option<u32>,
    /// Who came first, and with which count.
    pub opened: Option<(At, Option<u32>)>,
    /// Per warp, the lanes that have come.
    pub arrived: BTreeMap<usize, u32>,
    pub waiting: Vec<Lanes>,
    /// What those that meet at a `bar.red` said.
    pub ballots: Vec<Ballot>,
}

pub struct Block<'a, 'k> {
    pub index: [u32; 3],
    pub dimensions: [u32; 3],
    pub grid: [u32; 3],
    pub parameters: &'a [u8],
    pub global: &'a mut GlobalMemory,
    pub shared: SharedMemory,
    pub dynamic_shared: u32,
    pub warps: Vec<Warp>,
    pub barriers: BTreeMap<u32, Barrier>,
    pub copies: Copies,
    pub detector: Detector,
    pub findings: &'a mut Findings<'k>,
    /// Reads of bytes that nobody had written, until it is known whether they race.
    pub unwritten_reads: UnwrittenReads,
    pub adversary: Adversary,
    /// A barrier was used in a way whose consequences are not worth reporting.
    pub misused_barrier: bool,
    /// A trap: nothing runs any more.
    pub stopped: bool,
}

impl Block<'_, '_> {
    /// Runs until every thread has exited; returns how many instructions the warps executed, of `budget` at most, which
    /// is what earlier blocks left of the `whole`.
    pub fn run(&mut self, program: &Program, budget: u64, whole: u64) -> u64 {
        let mut executed = 0;
        let unwatched = budget.saturating_sub(WATCHED);
        while executed < unwatched
            && let Some((warp, fragment, turn)) = self.choose()
        {
            executed += self.run_turn(program, warp, fragment, turn.min(unwatched - executed));
        }
        let mut recent = BTreeMap::new();
        while executed < budget
            && let Some((warp, fragment, _)) = self.choose()
        {
            let statement = self.warps[warp].fragments[fragment].next;
            let (first, last) = recent.entry(warp).or_insert((statement, statement));
            (*first, *last) = (statement.min(*first), statement.max(*last));
            executed += self.run_turn(program, warp, fragment, 1);
        }
        let runs = |(warp, _): &(&usize, &(u32, u32))| self.warps[**warp].live != 0;
        match recent.iter().find(runs).filter(|_| executed >= budget && !self.stopped) {
            Some((warp, range)) => checks::deadlock::report_budget(self, whole, *warp, *range),
            None if !self.stopped => checks::deadlock::report(self),
            None => {}
        }
        executed
    }

    /// The warp and fragment that run next, and for how many instructions; none if nobody can.
    fn choose(&mut self) -> Option<(usize, usize, u64)> {
        let ready = self.ready();
        if ready.is_empty() || self.stopped {
            return None;
        }
        let (choice, turn) = self.adversary.choose(ready.len());
        let (warp, fragment) = ready[choice];
        Some((warp, fragment, turn))
    }

    /// Warps that can run, with the statement of a fragment that can.
    fn ready(&self) -> Vec<(usize, usize)> {
        let runs = |warp: &Warp| warp.fragments.iter().position(|fragment| fragment.state == State::Ready);
        self.warps.iter().enumerate().filter_map(|(index, warp)| Some((index, runs(warp)?))).collect()
    }

    /// Runs one fragment until it waits, splits, or its turn ends.
    fn run_turn(&mut self, program: &Program, warp: usize, fragment: usize, turn: u64) -> u64 {
        let mut executed = 0;
        while executed < turn && !self.stopped {
            executed += 1;
            if !self.step(program, warp, fragment) {
                break;
            }
        }
        executed
    }

    /// Executes one statement of a fragment; true if the same fragment can go on.
    fn step(&mut self, program: &Program, warp: usize, fragment: usize) -> bool {
        let statement = self.warps[warp].fragments[fragment].next;
        let Some(step) = program.steps.get(statement as usize) else {
            // Falling off the end of the body is a return.
            let mask = self.warps[warp].fragments[fragment].mask;
            self.exit(warp, mask);
            return false;
        };
        let mask = self.warps[warp].guarded(fragment, step.guard);
        self.warps[warp].steps += 1;
        let next = exec::execute(self, At { warp, fragment, mask, statement }, &step.action);
        if next == Next::Following {
            self.warps[warp].fragments[fragment].next += 1;
        }
        self.settle(warp, fragment, next)
    }

    /// Parks the fragment if it has come to a meeting point.
    fn settle(&mut self, warp: usize, fragment: usize, next: Next) -> bool {
        let warp = &mut self.warps[warp];
        let fragments = warp.fragments.len();
        for index in (0..fragments).rev() {
            if warp.fragments.get(index).is_some_and(|one| one.state == State::Ready) {
                warp.arrive_at_join(index);
            }
        }
        let same = warp.fragments.len() == fragments;
        next == Next::Following && same && warp.fragments.get(fragment).is_some_and(|one| one.state == State::Ready)
    }

    pub fn read(&self, warp: usize, source: Source) -> Values {
        self.warps[warp].read(source, &|name, lane| self.special(name, warp, lane))
    }

    pub fn addresses(&self, warp: usize, address: &AddressSource) -> Values {
        self.read(warp, address.base).map(|base| base.wrapping_add(address.offset as u64))
    }

    fn special(&self, name: &str, warp: usize, lane: usize) -> u64 {
        let thread = (warp * 32 + lane) as u32;
        let [x, y, _] = self.dimensions;
        let before = (1u64 << lane) - 1;
        match name {
            "%tid.x" => u64::from(thread % x),
            "%tid.y" => u64::from(thread / x % y),
            "%tid.z" => u64::from(thread / (x * y)),
            "%laneid" => lane as u64,
            "%warpid" => warp as u64,
            "%nwarpid" => self.warps.len() as u64,
            "%lanemask_eq" => 1 << lane,
            "%lanemask_lt" => before,
            "%lanemask_le" => before | 1 << lane,
            "%lanemask_gt" => !(before | 1 << lane) & 0xffff_ffff,
            "%lanemask_ge" => !before & 0xffff_ffff,
            "%dynamic_smem_size" => u64::from(self.dynamic_shared),
            "%total_smem_size" | "%aggr_smem_size" => self.shared.bytes.len() as u64,
            "%clock" | "%globaltimer_lo" => self.warps[warp].steps & 0xffff_ffff,
            "%clock64" | "%globaltimer" => self.warps[warp].steps,
            "%clock_hi" | "%globaltimer_hi" => self.warps[warp].steps >> 32,
            "%nsmid" => u64::from(PROCESSORS),
            "%smid" => u64::from(self.number() % PROCESSORS),
            "%gridid" => 0,
            other => u64::from(self.dimension(other)),
        }
    }

    /// The block's place in the grid.
    fn number(&self) -> u32 {
        let ([x, y, z], [width, height, _]) = (self.index, self.grid);
        x.wrapping_add(width.wrapping_mul(y.wrapping_add(height.wrapping_mul(z))))
    }

    /// `%ntid.x`, `%ctaid.y`, `%nctaid.z`.
    fn dimension(&self, name: &str) -> u32 {
        let (stem, component) = name.split_at(name.len() - 1);
        let axis = usize::from(component.as_bytes()[0] - b'x');
        match stem {
            "%ntid." => self.dimensions[axis],
            "%ctaid." => self.index[axis],
            _ => self.grid[axis],
        }
    }

    /// Waits for all live lanes of `members`; the lanes when they are here, none while somebody is missing.
    pub fn gather(&mut self, at: At, members: u32) -> Option<u32> {
        let warp = &mut self.warps[at.warp];
        warp.fragments[at.fragment].state = State::Gathering(members);
        warp.gathered(at.statement, members)
    }

    /// Lanes end. Barriers that only waited for them open.
    pub fn exit(&mut self, warp: usize, mask: u32) {
        self.detector.exit(Lanes { warp: warp as u32, mask });
        self.warps[warp].exit(mask);
        let ids: Vec<u32> = self.barriers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.open_barrier(id));
    }

    /// Lanes come to barrier `id`.
    pub fn meet(&mut self, at: At, id: u32, threads: Option<u32>, waits: bool) -> Next {
        let who = Lanes { warp: at.warp as u32, mask: at.mask };
        self.detector.barrier_arrive(who, Site(at.statement), id);
        let barrier = self.barriers.entry(id).or_default();
        // Counts that differ are a finding; the smaller one lets the run go on, whoever came first.
        barrier.expected = [threads, barrier.expected].into_iter().flatten().min();
        barrier.opened.get_or_insert((at, threads));
        *barrier.arrived.entry(at.warp).or_default() |= at.mask;
        if waits {
            barrier.waiting.push(who);
            self.warps[at.warp].fragments[at.fragment].state = State::Barrier(id);
        } else {
            self.warps[at.warp].fragments[at.fragment].next += 1;
        }
        self.open_barrier(id);
        Next::Done
    }

    /// Lets everybody go on if the barrier is full. Threads that have exited do not count (sm_70 and later).
    fn open_barrier(&mut self, id: u32) {
        let Some(barrier) = self.barriers.get(&id) else { return };
        let complete = |warp: &usize| barrier.arrived.get(warp).is_some_and(|mask| self.warps[*warp].live & !mask == 0);
        let come = (0..self.warps.len()).filter(complete).count() as u32 * 32;
        let live = self.warps.iter().filter(|warp| warp.live != 0).count() as u32 * 32;
        let present =
            (0..self.warps.len()).filter(|warp| self.warps[*warp].live != 0).filter(complete).count() as u32 * 32;
        let full = match barrier.expected {
            Some(threads) => come >= threads.next_multiple_of(32),
            None => present == live,
        };
        if !full {
            return;
        }
        let barrier = self.barriers.remove(&id).unwrap_or_default();
        self.detector.barrier_complete(id, &barrier.waiting);
        exec::announce(self, &barrier.ballots);
        for who in &barrier.waiting {
            let warp = &mut self.warps[who.warp as usize];
            for fragment in warp.fragments.iter_mut().filter(|one| one.state == State::Barrier(id)) {
                fragment.state = State::Ready;
                fragment.next += 1;
            }
            for index in (0..warp.fragments.len()).rev() {
                if warp.fragments.get(index).is_some_and(|one| one.state == State::Ready) {
                    warp.arrive_at_join(index);
                }
            }
        }
    }

    /// Copies that the adversary lets land before anybody waits for them.
    pub fn land_some(&mut self) {
        if self.adversary.lands_early() {
            let adversary = &mut self.adversary;
            let landing = self.copies.take(|| adversary.lands());
            landing.into_iter().for_each(|flight| self.land(flight));
        }
    }

    /// Moves a copy's bytes.
    pub fn land(&mut self, flight: Flight) {
        for byte in 0..flight.bytes as usize {
            let value = if byte < flight.source_bytes as usize { self.fetch(flight.from, byte, 1) } else { 0 };
            self.put(flight.to, byte, 1, value);
        }
    }

    /// Copies that were never waited for land when the block ends.
    pub fn land_all(&mut self) {
        let landing = self.copies.take(|| true);
        landing.into_iter().for_each(|flight| self.land(flight));
    }

    /// Where a fragment of this warp stands, for reports.
    pub fn whereabouts(&self, warp: usize) -> impl Iterator<Item = (u32, u32, State)> {
        self.warps[warp].fragments.iter().map(|fragment| (fragment.mask, fragment.next, fragment.state))
    }

    /// How many blocks of the launch came before this one, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        let [x, y, z] = self.index.map(u64::from);
        let [width, height, depth] = self.grid.map(u64::from);
        (x + width * (y + height * z), width * height * depth)
    }

    /// Lanes at a statement, as one side of a finding.
    pub fn actor(&self, at: At, label: &str) -> Actor {
        let place = Place::Statement(at.statement);
        Actor { place, cta: self.index, warp: at.warp as u32, lanes: at.mask, label: label.into() }
    }

    /// Where accessed bytes lie, in the words of the program.
    pub fn place(&self, accessed: Accessed) -> String {
        match accessed {
            Accessed::Nothing => "nothing".into(),
            Accessed::Global { allocation, offset } => self.global.place(self.global.address(allocation, offset)),
            Accessed::Shared { offset } => self.shared.place_of(offset as u64),
            Accessed::Parameter { offset } => format!("the parameters at {offset}"),
            Accessed::Local { offset, .. } => format!("local memory at {offset}"),
        }
    }
}
