//! Launches recorded once and repeated as a whole, for a fraction of what each costs the host.

use std::ptr;
use std::sync::Arc;

use crate::sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::kept::Holder;
use crate::stream::Stream;

/// A recorded sequence of launches, ready to run. Addresses and numbers are those of the recording.
///
/// The code and the memory that existed when it was recorded stay as long as it lives, though their owners are dropped:
/// it never runs what is gone. (Memory that came by an unsafe call, such as
/// [`DeviceSlice::from_raw`](crate::DeviceSlice::from_raw), is its giver's matter.)
#[derive(Debug)]
pub struct Graph {
    handle: CUgraphExec,
    context: Arc<Context>,
    /// Dropped after the handle is destroyed.
    _holder: Holder,
}

// SAFETY: a graph handle may be used from any thread; ownership keeps it to one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// Records what `work` puts into the stream, which runs nothing of it meanwhile. The stream must not be the default
    /// one; `work` must not wait for it. A recording without a launch is refused: `work` used another stream.
    pub fn capture<E: From<Error>>(stream: &Stream, work: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        let _entered = stream.context.enter()?;
        let holder = Holder::begin(stream.context.id());
        let recording = Recording::begin(stream)?;
        let done = work();
        let recorded = recording.end();
        holder.end();
        done?; // Why `work` failed says more than that the recording did.
        let handle = recorded?.instantiate()?;
        Ok(Graph { handle, context: stream.context.clone(), _holder: holder })
    }

    /// Puts all of it into a stream.
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        self.context.check_same("stream", stream.context.id())?;
        let _entered = self.context.enter()?;
        // SAFETY: both handles are alive, and so is what was recorded.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.handle, stream.handle) })
    }
}

/// A stream that records. It ends on every way out, a panic's too: a stream left recording refuses all other work.
struct Recording<'stream> {
    stream: &'stream Stream,
    ended: bool,
}

impl Recording<'_> {
    fn begin(stream: &Stream) -> Result<Recording<'_>, Error> {
        // Relaxed: a kernel that is met for the first time may be loaded meanwhile.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is alive.
        check("cuStreamBeginCapture_v2", unsafe { sys::cuStreamBeginCapture_v2(stream.handle, mode) })?;
        Ok(Recording { stream, ended: false })
    }

    fn end(mut self) -> Result<Recorded, Error> {
        self.ended = true;
        finish(self.stream)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if !self.ended {
            drop(finish(self.stream));
        }
    }
}

fn finish(stream: &Stream) -> Result<Recorded, Error> {
    let mut graph = ptr::null_mut();
    // SAFETY: the stream is alive and records; `graph` outlives the call.
    let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream.handle, &mut graph) });
    let recorded = Recorded(graph);
    ended.map(|()| recorded)
}

/// What was recorded, not yet ready to run; null if the recording failed.
struct Recorded(CUgraph);

impl Recorded {
    fn instantiate(&self) -> Result<CUgraphExec, Error> {
        let mut nodes = 0;
        // SAFETY: the graph is complete; without a place for nodes the driver only counts them.
        check("cuGraphGetNodes", unsafe { sys::cuGraphGetNodes(self.0, ptr::null_mut(), &mut nodes) })?;
        if nodes == 0 {
            return Err(Error::EmptyGraph);
        }
        let mut handle = ptr::null_mut();
        // SAFETY: the graph is complete and `handle` outlives the call.
        let status = unsafe { sys::cuGraphInstantiateWithFlags(&mut handle, self.0, 0) };
        check("cuGraphInstantiateWithFlags", status)?;
        Ok(handle)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the handle came from the driver and is used no more; what was made from it stays.
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: nobody else holds the handle; the driver finishes what runs first.
            let _ = unsafe { sys::cuGraphExecDestroy(self.handle) };
        }
    }
}
