//! Fences between the accesses of one thread, and what accesses order themselves.

use super::{Action, At, Next};
use crate::happens_before::{Lanes, Scope, Semantics, Site};
use crate::machine::{Block, Why};
use ptx::Instruction;
use ptx::forms::Fence;

pub fn decode(op: Fence, instruction: &Instruction) -> Result<Action, Why> {
    match op {
        Fence::Barrier | Fence::Scope => {
            Ok(Action::Fence(Semantics { release: true, acquire: true, ..semantics(instruction) }))
        }
        Fence::OneWay => Ok(Action::Fence(semantics(instruction))),
        Fence::PhaseInit | Fence::Alias | Fence::Async | Fence::TensorMapRelease | Fence::TensorMapAcquire => {
            Err(String::new())
        }
    }
}

/// What the modifiers of an access or a fence say.
pub fn semantics(instruction: &Instruction) -> Semantics {
    let has = |modifier| instruction.has(modifier) || instruction.has("acq_rel");
    let scope = if instruction.has("cta") { Scope::Cta } else { Scope::Cluster };
    Semantics { release: has("release"), acquire: has("acquire"), blind: false, scope }
}

/// Memory is one: whoever reads later sees what was written before, so that a fence moves nothing. It orders.
pub fn execute(block: &mut Block, at: At, semantics: Semantics) -> Next {
    block.detector.fence(Lanes { warp: at.warp as u32, mask: at.mask }, Site(at.statement), semantics);
    Next::Following
}
