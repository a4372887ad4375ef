//! Memory that a thread keeps from call to call, so that a call allocates nothing once its shape was met.

use super::simd::Lanes;
use std::cell::Cell;

thread_local! {
    static LANES: Cell<Vec<Lanes>> = const { Cell::new(Vec::new()) };
    static PARTS: Cell<Vec<Lanes>> = const { Cell::new(Vec::new()) };
    static BLOCKS: Cell<Vec<usize>> = const { Cell::new(Vec::new()) };
}

/// What a thread needs to compute items. A call inside of another (a mask may compute attention) has memory of its own.
pub fn with(work: impl FnOnce(&mut Vec<Lanes>)) {
    let mut held = LANES.take();
    work(&mut held);
    LANES.set(held);
}

/// What the threads of a call find for parts of the keys.
pub fn with_parts(work: impl FnOnce(&mut Vec<Lanes>)) {
    let mut held = PARTS.take();
    work(&mut held);
    PARTS.set(held);
}

/// Where the blocks of packed sequences begin.
pub fn with_blocks(work: impl FnOnce(&mut Vec<usize>)) {
    let mut held = BLOCKS.take();
    work(&mut held);
    BLOCKS.set(held);
}

/// At least so many rows of lanes.
pub fn room(memory: &mut Vec<Lanes>, rows: usize) -> &mut [Lanes] {
    if memory.len() < rows {
        memory.resize(rows, Lanes::all(0.0));
    }
    &mut memory[..rows]
}
