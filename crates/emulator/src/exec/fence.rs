//! Fences between the accesses of one thread.

use super::Action;
use crate::machine::Why;
use ptx::forms::Fence;

/// Memory is one: whoever reads later sees what was written before, so that a fence has nothing to move.
pub fn decode(op: Fence) -> Result<Action, Why> {
    match op {
        Fence::Barrier | Fence::Scope | Fence::OneWay => Ok(Action::Nothing),
        Fence::PhaseInit | Fence::Alias | Fence::Async | Fence::TensorMapRelease | Fence::TensorMapAcquire => {
            Err(String::new())
        }
    }
}
