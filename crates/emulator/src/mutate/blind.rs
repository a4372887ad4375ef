//! What the checks do not watch. A mutant of a synchronisation that may order such things proves nothing by its silence.

use ptx::forms::{Fence, Launch};
use ptx::{Instruction, Op, Space};

/// What this instruction may order and no check watches, whatever else it orders.
pub fn spot(instruction: &Instruction) -> Option<&'static str> {
    match instruction.op() {
        Op::Launch(Launch::WaitForGrids) => {
            Some("earlier grids are watched only where the recipe lets a launch overlap with them")
        }
        Op::Fence(Fence::Alias) => Some("aliases of one address are not watched"),
        // Shared memory is out of their reach.
        _ if instruction.has("sys") && instruction.space() != Some(Space::Shared) => {
            Some("what the host and other devices do meanwhile is not watched")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx::{Address, AddressBase, Immediate, Operand};

    fn instruction(mnemonic: &str, operands: Vec<Operand>) -> Instruction {
        Instruction::new(mnemonic, operands).unwrap()
    }

    #[test]
    fn a_barrier_is_watched_and_an_earlier_grid_is_not() {
        let barrier = instruction("bar.warp.sync", vec![Operand::Immediate(Immediate::Integer(-1))]);
        assert_eq!(spot(&barrier), None);
        assert!(spot(&instruction("griddepcontrol.wait", vec![])).is_some());
    }

    #[test]
    fn the_host_is_not_watched_and_cannot_reach_shared_memory() {
        let address = Operand::Address(Address { base: AddressBase::Absolute, offset: 0 });
        let operands = || vec![address.clone(), Operand::Immediate(Immediate::Integer(1))];
        assert!(spot(&instruction("red.relaxed.sys.global.add.u32", operands())).is_some());
        assert_eq!(spot(&instruction("red.relaxed.gpu.global.add.u32", operands())), None);
        assert_eq!(spot(&instruction("red.relaxed.sys.shared.add.u32", operands())), None);
        assert!(spot(&instruction("membar.sys", vec![])).is_some());
    }
}
