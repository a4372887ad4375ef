//! Memory as the emulator sees it: bytes, and which of them anybody ever wrote.

use std::ops::Range;

mod global;
mod local;
mod pages;
mod shared;
mod variables;
mod written;

pub use global::{GlobalMemory, Outside};
pub use local::{LOCAL_WINDOW, LocalMemory, PARAMETER_WINDOW, STACK_BYTES, in_window};
pub use pages::Pages;
pub use shared::{SHARED_WINDOW, SharedMemory};
pub use variables::{Variables, function_at};
use written::Written;

/// Bytes that remember whether they were written.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    data: Vec<u8>,
    written: Written,
}

impl Bytes {
    pub fn unwritten(size: usize) -> Bytes {
        Bytes { data: vec![0; size], written: Written::none(size) }
    }

    pub fn new(data: Vec<u8>, written: bool) -> Bytes {
        let written = if written { Written::all() } else { Written::none(data.len()) };
        Bytes { data, written }
    }

    /// Forgets what lies from `size` on.
    pub fn cut(&mut self, size: usize) {
        self.data.truncate(size);
        self.written.cut(size);
    }

    /// Grows to `size` with bytes that nobody wrote.
    pub fn extend_unwritten(&mut self, size: usize) {
        self.written.extend(self.data.len(), size);
        self.data.resize(size, 0);
    }

    pub fn len(&self) -> usize {
        self.data.len()
    }

    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The bytes, for whoever marks what it writes.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// Up to eight bytes, little-endian.
    pub fn read(&self, offset: usize, bytes: usize) -> u64 {
        self.data[offset..offset + bytes].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    pub fn write(&mut self, offset: usize, bytes: usize, value: u64) {
        self.write_all(offset, &value.to_le_bytes()[..bytes]);
    }

    pub fn write_all(&mut self, offset: usize, bytes: &[u8]) {
        self.data[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.mark_written(offset, bytes.len());
    }

    pub fn mark_written(&mut self, offset: usize, bytes: usize) {
        self.written.mark(offset, bytes);
    }

    /// As if nobody had ever written them.
    pub fn mark_unwritten(&mut self, offset: usize, bytes: usize) {
        self.written.unmark(offset, bytes);
    }

    /// Are all bytes of a range written?
    pub fn is_written(&self, offset: usize, bytes: usize) -> bool {
        self.written.covers(offset, bytes)
    }

    /// The first bytes of a range that nobody wrote.
    pub fn first_unwritten(&self, offset: usize, bytes: usize) -> Option<Range<usize>> {
        self.written.first_gap(offset, bytes)
    }
}
