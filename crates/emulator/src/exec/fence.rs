//! Fences between the accesses of one thread, and what accesses order themselves.

use super::{Action, At, Next};
use crate::machine::{AddressSource, Cluster, Decoder, Why, lanes};
use happens_before::{Lanes, ProxyFence, Scope, Semantics, Site};
use ptx::Instruction;
use ptx::forms::Fence;

/// Order between threads and the units that work for them.
pub enum Between {
    /// `fence.mbarrier_init`.
    PhaseInit,
    Async(ProxyFence),
    MapRelease,
    MapAcquire(AddressSource),
}

pub fn decode(op: Fence, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    match op {
        Fence::Barrier | Fence::Scope => {
            let sequential = op == Fence::Barrier || instruction.has("sc");
            Ok(Action::Fence(Semantics { release: true, acquire: true, sequential, ..semantics(instruction) }))
        }
        Fence::OneWay => Ok(Action::Fence(semantics(instruction))),
        // There are no aliases: a byte has one address in each space.
        Fence::Alias => Ok(Action::Nothing),
        Fence::PhaseInit => Ok(Action::ProxyFence(Between::PhaseInit)),
        Fence::Async => Ok(Action::ProxyFence(Between::Async(spaces(instruction)))),
        Fence::TensorMapRelease => Ok(Action::ProxyFence(Between::MapRelease)),
        Fence::TensorMapAcquire => {
            Ok(Action::ProxyFence(Between::MapAcquire(decoder.address(&instruction.operands[0])?)))
        }
    }
}

fn spaces(instruction: &Instruction) -> ProxyFence {
    match instruction.choice(&["global", "shared::cta", "shared::cluster"]) {
        Some("global") => ProxyFence::Global,
        Some("shared::cta") => ProxyFence::SharedBlock,
        Some(_) => ProxyFence::SharedCluster,
        None => ProxyFence::All,
    }
}

/// What the modifiers of an access or a fence say.
pub fn semantics(instruction: &Instruction) -> Semantics {
    let has = |modifier| instruction.has(modifier) || instruction.has("acq_rel");
    let scope = match instruction.choice(&["cta", "cluster"]) {
        Some("cta") => Scope::Cta,
        Some(_) => Scope::Cluster,
        None => Scope::Gpu,
    };
    Semantics { release: has("release"), acquire: has("acquire"), ..Semantics::relaxed(scope) }
}

/// Memory is one: whoever reads later sees what was written before, so that a fence moves nothing. It orders.
pub fn execute(cluster: &mut Cluster, at: At, semantics: Semantics) -> Next {
    if cluster.orders(at) {
        cluster.detector.fence(Lanes { warp: at.warp as u32, mask: at.mask }, Site(at.statement), semantics);
    }
    Next::Following
}

pub fn execute_between(cluster: &mut Cluster, at: At, between: &Between) -> Next {
    let who = at.lanes();
    match between {
        _ if at.mask == 0 || !cluster.orders(at) => {}
        Between::PhaseInit => cluster.detector.fence_mbarrier_init(who),
        Between::Async(which) => cluster.detector.fence_proxy_async(who, *which),
        Between::MapRelease => cluster.detector.fence_tensormap_release(who),
        Between::MapAcquire(address) => {
            let addresses = cluster.addresses(at.warp, address);
            lanes(at.mask)
                .for_each(|lane| cluster.detector.fence_tensormap_acquire(at.lane(lane).lanes(), addresses[lane]));
        }
    }
    Next::Following
}
