//! A warp issues products, ends groups of them, and waits. PTX ISA, "wgmma.mma_async", "wgmma.wait_group".

use super::{Issued, Multiply, PIECE, Request};
use crate::async_engines::Product;
use crate::checks;
use crate::exec::access::{Access, Accessed, watched_shared};
use crate::exec::bulk_copy::merged;
use crate::exec::{At, Next, together};
use crate::happens_before::{Kind, Site, Space as Watched};
use crate::machine::{Block, State};
use ptx::Space;
use std::sync::Arc;

/// Warps of a warpgroup.
const WARPS: usize = 4;

pub fn execute(block: &mut Block, at: At, request: &Request) -> Next {
    match request {
        Request::Multiply(multiply) => together(block, at, |block, at| issue(block, at, multiply)),
        Request::Fence => together(block, at, |_, _| {}),
        Request::Commit => together(block, at, |block, at| {
            block.products[at.warp].commit();
            block.detector.wgmma_commit(at.lanes());
            let group = warpgroup(block, at.warp);
            block.warps[group].iter_mut().for_each(|warp| warp.wake(|state| state == State::Products));
            block.trace_woken();
        }),
        Request::Wait(pending) if at.mask != 0 && !all_committed(block, at.warp, *pending) => {
            block.warps[at.warp].fragments[at.fragment].state = State::Products;
            Next::Done
        }
        Request::Wait(pending) => together(block, at, |block, at| {
            block.detector.wgmma_wait(at.lanes(), *pending);
            block.trace_products_waited(at.warp, warpgroup(block, at.warp).start, *pending);
            let done = block.products[at.warp].complete(*pending);
            done.into_iter().for_each(|product| block.carry_out(at.warp, product));
        }),
    }
}

/// The warps that multiply together with this one.
fn warpgroup(block: &Block, warp: usize) -> std::ops::Range<usize> {
    let home = block.warps_of(block.rank(warp));
    let first = warp - block.warp_in_block(warp) % WARPS;
    first..(first + WARPS).min(home.end)
}

/// Groups belong to the warpgroup: a warp that has waited vouches for the others too, so all must have committed.
fn all_committed(block: &Block, warp: usize, pending: u32) -> bool {
    let needed = block.products[warp].committed.saturating_sub(pending.into());
    let behind = |other: usize| block.warps[other].live != 0 && block.products[other].committed < needed;
    !warpgroup(block, warp).any(behind)
}

fn issue(block: &mut Block, at: At, multiply: &Arc<Multiply>) {
    let quarter = block.warp_in_block(at.warp) % WARPS;
    let issued = match multiply.issue(quarter, |source| block.read(at.warp, source)) {
        Ok(issued) => issued,
        Err(fault) => {
            let help = "give all lanes of the warpgroup the same descriptor, with zeros in its reserved bits";
            checks::trap::stop(block, at, fault.to_string(), help);
            return;
        }
    };
    if !is_plain(block, at.warp, &issued) && !look_closer(block, at, &issued) {
        return;
    }
    if block.checks {
        order(block, at, &issued);
    }
    block.trace_product(at, warpgroup(block, at.warp).start);
    block.products[at.warp].issue(Product { multiply: multiply.clone(), issued });
    if block.adversary.lands_early() && block.adversary.lands() {
        // Products of one warp are carried out in their order.
        while let Some(product) = block.products[at.warp].take() {
            block.carry_out(at.warp, product);
        }
    }
}

/// Are all bytes inside, and written if anybody asks?
fn is_plain(block: &Block, warp: usize, issued: &Issued) -> bool {
    let bytes = &block.home(warp).shared.bytes;
    let (length, each) = (bytes.len(), PIECE as usize);
    let is_plain = |piece: u32| {
        let start = piece as usize;
        start + each <= length && (!block.checks || bytes.is_written(start, each))
    };
    issued.pieces().all(is_plain)
}

/// Lets the checks say what is not plain; false if the product cannot be.
fn look_closer(block: &mut Block, at: At, issued: &Issued) -> bool {
    for piece in issued.pieces() {
        let access = Access { space: Some(Space::Shared), kind: Kind::Read, bytes: PIECE };
        match block.locate((at.warp, 0), &access, piece.into()) {
            Accessed::Nothing => {
                checks::out_of_bounds::report(block, at, &access, &[piece.into(); 32], at.mask);
                return false;
            }
            place => checks::uninitialised_memory::watch_piece(block, at, 0, place, PIECE as usize),
        }
    }
    true
}

/// Tells the detector what is read.
fn order(block: &mut Block, at: At, issued: &Issued) {
    let rank = block.rank(at.warp);
    let stretch = |piece: u32| {
        let start = watched_shared(rank, piece as usize);
        (Watched::Shared, start..start + u64::from(PIECE))
    };
    let reads = merged(issued.pieces().map(stretch).collect());
    block.detector.wgmma(at.lanes(), Site(at.statement), &reads);
    block.detector.heal_missed_fence(at.lanes());
}

impl Block<'_, '_> {
    /// A product reads its operands and writes its accumulators.
    pub fn carry_out(&mut self, warp: usize, product: Product) {
        let Product { multiply, issued } = product;
        let shared = self.home(warp).shared.bytes.data();
        let results = multiply.execute(&issued, shared, |source| self.read_words(warp, source));
        let live = self.warps[warp].live;
        for (destination, words) in multiply.destinations().iter().zip(&results) {
            if let Some(register) = destination {
                self.warps[warp].registers.write_words(*register, live, words);
            }
        }
    }
}
