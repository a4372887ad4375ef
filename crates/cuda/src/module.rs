//! Code on a GPU: PTX that the driver compiles, or machine code.

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute, CUjit_option, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUmodule, CUstream,
};
use launch::resolved::Launch;

use crate::cache::{Cache, Key};
use crate::context::Context;
use crate::cubin;
use crate::driver::check;
use crate::error::Error;
use crate::link;
use crate::stream::Stream;

/// Room for what the compiler says; it cuts off what is longer.
pub(crate) const LOG_BYTES: usize = 64 << 10;

/// Loaded code.
#[derive(Debug)]
pub struct Module {
    handle: CUmodule,
    context: Arc<Context>,
    log: String,
}

// SAFETY: a module handle may be used from any thread; nothing of ours in it changes.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Compiles and loads PTX; `file` is its name in errors. Line tables are kept, for profilers.
    pub fn from_ptx(context: &Arc<Context>, file: &str, text: &str) -> Result<Module, Error> {
        let refuse = |_| Error::Jit {
            file: file.into(),
            name: "not compiled".into(),
            log: "the text contains a zero byte: remove it".into(),
        };
        let image = CString::new(text).map_err(refuse)?;
        Module::load(context, file, image.as_bytes_with_nul())
    }

    /// The same, through a cache: what was compiled before is loaded as machine code.
    pub fn from_ptx_cached(context: &Arc<Context>, cache: &Cache, file: &str, text: &str) -> Result<Module, Error> {
        let key = Key::new(text, context.device());
        let cubin = cache.get_or_compile(&key, || link::compile(context, file, text))?;
        match Module::from_cubin(context, file, &cubin) {
            Err(Error::Driver { .. } | Error::Jit { .. } | Error::NotCubin { .. }) => {
                cache.refuse();
                Module::from_ptx(context, file, text)
            }
            loaded => loaded,
        }
    }

    /// Loads machine code, as ptxas writes it; `file` is its name in errors.
    pub fn from_cubin(context: &Arc<Context>, file: &str, bytes: &[u8]) -> Result<Module, Error> {
        match cubin::fault(bytes) {
            Some(why) => Err(Error::NotCubin { file: file.into(), why }),
            None => Module::load(context, file, bytes),
        }
    }

    /// `image` ends with a zero byte or is machine code whose headers stay inside it.
    fn load(context: &Arc<Context>, file: &str, image: &[u8]) -> Result<Module, Error> {
        context.bind()?;
        let (mut info, mut errors) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        let (mut names, mut values) = options(&mut info, &mut errors);
        let mut handle = ptr::null_mut();
        // SAFETY: the image ends where the driver stops reading; names and values are equally long; the log buffers
        // have the stated sizes and live until after the call.
        let status = unsafe {
            let (names, values, count) = (names.as_mut_ptr(), values.as_mut_ptr(), names.len() as u32);
            sys::cuModuleLoadDataEx(&mut handle, image.as_ptr().cast(), count, names, values)
        };
        match check("cuModuleLoadDataEx", status) {
            Ok(()) => Ok(Module { handle, context: context.clone(), log: log_text(&info) }),
            Err(error) => Err(with_log(error, file, log_text(&errors))),
        }
    }

    /// What the compiler said about code that it accepted: registers, spills, warnings.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The entry of that name.
    pub fn function(&self, entry: &str) -> Result<Function<'_>, Error> {
        let missing = || Error::NoEntry { entry: entry.into() };
        let name = CString::new(entry).map_err(|_| missing())?;
        self.context.bind()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the module is loaded, and the name ends with a zero byte.
        let status = unsafe { sys::cuModuleGetFunction(&mut handle, self.handle, name.as_ptr()) };
        if status == sys::CUresult::CUDA_ERROR_NOT_FOUND {
            return Err(missing());
        }
        check("cuModuleGetFunction", status)?;
        Ok(Function { handle, context: self.context.clone(), entry: entry.into(), module: PhantomData })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: functions borrow the module, so none is left.
            let _ = unsafe { sys::cuModuleUnload(self.handle) };
        }
    }
}

pub(crate) type Values = Vec<*mut c_void>;

/// CUDA driver API, cuModuleLoadDataEx: a value that fits a pointer is passed as one.
pub(crate) fn options(info: &mut [u8], errors: &mut [u8]) -> (Vec<CUjit_option>, Values) {
    let number = |value: usize| ptr::without_provenance_mut::<c_void>(value);
    let pairs = [
        (CUjit_option::CU_JIT_INFO_LOG_BUFFER, info.as_mut_ptr().cast()),
        (CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, number(info.len())),
        (CUjit_option::CU_JIT_ERROR_LOG_BUFFER, errors.as_mut_ptr().cast()),
        (CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(errors.len())),
        (CUjit_option::CU_JIT_GENERATE_LINE_INFO, number(1)),
        (CUjit_option::CU_JIT_LOG_VERBOSE, number(1)),
    ];
    pairs.into_iter().unzip()
}

pub(crate) fn log_text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim().to_string()
}

pub(crate) fn with_log(error: Error, file: &str, log: String) -> Error {
    match error {
        Error::Driver { name, .. } if !log.is_empty() => Error::Jit { file: file.into(), name, log },
        other => other,
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
        self.context.bind()?;
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
        // SAFETY: the module is loaded as long as `self` borrows it.
        let status = unsafe { sys::cuFuncSetAttribute(self.handle, which, dynamic as i32) };
        check("cuFuncSetAttribute", status)
    }

    /// Puts a launch of `blocks` blocks of `threads` threads into the stream, for an entry whose parameters are all of 64
    /// bits; those beyond the given ones are zero.
    pub fn start(&self, stream: &Stream, [blocks, threads]: [u32; 2], parameters: &[u64]) -> Result<(), Error> {
        let mut bytes: Vec<u8> = parameters.iter().flat_map(|value| value.to_le_bytes()).collect();
        // The entry may declare more than is given: there are places for as many as any entry can have.
        bytes.resize(bytes.len() + MOST_PARAMETER_BYTES, 0);
        let offsets: Vec<usize> = (0..MOST_PARAMETER_BYTES).map(|index| 8 * index.min(parameters.len())).collect();
        let (grid, block) = ([blocks, 1, 1], [threads, 1, 1]);
        let launch =
            Launch { entry: None, grid, block, cluster: None, shared: 0, repeat: 1, overlap: false, args: vec![] };
        self.launch(stream, &launch, (&mut bytes, &offsets)).map_err(|error| error.in_launch(&self.entry, &launch))
    }

    /// Puts one launch into the stream; `parameters` is the block that the launch builds for this entry, and `offsets`
    /// say where each parameter begins in it. One by one, for the driver aligns tensor maps only so.
    pub(crate) fn launch(
        &self,
        stream: &Stream,
        launch: &Launch,
        (parameters, offsets): (&mut [u8], &[usize]),
    ) -> Result<(), Error> {
        self.context.bind()?;
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

    /// Allows the launch's clusters, if they are larger than every GPU of sm_90 and newer can hold.
    pub(crate) fn allow_cluster(&self, launch: &Launch) -> Result<(), Error> {
        if !self.context.device().has_clusters() || self.cluster_blocks(launch)? <= PORTABLE_CLUSTER_BLOCKS {
            return Ok(());
        }
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        // SAFETY: the module is loaded as long as `self` borrows it.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.handle, which, 1) })
    }

    /// Blocks per cluster, as the launch says, or else as the entry requires (`.reqnctapercluster`).
    fn cluster_blocks(&self, launch: &Launch) -> Result<u32, Error> {
        use CUfunction_attribute::*;
        if let Some(cluster) = launch.cluster {
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

fn cluster_attribute([x, y, z]: [u32; 3]) -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z } },
    }
}

/// The grid may start before the one before it in the stream is complete.
fn overlap_attribute() -> CUlaunchAttribute {
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
    fn refused_code_carries_the_log() {
        let refused =
            || Error::Driver { call: "cuModuleLoadDataEx", name: "CUDA_ERROR_INVALID_PTX".into(), text: "bad".into() };
        let log = log_text(b"ptxas application ptx input, line 7; error\n\0\0");
        let error = with_log(refused(), "add.ptx", log).to_string();
        assert_eq!(
            error,
            "the driver refuses add.ptx (CUDA_ERROR_INVALID_PTX):\nptxas application ptx input, line 7; error"
        );
        assert!(matches!(with_log(refused(), "add.ptx", log_text(&[0; 8])), Error::Driver { .. }));
    }

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
