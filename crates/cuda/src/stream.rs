//! A queue of work on a GPU.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use crate::sys::{self, CUstream, CUstreamCaptureStatus};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::event::Event;

/// Work in order. One of ours does not wait for the default stream, nor the default stream for it.
#[derive(Debug)]
pub struct Stream {
    pub(crate) handle: CUstream,
    pub(crate) context: Arc<Context>,
    borrowed: bool,
}

// SAFETY: a stream handle may be used from any thread; the driver locks what it changes.
unsafe impl Send for Stream {}
// SAFETY: as above; nothing of ours in it changes.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new queue.
    pub fn new(context: &Arc<Context>) -> Result<Stream, Error> {
        let _entered = context.enter()?;
        let mut handle = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current; Drop destroys the handle.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut handle, flags) })?;
        Ok(Stream { handle, context: context.clone(), borrowed: false })
    }

    /// The context's default stream, which waits for every stream that does not opt out, and they for it.
    pub fn default_of(context: &Arc<Context>) -> Stream {
        Stream { handle: ptr::null_mut(), context: context.clone(), borrowed: true }
    }

    /// A stream of the caller's own (a `CUstream` or `cudaStream_t` as a number), which stays the caller's.
    ///
    /// # Safety
    /// It belongs to the context, and lives at least as long as what is made here.
    pub unsafe fn borrow(context: &Arc<Context>, handle: usize) -> Stream {
        Stream { handle: ptr::with_exposed_provenance_mut(handle), context: context.clone(), borrowed: true }
    }

    /// The `CUstream` as a number, which is a `cudaStream_t` too, for other libraries; good as long as this lives.
    pub fn raw(&self) -> usize {
        self.handle.expose_provenance()
    }

    /// The context that it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Differs from that of every other stream in the process, earlier ones too; the default streams of threads have one each.
    pub fn id(&self) -> Result<u64, Error> {
        let _entered = self.context.enter()?;
        let mut id = 0;
        // SAFETY: the handle lives as long as `self`, and `id` outlives the call.
        check("cuStreamGetId", unsafe { sys::cuStreamGetId(self.handle, &mut id) })?;
        Ok(id)
    }

    /// Whether what is put into it is recorded for a graph, and does not run now.
    pub fn is_recording(&self) -> Result<bool, Error> {
        let _entered = self.context.enter()?;
        let mut status: c_int = 0;
        // SAFETY: the handle lives as long as `self`. The driver writes an enum, which is an int; whatever number it is, it is not read
        // as cudarc's enum.
        check("cuStreamIsCapturing", unsafe { sys::cuStreamIsCapturing(self.handle, (&raw mut status).cast()) })?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE as c_int)
    }

    /// What is put into it from now on waits until the mark in another stream is passed.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: both handles are alive.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.handle, event.handle, 0) })
    }

    /// Waits until everything in it is done, and says whether it went well.
    pub fn synchronise(&self) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the handle lives as long as `self`.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.borrowed {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: nobody else holds the handle; the driver finishes pending work first.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}
