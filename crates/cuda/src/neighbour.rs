//! Another context on the same GPU, which works there when it is told to.

use std::ptr;

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::sys::{self, CUcontext, CUdeviceptr};

/// What it writes.
const BYTES: usize = 4096;

/// For some 50 ms after another context has worked on a GPU, launches cost less there: on an H200 with driver 580.159 a kernel that does nothing
/// takes 993 cycles of a graph, and 1,348 before. Any process with a context on the same GPU has this effect on all others, which makes it
/// a matter of luck which of two processes looks faster: who compares lets a neighbour work right before each sample. No manual says why.
#[derive(Debug)]
pub struct Neighbour {
    handle: CUcontext,
    memory: CUdeviceptr,
}

// SAFETY: the driver API may be called from any thread, and handles belong to the process, not to a thread.
unsafe impl Send for Neighbour {}
// SAFETY: as above; nothing of ours in it changes.
unsafe impl Sync for Neighbour {}

impl Neighbour {
    /// Beside a context. Takes 0.2 s.
    pub fn new(context: &Context) -> Result<Neighbour, Error> {
        let _entered = context.enter()?;
        let (mut handle, mut memory) = (ptr::null_mut(), 0);
        // SAFETY: the number came from the driver, and `handle` outlives the call, which makes the new context current.
        check("cuCtxCreate_v2", unsafe { sys::cuCtxCreate_v2(&mut handle, 0, context.number) })?;
        // SAFETY: the new context is current; `memory` outlives the call. It goes when its context goes.
        let allocated = check("cuMemAlloc_v2", unsafe { sys::cuMemAlloc_v2(&mut memory, BYTES) });
        leave();
        let neighbour = Neighbour { handle, memory };
        allocated.map(|()| neighbour)
    }

    /// Returns when its work is done.
    pub fn work(&self) -> Result<(), Error> {
        // SAFETY: the handle lives as long as `self`.
        check("cuCtxPushCurrent_v2", unsafe { sys::cuCtxPushCurrent_v2(self.handle) })?;
        // SAFETY: the context is current, and the memory is its own and that large.
        let written = check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(self.memory, 0, BYTES, ptr::null_mut()) })
            // SAFETY: a context is current.
            .and_then(|()| check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() }));
        leave();
        written
    }
}

/// Takes the neighbour's context off the thread's stack.
fn leave() {
    let mut its = ptr::null_mut();
    // SAFETY: `its` outlives the call; the context on top is the one that was put there.
    let _ = unsafe { sys::cuCtxPopCurrent_v2(&mut its) };
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handle, and what was told to work is done.
        let _ = unsafe { sys::cuCtxDestroy_v2(self.handle) };
    }
}
