//! Who computes tensors on the host.

use super::call::Call;
use super::{Error, Options};
use cuda::Context;
use std::sync::OnceLock;

/// What computes. Tensors on a GPU are computed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A GPU where there is one that computes the problem, plain cores elsewhere, also where the driver does not start.
    /// [`HostOutput`](super::HostOutput) says which it was. An option that only kernels have (a config, math, a stream, debug
    /// kernels) asks for a GPU.
    #[default]
    Auto,
    /// The kernel that the planner picks, on the GPU of the stream or of the thread's context.
    Gpu,
    /// The cores of this machine: any head dimension, f32 besides the types that kernels have, and the threads of the current
    /// rayon pool. With AVX-512's products of bf16, numbers below 2^-126 count as 0 where there are more than four queries.
    Cpu,
    /// The kernel that an H200 would run, on the emulator with all its checks: slow, and needs no GPU.
    Emulator,
}

/// Set once a driver or a GPU was looked for in vain: looking for a library again and again costs more than small problems do.
static NO_GPU: OnceLock<()> = OnceLock::new();
/// Set once there was a context on a GPU: what fails from then on is no missing GPU, and is said.
static GPU_MET: OnceLock<()> = OnceLock::new();

impl Backend {
    /// The one that computes: never [`Backend::Auto`].
    pub(super) fn choose(options: &Options, call: &Call) -> Result<Backend, Error> {
        if options.backend != Backend::Auto {
            return Ok(options.backend);
        }
        if options.of_kernels().is_some() {
            return Ok(Backend::Gpu);
        }
        let has_kernel = attention::kernels::check_kind(call.problem.dtype(), call.problem.dims()).is_ok();
        if !has_kernel || call.check_grid().is_err() {
            return Ok(Backend::Cpu);
        }
        if NO_GPU.get().is_some() {
            return Ok(Backend::Cpu);
        }
        match Context::here() {
            Ok(_) => {
                GPU_MET.get_or_init(|| ());
                Ok(Backend::Gpu)
            }
            Err(error) if GPU_MET.get().is_none() && is_unusable(&error) => {
                NO_GPU.get_or_init(|| ());
                Ok(Backend::Cpu)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether no GPU can be used, or none that computes; as opposed to one whose memory is full, or on which a kernel failed.
fn is_unusable(error: &cuda::Error) -> bool {
    use cuda::Error::{Driver, NoDriver, NoGpu, OldDriver, OldGpu};
    matches!(error, NoDriver | OldDriver { .. } | NoGpu | OldGpu { .. } | Driver { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_that_do_not_start_leave_it_to_plain_cores() {
        let driver =
            |call| cuda::Error::Driver { call, name: "CUDA_ERROR_UNKNOWN".into(), text: "unknown error".into() };
        let unusable =
            [cuda::Error::NoDriver, cuda::Error::OldDriver { function: "cuLibraryLoadData" }, driver("cuInit")];
        for error in unusable {
            assert!(is_unusable(&error), "{error}");
        }
        let lost = cuda::Error::ContextLost { place: "launch".into(), name: String::new(), text: String::new() };
        for error in [lost, cuda::Error::OutOfMemory { call: "cuMemAlloc_v2", bytes: None }] {
            assert!(!is_unusable(&error), "{error}");
        }
    }
}
