//! Who computes tensors on the host.

use super::call::Call;
use super::{Error, Options};
use cuda::Context;
use std::sync::OnceLock;

/// What computes. Tensors on a GPU are computed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A GPU where there is one that computes the problem, plain cores elsewhere. [`HostOutput`](super::HostOutput) says which it
    /// was. An option that only a GPU has (a config, a stream, debug kernels) asks for a GPU.
    #[default]
    Auto,
    /// The kernel that the planner picks, on the GPU of the stream or of the thread's context.
    Gpu,
    /// The cores of this machine: any head dimension, f32 besides the types that kernels have, and the threads of the current
    /// rayon pool.
    Cpu,
    /// The kernel that an H200 would run, on the emulator with all its checks: slow, and needs no GPU.
    Emulator,
}

/// Set once a driver or a GPU was looked for in vain: looking for a library again and again costs more than small problems do.
static NO_GPU: OnceLock<()> = OnceLock::new();

impl Backend {
    /// The one that computes: never [`Backend::Auto`].
    pub(super) fn choose(options: &Options, call: &Call) -> Result<Backend, Error> {
        if options.backend != Backend::Auto {
            return Ok(options.backend);
        }
        if options.needs_a_gpu() {
            return Ok(Backend::Gpu);
        }
        if attention::kernels::check_kind(call.problem.dtype(), call.problem.dims()).is_err() {
            return Ok(Backend::Cpu);
        }
        if NO_GPU.get().is_some() {
            return Ok(Backend::Cpu);
        }
        match Context::here() {
            Ok(_) => Ok(Backend::Gpu),
            Err(cuda::Error::NoDriver | cuda::Error::NoGpu | cuda::Error::OldGpu { .. }) => {
                NO_GPU.get_or_init(|| ());
                Ok(Backend::Cpu)
            }
            Err(error) => Err(error.into()),
        }
    }
}
