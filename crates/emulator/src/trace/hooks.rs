//! Where the machine tells the recorder what happens.

use super::recorder::{Recorder, Run, Slice, Time, Track};
use crate::async_engines::{Number, Operation, Spot, Transfer};
use crate::exec::{Accessed, At};
use crate::machine::{Cluster, State, describe_lanes};

impl Cluster<'_, '_> {
    /// Nothing happens unless this cluster is traced.
    fn traced(&mut self, record: impl FnOnce(&Cluster, &mut Recorder, Time)) {
        if let Some(mut trace) = self.trace.take() {
            let now = self.warps.iter().map(|warp| warp.steps).sum::<Time>() + trace.ticks;
            record(self, &mut trace, now);
            self.trace = Some(trace);
        }
    }

    /// A fragment's turn begins.
    pub fn trace_turn(&mut self, warp: usize, fragment: usize) {
        self.traced(|cluster, trace, now| {
            trace.running = Some(warp);
            let wait = trace.courses[warp].wait.take();
            wait.into_iter().for_each(|wait| trace.close(wait, now));
            if trace.courses[warp].run.is_none() {
                let (first, steps) = (cluster.warps[warp].fragments[fragment].next, cluster.warps[warp].steps);
                let slice = trace.open(Slice::new(Track::Warp(warp), now, "run"));
                trace.courses[warp].run = slice.map(|slice| Run { slice, first, steps });
            }
        });
    }

    /// A turn has ended; the warp waits if none of its fragments can go on.
    pub fn trace_pause(&mut self, warp: usize) {
        self.traced(|cluster, trace, now| {
            trace.running = None;
            if cluster.whereabouts(warp).any(|(_, _, state)| state == State::Ready) {
                return;
            }
            let waits = |(_, _, state): &(u32, u32, State)| !matches!(state, State::Joining | State::Gathering(_));
            let waiting = cluster.whereabouts(warp).find(waits).or_else(|| cluster.whereabouts(warp).next());
            let last = waiting.map_or(trace.courses[warp].exit, |(_, statement, _)| statement);
            cluster.end_run(trace, warp, last, now);
            if let Some((_, statement, state)) = waiting {
                let slice = Slice::new(Track::Warp(warp), now, cluster.wait_name(state));
                trace.courses[warp].wait = trace.open(cluster.located(slice, statement));
            }
        });
    }

    /// Warps that waited may be able to go on.
    pub fn trace_woken(&mut self) {
        self.traced(|cluster, trace, now| {
            let cause = trace.cause();
            for warp in 0..cluster.warps.len() {
                let goes_on = cluster.whereabouts(warp).any(|(_, _, state)| state == State::Ready);
                if let Some(wait) = trace.courses[warp].wait.take_if(|_| goes_on) {
                    trace.close(wait, now);
                    trace.connect("wakes", cause, Some(wait), now);
                }
            }
        });
    }

    /// Waits run out. That takes time, so that a wait is never empty.
    pub fn trace_timeout(&mut self) {
        self.traced(|_, trace, _| trace.ticks += 1);
        self.trace_woken();
    }

    /// Lanes are about to exit.
    pub fn trace_exit(&mut self, warp: usize, mask: u32) {
        self.traced(|cluster, trace, _| {
            let here = cluster.whereabouts(warp).find(|(lanes, ..)| lanes & mask != 0);
            here.into_iter().for_each(|(_, statement, _)| trace.courses[warp].exit = statement);
        });
    }

    /// A bulk operation starts. Signals have no slice of their own: the copies that they wait for have.
    pub fn trace_departure(&mut self, at: At, operation: &Operation, number: Number) {
        self.traced(|cluster, trace, now| {
            if let Operation::Transfer(transfer) = operation {
                let slice = trace.issue(at.warp, cluster.transfer_slice(at, transfer, now));
                trace.depart(number, slice);
            }
        });
    }

    /// A bulk operation, or a signal, lands until `trace_landed`.
    pub fn trace_landing(&mut self, number: Number) {
        self.traced(|_, trace, now| trace.begin_landing(number, now));
    }

    pub fn trace_landed(&mut self) {
        self.traced(|_, trace, _| trace.end_landing());
    }

    /// Lanes start copies of `bytes` each; returns the number of their batch.
    pub fn trace_copies(&mut self, at: At, targets: &[Accessed; 32], bytes: u32) -> Option<u32> {
        let mut batch = None;
        self.traced(|cluster, trace, now| {
            let (lanes, to) = (at.mask.count_ones(), cluster.plain_place(targets[at.mask.trailing_zeros() as usize]));
            let slice = Slice::new(Track::Copies(cluster.rank(at.warp)), now, format!("copy into {to}"));
            let slice = cluster.located(slice, at.statement).detail("bytes", bytes * lanes).detail("to", to);
            let slice = trace.issue(at.warp, slice.detail("warp", cluster.warp_in_block(at.warp)));
            batch = trace.start_batch(slice, lanes as usize);
        });
        batch
    }

    pub fn trace_copy_landed(&mut self, batch: Option<u32>) {
        if let Some(batch) = batch {
            self.traced(|_, trace, now| trace.land_one(batch, now));
        }
    }

    /// A warp issues a product, in the group that it has not committed yet.
    pub fn trace_product(&mut self, at: At, warpgroup: usize) {
        self.traced(|cluster, trace, now| {
            let shape = cluster.findings.text(at.statement).split(['.', ' ']).find(|word| word.starts_with("m64"));
            let name = format!("wgmma {}", shape.unwrap_or_default());
            let slice = cluster.located(Slice::new(Track::Products(cluster.rank(at.warp)), now, name), at.statement);
            let slice = slice.detail("warpgroup", cluster.warp_in_block(warpgroup) / 4);
            trace.multiply((warpgroup, cluster.products[at.warp].committed), at.warp, slice);
        });
    }

    /// A warp has waited for all but `pending` groups.
    pub fn trace_products_waited(&mut self, warp: usize, warpgroup: usize, pending: u32) {
        self.traced(|cluster, trace, now| {
            let until = cluster.products[warp].committed.saturating_sub(pending.into());
            trace.wait_for_groups(warpgroup, warp, until, now);
        });
    }

    /// The cluster has ended.
    pub fn trace_end(&mut self) {
        self.traced(|cluster, trace, now| {
            for warp in 0..cluster.warps.len() {
                let last = cluster.whereabouts(warp).next().map_or(trace.courses[warp].exit, |(_, next, _)| next);
                cluster.end_run(trace, warp, last, now);
            }
            trace.finish(now);
        });
    }

    fn end_run(&self, trace: &mut Recorder, warp: usize, last: u32, now: Time) {
        let Some(Run { slice, first, steps }) = trace.courses[warp].run.take() else { return };
        let line = |statement| self.findings.line(statement);
        let one = &mut trace.slices[slice];
        one.name = format!("lines {} to {}", line(first), line(last));
        one.details.push(("instructions", (self.warps[warp].steps - steps).into()));
        let sources = [first, last].map(|statement| self.findings.source(statement));
        if let [Some(first), Some(last)] = sources {
            one.details.push(("source", format!("{first} to {last}").into()));
        }
        trace.close(slice, now);
    }

    fn wait_name(&self, state: State) -> String {
        match state {
            State::Ready | State::Joining => "wait for lanes of the warp".into(),
            State::Barrier(id) => format!("wait barrier {id}"),
            State::Cluster => "wait cluster barrier".into(),
            State::Phase(spot) => format!("wait {}", self.phase_name(spot)),
            State::Registers(count) => format!("wait for {count} registers"),
            State::Products => "wait for products of the warpgroup".into(),
            State::Gathering(members) => format!("gather {}", describe_lanes(members)),
        }
    }

    /// An mbarrier and its open phase.
    fn phase_name(&self, spot: Spot) -> String {
        let place = plain(&self.shared_place(spot.0, spot.1 as u64));
        let phase = self.mbarriers.get(&spot).map(|barrier| format!(" phase {}", barrier.phase()));
        format!("{place}{}", phase.unwrap_or_default())
    }

    fn transfer_slice(&self, at: At, transfer: &Transfer, now: Time) -> Slice {
        let first = transfer.pieces.first();
        let to = first.map(|piece| piece.to).or(transfer.fills.first().map(|(place, _)| *place));
        let to = to.unwrap_or(Accessed::Nothing);
        let verb = match (to, first.map(|piece| piece.from)) {
            _ if transfer.reduction.is_some() => "reduce",
            (Accessed::Shared { .. }, Some(Accessed::Shared { .. })) => "share",
            (Accessed::Shared { .. }, _) => "load",
            _ => "store",
        };
        let (to, lane) = (self.plain_place(to), at.mask.trailing_zeros());
        let moved: usize = transfer.pieces.iter().map(|piece| piece.bytes).sum();
        let filled: usize = transfer.fills.iter().map(|(_, bytes)| bytes.len()).sum();
        let track = Track::Copies(self.rank(at.warp));
        let slice = self.located(Slice::new(track, now, format!("{verb} into {to}")), at.statement);
        let slice = slice.detail("bytes", moved + filled).detail("to", to).detail("warp", self.warp_in_block(at.warp));
        let slice = slice.detail("lane", lane);
        match transfer.signals.first() {
            Some((spot, _)) => slice.detail("tells", self.phase_name(*spot)),
            None => slice,
        }
    }

    /// A slice with the line of its statement, and the source's where `.loc` tells.
    fn located(&self, slice: Slice, statement: u32) -> Slice {
        let slice = slice.detail("line", self.findings.line(statement));
        match self.findings.source(statement) {
            Some(source) => slice.detail("source", source),
            None => slice,
        }
    }

    fn plain_place(&self, place: Accessed) -> String {
        plain(&self.place(place))
    }
}

/// Names without the quotes of sentences.
fn plain(place: &str) -> String {
    place.replace('`', "")
}
