//! Code on a GPU: PTX that the driver compiles to machine code, or machine code.

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use crate::sys::{
    self, CUfunction, CUfunction_attribute, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig, CUmodule, CUresult, CUstream, Status,
};
use launch::resolved::Launch;

use crate::assembler::unlinkable;
use crate::cache::{Cache, Cubin, Key};
use crate::compiler_log::{LOG_BYTES, log_text, options, with_log};
use crate::context::Context;
use crate::cubin;
use crate::driver::check;
use crate::error::Error;
use crate::kept::Kept;
use crate::link;
use crate::stream::Stream;

/// Loaded code, unloaded on drop, after the launches of it that are under way; later, if a [`Graph`](crate::Graph) that
/// lives may have recorded one.
#[derive(Debug)]
pub struct Module {
    code: Kept<Code>,
    cubin: Option<Cubin>,
    log: String,
}

#[derive(Debug)]
struct Code {
    handle: CUmodule,
    context: Arc<Context>,
}

// SAFETY: a module handle may be used from any thread; nothing of ours in it changes.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Module {
    /// Compiles and loads PTX; `file` is its name in errors. Line tables are kept, for profilers.
    pub fn from_ptx(context: &Arc<Context>, file: &str, text: &str) -> Result<Module, Error> {
        Module::from_ptx_cached(context, &Cache::in_process(), file, text)
    }

    /// The same, through a cache: what was compiled before is loaded as machine code. One way for all: the cubin of the
    /// driver's linker is what is kept, loaded, hashed and shown. Only a text that the linker refuses or gets wrong, and
    /// that the loader takes, is loaded as it is; [`Module::log`] says so.
    pub fn from_ptx_cached(context: &Arc<Context>, cache: &Cache, file: &str, text: &str) -> Result<Module, Error> {
        if let Some(why) = unlinkable(text) {
            return Module::without_cubin(context, file, text, why);
        }
        let (key, mut log) = (Key::new(text, context.device()), String::new());
        let compile = || -> Result<Vec<u8>, Error> {
            let (cubin, said) = link::compile(context, file, text)?;
            log = said;
            Ok(cubin)
        };
        let mut loaded = cache.get_or_compile(&key, compile).and_then(|cubin| {
            let loaded = Module::of_cubin(context, file, &cubin);
            if !is_refused(&loaded) {
                return loaded;
            }
            let fresh = cache.replace(&key, &cubin, || link::compile(context, file, text).map(|(cubin, _)| cubin))?;
            Module::of_cubin(context, file, &fresh)
        });
        if is_refused(&loaded) {
            let why = loaded.err().map(|error| error.to_string()).unwrap_or_default();
            return Module::without_cubin(context, file, text, &why);
        }
        loaded.iter_mut().for_each(|module| module.log = std::mem::take(&mut log));
        loaded
    }

    /// What the loader makes of the text itself; nobody sees the machine code. If it refuses the text too, it says why.
    fn without_cubin(context: &Arc<Context>, file: &str, text: &str, why: &str) -> Result<Module, Error> {
        let image = link::zero_ended(file, text)?;
        let (code, log) = Module::load(context, file, image.as_bytes_with_nul())?;
        let log =
            format!("loaded as PTX, without machine code to keep or to show, for the linker failed: {why}\n{log}");
        Ok(Module { code, cubin: None, log })
    }

    /// Loads machine code, as ptxas writes it; `file` is its name in errors.
    pub fn from_cubin(context: &Arc<Context>, file: &str, bytes: &[u8]) -> Result<Module, Error> {
        Module::of_cubin(context, file, &bytes.into())
    }

    fn of_cubin(context: &Arc<Context>, file: &str, cubin: &Cubin) -> Result<Module, Error> {
        if let Some(why) = cubin::fault(cubin) {
            return Err(Error::NotCubin { file: file.into(), why });
        }
        let (code, log) = Module::load(context, file, cubin)?;
        Ok(Module { code, cubin: Some(cubin.clone()), log })
    }

    /// `image` ends with a zero byte or is machine code whose headers stay inside it.
    fn load(context: &Arc<Context>, file: &str, image: &[u8]) -> Result<(Kept<Code>, String), Error> {
        let _entered = context.enter()?;
        let (mut info, mut errors) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        let (mut names, mut values) = options(&mut info, &mut errors);
        let mut handle = ptr::null_mut();
        // SAFETY: the image ends where the driver stops reading; names and values are equally long; the log buffers
        // have the stated sizes and live until after the call.
        let status = unsafe {
            let (names, values, count) = (names.as_mut_ptr(), values.as_mut_ptr(), names.len() as u32);
            sys::cuModuleLoadDataEx(&mut handle, image.as_ptr().cast(), count, names, values)
        };
        check("cuModuleLoadDataEx", status).map_err(|error| with_log(error, file, log_text(&errors)))?;
        Ok((Kept::new(Code { handle, context: context.clone() }, context.id()), log_text(&info)))
    }

    /// The machine code; none if the driver's linker refused the text that its loader then took.
    pub fn cubin(&self) -> Option<&[u8]> {
        self.cubin.as_deref()
    }

    /// SHA-256 of the machine code, in hexadecimal.
    pub fn hash(&self) -> Option<String> {
        self.cubin().map(launch::hash::hex)
    }

    /// What the compiler said about code that it accepted: registers, spills, warnings. Empty for code from a cache.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// With another line in front of what the compiler said.
    pub(crate) fn with_note(self, note: &str) -> Module {
        let log = format!("{note}\n{}", self.log);
        Module { log, ..self }
    }

    /// The entry of that name.
    pub fn function(&self, entry: &str) -> Result<Function<'_>, Error> {
        let missing = || Error::NoEntry { entry: entry.into() };
        let name = CString::new(entry).map_err(|_| missing())?;
        let _entered = self.code.context.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the module is loaded, and the name ends with a zero byte.
        let status = unsafe { sys::cuModuleGetFunction(&mut handle, self.code.handle, name.as_ptr()) };
        if status == CUresult::CUDA_ERROR_NOT_FOUND as Status {
            return Err(missing());
        }
        check("cuModuleGetFunction", status)?;
        Ok(Function { handle, context: self.code.context.clone(), entry: entry.into(), module: PhantomData })
    }
}

impl Module {
    /// Where a variable of the module lies, and its bytes; good as long as the module lives.
    pub fn variable(&self, name: &str) -> Result<(u64, usize), Error> {
        let missing = || Error::NoVariable { variable: name.into() };
        let c_name = CString::new(name).map_err(|_| missing())?;
        let _entered = self.code.context.enter()?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, and the name ends with a zero byte.
        let status = unsafe { sys::cuModuleGetGlobal_v2(&mut address, &mut bytes, self.code.handle, c_name.as_ptr()) };
        if status == CUresult::CUDA_ERROR_NOT_FOUND as Status {
            return Err(missing());
        }
        check("cuModuleGetGlobal_v2", status)?;
        Ok((address, bytes))
    }
}

fn is_refused(loaded: &Result<Module, Error>) -> bool {
    matches!(loaded, Err(Error::Driver { .. } | Error::Jit { .. } | Error::NotCubin { .. }))
}

impl Drop for Code {
    fn drop(&mut self) {
        // Launches may be under way. Where waiting fails, the context is lost or another library records in it: to
        // leave the code where it is harms nobody.
        if self.context.synchronise().is_err() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: functions borrow the module, so none is left, and nothing of it runs.
            let _ = unsafe { sys::cuModuleUnload(self.handle) };
        }
    }
}

/// An entry of a loaded module.
#[derive(Debug)]
pub struct Function<'module> {
    pub(crate) handle: CUfunction,
    context: Arc<Context>,
    entry: String,
    module: PhantomData<&'module Module>,
}

/// What an entry costs, as the driver counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// Local memory per thread, in bytes: stack and spilled registers.
    pub local_bytes: u32,
    /// Constant memory, in bytes.
    pub constant_bytes: u32,
    /// The most threads that a block of it can have.
    pub max_threads: u32,
}

impl Function<'_> {
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// What it costs.
    pub fn resources(&self) -> Result<Resources, Error> {
        use CUfunction_attribute::*;
        Ok(Resources {
            registers: self.attribute(CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared_bytes: self.attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local_bytes: self.attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            constant_bytes: self.attribute(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads: self.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    fn attribute(&self, which: CUfunction_attribute) -> Result<u32, Error> {
        let _entered = self.context.enter()?;
        let mut value = 0;
        // SAFETY: the module is loaded as long as `self` borrows it.
        check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&mut value, which, self.handle) })?;
        Ok(value.max(0) as u32)
    }

    /// Allows that much dynamic shared memory: without being asked, the driver stops at 48 KB, static included.
    pub(crate) fn allow_shared(&self, dynamic: u32) -> Result<(), Error> {
        let limit = u64::from(self.context.device().max_shared_bytes);
        let needed = u64::from(self.resources()?.shared_bytes) + u64::from(dynamic);
        if needed > limit {
            return Err(Error::SharedMemory { entry: self.entry.clone(), needed, dynamic: dynamic.into(), limit });
        }
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let _entered = self.context.enter()?;
        // SAFETY: the module is loaded as long as `self` borrows it.
        let status = unsafe { sys::cuFuncSetAttribute(self.handle, which, dynamic as i32) };
        check("cuFuncSetAttribute", status)
    }

    /// Puts a launch of `blocks` blocks of `threads` threads into the stream, for an entry whose parameters are all of 64
    /// bits; those beyond the given ones are zero.
    pub fn start(&self, stream: &Stream, [blocks, threads]: [u32; 2], parameters: &[u64]) -> Result<(), Error> {
        self.context.check_same("stream", stream.context.id())?;
        let mut passed = self.parameter_bytes()?;
        if !passed.is_empty() {
            passed.fill(8);
            passed.resize(passed.len().max(parameters.len()), 8);
            self.check_parameters(&passed)?;
        }
        let mut bytes: Vec<u8> = parameters.iter().flat_map(|value| value.to_le_bytes()).collect();
        // The entry may declare more than is given: there are places for as many as any entry can have.
        bytes.resize(bytes.len() + MOST_PARAMETER_BYTES, 0);
        let offsets: Vec<usize> = (0..MOST_PARAMETER_BYTES).map(|index| 8 * index.min(parameters.len())).collect();
        let (grid, block) = ([blocks, 1, 1], [threads, 1, 1]);
        let launch =
            Launch { entry: None, grid, block, cluster: None, shared: 0, repeat: 1, overlap: false, args: vec![] };
        self.launch(stream, &launch, (&mut bytes, &offsets)).map_err(|error| error.in_launch(&self.entry, grid, block))
    }

    /// The bytes of each parameter; empty if there are none, or the driver is too old to say.
    fn parameter_bytes(&self) -> Result<Vec<usize>, Error> {
        let _entered = self.context.enter()?;
        Ok((0..MOST_PARAMETER_BYTES).map_while(|index| sys::parameter_bytes(self.handle, index)).collect())
    }

    /// Refuses parameters of other sizes than the driver knows of: it would read past the end of them, or pass rubbish.
    pub(crate) fn check_parameters(&self, found: &[usize]) -> Result<(), Error> {
        let expected = self.parameter_bytes()?;
        match expected.is_empty() || expected == found {
            true => Ok(()),
            false => Err(Error::OtherParameters { entry: self.entry.clone(), found: found.into(), expected }),
        }
    }

    /// Puts one launch into the stream; `parameters` is the block that the launch builds for this entry, and `offsets`
    /// say where each parameter begins in it. One by one, for the driver aligns tensor maps only so.
    pub(crate) fn launch(
        &self,
        stream: &Stream,
        launch: &Launch,
        (parameters, offsets): (&mut [u8], &[usize]),
    ) -> Result<(), Error> {
        self.context.check_same("stream", stream.context.id())?;
        let _entered = self.context.enter()?;
        let mut places: Vec<*mut c_void> = offsets.iter().map(|at| parameters[*at..].as_mut_ptr().cast()).collect();
        let mut attributes = attributes(launch);
        let config = configuration(launch, stream.handle, &mut attributes);
        // SAFETY: there is a place for each parameter, with as many bytes behind it as the entry declares, and the driver
        // copies them before it returns; the attributes live until then. No check can bound the kernel itself: where the system lets GPUs reach pageable
        // memory, a wild pointer can hit this process. Whoever runs a kernel on a GPU trusts it; the emulator is for
        // those that are not trusted.
        let status = unsafe { sys::cuLaunchKernelEx(&config, self.handle, places.as_mut_ptr(), ptr::null_mut()) };
        check("cuLaunchKernelEx", status).map_err(|error| self.of_cluster(error, launch))
    }

    /// Allows clusters of that shape, if they are larger than every GPU of sm_90 and newer can hold.
    pub(crate) fn allow_cluster(&self, cluster: Option<[u32; 3]>) -> Result<(), Error> {
        if !self.context.device().has_clusters() || self.cluster_blocks(cluster)? <= PORTABLE_CLUSTER_BLOCKS {
            return Ok(());
        }
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        let _entered = self.context.enter()?;
        // SAFETY: the module is loaded as long as `self` borrows it.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.handle, which, 1) })
    }

    /// Blocks per cluster, as the launch says, or else as the entry requires (`.reqnctapercluster`).
    fn cluster_blocks(&self, cluster: Option<[u32; 3]>) -> Result<u32, Error> {
        use CUfunction_attribute::*;
        if let Some(cluster) = cluster {
            return Ok(cluster.iter().product());
        }
        let sides = [
            self.attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?,
            self.attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?,
            self.attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?,
        ];
        Ok(sides.iter().map(|side| side.max(&1)).product())
    }

    /// Names the cluster where a launch was refused for its size.
    fn of_cluster(&self, error: Error, launch: &Launch) -> Error {
        match (error, launch.cluster) {
            (Error::Driver { name, text, .. }, Some(cluster)) if name == "CUDA_ERROR_INVALID_CLUSTER_SIZE" => {
                Error::Cluster { entry: self.entry.clone(), blocks: cluster.iter().product(), name, text }
            }
            (error, _) => error,
        }
    }
}

/// PTX ISA, "Kernel function parameters": the most that an entry can declare, of at least one byte each.
const MOST_PARAMETER_BYTES: usize = 32_764;

/// CUDA C++ Programming Guide, "Thread block clusters": the size that every GPU with clusters can run.
const PORTABLE_CLUSTER_BLOCKS: u32 = 8;

pub(crate) fn cluster_attribute([x, y, z]: [u32; 3]) -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z } },
    }
}

/// The grid may start before the one before it in the stream is complete.
pub(crate) fn overlap_attribute() -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    }
}

fn attributes(launch: &Launch) -> Vec<CUlaunchAttribute> {
    let overlap = launch.overlap.then(overlap_attribute);
    launch.cluster.map(cluster_attribute).into_iter().chain(overlap).collect()
}

fn configuration(launch: &Launch, stream: CUstream, attributes: &mut [CUlaunchAttribute]) -> CUlaunchConfig {
    let ([x, y, z], [width, height, depth]) = (launch.grid, launch.block);
    CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: width,
        blockDimY: height,
        blockDimZ: depth,
        sharedMemBytes: launch.shared,
        hStream: stream,
        numAttrs: attributes.len() as u32,
        attrs: if attributes.is_empty() { ptr::null_mut() } else { attributes.as_mut_ptr() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_says_its_cluster_and_its_overlap() {
        let launch = |cluster| Launch {
            entry: None,
            grid: [4, 5, 6],
            block: [32, 2, 1],
            cluster,
            shared: 1024,
            repeat: 1,
            overlap: false,
            args: vec![],
        };
        let plain = configuration(&launch(None), ptr::null_mut(), &mut attributes(&launch(None)));
        assert_eq!([plain.gridDimX, plain.gridDimY, plain.gridDimZ, plain.sharedMemBytes], [4, 5, 6, 1024]);
        assert_eq!([plain.blockDimX, plain.blockDimY, plain.blockDimZ], [32, 2, 1]);
        assert!(plain.attrs.is_null() && plain.numAttrs == 0);
        let overlapping = Launch { overlap: true, ..launch(Some([2, 1, 3])) };
        let mut both = attributes(&overlapping);
        let place = both.as_mut_ptr();
        let clustered = configuration(&overlapping, ptr::null_mut(), &mut both);
        assert_eq!((clustered.attrs, clustered.numAttrs), (place, 2));
        // SAFETY: the attribute was made with the cluster's dimensions.
        let sides = unsafe { both[0].value.clusterDim };
        assert_eq!((both[0].id as u32, [sides.x, sides.y, sides.z]), (4, [2, 1, 3]));
        assert_eq!(both[1].id as u32, 6);
    }
}
