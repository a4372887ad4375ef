//! Memory on a GPU.

use std::sync::Arc;

use cudarc::driver::sys::{self, CUdeviceptr};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::pointer::{DeviceSlice, DeviceSliceMut};
use crate::stream::Stream;

/// An allocation, freed on drop.
#[derive(Debug)]
pub struct DeviceBuffer {
    address: CUdeviceptr,
    bytes: usize,
    context: Arc<Context>,
}

impl DeviceBuffer {
    /// Allocates; the content is whatever was there.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<DeviceBuffer, Error> {
        context.bind()?;
        let mut address = 0;
        // The driver refuses zero bytes, but an empty buffer has an address too.
        // SAFETY: a context is current; Drop frees the address.
        check("cuMemAlloc_v2", unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1)) })?;
        Ok(DeviceBuffer { address, bytes, context: context.clone() })
    }

    /// Its first byte; a multiple of 256.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// All of it, to read from.
    pub fn slice(&self) -> DeviceSlice<'_> {
        DeviceSlice::of(self.address, self.bytes, self.context.ordinal())
    }

    /// All of it, to write to.
    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_> {
        DeviceSliceMut::of(self.address, self.bytes, self.context.ordinal())
    }

    /// Replaces its content, after what the stream already holds.
    pub fn write(&mut self, stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
        self.check_length(bytes.len())?;
        self.context.bind()?;
        // SAFETY: both sides have that many bytes, and the host side is borrowed until the stream is done.
        let status =
            unsafe { sys::cuMemcpyHtoDAsync_v2(self.address, bytes.as_ptr().cast(), bytes.len(), stream.handle) };
        check("cuMemcpyHtoDAsync_v2", status)?;
        stream.synchronise()
    }

    /// Reads its content, after what the stream already holds.
    pub fn read(&self, stream: &Stream, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_length(bytes.len())?;
        self.context.bind()?;
        // SAFETY: both sides have that many bytes, and the host side is borrowed until the stream is done.
        let status =
            unsafe { sys::cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), self.address, bytes.len(), stream.handle) };
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

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the address came from cuMemAlloc and is freed once; the driver waits for work that uses it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}
