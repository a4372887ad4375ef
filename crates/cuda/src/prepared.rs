//! An entry that is ready to be launched again and again, at the cost of one driver call.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUfunction, CUlaunchConfig};

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::module::Module;
use crate::stream::Stream;

/// Places for parameters on the stack of a launch.
const MOST_PARAMETERS: usize = 64;

/// A loaded entry with all that stays the same between launches.
#[derive(Debug)]
pub struct Prepared {
    handle: CUfunction,
    block: [u32; 3],
    shared: u32,
    /// Where each parameter begins, and how many bytes all have.
    offsets: Vec<usize>,
    parameter_bytes: usize,
    context: Arc<Context>,
    /// Holds the code.
    _module: Module,
}

// SAFETY: a function handle may be used from any thread; nothing of ours in it changes.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

impl Prepared {
    /// Readies an entry of the module: `entry` is its declaration, whose parameters say how a launch passes them.
    pub fn new(module: Module, entry: &ptx::Function, block: [u32; 3], shared: u32) -> Result<Prepared, Error> {
        let found = entry.parameters.len();
        if found > MOST_PARAMETERS {
            return Err(Error::Parameters { entry: entry.name.clone(), found, limit: MOST_PARAMETERS });
        }
        let function = module.function(&entry.name)?;
        if shared > 0 {
            function.allow_shared(shared)?;
        }
        let (handle, context) = (function.handle, function.context().clone());
        Ok(Prepared {
            handle,
            block,
            shared,
            offsets: (0..found).map(|index| entry.parameter_offset(index) as usize).collect(),
            parameter_bytes: entry.parameter_offset(found) as usize,
            context,
            _module: module,
        })
    }

    /// Puts one launch into the stream. `parameters` is the block of them, each at its place. Allocates nothing.
    pub fn launch(&self, stream: &Stream, [x, y, z]: [u32; 3], parameters: &[u8]) -> Result<(), Error> {
        if parameters.len() != self.parameter_bytes {
            let words = |bytes: usize| format!("{bytes} bytes of parameters");
            return Err(Error::Memory { expected: words(self.parameter_bytes), found: words(parameters.len()) });
        }
        self.context.bind()?;
        let mut places = [ptr::null_mut::<c_void>(); MOST_PARAMETERS];
        for (place, at) in places.iter_mut().zip(&self.offsets) {
            *place = parameters[*at..].as_ptr().cast_mut().cast();
        }
        let [width, height, depth] = self.block;
        let config = CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: width,
            blockDimY: height,
            blockDimZ: depth,
            sharedMemBytes: self.shared,
            hStream: stream.handle,
            attrs: ptr::null_mut(),
            numAttrs: 0,
        };
        // SAFETY: there is a place for each parameter, with as many bytes behind it as the entry declares; the driver only
        // reads them, and copies them before it returns. What the kernel does with them is its own matter, as for
        // `Function::launch`.
        let status = unsafe { sys::cuLaunchKernelEx(&config, self.handle, places.as_mut_ptr(), ptr::null_mut()) };
        check("cuLaunchKernelEx", status)
    }
}
