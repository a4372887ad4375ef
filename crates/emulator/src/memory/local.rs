//! Local memory: what one thread alone can reach. It is a stack of frames, one for each function that runs.

use super::Bytes;

/// Generic addresses from here on are the thread's local memory.
pub const LOCAL_WINDOW: u64 = 0x7f10_0000_0000;
/// Generic addresses from here on are the parameters of the entry.
pub const PARAMETER_WINDOW: u64 = 0x7f20_0000_0000;
const WINDOW_BYTES: u64 = 1 << 24;
/// Bytes that the frames of a thread may take together (CUDA C++ Programming Guide, "Technical Specifications").
pub const STACK_BYTES: u64 = 512 << 10;

#[derive(Clone, Debug, Default)]
pub struct LocalMemory {
    pub bytes: Bytes,
}

impl LocalMemory {
    /// A new frame, of which nothing is written, whatever was there and behind it.
    pub fn open(&mut self, start: u64, size: u64) {
        self.bytes.cut(start as usize);
        self.bytes.extend_unwritten((start + size) as usize);
    }

    /// The offset of an access that lies inside.
    pub fn find(&self, address: u64, bytes: u64) -> Option<usize> {
        let inside = address.checked_add(bytes).is_some_and(|end| end <= self.bytes.len() as u64);
        inside.then_some(address as usize)
    }
}

/// The offset that a generic address means in a window, if it lies there.
pub fn in_window(window: u64, address: u64) -> Option<u64> {
    address.checked_sub(window).filter(|offset| *offset < WINDOW_BYTES)
}
