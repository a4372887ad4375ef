//! Memory as the emulator sees it: bytes, and which of them anybody ever wrote.

use std::ops::Range;

mod global;
mod local;
mod shared;
mod variables;

pub use global::{GlobalMemory, Outside};
pub use local::{LOCAL_WINDOW, LocalMemory, PARAMETER_WINDOW, STACK_BYTES, in_window};
pub use shared::{SHARED_WINDOW, SharedMemory};
pub use variables::{Variables, function_at};

/// Bytes that remember whether they were written.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    data: Vec<u8>,
    written: Vec<bool>,
}

impl Bytes {
    pub fn unwritten(size: usize) -> Bytes {
        Bytes { data: vec![0; size], written: vec![false; size] }
    }

    pub fn new(data: Vec<u8>, written: bool) -> Bytes {
        let written = vec![written; data.len()];
        Bytes { data, written }
    }

    /// Forgets what lies from `size` on.
    pub fn cut(&mut self, size: usize) {
        self.data.truncate(size);
        self.written.truncate(size);
    }

    /// Grows to `size` with bytes that nobody wrote.
    pub fn extend_unwritten(&mut self, size: usize) {
        self.data.resize(size, 0);
        self.written.resize(size, false);
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

    /// Bytes with what is known of them, for the next launch.
    pub fn written(&self) -> &[bool] {
        &self.written
    }

    pub fn into_data(self) -> Vec<u8> {
        self.data
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
        self.written[offset..offset + bytes].fill(true);
    }

    /// The first bytes of a range that nobody wrote.
    pub fn first_unwritten(&self, offset: usize, bytes: usize) -> Option<Range<usize>> {
        let end = offset + bytes;
        let first = (offset..end).find(|byte| !self.written[*byte])?;
        Some(first..(first..end).find(|byte| self.written[*byte]).unwrap_or(end))
    }
}
