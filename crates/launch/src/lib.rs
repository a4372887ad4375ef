//! The recipe: a kernel is a PTX module and how to launch it.
//!
//! A [`Recipe`] says which buffers exist, what they hold, and which launches run in which order. It is written as
//! TOML (`kernel.toml`), as `//@ ` lines at the head of a `.ptx`, as `--arg` flags, or built by a generator; all four
//! become the same value. [`Recipe::resolve`] evaluates every expression and checks every size, so that a backend
//! sees plain numbers only.
//!
//! ```
//! use launch::{Limits, Recipe};
//!
//! let recipe = Recipe::parse("kernel.toml", r#"
//!     [let]
//!     n = 1024
//!     [buffer.x]
//!     type = "f32"
//!     shape = ["n"]
//!     init = "ramp"
//!     [[launch]]
//!     grid = ["ceil_div(n, 128)", 1, 1]
//!     block = [128, 1, 1]
//!     args = [{ buffer = "x" }, { u32 = "n" }]
//! "#)?;
//! let resolved = recipe.resolve(&Limits::default())?;
//! assert_eq!(resolved.launches[0].grid, [8, 1, 1]);
//! assert_eq!(resolved.buffers[0].bytes, 4096);
//! # Ok::<(), launch::Error>(())
//! ```

pub mod argument;
pub mod assertion;
pub mod backend;
pub mod buffer;
mod contents;
pub mod contract;
pub mod cure;
pub mod element;
mod error;
pub mod expectation;
mod expr;
mod files;
pub mod finding;
pub mod hash;
pub mod header;
mod kernel;
mod memory;
pub mod module_text;
mod npy;
mod operands;
pub mod packed;
mod policy;
mod print;
pub mod product;
mod random;
mod read;
pub mod recipe;
mod resolve;
pub mod resolved;
mod source;
pub mod tensor_map;
mod toml_table;
mod words;

pub use assertion::Assertions;
pub use backend::Backend;
pub use contents::{Contents, PAGE_BYTES};
pub use contract::AttentionContract;
pub use element::Element;
pub use error::{Error, Fault, Place};
pub use expr::{Expr, Names};
pub use finding::Finding;
pub use kernel::Kernel;
pub use memory::{BufferMemory, Memory};
pub use operands::{OperandSite, Operands, Orphans};
pub use policy::Policy;
pub use recipe::{Argument, Buffer, Launch, Recipe};
pub use resolve::Limits;
pub use resolved::Resolved;
pub use source::{Source, Spot};
pub use tensor_map::TensorMap;
