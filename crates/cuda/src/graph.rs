//! Launches recorded once and repeated as a whole, for a fraction of what each costs the host.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::stream::Stream;

/// A recorded sequence of launches, ready to run. Addresses and numbers are those of the recording.
#[derive(Debug)]
pub struct Graph {
    handle: CUgraphExec,
    context: Arc<Context>,
}

// SAFETY: a graph handle may be used from any thread; ownership keeps it to one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// Records what `work` puts into the stream, which runs nothing of it meanwhile. The stream must not be the default
    /// one; `work` must not wait for it.
    pub fn capture<E: From<Error>>(stream: &Stream, work: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        stream.context.bind()?;
        // Relaxed: a kernel that is met for the first time may be loaded meanwhile.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is alive.
        check("cuStreamBeginCapture_v2", unsafe { sys::cuStreamBeginCapture_v2(stream.handle, mode) })?;
        let done = work();
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive and records; `graph` outlives the call.
        let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream.handle, &mut graph) });
        // Why `work` failed says more than that the recording did.
        let ready = done.and_then(|()| Ok(ended.and_then(|()| instantiate(graph))?));
        if !graph.is_null() {
            // SAFETY: the handle came from the driver and is used no more; what was made from it stays.
            let _ = unsafe { sys::cuGraphDestroy(graph) };
        }
        Ok(Graph { handle: ready?, context: stream.context.clone() })
    }

    /// Puts all of it into a stream.
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        self.context.bind()?;
        // SAFETY: both handles are alive.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.handle, stream.handle) })
    }
}

fn instantiate(graph: CUgraph) -> Result<CUgraphExec, Error> {
    let mut handle = ptr::null_mut();
    // SAFETY: the graph is complete and `handle` outlives the call.
    let status = unsafe { sys::cuGraphInstantiateWithFlags(&mut handle, graph, 0) };
    check("cuGraphInstantiateWithFlags", status)?;
    Ok(handle)
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nobody else holds the handle; the driver finishes what runs first.
            let _ = unsafe { sys::cuGraphExecDestroy(self.handle) };
        }
    }
}
