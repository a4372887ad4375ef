//! Memory on a GPU.

use std::sync::Arc;

use crate::sys::{self, CUdeviceptr};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::kept::Kept;
use crate::pointer::{DeviceSlice, DeviceSliceMut};
use crate::stream::Stream;

/// An allocation, freed on drop; later, if a [`Graph`](crate::Graph) that lives may have recorded its address.
#[derive(Debug)]
pub struct DeviceBuffer {
    allocation: Kept<Allocation>,
    bytes: usize,
}

#[derive(Debug)]
struct Allocation {
    address: CUdeviceptr,
    context: Arc<Context>,
}

impl DeviceBuffer {
    /// Allocates; the content is whatever was there.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<DeviceBuffer, Error> {
        let _entered = context.enter()?;
        let mut address = 0;
        // The driver refuses zero bytes, but an empty buffer has an address too.
        // SAFETY: a context is current; Drop frees the address.
        let status = unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1)) };
        check("cuMemAlloc_v2", status).map_err(|error| error.of_bytes(bytes))?;
        let allocation = Allocation { address, context: context.clone() };
        Ok(DeviceBuffer { allocation: Kept::new(allocation, context.id()), bytes })
    }

    /// Its first byte; a multiple of 256.
    pub fn address(&self) -> u64 {
        self.allocation.address
    }

    /// All of it, to read from.
    pub fn slice(&self) -> DeviceSlice<'_> {
        DeviceSlice::of(self.allocation.address, self.bytes, &self.allocation.context)
    }

    /// All of it, to write to.
    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_> {
        DeviceSliceMut::of(self.allocation.address, self.bytes, &self.allocation.context)
    }

    /// Replaces its content, after what the stream already holds.
    pub fn write(&mut self, stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
        self.check_length(bytes.len())?;
        self.allocation.context.check_same("stream", stream.context.id())?;
        let _entered = self.allocation.context.enter()?;
        // SAFETY: both sides have that many bytes, and the host side is borrowed until the stream is done.
        let status = unsafe {
            sys::cuMemcpyHtoDAsync_v2(self.allocation.address, bytes.as_ptr().cast(), bytes.len(), stream.handle)
        };
        check("cuMemcpyHtoDAsync_v2", status)?;
        stream.synchronise()
    }

    /// Overwrites all of it with a byte, after what the stream already holds, and does not wait.
    pub fn fill(&mut self, stream: &Stream, byte: u8) -> Result<(), Error> {
        self.allocation.context.check_same("stream", stream.context.id())?;
        let _entered = self.allocation.context.enter()?;
        // SAFETY: the allocation has that many bytes, and lives until the stream is done with it: Drop waits.
        let status = unsafe { sys::cuMemsetD8Async(self.allocation.address, byte, self.bytes, stream.handle) };
        check("cuMemsetD8Async", status)
    }

    /// Reads its content, after what the stream already holds.
    pub fn read(&self, stream: &Stream, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_length(bytes.len())?;
        self.allocation.context.check_same("stream", stream.context.id())?;
        let _entered = self.allocation.context.enter()?;
        // SAFETY: both sides have that many bytes, and the host side is borrowed until the stream is done.
        let status = unsafe {
            sys::cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), self.allocation.address, bytes.len(), stream.handle)
        };
        check("cuMemcpyDtoHAsync_v2", status)?;
        stream.synchronise()
    }

    fn check_length(&self, found: usize) -> Result<(), Error> {
        let words = |bytes: usize| format!("{bytes} bytes");
        match found == self.bytes {
            true => Ok(()),
            false => Err(Error::Memory { expected: words(self.bytes), found: words(found) }),
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the address came from cuMemAlloc and is freed once; the driver waits for work that uses it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}
