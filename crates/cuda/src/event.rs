//! A mark in a stream that remembers when it was passed.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use crate::sys::{self, CUevent, CUevent_flags};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::stream::Stream;

/// A mark in a stream.
#[derive(Debug)]
pub struct Event {
    pub(crate) handle: CUevent,
    context: Arc<Context>,
}

// SAFETY: an event handle may be used from any thread; ownership keeps it to one at a time.
unsafe impl Send for Event {}

impl Event {
    /// Marks the present end of the stream.
    pub fn record(stream: &Stream) -> Result<Event, Error> {
        let _entered = stream.context.enter()?;
        let mut handle = ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DEFAULT as u32;
        // SAFETY: a context is current; Drop destroys the handle.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut handle, flags) })?;
        let event = Event { handle, context: stream.context.clone() };
        // SAFETY: event and stream belong to the same context.
        check("cuEventRecord", unsafe { sys::cuEventRecord(event.handle, stream.handle) })?;
        Ok(event)
    }

    /// The `CUevent` as a number, which is a `cudaEvent_t` too, for other libraries; good as long as this lives.
    pub fn raw(&self) -> usize {
        self.handle.expose_provenance()
    }

    /// Waits until it is passed.
    pub fn synchronise(&self) -> Result<(), Error> {
        let _entered = self.context.enter()?;
        // SAFETY: the handle lives as long as `self` and was recorded.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.handle) })
    }

    /// The time between an earlier mark and this one; both must have been passed. Steps of about half a microsecond.
    pub fn since(&self, earlier: &Event) -> Result<Duration, Error> {
        let _entered = self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both handles are alive and were recorded.
        let status = unsafe { sys::cuEventElapsedTime(&mut milliseconds, earlier.handle, self.handle) };
        check("cuEventElapsedTime", status)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: nobody else holds the handle.
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle) };
        }
    }
}
