//! A warp issues products, ends groups of them, and waits. PTX ISA, "wgmma.mma_async", "wgmma.wait_group".

use super::{Issued, Multiply, PIECE, Request};
use crate::async_engines::Product;
use crate::checks;
use crate::exec::access::{Access, Accessed, watched_shared};
use crate::exec::bulk_copy::merged;
use crate::exec::{At, Next, together};
use crate::happens_before::{Kind, Site, Space as Watched};
use crate::machine::{Cluster, State};
use ptx::Space;
use std::sync::Arc;

/// Warps of a warpgroup.
const WARPS: usize = 4;

pub fn execute(cluster: &mut Cluster, at: At, request: &Request) -> Next {
    match request {
        Request::Multiply(multiply) => together(cluster, at, |cluster, at| issue(cluster, at, multiply)),
        Request::Fence => together(cluster, at, |_, _| {}),
        Request::Commit => together(cluster, at, |cluster, at| {
            cluster.products[at.warp].commit();
            cluster.detector.wgmma_commit(at.lanes());
            let group = warpgroup(cluster, at.warp);
            cluster.warps[group].iter_mut().for_each(|warp| warp.wake(|state| state == State::Products));
            cluster.trace_woken();
        }),
        Request::Wait(pending) if at.mask != 0 && !all_committed(cluster, at.warp, *pending) => {
            cluster.warps[at.warp].fragments[at.fragment].state = State::Products;
            Next::Done
        }
        Request::Wait(pending) => together(cluster, at, |cluster, at| {
            cluster.detector.wgmma_wait(at.lanes(), *pending);
            cluster.trace_products_waited(at.warp, warpgroup(cluster, at.warp).start, *pending);
            let done = cluster.products[at.warp].complete(*pending);
            done.into_iter().for_each(|product| cluster.carry_out(at.warp, product));
        }),
    }
}

/// The warps that multiply together with this one.
fn warpgroup(cluster: &Cluster, warp: usize) -> std::ops::Range<usize> {
    let home = cluster.warps_of(cluster.rank(warp));
    let first = warp - cluster.warp_in_block(warp) % WARPS;
    first..(first + WARPS).min(home.end)
}

/// Groups belong to the warpgroup: a warp that has waited vouches for the others too, so all must have committed.
fn all_committed(cluster: &Cluster, warp: usize, pending: u32) -> bool {
    let needed = cluster.products[warp].committed.saturating_sub(pending.into());
    let behind = |other: usize| cluster.warps[other].live != 0 && cluster.products[other].committed < needed;
    !warpgroup(cluster, warp).any(behind)
}

fn issue(cluster: &mut Cluster, at: At, multiply: &Arc<Multiply>) {
    let quarter = cluster.warp_in_block(at.warp) % WARPS;
    let issued = match multiply.issue(quarter, |source| cluster.read(at.warp, source)) {
        Ok(issued) => issued,
        Err(fault) => {
            let help = "give all lanes of the warpgroup the same descriptor, with zeros in its reserved bits";
            checks::trap::stop(cluster, at, fault.to_string(), help);
            return;
        }
    };
    if !is_plain(cluster, at.warp, &issued) && !look_closer(cluster, at, &issued) {
        return;
    }
    if cluster.checks {
        order(cluster, at, &issued);
    }
    cluster.trace_product(at, warpgroup(cluster, at.warp).start);
    cluster.products[at.warp].issue(Product { multiply: multiply.clone(), issued });
    if cluster.adversary.lands_at_start() {
        // Products of one warp are carried out in their order.
        while let Some(product) = cluster.products[at.warp].take() {
            cluster.carry_out(at.warp, product);
        }
    }
}

/// Are all bytes inside, and written if anybody asks?
fn is_plain(cluster: &Cluster, warp: usize, issued: &Issued) -> bool {
    let bytes = &cluster.home(warp).shared.bytes;
    let (length, each) = (bytes.len(), PIECE as usize);
    let is_plain = |piece: u32| {
        let start = piece as usize;
        start + each <= length && (!cluster.checks || bytes.is_written(start, each))
    };
    issued.pieces().all(is_plain)
}

/// Lets the checks say what is not plain; false if the product cannot be.
fn look_closer(cluster: &mut Cluster, at: At, issued: &Issued) -> bool {
    for piece in issued.pieces() {
        let access = Access { space: Some(Space::Shared), kind: Kind::Read, bytes: PIECE };
        match cluster.locate((at.warp, 0), &access, piece.into()) {
            Accessed::Nothing => {
                checks::out_of_bounds::report(cluster, at, &access, &[piece.into(); 32], at.mask);
                return false;
            }
            place => checks::uninitialised_memory::watch_piece(cluster, at, 0, place, PIECE as usize),
        }
    }
    true
}

/// Tells the detector what is read.
fn order(cluster: &mut Cluster, at: At, issued: &Issued) {
    let rank = cluster.rank(at.warp);
    let stretch = |piece: u32| {
        let start = watched_shared(rank, piece as usize);
        (Watched::Shared, start..start + u64::from(PIECE))
    };
    let reads = merged(issued.pieces().map(stretch).collect());
    cluster.detector.wgmma(at.lanes(), Site(at.statement), &reads);
    cluster.detector.heal_missed_fence(at.lanes());
}

impl Cluster<'_, '_> {
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
