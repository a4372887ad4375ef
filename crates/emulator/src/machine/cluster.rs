//! A cluster of blocks: their warps, shared memory, barriers and copies, run to their end. A launch without clusters has
//! clusters of one block.

use super::meeting::{Barrier, ClusterBarrier};
use super::program::{AddressSource, Program, Source};
use super::register_pool::RegisterPool;
use super::{Chunk, Fixed, LaunchShape, State, Values, Warp};
use crate::Detector;
use crate::async_engines::{Copies, Flight, Flights, Mbarrier, Products, Spot};
use crate::audit::Audit;
use crate::checks;
use crate::checks::barrier::BARRIERS;
use crate::checks::uninitialised_memory::UnwrittenReads;
use crate::exec::{self, Accessed, Action, At, Next};
use crate::finding::{Actor, Findings, Place};
use crate::memory::{GlobalMemory, SharedMemory};
use crate::operand_sets::Census;
use crate::scheduler::Adversary;
use crate::simd::{Level, Straight, View};
use crate::trace::Recorder;
use happens_before::Lanes;
use launch::backend::{Engine, Precision};
use std::collections::BTreeMap;

/// At the end of the instruction budget so many instructions are watched, to tell which loop does not end.
const WATCHED: u64 = 4096;

/// Instructions after which a warp that could go on is chosen anew: one that spins for another must not do so for ever.
const LONGEST_TURN: u64 = 256;

/// How a run of whole-warp kernels ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// At a step that they do not do, or at the end of the turn.
    Left,
    /// Where others wait for the fragment.
    Arrived,
    /// Inside of a branch that parted the fragment.
    Parted,
}

impl Course {
    /// What becomes of the fragment.
    fn next(self) -> Next {
        if self == Course::Parted { Next::Done } else { Next::Following }
    }
}

/// One block of the cluster: its place in the grid, and what its threads share.
pub struct Block {
    pub index: [u32; 3],
    pub shared: SharedMemory,
    /// By id.
    pub barriers: [Barrier; BARRIERS as usize],
    pub registers: RegisterPool,
}

pub struct Cluster<'a, 'k> {
    pub shape: &'a LaunchShape,
    /// The cluster's place in the launch.
    pub number: u64,
    pub global: GlobalMemory,
    /// By rank.
    pub blocks: Vec<Block>,
    /// Those of the first block, then those of the second, and so on.
    pub warps: Vec<Warp>,
    pub cluster_barrier: ClusterBarrier,
    pub copies: Copies,
    pub mbarriers: BTreeMap<Spot, Mbarrier>,
    pub initialisations: BTreeMap<Spot, checks::initialisations::Initialisations>,
    pub flights: Flights,
    /// By warp.
    pub products: Vec<Products>,
    pub product_reads: exec::Reads,
    /// How often in a row all waits have run out.
    pub timeouts: u32,
    /// Bulk copies of the current instruction beyond its first: each counts as an instruction, or a few thousand
    /// instructions could move gigabytes.
    pub further_copies: u64,
    pub detector: Detector,
    pub findings: Findings<'k>,
    /// Reads of bytes that nobody had written, until it is known whether they race.
    pub unwritten_reads: UnwrittenReads,
    pub adversary: Adversary,
    /// Room for those who can run.
    pub candidates: Vec<(usize, usize)>,
    /// A barrier was used in a way whose consequences are not worth reporting.
    pub misused_barrier: bool,
    /// A trap: nothing runs any more.
    pub stopped: bool,
    /// Whether reads of unwritten bytes are looked for; the detector knows for itself.
    pub checks: bool,
    /// Nothing runs any more once more than this was found.
    pub fault_limit: u64,
    pub engine: Engine,
    pub precision: Precision,
    pub level: Level,
    /// Draws a timeline, if somebody wants one of this cluster.
    pub trace: Option<Box<Recorder>>,
    /// What lints know of each block; none if nobody wants lints.
    pub lints: Option<Vec<checks::redundant_sync::Since>>,
    /// Looks for the first NaN, if somebody wants to know.
    pub births: Option<checks::nan_birth::Births<'a>>,
    /// Waits whose result nobody looks at, by their mbarrier.
    pub unheard: BTreeMap<Spot, u32>,
    /// Counts what instructions are fed, if somebody wants to know.
    pub census: Option<&'a Census>,
    /// Compares what moves with what the checks see, if somebody wants to know.
    pub audit: Option<Box<Audit>>,
    /// Synchronisations that synchronise and order nothing, in their order.
    pub silenced: &'a [u32],
}

impl Cluster<'_, '_> {
    /// Does a synchronisation tell anybody anything?
    pub fn orders(&self, at: At) -> bool {
        !self.is_silenced(at.statement)
    }

    pub fn is_silenced(&self, statement: u32) -> bool {
        !self.silenced.is_empty() && self.silenced.binary_search(&statement).is_ok()
    }

    /// Runs until every thread has exited; returns how many instructions the warps executed, of `budget` at most, which
    /// is what earlier clusters left of the `whole`.
    pub fn run(&mut self, program: &Program, budget: u64, whole: u64) -> u64 {
        self.advance(program, budget, budget, whole).0
    }

    /// Runs for `turn` instructions of the `left` at most; returns how many were executed, and whether there are more. At
    /// the end of the budget it is told which loop does not end.
    pub fn advance(&mut self, program: &Program, turn: u64, left: u64, whole: u64) -> (u64, bool) {
        let last = turn == left;
        let unwatched = if last { turn.saturating_sub(WATCHED) } else { turn };
        let mut executed = 0;
        while executed < unwatched
            && let Some((warp, fragment, turn)) = self.choose()
        {
            executed += self.run_turn(program, warp, fragment, turn.min(unwatched - executed));
        }
        if !last && executed >= turn && !self.stopped {
            return (executed.min(left), true);
        }
        let mut recent = BTreeMap::new();
        while executed < turn
            && let Some((warp, fragment, _)) = self.choose()
        {
            let statement = self.warps[warp].fragments[fragment].next;
            let (first, last) = recent.entry(warp).or_insert((statement, statement));
            (*first, *last) = (statement.min(*first), statement.max(*last));
            executed += self.run_turn(program, warp, fragment, 1);
        }
        let runs = |(warp, _): &(&usize, &(u32, u32))| self.warps[**warp].live != 0;
        let late = recent.iter().find(runs).map(|(warp, range)| (*warp, *range)).or_else(|| {
            // The budget was used up before this cluster began.
            let (warp, fragment) = self.ready().next()?;
            let statement = self.warps[warp].fragments[fragment].next;
            Some((warp, (statement, statement)))
        });
        match late.filter(|_| executed >= turn && !self.stopped) {
            Some((warp, range)) => checks::deadlock::report_budget(self, whole, warp, range),
            None if !self.stopped => checks::deadlock::report(self),
            None => {}
        }
        (executed.min(left), false)
    }

    /// Different faults so far.
    pub fn faults(&self) -> u64 {
        self.detector.count_faults() + self.findings.count_faults()
    }

    /// The warp and fragment that run next, and for how many instructions; none if nobody can.
    fn choose(&mut self) -> Option<(usize, usize, u64)> {
        // What something later may put in other words is worth waiting for.
        self.stopped |= self.faults() > self.fault_limit && self.detector.is_settled();
        if !self.flights.is_empty() {
            self.drift();
        }
        let mut ready = std::mem::take(&mut self.candidates);
        ready.clear();
        ready.extend(self.ready());
        while ready.is_empty() && !self.stopped && self.stir() {
            ready.extend(self.ready());
        }
        let adversary = &self.adversary;
        if adversary.starves_some() && ready.iter().any(|(warp, _)| !adversary.starves(*warp)) {
            ready.retain(|(warp, _)| !adversary.starves(*warp));
        }
        let chosen = (!ready.is_empty() && !self.stopped).then(|| {
            let (choice, turn) = self.adversary.choose(ready.len());
            (ready[choice].0, ready[choice].1, turn)
        });
        self.candidates = ready;
        chosen
    }

    /// Warps that can run, with the statement of a fragment that can.
    fn ready(&self) -> impl Iterator<Item = (usize, usize)> {
        let runs = |warp: &Warp| warp.fragments.iter().position(|fragment| fragment.state == State::Ready);
        self.warps.iter().enumerate().filter_map(move |(index, warp)| Some((index, runs(warp)?)))
    }

    /// Runs one fragment until it waits, splits, or its turn ends.
    fn run_turn(&mut self, program: &Program, warp: usize, fragment: usize, turn: u64) -> u64 {
        let (mut executed, turn) = (0, turn.min(LONGEST_TURN));
        self.trace_turn(warp, fragment);
        while executed < turn && !self.stopped {
            if self.engine == Engine::Warps {
                let (ran, course) = self.run_straight(program, (warp, fragment), turn - executed, !self.checks);
                executed += ran;
                if executed == turn || course != Course::Left {
                    let goes_on = self.settle(warp, fragment, course.next());
                    if !goes_on || executed == turn {
                        break;
                    }
                }
            }
            let next = self.warps[warp].fragments[fragment].next as usize;
            let counts = program.steps.get(next).is_none_or(|step| !matches!(step.action, Action::Nothing));
            let goes_on = self.step(program, warp, fragment);
            executed += u64::from(counts) + std::mem::take(&mut self.further_copies);
            if !goes_on {
                break;
            }
        }
        self.trace_pause(warp);
        executed
    }

    /// Runs a fragment as far as whole-warp kernels go, `through` also over steps that checks watch; returns how many
    /// instructions, and how that ended.
    fn run_straight(
        &mut self,
        program: &Program,
        (warp, fragment): (usize, usize),
        budget: u64,
        through: bool,
    ) -> (u64, Course) {
        if self.warps[warp].steps == 0 {
            self.fill(program, warp);
        }
        let rank = self.rank(warp);
        // A timeline shows the sides of a branch apart.
        let parts = !self.adversary.comes_between() && self.trace.is_none();
        let memory = View {
            shared: &mut self.blocks[rank].shared.bytes,
            rank: rank as u64,
            global: &mut self.global,
            warp: warp as u32,
            detector: self.checks.then_some(&mut self.detector),
            audit: self.audit.as_deref(),
        };
        let warp = &mut self.warps[warp];
        let (mask, next, stop) = (warp.fragments[fragment].mask, warp.fragments[fragment].next, warp.stop(fragment));
        let (code, registers) = (&program.code, &mut warp.registers);
        let mut straight = Straight { code, registers, mask, next, stop, budget, through, parts, parted: None, memory };
        let executed = straight.run(self.level);
        let Straight { next, parted, memory, .. } = straight;
        memory.close_books();
        warp.steps += executed;
        if let Some(parted) = parted {
            warp.part(fragment, &parted, next);
            return (executed, Course::Parted);
        }
        warp.fragments[fragment].next = next;
        (executed, if next == stop { Course::Arrived } else { Course::Left })
    }

    /// Writes what is fixed for a warp to where its instructions expect it.
    fn fill(&mut self, program: &Program, warp: usize) {
        for (chunk, fixed) in program.layout.to_fill() {
            let words = match *fixed {
                Fixed::Special(name) => std::array::from_fn(|lane| self.special(name, warp, lane) as u32),
                Fixed::Parameter { offset, bytes } => {
                    [self.fetch(Accessed::Parameter { offset: offset as usize }, 0, bytes as usize) as u32; 32]
                }
            };
            self.warps[warp].registers.chunks[*chunk as usize] = Chunk(words);
        }
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
        let at = At { warp, fragment, mask, statement };
        if mask != 0 {
            self.audit_begin(statement);
        }
        if let Some(watched) = step.watched.as_deref().filter(|_| self.checks) {
            let all = self.warps[warp].fragments[fragment].mask;
            checks::uninitialised_register::watch(self, at, all, step, watched);
        }
        if let Some(touched) = step.touched.as_deref().filter(|_| self.checks) {
            checks::wgmma_registers::watch_touch(self, at, touched);
        }
        if self.lints.is_some() {
            checks::redundant_sync::see(self, at, &step.action);
        }
        self.warps[warp].steps += u64::from(!matches!(step.action, Action::Nothing));
        let fed = self.census.and_then(|census| census.fed(self, at, &step.action));
        let read = checks::nan_birth::before(self, at);
        let next = exec::execute(self, at, &step.action);
        self.audit_end();
        if let Some(read) = read {
            checks::nan_birth::after(self, at, read);
        }
        if let (Some(census), Some(fed)) = (self.census, fed) {
            census.count(self, at, fed);
        }
        if matches!(next, Next::Following | Next::Pause) {
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
        matches!(next, Next::Following | Next::Elsewhere)
            && same
            && warp.fragments.get(fragment).is_some_and(|one| one.state == State::Ready)
    }

    pub fn read(&self, warp: usize, source: Source) -> Values {
        self.warps[warp].read(source, &|name, lane| self.special(name, warp, lane))
    }

    /// The low 32 bits of a source.
    pub fn read_words(&self, warp: usize, source: Source) -> [u32; 32] {
        match source {
            Source::Register(register) => self.warps[warp].registers.words(register),
            other => self.read(warp, other).map(|value| value as u32),
        }
    }

    pub fn addresses(&self, warp: usize, address: &AddressSource) -> Values {
        self.read(warp, address.base).map(|base| base.wrapping_add(address.offset as u64))
    }

    /// The rank of the block that a warp belongs to.
    pub fn rank(&self, warp: usize) -> usize {
        // Most launches have no clusters, and this is asked often.
        if self.blocks.len() == 1 { 0 } else { warp / self.warps_per_block() }
    }

    pub fn warps_per_block(&self) -> usize {
        self.warps.len() / self.blocks.len()
    }

    /// The warps of a block.
    pub fn warps_of(&self, rank: usize) -> std::ops::Range<usize> {
        let each = self.warps_per_block();
        rank * each..(rank + 1) * each
    }

    /// The number of a warp in its block.
    pub fn warp_in_block(&self, warp: usize) -> usize {
        warp % self.warps_per_block()
    }

    /// The block of a warp.
    pub fn home(&self, warp: usize) -> &Block {
        &self.blocks[self.rank(warp)]
    }

    /// Waits for all live lanes of `members`; the lanes when they are here, none while somebody is missing.
    pub fn gather(&mut self, at: At, members: u32) -> Option<u32> {
        let warp = &mut self.warps[at.warp];
        warp.fragments[at.fragment].state = State::Gathering(members);
        warp.gathered(at.statement, members)
    }

    /// Lanes end. Barriers that only waited for them open.
    pub fn exit(&mut self, warp: usize, mask: u32) {
        self.trace_exit(warp, mask);
        self.detector.exit(Lanes { warp: warp as u32, mask });
        self.warps[warp].exit(mask);
        let rank = self.rank(warp);
        (0..BARRIERS).for_each(|id| self.open_barrier(rank, id));
        self.open_cluster_barrier();
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
        let outer = self.audit_landing(flight.ticket);
        let (bytes, source_bytes) = (flight.bytes as usize, flight.source_bytes as usize);
        for from in (0..bytes).step_by(Flight::LONGEST) {
            let mut moved = [0; Flight::LONGEST];
            let (now, read) = ((bytes - from).min(Flight::LONGEST), source_bytes.saturating_sub(from));
            self.fetch_all(flight.from, from, &mut moved[..read.min(now)]);
            self.put_all(flight.to, from, &moved[..now]);
        }
        self.audit_landed(outer);
        self.trace_copy_landed(flight.batch);
    }

    /// Copies that were never waited for land when the block ends.
    pub fn land_all(&mut self) {
        let landing = self.copies.take(|| true);
        landing.into_iter().for_each(|flight| self.land(flight));
        while let Some(number) = self.flights.nth(0) {
            self.arrive(number);
        }
    }

    /// Arrivals at mbarriers whose phase did not end before all threads exited.
    pub fn stray_arrivals(&self) -> u64 {
        let over = self.warps.iter().all(|warp| warp.live == 0);
        self.mbarriers.values().filter(|_| over).map(Mbarrier::arrived).sum()
    }

    /// Where a fragment of this warp stands, for reports.
    pub fn whereabouts(&self, warp: usize) -> impl Iterator<Item = (u32, u32, State)> {
        self.warps[warp].fragments.iter().map(|fragment| (fragment.mask, fragment.next, fragment.state))
    }

    /// How many blocks of the launch came before this cluster, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.number * self.blocks.len() as u64, self.shape.grid.map(u64::from).iter().product())
    }

    /// Lanes at a statement, as one side of a finding.
    pub fn actor(&self, at: At, label: &str) -> Actor {
        let place = Place::Statement(at.statement);
        let (cta, warp) = (self.home(at.warp).index, self.warp_in_block(at.warp) as u32);
        Actor { place, cta, warp, lanes: at.mask, label: label.into() }
    }

    /// Where accessed bytes lie, in the words of the program.
    pub fn place(&self, accessed: Accessed) -> String {
        match accessed {
            Accessed::Nothing => "nothing".into(),
            Accessed::Global { allocation, offset } => self.global.place(self.global.address(allocation, offset)),
            Accessed::Shared { block, offset } => self.shared_place(block, offset as u64),
            Accessed::Parameter { offset } => format!("the parameters at {offset}"),
            Accessed::Local { offset, .. } => format!("local memory at {offset}"),
        }
    }

    /// Where a byte of a block's shared memory lies; the block is named where there are several.
    pub fn shared_place(&self, rank: usize, offset: u64) -> String {
        let Some(block) = self.blocks.get(rank) else {
            return format!("{offset:#x} in block {rank} of a cluster of {} blocks", self.blocks.len());
        };
        let place = block.shared.place_of(offset);
        if self.blocks.len() == 1 { place } else { format!("{place} of block {rank} of the cluster") }
    }
}
