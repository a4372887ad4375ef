//! What completes later: the phases of mbarriers, and operations in flight.

use super::{Cluster, State};
use crate::async_engines::{Effect, Mbarrier, Number, Operation, Piece, Spot, Transfer};
use crate::checks;
use crate::exec::{Accessed, At, watched_shared};

/// So often in a row everybody's waits may run out without anything happening before nobody is said to go on. Kernels
/// that look a few times and then do without are no deadlock.
const PATIENCE: u32 = 100;

impl Cluster<'_, '_> {
    /// `mbarrier.init` by a lane.
    pub fn start_phases(&mut self, by: (At, usize), spot: Spot, count: u32) {
        checks::mbarrier::report_written(self, spot);
        checks::initialisations::watch(self, by.0.lane(by.1), spot, count);
        self.blocks[spot.0].shared.bytes.mark_unwritten(spot.1, checks::mbarrier::BYTES);
        self.detector.mbarrier_init(by.0.lane(by.1).lanes(), watched_shared(spot.0, spot.1));
        self.mbarriers.insert(spot, Mbarrier::new(count));
        self.note_barrier(spot);
    }

    /// `mbarrier.inval` by a lane.
    pub fn end_phases(&mut self, by: (At, usize), spot: Spot) {
        checks::mbarrier::report_written(self, spot);
        match self.mbarriers.remove(&spot) {
            Some(old) => {
                self.initialisations.remove(&spot);
                self.note_barrier(spot);
                self.findings.stray_arrivals += old.arrived();
                self.detector.mbarrier_invalidate(watched_shared(spot.0, spot.1));
            }
            None => checks::mbarrier::report_no_barrier(self, by, spot),
        }
    }

    /// Something happens at a barrier, by the hand of a lane.
    pub fn phase_step(&mut self, by: (At, usize), spot: Spot, step: impl FnOnce(&mut Mbarrier) -> Effect) {
        let Some(barrier) = self.mbarriers.get_mut(&spot) else {
            return checks::mbarrier::report_no_barrier(self, by, spot);
        };
        let effect = step(barrier);
        self.note_barrier(spot);
        // Whoever gave up waiting and arrives instead goes on, though the phase stays open.
        self.timeouts = 0;
        if effect == Effect::TooMany {
            checks::mbarrier::report_too_many(self, by, spot);
        }
        self.phase_effect(spot, effect);
    }

    /// Whoever waits for the phase looks again.
    fn phase_effect(&mut self, spot: Spot, effect: Effect) {
        if effect == Effect::Completed {
            self.timeouts = 0;
            self.detector.mbarrier_phase_complete(watched_shared(spot.0, spot.1));
            self.warps.iter_mut().for_each(|warp| warp.wake(|state| state == State::Phase(spot)));
            self.trace_woken();
        }
    }

    /// An operation starts; it lands when the adversary says so.
    pub fn depart(&mut self, at: At, operation: Operation) -> Number {
        let number = self.flights.announce();
        self.audit_departure(number);
        self.trace_departure(at, &operation, number);
        self.flights.fly(number, operation);
        self.adversary.see_producer(at.warp);
        if self.adversary.lands_at_start() {
            self.arrive(number);
        }
        number
    }

    /// Between two turns the adversary may let an operation land.
    pub fn drift(&mut self) {
        if let Some(place) = self.adversary.drifts(self.flights.len()) {
            let number = self.flights.nth(place);
            number.into_iter().for_each(|number| self.arrive_by_and_by(number));
        }
    }

    /// An operation lands, or a stretch of its bytes if the adversary wants that.
    fn arrive_by_and_by(&mut self, number: Number) {
        let part = if self.adversary.lands_in_ranges() { self.flights.tear_off(number) } else { None };
        match part {
            Some(mut part) => {
                let outer = self.audit_part(number);
                self.read_sources(&mut part);
                self.write_targets(&part);
                self.audit_pause(outer);
            }
            None => self.arrive(number),
        }
    }

    /// Nobody can run: an operation lands, or waits run out. False if that has been of no use.
    pub fn stir(&mut self) -> bool {
        if let Some(number) = self.flights.nth(0) {
            self.timeouts = 0;
            self.arrive(number);
            return true;
        }
        self.timeouts += 1;
        self.timeouts <= PATIENCE && self.expire()
    }

    /// Lets those who wait for a phase give up. False if nobody does.
    fn expire(&mut self) -> bool {
        let mut any = false;
        for fragment in self.warps.iter_mut().flat_map(|warp| &mut warp.fragments) {
            if matches!(fragment.state, State::Phase(_)) {
                (fragment.state, fragment.expired, any) = (State::Ready, true, true);
            }
        }
        self.trace_timeout();
        any
    }

    /// An operation lands: its bytes move, and its barriers are told.
    pub fn arrive(&mut self, number: Number) {
        let Some(operation) = self.flights.take(number) else { return };
        self.trace_landing(number);
        let outer = self.audit_arrival(number);
        match operation {
            Operation::Transfer(mut transfer) => {
                self.read_sources(&mut transfer);
                self.write_targets(&transfer);
                transfer.signals.iter().for_each(|(spot, bytes)| self.signal(*spot, |one| one.complete(*bytes)));
            }
            Operation::Signal { warp, lane, spot } => {
                let landing = self.copies.take_lane(warp, lane);
                landing.into_iter().for_each(|flight| self.land(flight));
                self.signal(spot, |one| one.arrive(1));
            }
        }
        self.audit_landed(outer);
        self.trace_landed();
    }

    /// The engine tells a barrier; one that is gone hears nothing.
    fn signal(&mut self, spot: Spot, step: impl FnOnce(&mut Mbarrier) -> Effect) {
        if let Some(barrier) = self.mbarriers.get_mut(&spot) {
            let effect = step(barrier);
            self.note_barrier(spot);
            self.phase_effect(spot, effect);
        }
    }

    /// The sources of an operation are read, and may be overwritten.
    pub fn read_early(&mut self, number: Number) {
        if let Some(Operation::Transfer(mut transfer)) = self.flights.take(number) {
            let outer = self.audit_part(number);
            self.read_sources(&mut transfer);
            self.audit_pause(outer);
            self.flights.fly(number, Operation::Transfer(transfer));
        }
    }

    fn read_sources(&self, transfer: &mut Transfer) {
        if transfer.read.is_none() {
            let read = |piece: &Piece| self.bytes_at(piece.from, piece.bytes);
            transfer.read = Some(transfer.pieces.iter().map(read).collect());
        }
    }

    fn write_targets(&mut self, transfer: &Transfer) {
        let data = transfer.read.iter().flatten();
        for (piece, data) in transfer.pieces.iter().zip(data) {
            match transfer.reduction {
                Some(reduction) => {
                    let mut target = self.bytes_at(piece.to, piece.bytes);
                    reduction.apply(&mut target, data);
                    self.put_all(piece.to, 0, &target);
                }
                None => self.put_all(piece.to, 0, data),
            }
        }
        transfer.fills.iter().for_each(|(place, bytes)| self.put_all(*place, 0, bytes));
    }

    fn bytes_at(&self, place: Accessed, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        self.fetch_all(place, 0, &mut data);
        data
    }
}

#[cfg(test)]
mod tests {
    use crate::Emulator;
    use launch::backend::{Backend, Options, Run};
    use launch::{Kernel, Memory};

    /// What the checks say of one thread with a barrier of its own, at `%bar`.
    fn findings(body: &str) -> Vec<String> {
        let found = run(1, body).findings.into_iter();
        found.map(|finding| format!("{}: {}", finding.check, finding.message)).collect()
    }

    fn run(threads: u32, body: &str) -> Run {
        let recipe = format!(
            "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [{threads}, 1, 1]\n//@ cluster = [1, 1, 1]\n//@ args = []\n"
        );
        let head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry one()\n{\n.reg .b32 %bar, %left;\n\
                    .reg .b64 %state;\n.reg .pred %p;\n.shared .align 8 .b64 barrier;\nmov.u32 %bar, barrier;\n\
                    mov.u32 %left, 50;\n";
        let kernel = Kernel::parse("one.ptx", &format!("{recipe}{head}{body}ret;\n}}\n")).unwrap();
        let mut loaded = Emulator.load(&kernel).unwrap();
        let mut memory = Memory::new(loaded.resolved(), 0).unwrap();
        Emulator.run(&mut loaded, &mut memory, &Options::default()).unwrap()
    }

    const FIRST: &str = "mbarrier.init.shared.b64 [%bar], 60;\nmbarrier.arrive.shared.b64 %state, [%bar];\n";
    const AGAIN: &str = "sub.u32 %left, %left, 1;\nsetp.ne.u32 %p, %left, 0;\n@%p bra again;\n";

    #[test]
    fn whoever_looks_a_while_and_goes_on_is_no_deadlock() {
        let look = "again:\nmbarrier.test_wait.shared.b64 %p, [%bar], %state;\n";
        assert_eq!(findings(&format!("{FIRST}{look}{AGAIN}")), [""; 0]);
    }

    #[test]
    fn a_phase_that_nobody_completes_is_a_deadlock() {
        let wait = "again:\nmbarrier.test_wait.shared.b64 %p, [%bar], %state;\n@!%p bra again;\n";
        let expected = "deadlock: nobody can go on: phase 0 of the barrier at `barrier` still needs 59 arrivals";
        assert_eq!(findings(&format!("{FIRST}{wait}")), [expected]);
    }

    #[test]
    fn waiting_at_no_barrier_is_a_finding() {
        let wait = "mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;\n";
        assert_eq!(findings(wait), ["mbarrier: no barrier is initialised at `barrier`"]);
    }

    #[test]
    fn every_bulk_copy_counts_as_an_instruction() {
        let copy =
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%bar], [%bar], 16, [%bar];\n";
        let [one, all] = [1, 32].map(|threads| run(threads, copy).instructions);
        assert_eq!(all, one + 31);
    }
}
