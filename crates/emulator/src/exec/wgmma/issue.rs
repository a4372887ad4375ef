//! A warp issues products, ends groups of them, and waits. PTX ISA, "wgmma.mma_async", "wgmma.wait_group".

use super::descriptor::Shared;
use super::{Issued, Multiply, PIECE, Request};
use crate::async_engines::Product;
use crate::audit::Column;
use crate::checks;
use crate::exec::access::{Access, Accessed, watched_shared};
use crate::exec::{At, Next, together};
use crate::machine::{Cluster, State};
use happens_before::{Kind, Site, Stretch};
use ptx::Space;
use std::sync::Arc;

/// Warps of a warpgroup.
const WARPS: usize = 4;

pub fn execute(cluster: &mut Cluster, at: At, request: &Request) -> Next {
    match request {
        Request::Multiply(multiply) => together(cluster, at, |cluster, at| issue(cluster, at, multiply)),
        Request::Fence => together(cluster, at, |cluster, at| {
            if cluster.orders(at) {
                cluster.products[at.warp].fence();
            }
        }),
        Request::Commit => together(cluster, at, |cluster, at| {
            cluster.products[at.warp].commit();
            if cluster.orders(at) {
                cluster.detector.wgmma_commit(at.lanes());
            }
            let group = warpgroup(cluster, at.warp);
            cluster.warps[group].iter_mut().for_each(|warp| warp.wake(|state| state == State::Products));
            cluster.trace_woken();
        }),
        Request::Wait(pending) if at.mask != 0 && !all_committed(cluster, at.warp, *pending) => {
            cluster.warps[at.warp].fragments[at.fragment].state = State::Products;
            Next::Done
        }
        Request::Wait(pending) => together(cluster, at, |cluster, at| {
            if cluster.orders(at) {
                cluster.detector.wgmma_wait(at.lanes(), *pending);
            }
            cluster.trace_products_waited(at.warp, warpgroup(cluster, at.warp).start, *pending);
            complete(cluster, at, *pending);
        }),
    }
}

/// The warps that multiply together with this one.
fn warpgroup(cluster: &Cluster, warp: usize) -> std::ops::Range<usize> {
    let home = cluster.warps_of(cluster.rank(warp));
    let first = warp - cluster.warp_in_block(warp) % WARPS;
    first..(first + WARPS).min(home.end)
}

/// Carries out what a warp has waited for: its own products, and those of the same groups of the other warps, because
/// the bytes that they read may be overwritten from now on.
fn complete(cluster: &mut Cluster, at: At, pending: u32) {
    let (warp, seen) = (at.warp, cluster.orders(at));
    let groups = cluster.products[warp].committed.saturating_sub(pending.into());
    for other in warpgroup(cluster, warp) {
        let done = match other == warp && seen {
            true => cluster.products[warp].complete(pending),
            false => cluster.products[other].complete_first(groups),
        };
        done.into_iter().for_each(|product| cluster.carry_out(other, product));
    }
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
    let reads = cluster.product_reads.of(cluster.rank(at.warp), &issued);
    if !is_plain(cluster, at.warp, &reads) && !look_closer(cluster, at, &issued) {
        return;
    }
    if cluster.checks {
        cluster.detector.wgmma(at.lanes(), Site(at.statement), &reads);
        cluster.detector.heal_missed_fence(at.lanes());
        checks::wgmma_registers::watch_product(cluster, at, multiply);
    }
    cluster.trace_product(at, warpgroup(cluster, at.warp).start);
    let product = Product { multiply: multiply.clone(), issued, ticket: cluster.audit_start() };
    cluster.products[at.warp].issue(at, product);
    if cluster.adversary.lands_at_start() {
        // Products of one warp are carried out in their order.
        while let Some(product) = cluster.products[at.warp].take() {
            cluster.carry_out(at.warp, product);
        }
    }
}

/// Are all bytes inside, and written if anybody asks?
fn is_plain(cluster: &Cluster, warp: usize, reads: &[Stretch]) -> bool {
    let (block, size) = (cluster.rank(warp), cluster.home(warp).shared.bytes.len());
    reads.iter().all(|(_, range)| {
        let (offset, length) = ((range.start - watched_shared(block, 0)) as usize, (range.end - range.start) as usize);
        let is_written = || cluster.first_unwritten(Accessed::Shared { block, offset }, length).is_none();
        offset + length <= size && (!cluster.checks || is_written())
    })
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

/// The shared memory of a block, which tells the books of what is read.
struct Memory<'a, 'c, 'k> {
    cluster: &'a Cluster<'c, 'k>,
    block: usize,
    bytes: &'a [u8],
}

impl Shared for Memory<'_, '_, '_> {
    #[inline]
    fn piece(&self, first: u32) -> Option<[u8; PIECE as usize]> {
        let piece = self.bytes.piece(first)?;
        let place = Accessed::Shared { block: self.block, offset: first as usize };
        self.cluster.note(Column::Read, place, 0, piece.len());
        Some(piece)
    }
}

impl Cluster<'_, '_> {
    /// A product reads its operands and writes its accumulators.
    pub fn carry_out(&mut self, warp: usize, product: Product) {
        let Product { multiply, issued, ticket } = product;
        let outer = self.audit_landing(ticket);
        let shared = Memory { cluster: self, block: self.rank(warp), bytes: self.home(warp).shared.bytes.data() };
        let results = multiply.execute(&issued, self.precision, &shared, |source| self.read_words(warp, source));
        self.audit_landed(outer);
        let live = self.warps[warp].live;
        for (destination, words) in multiply.destinations().iter().zip(&results) {
            if let Some(register) = destination {
                self.warps[warp].registers.write_words(*register, live, words);
            }
        }
    }
}
