//! Host memory that kernels reach: what they wrote there can be read after they have ended the context.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::stream::Stream;
use crate::sys::{self, CUdeviceptr};

/// Pinned memory of the process, mapped into the GPU's addresses, freed on drop.
#[derive(Debug)]
pub struct HostBuffer {
    /// For the process.
    pointer: *mut u8,
    /// For kernels.
    address: CUdeviceptr,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: the memory belongs to the process, not to a thread, and only `&mut self` writes to it.
unsafe impl Send for HostBuffer {}
// SAFETY: as above; kernels write while a stream holds them, and `read` waits for it.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Allocates; the content is whatever was there.
    pub fn new(context: &Arc<Context>, bytes: usize) -> Result<HostBuffer, Error> {
        let _entered = context.enter()?;
        let mut pointer: *mut c_void = ptr::null_mut();
        // The driver refuses zero bytes, but an empty buffer has an address too.
        // SAFETY: a context is current; Drop frees the pointer.
        let status = unsafe { sys::cuMemHostAlloc(&mut pointer, bytes.max(1), sys::CU_MEMHOSTALLOC_DEVICEMAP) };
        check("cuMemHostAlloc", status)?;
        let mut buffer = HostBuffer { pointer: pointer.cast(), address: 0, bytes, context: context.clone() };
        // SAFETY: the pointer came from cuMemHostAlloc with a mapping, and the address outlives the call.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut buffer.address, pointer, 0) };
        check("cuMemHostGetDevicePointer_v2", status)?;
        Ok(buffer)
    }

    /// Its first byte, as kernels see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Replaces its content, after what the stream already holds.
    pub fn write(&mut self, stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
        self.check_length(bytes.len())?;
        stream.synchronise()?;
        // SAFETY: both sides have that many bytes, and nothing that runs writes to ours.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer, bytes.len()) };
        Ok(())
    }

    /// Reads its content, after what the stream already holds.
    pub fn read(&self, stream: &Stream, bytes: &mut [u8]) -> Result<(), Error> {
        self.check_length(bytes.len())?;
        stream.synchronise()?;
        self.copy_to(bytes);
        Ok(())
    }

    /// Its first word, as a kernel left it that has ended the context.
    pub fn last_word(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.bytes >= bytes.len()).then(|| {
            self.copy_to(&mut bytes);
            u64::from_le_bytes(bytes)
        })
    }

    /// No more bytes than it has.
    fn copy_to(&self, bytes: &mut [u8]) {
        // SAFETY: both sides have that many bytes; the memory is the process's own, whatever became of the context, and
        // no kernel runs that writes to it.
        unsafe { ptr::copy_nonoverlapping(self.pointer, bytes.as_mut_ptr(), bytes.len()) };
    }

    fn check_length(&self, found: usize) -> Result<(), Error> {
        let words = |bytes: usize| format!("{bytes} bytes");
        match found == self.bytes {
            true => Ok(()),
            false => Err(Error::Memory { expected: words(self.bytes), found: words(found) }),
        }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the pointer came from cuMemHostAlloc and is freed once; a lost context refuses, and keeps it.
            let _ = unsafe { sys::cuMemFreeHost(self.pointer.cast()) };
        }
    }
}
