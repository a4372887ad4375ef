//! The language kernels are written in: Rust functions that print PTX.
//!
//! | layer | module | is |
//! |---|---|---|
//! | 1 | [`instructions`] | one function per PTX form, spelled like the manual |
//! | 2 | [`values`], [`control`] | registers with operators, fragments, tiles, tensors; loops and branches |
//! | 3 | [`pipeline`], [`Warps`], [`roles`] | rings that hide stages, wait counts and barriers; who fills them |
//!
//! A kernel is a closure given to [`build`]. Whatever it calls appends instructions to the kernel under construction
//! on this thread; nothing else is hidden. `for` and `if` of Rust run while generating, `for_each` and `when` run on
//! the GPU. Constants are folded without any kernel, so what is written for kernels answers on the host, too.
//!
//! ```
//! use tile::prelude::*;
//!
//! let options = Options { target: ptx::Target::SM_80, threads: 128, cluster: 1, blocks_per_processor: None, checks: false };
//! let built = tile::build("double", options, || {
//!     let numbers = Slice::<f32>::parameter("numbers");
//!     let index = block_index(0) * 128 + thread_index();
//!     when(index.lt(parameter::<u32>("length")), || numbers.store(index, numbers.load(index) * 2.0));
//! })?;
//! assert!(ptx::print(&built.module).contains("mul.rn.f32"));
//! # Ok::<(), tile::BuildError>(())
//! ```

mod assertion;
mod builder;
pub mod control;
mod error;
pub mod instructions;
mod kernel;
pub mod pipeline;
mod roles;
pub mod values;
mod warps;

pub use assertion::{Assertion, check};
pub use builder::{Options, Reach};
pub use error::{BuildError, Note, Place};
pub use kernel::{Built, build};
pub use roles::{Consumers, Meeting, Producer, Turns, Warpgroup, consumers, producer, roles};
pub use warps::Warps;

/// What a kernel file imports.
pub mod prelude {
    pub use crate::assertion::check;
    pub use crate::control::{
        Rolled, choose, either, for_each, leave_when, predicated, repeat_while, select, when, when_seldom,
    };
    pub use crate::instructions::{
        barrier, block_index, block_of_cluster, grid_size, lane_index, thread_index, warp_index,
    };
    pub use crate::pipeline::{
        Arrived, Begun, CopyRing, Full, Kept, Loads, Relay, Tiles, begin, cluster_ring, lanes_have_read, noted_ring,
        tile_ring,
    };
    pub use crate::roles::{Meeting, Turns, Warpgroup, consumers, producer, roles};
    pub use crate::values::{
        Accumulator, BF16, Cell, Coordinate, Element, F16, F32, Fragment, HandedRows, I32, InFlight, Matrix, Packed,
        Pred, RowOperand, RowVars, Rows, Share, SharedTile, SharedVector, Slice, Tensor, TensorMap, TileAt, Transposed,
        U32, U64, Value, Var, View, WarpRows, dot, mma, mma_add, parameter, weigh_add,
    };
    pub use crate::{BuildError, Options, Reach, Warps};
}
