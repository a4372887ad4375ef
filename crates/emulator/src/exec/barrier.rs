//! Barriers of a block. PTX ISA, "bar, barrier": a warp counts once all its live lanes have come.

use super::{At, Next};
use crate::checks;
use crate::machine::{Block, Decoder, Source, Why};
use ptx::forms::Barrier;
use ptx::{Instruction, Type};

pub struct Meeting {
    id: Source,
    threads: Option<Source>,
    waits: bool,
    /// All lanes of a warp must execute it together.
    aligned: bool,
}

pub fn decode(op: Barrier, instruction: &Instruction, decoder: &Decoder) -> Result<Meeting, Why> {
    let (waits, aligned) = match op {
        Barrier::Synchronise => (true, true),
        Barrier::SynchroniseAligned => (true, instruction.has("aligned")),
        Barrier::Arrive => (false, true),
        Barrier::ArriveAligned
        | Barrier::Count
        | Barrier::CountAligned
        | Barrier::Reduce
        | Barrier::ReduceAligned
        | Barrier::ClusterArrive
        | Barrier::ClusterWait => return Err(String::new()),
    };
    let threads = instruction.operands.get(1).map(|one| decoder.source(one, Type::U32)).transpose()?;
    Ok(Meeting { id: decoder.source(&instruction.operands[0], Type::U32)?, threads, waits, aligned })
}

pub fn execute(block: &mut Block, at: At, meeting: &Meeting) -> Next {
    if at.mask == 0 {
        return Next::Following;
    }
    let lane = at.mask.trailing_zeros() as usize;
    let value = |block: &Block, source| block.read(at.warp, source)[lane] as u32;
    let id = value(block, meeting.id);
    let threads = meeting.threads.map(|source| value(block, source));
    checks::barrier::watch(block, at, id, threads, meeting.aligned);
    block.meet(at, id, threads, meeting.waits)
}
