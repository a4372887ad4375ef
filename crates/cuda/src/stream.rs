//! A queue of work on a GPU.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUstream};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;

/// Work in order; it does not wait for the default stream, nor the default stream for it.
#[derive(Debug)]
pub struct Stream {
    pub(crate) handle: CUstream,
    pub(crate) context: Arc<Context>,
}

// SAFETY: a stream handle may be used from any thread; `&mut` and ownership keep it to one at a time.
unsafe impl Send for Stream {}

impl Stream {
    /// A new queue.
    pub fn new(context: &Arc<Context>) -> Result<Stream, Error> {
        context.bind()?;
        let mut handle = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current; Drop destroys the handle.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut handle, flags) })?;
        Ok(Stream { handle, context: context.clone() })
    }

    /// Waits until everything in it is done, and says whether it went well.
    pub fn synchronise(&self) -> Result<(), Error> {
        self.context.bind()?;
        // SAFETY: the handle lives as long as `self`.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nobody else holds the handle; the driver finishes pending work first.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}
