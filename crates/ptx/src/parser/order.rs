//! One order for declarations: by scope, as the printer writes them, so that what is printed reads back equal.

use super::EntryPlaces;
use crate::ir::*;

/// Sorts registers and variables by the scope they belong to, and renames their uses.
pub fn by_scope(function: &mut Function, places: &mut EntryPlaces) {
    let scopes: Vec<ScopeId> = function.registers.iter().map(|register| register.scope).collect();
    let registers = sort(&scopes, &mut function.registers, &mut places.registers);
    let scopes: Vec<ScopeId> = function.variables.iter().map(|variable| variable.scope).collect();
    let variables = sort(&scopes, &mut function.variables, &mut places.variables);
    if registers.is_none() && variables.is_none() {
        return;
    }
    let renaming = Renaming { registers: registers.unwrap_or_default(), variables: variables.unwrap_or_default() };
    for statement in &mut function.body {
        if let Statement::Instruction(instruction) = statement {
            instruction.guard.iter_mut().for_each(|guard| renaming.register(&mut guard.register));
            instruction.operands.iter_mut().for_each(|operand| renaming.operand(operand));
        }
    }
}

/// The new place of each item; none if all stay.
fn sort<T: Clone, P: Clone>(scopes: &[ScopeId], items: &mut Vec<T>, places: &mut Vec<P>) -> Option<Vec<u32>> {
    if scopes.is_sorted() {
        return None;
    }
    let mut order: Vec<usize> = (0..scopes.len()).collect();
    order.sort_by_key(|index| scopes[*index]);
    *items = order.iter().map(|index| items[*index].clone()).collect();
    *places = order.iter().map(|index| places[*index].clone()).collect();
    let mut new = vec![0; order.len()];
    order.iter().enumerate().for_each(|(to, from)| new[*from] = to as u32);
    Some(new)
}

/// New numbers by old; empty when nothing changed.
struct Renaming {
    registers: Vec<u32>,
    variables: Vec<u32>,
}

impl Renaming {
    fn register(&self, id: &mut RegisterId) {
        id.0 = self.registers.get(id.0 as usize).copied().unwrap_or(id.0);
    }

    fn symbol(&self, symbol: &mut Symbol) {
        if let Symbol::Local(id) = symbol {
            id.0 = self.variables.get(id.0 as usize).copied().unwrap_or(id.0);
        }
    }

    fn operand(&self, operand: &mut Operand) {
        match operand {
            Operand::Register(id) | Operand::Not(id) => self.register(id),
            Operand::Symbol(symbol) => self.symbol(symbol),
            Operand::Address(address) => self.base(&mut address.base),
            Operand::TensorAddress(address, parts) => {
                self.base(&mut address.base);
                parts.iter_mut().for_each(|part| self.operand(part));
            }
            Operand::Vector(parts) | Operand::Arguments(parts) => parts.iter_mut().for_each(|part| self.operand(part)),
            Operand::Pair(first, second) => {
                self.operand(first);
                self.operand(second);
            }
            Operand::Immediate(_) | Operand::Special(_) | Operand::Label(_) | Operand::Sink => {}
        }
    }

    fn base(&self, base: &mut AddressBase) {
        match base {
            AddressBase::Register(id) => self.register(id),
            AddressBase::Symbol(symbol) => self.symbol(symbol),
            AddressBase::Absolute => {}
        }
    }
}
