//! Where a buffer of a recipe lies.

use std::sync::Arc;

use crate::buffer::DeviceBuffer;
use crate::context::Context;
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::stream::Stream;

/// On the GPU; or on the host, if it must outlive the context: the report of assertions.
#[derive(Debug)]
pub enum Storage {
    Device(DeviceBuffer),
    Host(HostBuffer),
}

impl Storage {
    pub fn new(context: &Arc<Context>, bytes: usize, survives: bool) -> Result<Storage, Error> {
        Ok(match survives {
            true => Storage::Host(HostBuffer::new(context, bytes)?),
            false => Storage::Device(DeviceBuffer::new(context, bytes)?),
        })
    }

    pub fn address(&self) -> u64 {
        match self {
            Storage::Device(buffer) => buffer.address(),
            Storage::Host(buffer) => buffer.address(),
        }
    }

    pub fn write(&mut self, stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Storage::Device(buffer) => buffer.write(stream, bytes),
            Storage::Host(buffer) => buffer.write(stream, bytes),
        }
    }

    pub fn read(&self, stream: &Stream, bytes: &mut [u8]) -> Result<(), Error> {
        match self {
            Storage::Device(buffer) => buffer.read(stream, bytes),
            Storage::Host(buffer) => buffer.read(stream, bytes),
        }
    }

    /// What a kernel left in its first word, also if it has ended the context; none on the GPU, where it would be gone.
    pub fn last_word(&self) -> Option<u64> {
        match self {
            Storage::Device(_) => None,
            Storage::Host(buffer) => buffer.last_word(),
        }
    }
}
