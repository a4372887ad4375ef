//! The registers inside operands. While a kernel is built, they are numbered as the builder made them.

use super::RegisterId;
use ptx::{Address, AddressBase, Operand};

pub fn register(id: RegisterId) -> Operand {
    Operand::Register(ptx::RegisterId(id.index))
}

/// Every register that the operands mention.
pub fn registers(operands: &[Operand]) -> Vec<ptx::RegisterId> {
    let mut all = vec![];
    let mut operands = operands.to_vec();
    renumber(&mut operands, &mut |id| all.push(*id));
    all
}

/// Calls `change` for every register inside.
pub fn renumber(operands: &mut [Operand], change: &mut dyn FnMut(&mut ptx::RegisterId)) {
    for operand in operands {
        match operand {
            Operand::Register(id) | Operand::Not(id) => change(id),
            Operand::Address(address) => renumber_address(address, change),
            Operand::Vector(parts) | Operand::Arguments(parts) => renumber(parts, change),
            Operand::TensorAddress(address, parts) => {
                renumber_address(address, change);
                renumber(parts, change);
            }
            Operand::Pair(first, second) => {
                renumber(std::slice::from_mut(first), change);
                renumber(std::slice::from_mut(second), change);
            }
            Operand::Immediate(_) | Operand::Special(_) | Operand::Symbol(_) | Operand::Label(_) | Operand::Sink => {}
        }
    }
}

fn renumber_address(address: &mut Address, change: &mut dyn FnMut(&mut ptx::RegisterId)) {
    if let AddressBase::Register(id) = &mut address.base {
        change(id);
    }
}
