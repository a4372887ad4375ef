//! `setmaxnreg`: warps hand registers to each other. Who asks for more than the block has waits, as on hardware. How many
//! registers a kernel really uses the assembler decides; here only those count that it cannot do without.

use super::{Action, At, Next, together};
use crate::checks;
use crate::machine::{Cluster, Decoder, InUse, State, Why};
use happens_before::Lanes;
use ptx::forms::Launch;
use ptx::{Immediate, Instruction, Operand};

/// A warp changes how many registers each of its threads has.
#[derive(Clone, Copy, Debug)]
pub struct Resize {
    pub count: u32,
    pub grows: bool,
    /// The most that is in use until the next change.
    pub in_use: Option<InUse>,
}

pub fn decode(op: Launch, instruction: &Instruction, at: usize, decoder: &Decoder) -> Result<Action, Why> {
    match (op, instruction.operands.first()) {
        (Launch::Registers, Some(Operand::Immediate(Immediate::Integer(count)))) => {
            let in_use = decoder.in_use_behind(at);
            Ok(Action::Resize(Resize { count: *count as u32, grows: instruction.has("inc"), in_use }))
        }
        (Launch::Registers, _) => Err("a count that is not a constant".into()),
        (Launch::WaitForGrids, _) => Ok(Action::WaitForGrids),
        // Time does not pass here, and nobody counts events. What a grid tells its dependents orders nothing: they wait for
        // its end.
        _ => Ok(Action::Nothing),
    }
}

/// The grid before this one has run; the race detector hears that this one counts on it.
pub fn wait_for_grids(cluster: &mut Cluster, at: At) -> Next {
    if cluster.orders(at) {
        cluster.detector.wait_for_grids(Lanes { warp: at.warp as u32, mask: at.mask });
    }
    Next::Following
}

pub fn execute(cluster: &mut Cluster, at: At, resize: Resize) -> Next {
    let (rank, warp) = (cluster.rank(at.warp), cluster.warp_in_block(at.warp));
    let pool = &cluster.blocks[rank].registers;
    if at.mask != 0 && resize.grows && pool.entry.is_some() && !pool.has_room(warp, resize.count) {
        cluster.warps[at.warp].fragments[at.fragment].state = State::Registers(resize.count);
        return Next::Done;
    }
    together(cluster, at, |cluster, at| {
        let changes = checks::registers::watch(cluster, at, resize);
        let pool = &mut cluster.blocks[rank].registers;
        if changes {
            pool.counts[warp] = resize.count;
        }
        pool.changes[warp].push(at.statement);
        let all = cluster.warps_of(rank);
        cluster.warps[all].iter_mut().for_each(|warp| warp.wake(|state| matches!(state, State::Registers(_))));
        cluster.trace_woken();
    })
}
