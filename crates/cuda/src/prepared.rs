//! An entry that is ready to be launched again and again, at the cost of one driver call.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use crate::sys::{self, CUfunction, CUlaunchConfig};
use launch::Assertions;

use crate::context::Context;
use crate::driver::check;
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::module::{Module, cluster_attribute, overlap_attribute};
use crate::stream::Stream;

/// Places for parameters on the stack of a launch.
const MOST_PARAMETERS: usize = 64;

/// A loaded entry with all that stays the same between launches.
#[derive(Debug)]
pub struct Prepared {
    handle: CUfunction,
    entry: String,
    block: [u32; 3],
    shared: u32,
    /// Where each parameter begins, and how many bytes all have.
    offsets: Vec<usize>,
    parameter_bytes: usize,
    cluster: Option<[u32; 3]>,
    overlap: bool,
    context: Arc<Context>,
    /// Holds the code.
    module: Arc<Module>,
}

// SAFETY: a function handle may be used from any thread; nothing of ours in it changes.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

impl Prepared {
    /// Readies an entry of the module, which may have others: `entry` is its declaration, whose parameters say how a launch
    /// passes them.
    pub fn new(
        module: impl Into<Arc<Module>>,
        entry: &ptx::Function,
        block: [u32; 3],
        shared: u32,
    ) -> Result<Prepared, Error> {
        let module = module.into();
        let found = entry.parameters.len();
        if found > MOST_PARAMETERS {
            return Err(Error::Parameters { entry: entry.name.clone(), found, limit: MOST_PARAMETERS });
        }
        let function = module.function(&entry.name)?;
        let sizes: Vec<usize> = entry.parameters.iter().map(|parameter| parameter.bytes() as usize).collect();
        function.check_parameters(&sizes)?;
        if shared > 0 {
            function.allow_shared(shared)?;
        }
        let (handle, context) = (function.handle, function.context().clone());
        Ok(Prepared {
            handle,
            entry: entry.name.clone(),
            block,
            shared,
            offsets: (0..found).map(|index| entry.parameter_offset(index) as usize).collect(),
            parameter_bytes: entry.parameter_offset(found) as usize,
            context,
            cluster: None,
            overlap: false,
            module,
        })
    }

    /// The same, with blocks in clusters of that shape.
    pub fn with_cluster(self, cluster: [u32; 3]) -> Result<Prepared, Error> {
        if !self.context.device().has_clusters() {
            return Err(Error::Unsupported("clusters"));
        }
        self.module.function(&self.entry)?.allow_cluster(Some(cluster))?;
        Ok(Prepared { cluster: Some(cluster), ..self })
    }

    /// The same, with launches that may begin before the one before them in the stream is complete: the kernel itself
    /// waits for it (PTX ISA, griddepcontrol).
    pub fn with_overlap(self) -> Prepared {
        Prepared { overlap: true, ..self }
    }

    /// Puts one launch of a debug kernel into the stream and waits for it. A failed assertion ends the context, and the error
    /// names it. The kernel's first parameter points to its report: whatever `parameters` has there, it is the address of one
    /// that survives the context.
    pub fn launch_asserting(
        &self,
        stream: &Stream,
        grid: [u32; 3],
        parameters: &mut [u8],
        assertions: &Assertions,
    ) -> Result<(), Error> {
        let mut report = HostBuffer::new(&self.context, size_of::<u64>())?;
        report.write(stream, &[0; size_of::<u64>()])?;
        if let Some(first) = parameters.first_chunk_mut() {
            *first = report.address().to_le_bytes();
        }
        self.launch(stream, grid, parameters).and_then(|()| stream.synchronise()).map_err(|error| {
            let failure = report.last_word().and_then(|word| assertions.failure(word, grid));
            error.in_launch(&self.entry, grid, self.block).due_to(failure)
        })
    }

    /// Puts one launch into the stream. `parameters` is the block of them, each at its place. Allocates nothing.
    pub fn launch(&self, stream: &Stream, [x, y, z]: [u32; 3], parameters: &[u8]) -> Result<(), Error> {
        if parameters.len() != self.parameter_bytes {
            let words = |bytes: usize| format!("{bytes} bytes of parameters");
            return Err(Error::Memory { expected: words(self.parameter_bytes), found: words(parameters.len()) });
        }
        self.context.check_same("stream", stream.context.id())?;
        let _entered = self.context.enter()?;
        let mut places = [ptr::null_mut::<c_void>(); MOST_PARAMETERS];
        for (place, at) in places.iter_mut().zip(&self.offsets) {
            *place = parameters[*at..].as_ptr().cast_mut().cast();
        }
        let mut attributes = [overlap_attribute(); 2];
        let mut count = usize::from(self.overlap);
        if let Some(cluster) = self.cluster {
            attributes[count] = cluster_attribute(cluster);
            count += 1;
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
            attrs: if count == 0 { ptr::null_mut() } else { attributes.as_mut_ptr() },
            numAttrs: count as u32,
        };
        // SAFETY: there is a place for each parameter, with as many bytes behind it as the entry declares; the driver only
        // reads them, and copies them and the attributes before it returns. What the kernel does with them is its own
        // matter, as for `Function::launch`.
        let status = unsafe { sys::cuLaunchKernelEx(&config, self.handle, places.as_mut_ptr(), ptr::null_mut()) };
        check("cuLaunchKernelEx", status)
    }
}
