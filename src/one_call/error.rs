//! Why attention was not computed. Every sentence names the argument, what was found, and what was expected.

use super::Backend;
use attention::configs::Config;

/// What is wrong; nothing was launched, but for debug kernels ([`Options::debug`](super::Options::debug)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Sizes do not go together, or are none that a kernel computes.
    #[error("`{argument}` has {found} {dimension}: expected {expected}")]
    Shape { argument: &'static str, dimension: &'static str, found: u64, expected: String },
    /// Tensors of different types.
    #[error("`{argument}` is {found}: expected {expected}, as `q` is")]
    DType { argument: &'static str, found: String, expected: String },
    /// Dimensions in memory in different orders.
    #[error("`{argument}` is {found}: expected {expected}, {reason}")]
    Layout { argument: &'static str, found: String, expected: String, reason: &'static str },
    /// Memory that is shorter than what the shape and the strides reach, or a slice that is longer than its shape.
    #[error("`{argument}` has {found} {unit}: expected {expected} for its shape")]
    Length { argument: &'static str, unit: &'static str, found: u64, expected: u128 },
    /// An array of numbers that is longer or shorter than the shapes of Q, K and V say.
    #[error("`{argument}` has {found} {unit}: expected {expected}, {reason}")]
    Count { argument: &'static str, unit: &'static str, found: u64, expected: u64, reason: &'static str },
    /// A number on the host of which no softmax comes out.
    #[error("`{argument}` has {found} at {index}: expected {expected}")]
    Content { argument: &'static str, found: f32, index: usize, expected: &'static str },
    /// Packed sequences that end before or behind the last row.
    #[error("`{argument}` ends at {found}: expected {expected}, the rows of `{tensor}`")]
    Ends { argument: &'static str, found: u32, expected: u32, tensor: &'static str },
    /// Options that exclude or need each other.
    #[error("`{argument}` {found}: expected {expected}")]
    Combination { argument: &'static str, found: &'static str, expected: &'static str },
    /// An array that is not where Q, K and V are.
    #[error("`{argument}` is {found}: expected {expected}, where `q` is")]
    Place { argument: &'static str, found: &'static str, expected: &'static str },
    /// Copies move 16 bytes at a time, and numbers have 4.
    #[error("`{argument}` begins at {address:#x}: expected a multiple of {multiple}")]
    Alignment { argument: &'static str, address: u64, multiple: u64 },
    /// Strides that kernels cannot follow, or with which elements of an output share their place.
    #[error("`{argument}` has a stride of {stride} elements between {dimension}: expected {expected}")]
    Strides { argument: &'static str, dimension: &'static str, stride: u64, expected: String },
    /// Outputs would destroy inputs or each other.
    #[error("`{argument}` overlaps `{other}`: expected memory of its own")]
    Overlap { argument: &'static str, other: &'static str },
    /// Memory of another GPU than the one that computes.
    #[error("`{argument}` lies on GPU {found}: expected GPU {expected}, where the stream is")]
    Device { argument: &'static str, found: u32, expected: u32 },
    /// A configuration that is not in the table.
    #[error("there is no config {id}: expected one of {}", Config::ids())]
    Config { id: u32 },
    /// Plain cores and the emulator read host memory.
    #[error("`Backend::{backend:?}` computes nothing on a GPU: pass host tensors, or leave it out")]
    HostBackend { backend: Backend },
    /// A mask of the user's own contradicts itself.
    #[error("the mask {found}: expected the same of blocks of queries as of single ones")]
    Promise { found: String },
    /// What the emulator says about the kernel.
    #[error("the emulator does not vouch for the result: {0}")]
    Emulator(String),
    /// A problem that cannot be computed.
    #[error(transparent)]
    Problem(#[from] attention::Error),
    /// No GPU to compute on.
    #[error(
        "no GPU computes this ({why}): `Backend::Emulator` runs kernels without one; or ask for `Backend::Cpu`, which \
         takes host tensors, and no config, math, stream and debug"
    )]
    NoGpu { why: cuda::Error },
    /// The driver failed.
    #[error(transparent)]
    Cuda(cuda::Error),
}

impl From<cuda::Error> for Error {
    fn from(why: cuda::Error) -> Error {
        match why {
            cuda::Error::NoDriver | cuda::Error::NoGpu | cuda::Error::OldGpu { .. } => Error::NoGpu { why },
            other => Error::Cuda(other),
        }
    }
}
