//! What the checks do not watch. A mutant of a synchronisation that may order such things proves nothing by its silence.

use ptx::forms::{Fence, Launch};
use ptx::{Instruction, Op};

/// What this instruction may order and no check watches.
pub fn spot(instruction: &Instruction) -> Option<&'static str> {
    match instruction.op() {
        Op::Launch(Launch::WaitForGrids) => Some("what earlier grids do meanwhile is not watched"),
        Op::Fence(Fence::Alias) => Some("aliases of one address are not watched"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_is_watched_and_an_earlier_grid_is_not() {
        let barrier =
            Instruction::new("bar.warp.sync", vec![ptx::Operand::Immediate(ptx::Immediate::Integer(-1))]).unwrap();
        assert_eq!(spot(&barrier), None);
        let wait = Instruction::new("griddepcontrol.wait", vec![]).unwrap();
        assert!(spot(&wait).is_some());
    }
}
