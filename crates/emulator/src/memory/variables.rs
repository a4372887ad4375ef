//! Variables in global and constant memory: placed once per run, with their initial values.

use super::{GlobalMemory, Pages};
use crate::machine::{constant, defined};
use launch::Contents;
use ptx::{FunctionId, GlobalId, Initial, LocalId, Module, Space, Symbol, Variable};
use std::collections::HashMap;

/// Addresses of functions begin here; nothing can be read there.
const CODE_BASE: u64 = 0x7f40_0000_0000;
/// Functions are this far from each other.
const CODE_STEP: u64 = 16;

/// Where the variables of a module lie. Those that a function declares are known to that function alone.
#[derive(Clone, Debug)]
pub struct Variables {
    addresses: HashMap<(Option<usize>, Symbol), u64>,
    /// For each function of the module, the one with its body.
    functions: Vec<usize>,
}

impl Variables {
    /// Allocates every variable; those without initial values are zero (PTX ISA, "Initializers").
    pub fn place(module: &Module, memory: &mut GlobalMemory) -> Variables {
        let definition = |index: usize| defined(module, FunctionId(index as u32)).unwrap_or(index);
        let functions = (0..module.functions.len()).map(definition).collect();
        let mut variables = Variables { addresses: HashMap::new(), functions };
        for (key, variable) in declared(module) {
            let zeros = Pages::lent(&Contents::repeated(&[0], variable.bytes() as usize), true);
            let address = memory.allocate_variable(&variable.name, zeros, variable.space == Space::Constant);
            variables.addresses.insert(key, address);
        }
        for ((owner, symbol), variable) in declared(module) {
            let Some(address) = variables.address(owner, symbol) else { continue };
            for (index, initial) in variable.init.iter().enumerate() {
                let size = variable.ty.bytes() as usize;
                let value = variables.value(owner, initial, variable);
                memory.initialise(address, index * size, size, value);
            }
        }
        variables
    }

    fn value(&self, owner: Option<usize>, initial: &Initial, variable: &Variable) -> u64 {
        match *initial {
            Initial::Value(value) => constant(value, variable.ty),
            Initial::Address { of, offset, mask, .. } => {
                let address = self.address(owner, of).unwrap_or_default().wrapping_add(offset as u64);
                // `0xFF00(name)` is that byte of the address.
                mask.map_or(address, |mask| (address & mask) >> (mask.trailing_zeros() & 63))
            }
        }
    }

    /// The address of a symbol as function `owner` sees it.
    pub fn address(&self, owner: Option<usize>, symbol: Symbol) -> Option<u64> {
        match symbol {
            Symbol::Function(FunctionId(index)) => {
                let definition = self.functions.get(index as usize)?;
                Some(CODE_BASE + *definition as u64 * CODE_STEP)
            }
            Symbol::Global(_) => self.addresses.get(&(None, symbol)).copied(),
            _ => self.addresses.get(&(owner, symbol)).copied(),
        }
    }
}

/// The function that an address of code means.
pub fn function_at(address: u64) -> Option<usize> {
    let offset = address.checked_sub(CODE_BASE)?;
    offset.is_multiple_of(CODE_STEP).then_some((offset / CODE_STEP) as usize)
}

/// Variables of the module and of its functions that lie in global or constant memory.
fn declared(module: &Module) -> impl Iterator<Item = ((Option<usize>, Symbol), &Variable)> {
    let globals = module.variables.iter().zip(0..).map(|(one, index)| ((None, Symbol::Global(GlobalId(index))), one));
    let locals = module.functions.iter().enumerate().flat_map(|(owner, function)| {
        let all = function.variables.iter().zip(0..);
        all.map(move |(one, index)| ((Some(owner), Symbol::Local(LocalId(index))), one))
    });
    globals.chain(locals).filter(|(_, one)| matches!(one.space, Space::Global | Space::Constant))
}
