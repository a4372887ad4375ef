//! Global memory: allocations with guard space between them, at addresses that look like real ones.

use super::pages::{Page, Pages};
use launch::PAGE_BYTES;

/// Where the first allocation lies; drivers hand out addresses of this kind.
pub const GLOBAL_BASE: u64 = 0x7f52_4a00_0000;
/// At least this much unmapped space lies between two allocations.
const GUARD: u64 = 1 << 20;
/// Drivers align allocations to this (CUDA C++ Programming Guide, "Device Memory Accesses").
const ALIGNMENT: u64 = 512;

#[derive(Clone, Debug)]
pub struct Allocation {
    pub name: String,
    pub base: u64,
    pub pages: Pages,
    /// A variable of the `.const` space.
    pub constant: bool,
}

/// An access that no allocation contains, and the allocation it came nearest to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Name, size, and where the access begins, counted from its start.
    pub nearest: Option<(String, u64, i64)>,
}

#[derive(Clone, Debug, Default)]
pub struct GlobalMemory {
    /// Ordered by address.
    allocations: Vec<Allocation>,
}

impl GlobalMemory {
    /// Places a named allocation behind the others; returns its address.
    pub fn allocate(&mut self, name: &str, pages: Pages) -> u64 {
        self.allocate_variable(name, pages, false)
    }

    /// The same for a variable of the module.
    pub fn allocate_variable(&mut self, name: &str, pages: Pages, constant: bool) -> u64 {
        let end = |last: &Allocation| last.base + last.pages.len() as u64 + GUARD;
        let base = self.allocations.last().map_or(GLOBAL_BASE, end).next_multiple_of(ALIGNMENT);
        self.allocations.push(Allocation { name: name.into(), base, pages, constant });
        base
    }

    /// The allocation that contains all of an access, and the offset in it.
    pub fn find(&self, address: u64, bytes: u64) -> Result<(usize, usize), Outside> {
        let index = self.allocations.partition_point(|allocation| allocation.base <= address).checked_sub(1);
        if let Some(index) = index {
            let allocation = &self.allocations[index];
            let offset = address - allocation.base;
            if offset.checked_add(bytes).is_some_and(|end| end <= allocation.pages.len() as u64) {
                return Ok((index, offset as usize));
            }
        }
        Err(Outside { nearest: self.nearest(address) })
    }

    fn nearest(&self, address: u64) -> Option<(String, u64, i64)> {
        let distance = |allocation: &Allocation| {
            let end = allocation.base + allocation.pages.len() as u64;
            let from = if address < allocation.base { allocation.base } else { end };
            address.wrapping_sub(from) as i64
        };
        let nearest = self.allocations.iter().min_by_key(|allocation| distance(allocation).unsigned_abs())?;
        Some((nearest.name.clone(), nearest.pages.len() as u64, address.wrapping_sub(nearest.base) as i64))
    }

    /// Writes part of an initial value.
    pub fn initialise(&mut self, base: u64, offset: usize, bytes: usize, value: u64) {
        if let Ok((allocation, start)) = self.find(base.wrapping_add(offset as u64), bytes as u64) {
            self.pages_mut(allocation).write(start, &value.to_le_bytes()[..bytes]);
        }
    }

    /// Does the address lie in constant memory?
    pub fn is_constant(&self, address: u64) -> bool {
        self.find(address, 1).is_ok_and(|(allocation, _)| self.allocations[allocation].constant)
    }

    pub fn address(&self, allocation: usize, offset: usize) -> u64 {
        self.allocations[allocation].base + offset as u64
    }

    pub fn pages(&self, allocation: usize) -> &Pages {
        &self.allocations[allocation].pages
    }

    /// The contents of the buffer of that name: buffers come before variables.
    pub fn pages_of(&self, name: &str) -> Option<&Pages> {
        self.allocations.iter().find(|allocation| allocation.name == name).map(|allocation| &allocation.pages)
    }

    pub fn pages_mut(&mut self, allocation: usize) -> &mut Pages {
        &mut self.allocations[allocation].pages
    }

    /// The page of an access that lies on one, by allocation and number, and the address of the page's first byte.
    pub fn find_page(&self, address: u64, bytes: u64) -> Option<((usize, usize), u64)> {
        let (allocation, offset) = self.find(address, bytes).ok()?;
        let start = offset % PAGE_BYTES;
        (start + bytes as usize <= PAGE_BYTES).then(|| ((allocation, offset / PAGE_BYTES), address - start as u64))
    }

    pub fn page(&self, (allocation, number): (usize, usize)) -> &Page {
        self.allocations[allocation].pages.page(number)
    }

    pub fn page_mut(&mut self, (allocation, number): (usize, usize)) -> &mut Page {
        self.allocations[allocation].pages.page_mut(number)
    }

    /// Makes copies cheap.
    pub fn share(&mut self) {
        self.allocations.iter_mut().for_each(|allocation| allocation.pages.share());
    }

    /// Takes over what a cluster wrote to its copy of the shared memory.
    pub fn take_changes(&mut self, after: GlobalMemory) {
        let pairs = self.allocations.iter_mut().zip(after.allocations);
        pairs.for_each(|(allocation, after)| allocation.pages.take_changes(after.pages));
    }

    pub fn into_allocations(self) -> Vec<Allocation> {
        self.allocations
    }

    /// An address as `name`+offset.
    pub fn place(&self, address: u64) -> String {
        match self.find(address, 1) {
            Ok((index, 0)) => format!("`{}`", self.allocations[index].name),
            Ok((index, offset)) => format!("`{}`+{offset}", self.allocations[index].name),
            Err(_) => format!("{address:#x}"),
        }
    }
}
