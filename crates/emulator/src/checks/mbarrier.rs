//! # mbarrier
//!
//! A barrier in shared memory that is used in a way it cannot take: before its `mbarrier.init`, or where nothing orders
//! that before; after its `mbarrier.inval`; initialised twice, by one thread or by several, without `mbarrier.inval`
//! between; with more arrivals than the phase expects; or its bytes are used as data before `mbarrier.inval`. Hardware
//! hangs, lets waiters through too early, or corrupts the count.
//!
//! ```ptx
//! mbarrier.init.shared.b64 [full], 1;                       // one arrival and its bytes complete a phase
//! mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;     // executed by all 32 lanes
//! ```
//!
//! Fix: initialise each barrier once, by one thread, with the number of arrivals that each phase gets, and let a barrier
//! of the block order that before the first use. Before its bytes become something else, one thread invalidates it when
//! nobody waits there any more. PTX ISA, "mbarrier.init", "mbarrier.arrive", "mbarrier.inval".

use super::{Check, initialisations, words};
use crate::async_engines::{Mbarrier, Spot};
use crate::exec::{At, watched_shared};
use crate::finding::Report;
use crate::machine::{Cluster, lanes};

pub const CHECK: Check = Check::error("mbarrier", include_str!("mbarrier.rs"));

/// Bytes of a barrier object.
pub const BYTES: usize = 8;

/// There is no barrier where a lane uses one.
pub fn report_no_barrier(cluster: &mut Cluster, by: (At, usize), spot: Spot) {
    let place = cluster.shared_place(spot.0, spot.1 as u64);
    let message = format!("no barrier is initialised at {place}");
    let help = "execute `mbarrier.init` once before, and order it with `bar.sync` before the first use";
    add(cluster, by, message, "uses it", help);
}

/// Lanes use barriers: does each know of the initialisation?
pub fn watch_use(cluster: &mut Cluster, at: At, spots: &[Option<Spot>; 32]) {
    let mut rest = if cluster.checks { at.mask } else { 0 };
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        let same = lanes(rest).filter(|other| spots[*other] == spots[lane]).fold(0, |mask, other| mask | 1 << other);
        rest &= !same;
        let Some(spot) = spots[lane].filter(|spot| cluster.mbarriers.contains_key(spot)) else { continue };
        initialisations::watch_use(cluster, spot);
        if !cluster.detector.mbarrier_is_initialised(at.among(same).lanes(), watched_shared(spot.0, spot.1)) {
            report_unordered(cluster, (at, lane), spot);
        }
    }
}

fn report_unordered(cluster: &mut Cluster, by: (At, usize), spot: Spot) {
    let place = cluster.shared_place(spot.0, spot.1 as u64);
    let message = format!("nothing orders the initialisation of the barrier at {place} before this use");
    let help = match spot.0 == cluster.rank(by.0.warp) {
        true => "emit `bar.sync` between `mbarrier.init` and the first use",
        false => {
            "emit `fence.mbarrier_init.release.cluster` and a cluster barrier between `mbarrier.init` and this use"
        }
    };
    add(cluster, by, message, "uses it", help);
}

/// More arrivals than a phase takes.
pub fn report_too_many(cluster: &mut Cluster, by: (At, usize), spot: Spot) {
    let place = cluster.shared_place(spot.0, spot.1 as u64);
    let pending = cluster.mbarriers.get(&spot).map_or(0, Mbarrier::pending);
    let open = match pending {
        0 => "all arrivals of the phase have come, and only bytes are missing".into(),
        some => format!("the phase takes {} more", words::counted(some.into(), "arrival")),
    };
    let message = format!("the barrier at {place} gets an arrival too many: {open}");
    let help = match pending {
        0 => {
            "let one thread arrive for a phase, and before it arrives for the next, wait until the stage has been given \
             back; or initialise the barrier with more arrivals"
        }
        _ => "initialise the barrier with the number of arrivals that each phase gets, or let fewer threads arrive",
    };
    add(cluster, by, message, "arrives", help);
}

/// The bytes of a barrier, which count as written by nobody while it lives: has somebody stored data there? One that
/// nobody has used since its initialisation does no harm, and Triton leaves such behind.
pub fn report_written(cluster: &mut Cluster, spot: Spot) {
    let bytes = &cluster.blocks[spot.0].shared.bytes;
    let in_use = cluster.mbarriers.get(&spot).is_some_and(|barrier| !barrier.is_fresh());
    let Some(byte) = (0..BYTES).find(|byte| in_use && bytes.is_written(spot.1 + byte, 1)) else { return };
    let word = watched_shared(spot.0, spot.1 + byte / 4 * 4);
    let Some((who, site)) = cluster.detector.writer(&(word..word + 4)) else { return };
    let at = At { warp: who.warp as usize, fragment: 0, mask: who.mask, statement: site.0 };
    report_data(cluster, at, spot, "written");
}

/// At the end of a cluster.
pub fn report_all_written(cluster: &mut Cluster) {
    let spots: Vec<Spot> = cluster.mbarriers.keys().copied().collect();
    spots.into_iter().for_each(|spot| report_written(cluster, spot));
}

/// The barrier that lies in some of these bytes of a block's shared memory.
pub fn within(cluster: &Cluster, block: usize, offset: usize, bytes: usize) -> Option<Spot> {
    let first = (block, (offset + 1).saturating_sub(BYTES));
    cluster.mbarriers.range(first..(block, offset + bytes)).next().map(|(spot, _)| *spot)
}

/// A thread uses the bytes of a barrier as data.
pub fn report_data(cluster: &mut Cluster, at: At, spot: Spot, used: &str) {
    let place = cluster.shared_place(spot.0, spot.1 as u64);
    let label = format!("{} uses them", words::who(cluster, at.warp, at.mask));
    let message = format!("bytes of the barrier at {place} are {used} as data");
    let report = Report::new(&CHECK, message, cluster.actor(at, &label))
        .missing("`mbarrier.inval` between the last use as a barrier and the first as data")
        .help("let one thread execute `mbarrier.inval` when nobody waits there any more, and order it before this with `bar.sync`");
    cluster.findings.add(report);
}

fn add(cluster: &mut Cluster, (at, lane): (At, usize), message: String, does: &str, help: &str) {
    let at = At { mask: 1 << lane, ..at };
    let label = format!("{} {does}", words::who(cluster, at.warp, at.mask));
    let report = Report::new(&CHECK, message, cluster.actor(at, &label)).help(help);
    cluster.findings.add(report);
}
