//! What a launch costs depends on whether another context was opened since.

use std::ptr;

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::sys;

impl Context {
    /// Opens a second context on the GPU and closes it. Behind that, launches in every context that was open cost less, for
    /// as long as it lives: on an H200 with driver 580.159 a kernel that does nothing takes 993 cycles of a graph, and 1,348
    /// before. Any process that opens a context on the same GPU has this effect on all others, which makes it a matter of luck
    /// which of two processes looks faster: those who compare bring all of them here first. Takes 0.2 s; no manual says why.
    pub fn settle(&self) -> Result<(), Error> {
        let _entered = self.enter()?;
        let mut other = ptr::null_mut();
        // SAFETY: the number came from the driver, and `other` outlives the call, which makes the new context current.
        check("cuCtxCreate_v2", unsafe { sys::cuCtxCreate_v2(&mut other, 0, self.number) })?;
        // SAFETY: nothing was made in it; it is current, and ours is afterwards, as before.
        check("cuCtxDestroy_v2", unsafe { sys::cuCtxDestroy_v2(other) })
    }
}
