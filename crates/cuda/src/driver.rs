//! The driver: initialised before the first call, and what its answers mean.

use crate::error::Error;
use crate::sys::{self, CUresult, Status};

/// Finds and initialises the driver; every other call comes after it.
pub fn initialise() -> Result<(), Error> {
    sys::load()?;
    // SAFETY: cuInit may be called again and from any thread.
    match unsafe { sys::cuInit(0) } {
        status if status == CUresult::CUDA_ERROR_NO_DEVICE as Status => Err(Error::NoGpu),
        status => check("cuInit", status).map_err(|error| with_cure(error, status)),
    }
}

/// The status of a driver call as a result.
pub fn check(call: &'static str, status: Status) -> Result<(), Error> {
    if status == CUresult::CUDA_SUCCESS as Status {
        return Ok(());
    }
    let unknown = || (format!("status {status}"), "the driver does not say what that is".into());
    let (name, text) = sys::describe(status).unwrap_or_else(unknown);
    Err(failure(call, status, name, text))
}

fn failure(call: &'static str, status: Status, name: String, text: String) -> Error {
    match status {
        _ if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY as Status => Error::OutOfMemory { call, bytes: None },
        _ if ends_context(status) => Error::ContextLost { place: call.into(), name, text },
        _ => Error::Driver { call, name, text },
    }
}

/// CUDA driver API, CUresult: after these "the process must be terminated and relaunched", or the context destroyed.
fn ends_context(status: Status) -> bool {
    use CUresult::*;
    let ends = [
        CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUDA_ERROR_CONTAINED,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_TENSOR_MEMORY_LEAK,
        CUDA_ERROR_EXTERNAL_DEVICE,
    ];
    ends.into_iter().any(|ends| ends as Status == status)
}

/// Why a driver that is there does not start, and what to do (CUDA driver API, CUresult; CUDA Compatibility).
fn with_cure(error: Error, status: Status) -> Error {
    let Error::Driver { call, name, text } = error else { return error };
    // By number: a stub knows no names.
    let cure = match status {
        34 => "the library is a toolkit's stub, which is for linking: take the `stubs` folder out of LD_LIBRARY_PATH",
        803 => {
            "libcuda and the kernel module are of different versions: restart the machine after an update of the \
             driver, or mount the host's libcuda into the container"
        }
        804 => {
            "the forward-compatibility libcuda supports data-centre GPUs only: take its `compat` folder out of \
             LD_LIBRARY_PATH, or update the driver"
        }
        999 => {
            "check that `nvidia-smi` works, that /dev/nvidia-uvm is there (`modprobe nvidia_uvm`), and that a \
             container was given the GPU"
        }
        _ => return Error::Driver { call, name, text },
    };
    Error::Driver { call, name, text: format!("{text}; {cure}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(call: &'static str, status: CUresult, text: &str) -> Error {
        failure(call, status as Status, format!("{status:?}"), text.into())
    }

    #[test]
    fn only_sticky_errors_end_the_context() {
        let lost = failed("cuStreamSynchronize", CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access");
        let text = lost.to_string();
        assert!(text.contains("context is lost") && text.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{text}");
        let harmless = failed("cuMemFree_v2", CUresult::CUDA_ERROR_INVALID_VALUE, "invalid argument");
        assert_eq!(harmless.to_string(), "cuMemFree_v2 failed: CUDA_ERROR_INVALID_VALUE: invalid argument");
    }

    #[test]
    fn a_full_gpu_is_an_error_of_its_own() {
        let full = failed("cuMemAlloc_v2", CUresult::CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
        assert!(matches!(full, Error::OutOfMemory { call: "cuMemAlloc_v2", bytes: None }), "{full}");
        assert_eq!(
            full.to_string(),
            "the GPU is out of memory (cuMemAlloc_v2): free buffers, take a smaller problem, or end other programs that \
             `nvidia-smi` lists"
        );
    }

    #[test]
    fn a_driver_that_does_not_start_comes_with_a_cure() {
        use CUresult::*;
        for (status, cure) in [
            (CUDA_ERROR_STUB_LIBRARY, "`stubs` folder out of LD_LIBRARY_PATH"),
            (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "restart the machine"),
            (CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "`compat` folder out of LD_LIBRARY_PATH"),
            (CUDA_ERROR_UNKNOWN, "/dev/nvidia-uvm"),
        ] {
            let text = with_cure(failed("cuInit", status, "said the driver"), status as Status).to_string();
            assert!(text.starts_with(&format!("cuInit failed: {status:?}: said the driver; ")), "{text}");
            assert!(text.contains(cure), "{text}");
        }
    }

    #[test]
    fn a_status_that_came_later_has_a_number() {
        let text = check("cuMemFree_v2", 77_777).unwrap_err().to_string();
        assert!(
            text.starts_with("cuMemFree_v2 failed: ") && (text.contains("77777") || text.contains("UNKNOWN")),
            "{text}"
        );
    }
}
