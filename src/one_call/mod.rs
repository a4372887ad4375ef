//! Attention in one call.
//!
//! [`attention`] takes Q, K and V, either all on the host or all on one GPU, and gives O with the log-sum-exp of every
//! query. [`attention_into`] writes into memory of the caller's, and costs the host a few microseconds: it allocates
//! nothing, and a kernel that was met before is only launched.
//!
//! Without a GPU the cores of the machine answer ([`Backend`]), and [`attention_into_host`] is the call that allocates nothing.
//!
//! The kernel follows from the problem and the GPU alone ([`attention::planner`]); it is compiled once, and kept on disk for
//! the next process ([`cuda::Cache`]; `VERIFLASH_CACHE` names the folder, or is `off`).

mod arguments;
mod backend;
mod call;
mod cpu;
mod custom;
mod device;
mod error;
mod extras;
mod host;
mod kernels;
mod options;
mod parameters;
mod tensor;
#[cfg(test)]
mod tests;
mod workspace;

pub use backend::Backend;
pub use custom::Custom;
pub use device::{DeviceOutput, attention_into};
pub use error::Error;
pub use extras::Array;
pub use host::{HostOutput, attention_into_host};
pub use kernels::{cache_counts, cache_note};
pub use options::Options;
pub use tensor::{DeviceTensor, DeviceTensorMut, HostTensor, Number};
pub use workspace::workspace_bytes;

/// What attention is computed of: [`HostTensor`] or [`DeviceTensor`].
pub trait Tensor: Sized {
    /// O and the log-sum-exp, where the inputs are.
    type Output;

    #[doc(hidden)]
    fn attention(q: &Self, k: &Self, v: &Self, options: &Options) -> Result<Self::Output, Error>;
}

/// O = softmax(scale · Q Kᵀ) V, and the log-sum-exp of every query. On an error nothing is launched, but for
/// [`Options::debug`].
///
/// ```
/// use half::f16;
/// use veriflash::{HostTensor, Options, attention};
///
/// let zeros = vec![f16::ZERO; 2 * 5 * 16];
/// let ones = vec![f16::ONE; 2 * 5 * 16];
/// let (queries, values) = (HostTensor::new(&zeros, [1, 2, 5, 16]), HostTensor::new(&ones, [1, 2, 5, 16]));
/// let output = attention(&queries, &queries, &values, &Options::new().causal())?;
/// assert_eq!(output.o, ones);
/// assert!((output.lse[4] - 5f32.ln()).abs() < 1e-6, "the last query sees five keys, each with score 0");
/// # Ok::<(), veriflash::Error>(())
/// ```
pub fn attention<T: Tensor>(q: &T, k: &T, v: &T, options: &Options) -> Result<T::Output, Error> {
    T::attention(q, k, v, options)
}
