//! The driver's functions, found in its library by name.
//!
//! The types are cudarc's; the calls are not. Its functions give the status as an enum, and a driver newer than the
//! enum may answer with a number that is not in it, which is undefined behaviour; its loader takes `libcuda.so` before
//! `libcuda.so.1`, which on a machine with a toolkit may be a stub that runs nothing; and it panics where there is
//! neither.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// Types only: a function that has no row below does not compile.
pub use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUevent_flags,
    CUfunction, CUfunction_attribute, CUgraph, CUgraphExec, CUgraphNode, CUjit_option, CUjitInputType,
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchAttributeValue_union__bindgen_ty_1,
    CUlaunchConfig, CUlinkState, CUmodule, CUresult, CUstream, CUstream_flags, CUstreamCaptureMode,
    CUstreamCaptureStatus, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle, CUuuid,
};
use libloading::Library;

use crate::error::Error;

/// The driver itself: the name without a number is for linking, and a toolkit's stub has it, too.
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";
#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";

/// What a call answers: a `CUresult`, or a number that came later.
pub type Status = c_int;

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Finds all of them; a call before that panics.
pub fn load() -> Result<(), Error> {
    if FUNCTIONS.get().is_none() {
        let found = Functions::find(LIBRARY)?;
        FUNCTIONS.get_or_init(|| found);
    }
    Ok(())
}

/// One row per function, as cuda.h declares it; the compiler compares it with cudarc's.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        #[allow(non_snake_case, reason = "the driver's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> Status,)*
            _library: Library,
        }

        impl Functions {
            fn find(library: &str) -> Result<Functions, Error> {
                // SAFETY: the driver's initialisers are written to be loaded so; every CUDA program does it.
                let library = unsafe { Library::new(library) }.map_err(|_| Error::NoDriver)?;
                Ok(Functions {
                    // SAFETY: the symbol has that type, and is used only while the library is loaded, which is for
                    // ever.
                    $($name: *unsafe { library.get(stringify!($name).as_bytes()) }
                        .map_err(|_| Error::OldDriver { function: stringify!($name) })?,)*
                    _library: library,
                })
            }
        }

        $(
            const _: unsafe fn($($type),*) -> CUresult = cudarc::driver::sys::$name;

            /// # Safety
            /// As the driver's manual says.
            #[allow(non_snake_case, clippy::too_many_arguments, reason = "the driver's name and arguments")]
            pub unsafe fn $name($($argument: $type),*) -> Status {
                // SAFETY: the caller keeps to the manual.
                unsafe { (loaded().$name)($($argument),*) }
            }
        )*
    };
}

fn loaded() -> &'static Functions {
    FUNCTIONS.get().expect("no handle of the driver's exists before `load`")
}

functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, which: CUdevice_attribute, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int);
    cuCtxCreate_v2(context: *mut CUcontext, flags: c_uint, device: CUdevice);
    cuCtxDestroy_v2(context: CUcontext);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxGetId(context: CUcontext, id: *mut c_ulonglong);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxSynchronize();
    cuLinkCreate_v2(count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void, state: *mut CUlinkState);
    cuLinkAddData_v2(
        state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char, count: c_uint,
        options: *mut CUjit_option, values: *mut *mut c_void
    );
    cuLinkComplete(state: CUlinkState, cubin: *mut *mut c_void, size: *mut usize);
    cuLinkDestroy(state: CUlinkState);
    cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void, count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void
    );
    cuModuleUnload(module: CUmodule);
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuModuleGetGlobal_v2(address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char);
    cuFuncGetAttribute(value: *mut c_int, which: CUfunction_attribute, function: CUfunction);
    cuFuncSetAttribute(function: CUfunction, which: CUfunction_attribute, value: c_int);
    cuLaunchKernelEx(
        config: *const CUlaunchConfig, function: CUfunction, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    cuTensorMapEncodeTiled(
        map: *mut CUtensorMap, kind: CUtensorMapDataType, rank: u32, address: *mut c_void, dims: *const u64,
        strides: *const u64, box_dims: *const u32, element_strides: *const u32, interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle, promotion: CUtensorMapL2promotion, fill: CUtensorMapFloatOOBfill
    );
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, pointer: *mut c_void, flags: c_uint);
    cuMemFreeHost(pointer: *mut c_void);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemsetD8Async(to: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream);
    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamGetId(stream: CUstream, id: *mut c_ulonglong);
    cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    cuEventSynchronize(event: CUevent);
    cuGraphInstantiateWithFlags(ready: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphLaunch(ready: CUgraphExec, stream: CUstream);
    cuGraphDestroy(graph: CUgraph);
    cuGraphExecDestroy(ready: CUgraphExec);
}

/// The driver's name and description of a status; cudarc's declarations want its enum, so these are looked up apart.
pub fn describe(status: Status) -> Option<(String, String)> {
    let library = &FUNCTIONS.get()?._library;
    let text = |function: &str| {
        type Describe = unsafe extern "C" fn(Status, *mut *const c_char) -> Status;
        // SAFETY: cuda.h declares both functions so, with an enum of that size for the status.
        let function: libloading::Symbol<Describe> = unsafe { library.get(function.as_bytes()) }.ok()?;
        let mut text = std::ptr::null();
        // SAFETY: `text` outlives the call; the driver knows every number, and leaves null for those that it does not.
        let found = unsafe { function(status, &mut text) } == 0 && !text.is_null();
        // SAFETY: the driver's texts are constants that end with a zero byte.
        found.then(|| unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    Some((text("cuGetErrorName")?, text("cuGetErrorString")?))
}

/// The size of a parameter of the function, by its number; none if it has no such parameter, or if the driver cannot
/// say.
// CUDA driver API, cuFuncGetParamInfo: since CUDA 12.4, so a driver that is new enough for all else may lack it.
pub fn parameter_bytes(function: CUfunction, index: usize) -> Option<usize> {
    type Info = unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> Status;
    // SAFETY: cuda.h declares the function so.
    let info: libloading::Symbol<Info> = unsafe { FUNCTIONS.get()?._library.get(b"cuFuncGetParamInfo") }.ok()?;
    let (mut offset, mut bytes) = (0, 0);
    // SAFETY: the handle is a loaded function's, and both places outlive the call.
    let status = unsafe { info(function, index, &mut offset, &mut bytes) };
    (status == CUresult::CUDA_SUCCESS as Status).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_driver_is_a_sentence() {
        let error = Functions::find("libno-such-driver.so.1").err().unwrap();
        assert_eq!(
            error.to_string(),
            "no NVIDIA driver: libcuda.so.1 was not found; install the driver, or compute without a GPU"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn library_without_the_functions_is_refused_before_a_call() {
        let error = Functions::find("libc.so.6").err().unwrap();
        assert!(matches!(error, Error::OldDriver { function: "cuInit" }), "{error}");
    }
}
