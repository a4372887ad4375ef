//! The synchronisation of a warp-specialised attention forward: loads into rings, products, P through shared memory, a
//! bulk store, two work tiles. Clean as written; without any one of its synchronisations it is not.

use super::Event;
use super::litmus::{Program, cta, rows};
use super::machine::*;
use crate::{Kind, Lanes, ProxyFence, Space};

const GROUPS: [u32; 2] = [4, 8];
/// mbarriers: Q full, K full x2, V full x2, K empty x2, V empty x2, Q empty.
const COUNTS: [u32; 10] = [1, 1, 1, 1, 1, 2, 2, 2, 2, 2];

fn barrier(number: u64) -> u64 {
    0x8000 + 8 * number
}

fn rows_of(warp: u32) -> u64 {
    u64::from(warp - 4) * 128
}

/// The kernel under construction, without one of its synchronisations.
struct Kernel<'a> {
    program: Option<Program>,
    without: &'a str,
    names: Vec<&'static str>,
    /// An mbarrier was used by somebody who does not know of its initialisation.
    uninitialised: bool,
}

impl Kernel<'_> {
    /// A step that is left out if it is the one to be removed. Names are kept for the caller.
    fn step(&mut self, name: &'static str, step: impl FnOnce(Program) -> Program) {
        if !name.is_empty() && !self.names.contains(&name) {
            self.names.push(name);
        }
        if name.is_empty() || name != self.without {
            self.program = self.program.take().map(step);
        }
    }

    fn uses(&mut self, at: Lanes, number: u64) {
        let knows = |program: &Program| program.detector().mbarrier_is_initialised(at, barrier(number));
        self.uninitialised |= !self.program.as_ref().is_some_and(knows);
    }

    fn load(&mut self, name: &'static str, to: u64, full: u64) {
        self.uses(one(0), full);
        self.step(name, |p| p.expect(0, barrier(full), 1024));
        self.step("", |p| p.issue(0, (Space::Shared, to..to + 1024), barrier(full)).land(barrier(full)));
    }

    fn wait(&mut self, name: &'static str, at: Lanes, number: u64, lap: u32) {
        self.uses(at, number);
        self.step(name, |p| p.pass_as(at, barrier(number), lap & 1, ACQUIRE));
    }

    /// One product by both warpgroups: wait for the second operand, issue, commit, wait, hand its stage back.
    fn product(&mut self, names: [&'static str; 4], first: u64, second: u64, (full, empty): (u64, u64), lap: u32) {
        for group in GROUPS {
            for warp in group..group + 4 {
                self.wait(names[0], whole(warp), full, lap);
                let operands = vec![stage(first + rows_of(warp)), (Space::Shared, second..second + 1024)];
                self.step("", |p| p.then(Event::Wgmma { at: whole(warp), reads: operands }));
                self.step(names[1], |p| p.product_commit(warp));
            }
            (group..group + 4).for_each(|warp| self.step(names[2], |p| p.product_wait(warp, 0)));
            self.step(names[3], |p| p.signal(group, barrier(empty)));
        }
    }

    fn store_rows(&mut self, name: &'static str, base: u64, warp: u32) {
        self.step("", |p| p.access(whole(warp), Kind::Write, rows(base + rows_of(warp), 4), 4));
        self.step(name, |p| p.then(Event::ProxyFence(whole(warp), ProxyFence::SharedBlock)));
    }

    fn tile(&mut self, tile: u64) {
        let (stage, lap) = (tile % 2, tile as u32 / 2);
        let operands = [(2048, 1, 5, ["wait K empty", "expect K"]), (4096, 3, 7, ["wait V empty", "expect V"])];
        for (base, full, empty, names) in operands {
            if lap > 0 {
                self.wait(names[0], one(0), empty + stage, lap - 1);
            }
            self.load(names[1], base + stage * 1024, full + stage);
        }
        let scores = ["wait K full", "commit S", "wait S", "arrive K empty"];
        self.product(scores, 0, 2048 + stage * 1024, (1 + stage, 5 + stage), lap);
        for warp in 4..12 {
            self.store_rows("fence P", 6144, warp);
            self.step("bar.warp.sync P", |p| p.warp_sync(warp, u32::MAX));
        }
        let output = ["wait V full", "commit O", "wait O", "arrive V empty"];
        self.product(output, 6144, 4096 + stage * 1024, (3 + stage, 7 + stage), lap);
    }

    fn epilogue(&mut self, work: u64, index: u64, group: u32) {
        (group..group + 4).for_each(|warp| self.store_rows("fence O", 0, warp));
        let warps: Vec<u32> = (group..group + 4).collect();
        let id = 1 + index as u32;
        self.step("bar.sync O", |p| warps.iter().fold(p, |p, warp| p.arrive(*warp, id)).complete(id, &warps));
        let (from, to) = (rows_of(group), 4096 + work * 1024 + index * 512);
        let (reads, writes) = (vec![(Space::Shared, from..from + 512)], vec![(Space::Global, to..to + 512)]);
        self.step("", |p| p.then(Event::Store { at: one(group), reads, writes, map: None, element: None }));
        self.step("commit store", |p| p.store_commit(group));
        self.step("wait store", |p| p.store_wait(group, 0, true));
        self.step("arrive Q empty", |p| p.signal(group, barrier(9)));
    }

    fn run(&mut self) {
        for (count, number) in COUNTS.into_iter().zip(0..) {
            let init = Event::MbarrierInit { at: one(0), barrier: barrier(number) };
            self.step("", |p| p.init(barrier(number), count).then(init));
        }
        self.step("bar.sync after init", Program::barrier);
        let mut tile = 0;
        for (work, tiles) in [4, 2].into_iter().enumerate() {
            if work > 0 {
                self.wait("wait Q empty", one(0), 9, work as u32 - 1);
            }
            self.load("expect Q", 0, 0);
            (4..12).for_each(|warp| self.wait("wait Q full", whole(warp), 0, work as u32));
            for _ in 0..tiles {
                self.tile(tile);
                tile += 1;
            }
            GROUPS.into_iter().zip(0..).for_each(|(group, index)| self.epilogue(work as u64, index, group));
        }
    }
}

/// Is the kernel without one synchronisation faulty? Also the names of all of them.
fn without(name: &str) -> (bool, Vec<&'static str>) {
    let mut kernel =
        Kernel { program: Some(cta(12).unwatched()), without: name, names: Vec::new(), uninitialised: false };
    kernel.run();
    (kernel.uninitialised || kernel.program.and_then(Program::missing).is_some(), kernel.names)
}

#[test]
fn every_synchronisation_of_an_attention_kernel_is_needed() {
    let (faulty, names) = without("");
    assert_eq!((faulty, names.len()), (false, 23));
    let silent: Vec<_> = names.iter().filter(|name| !without(name).0).collect();
    assert!(silent.is_empty(), "nothing is found without {silent:?}");
}
