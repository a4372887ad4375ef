//! Kernels on a real GPU, through the driver that is loaded at run time.
//!
//! [`Cuda`] is the [`launch::Backend`]; the types below it ([`Context`], [`Module`], [`Stream`], [`Event`],
//! [`Graph`], [`DeviceBuffer`], [`Prepared`]) are a small layer over the CUDA driver API, and a [`Cache`] keeps what the
//! driver compiled, also on disk. A machine without a driver or without a GPU
//! gets an [`Error`] that says so:
//!
//! ```
//! match cuda::Cuda::open(0) {
//!     Ok(gpu) => println!("{}", gpu.device()),
//!     Err(error @ (cuda::Error::NoDriver | cuda::Error::NoGpu)) => println!("{error}"),
//!     Err(error) => return Err(error),
//! }
//! # Ok::<(), cuda::Error>(())
//! ```

#![allow(unsafe_code, reason = "driver calls are foreign functions; each block says why it is sound")]

mod backend;
mod buffer;
mod cache;
mod context;
mod cubin;
mod driver;
mod error;
mod event;
mod graph;
mod host_buffer;
mod link;
mod module;
mod pointer;
mod prepared;
mod storage;
mod stream;
mod tensor_map;

pub use backend::{Cuda, Loaded};
pub use buffer::DeviceBuffer;
pub use cache::{Cache, Counts, Key};
pub use context::{Context, Device};
pub use error::Error;
pub use event::Event;
pub use graph::Graph;
pub use module::{Function, Module, Resources};
pub use pointer::{DeviceSlice, DeviceSliceMut};
pub use prepared::Prepared;
pub use stream::Stream;
