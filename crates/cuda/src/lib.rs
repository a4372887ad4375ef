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
//!
//! # What is safe here
//!
//! No function of this crate reads or writes host memory that it was not given, and no handle outlives what it stands
//! for. What a kernel does is another matter: launching one is a safe call, as starting another program is, though its
//! code and the addresses among its parameters may be anything. No check of ours can bound it (the driver itself knows
//! only how many parameters there are, and of what size, which is checked), so an `unsafe` there would have no
//! condition that a caller could look up and keep. Whoever runs a kernel on a GPU trusts it; for those that are not
//! trusted there is the emulator.

#![allow(unsafe_code, reason = "driver calls are foreign functions; each block says why it is sound")]

mod assembler;
mod backend;
mod buffer;
mod cache;
mod compiler_log;
mod context;
mod counters;
mod cubin;
mod driver;
mod error;
mod event;
mod graph;
mod host_buffer;
mod kept;
mod link;
mod module;
mod monitor;
mod neighbour;
mod nvrtc;
mod pointer;
mod prepared;
mod storage;
mod stream;
mod sys;
mod tensor_map;

pub use assembler::Assembler;
pub use backend::{Cuda, Loaded};
pub use buffer::DeviceBuffer;
pub use cache::{Cache, Counts, Key};
pub use context::{Context, Device};
pub use counters::Counters;
pub use error::Error;
pub use event::Event;
pub use graph::Graph;
pub use module::{Function, Module, Resources};
pub use monitor::{Condition, Monitor};
pub use neighbour::Neighbour;
pub use nvrtc::{Compiled, Nvrtc, NvrtcError};
pub use pointer::{DeviceSlice, DeviceSliceMut};
pub use prepared::Prepared;
pub use stream::Stream;
pub use tensor_map::{TensorMaps, Tiled};
