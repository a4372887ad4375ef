//! The driver library: looked for before the first call, because a binding whose library or symbol is missing panics.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUresult};

use crate::error::Error;

const LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// Every function of the driver that this crate calls.
const FUNCTIONS: [&str; 48] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorString",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetUuid_v2",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetId",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuLinkCreate_v2",
    "cuLinkAddData_v2",
    "cuLinkComplete",
    "cuLinkDestroy",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuLaunchKernelEx",
    "cuTensorMapEncodeTiled",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventElapsedTime",
    "cuEventSynchronize",
    "cuStreamWaitEvent",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];

/// Finds and initialises the driver; every other call comes after it.
pub fn initialise() -> Result<(), Error> {
    probe(LIBRARY)?;
    // SAFETY: the library and the symbol are there; cuInit may be called again and from any thread.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_ERROR_NO_DEVICE => Err(Error::NoGpu),
        status => check("cuInit", status),
    }
}

fn probe(library: &str) -> Result<(), Error> {
    // SAFETY: the driver's initialisers are written to be loaded so; that is how every CUDA program does it.
    let library = unsafe { libloading::Library::new(library) }.map_err(|_| Error::NoDriver)?;
    // SAFETY: the symbol is only looked for, never called through this type.
    let has = |function: &str| unsafe { library.get::<*const ()>(function.as_bytes()) }.is_ok();
    match FUNCTIONS.into_iter().find(|function| !has(function)) {
        Some(function) => Err(Error::OldDriver { function }),
        None => Ok(()),
    }
}

/// The status of a driver call as a result.
pub fn check(call: &'static str, status: CUresult) -> Result<(), Error> {
    if status == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let error = DriverError(status);
    let text = error.error_string().map_or("no description".into(), |text| text.to_string_lossy());
    Err(failure(call, status, &text))
}

fn failure(call: &'static str, status: CUresult, text: &str) -> Error {
    let (name, text) = (format!("{status:?}"), text.to_string());
    match status {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory { call },
        _ if ends_context(status) => Error::ContextLost { place: call.into(), name, text },
        _ => Error::Driver { call, name, text },
    }
}

/// CUDA driver API, CUresult: after these "the process must be terminated and relaunched", or the context destroyed.
fn ends_context(status: CUresult) -> bool {
    use CUresult::*;
    matches!(
        status,
        CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_CONTAINED
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUDA_ERROR_EXTERNAL_DEVICE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_driver_is_a_sentence() {
        let error = probe("libno-such-driver.so.1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no NVIDIA driver: libcuda.so.1 was not found; install the driver, or use `--backend emulator`"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn library_without_the_functions_is_refused_before_a_call() {
        let error = probe("libc.so.6").unwrap_err();
        assert!(matches!(error, Error::OldDriver { function: "cuInit" }), "{error}");
    }

    #[test]
    fn every_called_function_is_probed() {
        let sources = [
            include_str!("driver.rs"),
            include_str!("context.rs"),
            include_str!("module.rs"),
            include_str!("buffer.rs"),
            include_str!("host_buffer.rs"),
            include_str!("stream.rs"),
            include_str!("event.rs"),
            include_str!("tensor_map.rs"),
            include_str!("link.rs"),
            include_str!("graph.rs"),
            include_str!("prepared.rs"),
        ];
        let calls = sources.iter().flat_map(|source| source.split(concat!("sys", "::cu")).skip(1));
        let names: Vec<_> = calls.map(|rest| format!("cu{}", rest.split('(').next().unwrap_or_default())).collect();
        assert!(names.len() >= FUNCTIONS.len() - 1, "{names:?}");
        let missing: Vec<_> = names.iter().filter(|name| !FUNCTIONS.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "called but not probed: {missing:?}");
    }

    #[test]
    fn only_sticky_errors_end_the_context() {
        let lost = failure("cuStreamSynchronize", CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access");
        let text = lost.to_string();
        assert!(text.contains("context is lost") && text.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{text}");
        let harmless = failure("cuMemFree_v2", CUresult::CUDA_ERROR_INVALID_VALUE, "invalid argument");
        assert_eq!(harmless.to_string(), "cuMemFree_v2 failed: CUDA_ERROR_INVALID_VALUE: invalid argument");
    }

    #[test]
    fn a_full_gpu_is_an_error_of_its_own() {
        let full = failure("cuMemAlloc_v2", CUresult::CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        assert!(matches!(full, Error::OutOfMemory { call: "cuMemAlloc_v2" }), "{full}");
        assert_eq!(
            full.to_string(),
            "the GPU is out of memory (cuMemAlloc_v2): free buffers, take a smaller problem, or end other programs that \
             `nvidia-smi` lists"
        );
    }
}
