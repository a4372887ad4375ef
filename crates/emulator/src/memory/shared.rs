//! Shared memory of one block: the static variables of the entry, then the dynamic part.

use super::Bytes;
use ptx::{Function, GlobalId, LocalId, Module, Space, Symbol, Variable, VariableSize};
use std::collections::HashMap;

/// Generic addresses from here on are shared memory. As on hardware their low words are no offsets: an access that takes
/// one for the other goes wrong.
pub const SHARED_WINDOW: u64 = 0x7f00_4000_0000;
const WINDOW_BYTES: u64 = 1 << 29;

/// An address that `mapa` made has the block's rank, counted from one, above these bits; others mean the own block.
const RANK_SHIFT: u32 = 24;

/// Blocks of the largest cluster.
const MAX_RANKS: usize = 16;

#[derive(Clone, Debug)]
pub struct SharedMemory {
    pub bytes: Bytes,
    /// Name, first byte and size of each variable, in order.
    variables: Vec<(String, u64, u64)>,
    addresses: HashMap<Symbol, u64>,
}

impl SharedMemory {
    /// Lays out the variables that `function` can name, and `dynamic` bytes behind them.
    pub fn new(module: &Module, function: &Function, dynamic: u32) -> SharedMemory {
        let globals = module.variables.iter().enumerate().map(|(i, one)| (Symbol::Global(GlobalId(i as u32)), one));
        let locals = function.variables.iter().enumerate().map(|(i, one)| (Symbol::Local(LocalId(i as u32)), one));
        let shared = globals.chain(locals).filter(|(_, one)| one.space == Space::Shared).collect::<Vec<_>>();
        let mut memory = SharedMemory { bytes: Bytes::default(), variables: vec![], addresses: HashMap::new() };
        let is_dynamic = |variable: &Variable| variable.size == VariableSize::Dynamic;
        let mut end = 0;
        for (symbol, variable) in shared.iter().filter(|(_, one)| !is_dynamic(one)) {
            end = memory.place(*symbol, variable, end, size(variable));
        }
        // Every dynamic array begins at the same byte (CUDA C++ Programming Guide, "__shared__").
        let align = shared.iter().filter(|(_, one)| is_dynamic(one)).map(|(_, one)| one.align).max().unwrap_or(16);
        let start = end.next_multiple_of(u64::from(align));
        for (symbol, variable) in shared.iter().filter(|(_, one)| is_dynamic(one)) {
            memory.place(*symbol, variable, start, u64::from(dynamic));
        }
        memory.bytes = Bytes::unwritten((start + u64::from(dynamic)) as usize);
        memory
    }

    fn place(&mut self, symbol: Symbol, variable: &Variable, after: u64, size: u64) -> u64 {
        let start = after.next_multiple_of(u64::from(variable.align));
        self.variables.push((variable.name.clone(), start, size));
        self.addresses.insert(symbol, start);
        start + size
    }

    pub fn address(&self, symbol: Symbol) -> Option<u64> {
        self.addresses.get(&symbol).copied()
    }

    /// The offset of an access that lies inside.
    pub fn find(&self, address: u64, bytes: u64) -> Option<usize> {
        let inside = address.checked_add(bytes).is_some_and(|end| end <= self.bytes.len() as u64);
        inside.then_some(address as usize)
    }

    /// The rank that an address names, if it names one, and the offset. Addresses have 32 bits.
    pub fn split(address: u64) -> (Option<usize>, u64) {
        let address = address & 0xffff_ffff;
        let above = address >> RANK_SHIFT;
        match (above as usize).checked_sub(1).filter(|rank| *rank < MAX_RANKS) {
            Some(rank) => (Some(rank), address & ((1 << RANK_SHIFT) - 1)),
            None => (None, address),
        }
    }

    /// The address of an offset in the block of a rank.
    pub fn mapped(rank: u64, offset: u64) -> u64 {
        (rank + 1) << RANK_SHIFT | offset
    }

    /// The offset in shared memory that a generic address means, if it means one.
    pub fn of_generic(address: u64) -> Option<u64> {
        address.checked_sub(SHARED_WINDOW).filter(|offset| *offset < WINDOW_BYTES)
    }

    /// An address as `name`+offset.
    pub fn place_of(&self, address: u64) -> String {
        let inside = self.variables.iter().rev().find(|(_, start, size)| (*start..start + size).contains(&address));
        match inside {
            Some((name, start, _)) if *start == address => format!("`{name}`"),
            Some((name, start, _)) => format!("`{name}`+{}", address - start),
            None => format!("shared memory at {address}"),
        }
    }

    /// Bytes of static shared memory that an entry needs.
    pub fn static_bytes(module: &Module, function: &Function) -> u64 {
        SharedMemory::new(module, function, 0).bytes.len() as u64
    }
}

fn size(variable: &Variable) -> u64 {
    let count = match variable.size {
        VariableSize::Scalar => 1,
        VariableSize::Array(count) => u64::from(count),
        VariableSize::Dynamic => 0,
    };
    count * u64::from(variable.ty.bytes())
}
