//! A GPU on a CPU that says whether a kernel is right or lucky.
//!
//! ```
//! use emulator::Emulator;
//! use launch::backend::{Backend, Options};
//! use launch::{Kernel, Memory};
//!
//! let kernel = Kernel::parse("store.ptx", r#"
//! //@ [buffer.out]
//! //@ type = "u32"
//! //@ shape = [32]
//! //@ init = "poison"
//! //@ [[launch]]
//! //@ grid = [1, 1, 1]
//! //@ block = [32, 1, 1]
//! //@ args = [{ buffer = "out" }]
//! .version 7.0
//! .target sm_80
//! .address_size 64
//! .visible .entry store(.param .u64 out)
//! {
//!     .reg .b64 %address;
//!     .reg .b32 %lane;
//!     ld.param.u64 %address, [out];
//!     mov.u32 %lane, %laneid;
//!     st.global.u32 [%address], %lane;
//!     ret;
//! }
//! "#)?;
//! let mut loaded = Emulator.load(&kernel)?;
//! let mut memory = Memory::new(loaded.resolved(), 0)?;
//! let run = Emulator.run(&mut loaded, &mut memory, &Options::default())?;
//! assert_eq!(run.findings[0].check, "race-warp"); // 32 lanes store to one address
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod algebra;
pub mod async_engines;
mod audit;
mod backend;
pub mod checks;
mod cost;
mod exec;
mod finding;
mod identity;
mod machine;
mod memory;
pub mod mutate;
pub mod numerics;
mod operand_sets;
pub mod report;
mod sanitize;
mod scheduler;
mod simd;
mod trace;

/// Who is told of every access and every synchronisation.
#[cfg(not(feature = "definition"))]
use happens_before::Detector;
/// It also writes them down, so that the definition can judge the same events.
#[cfg(feature = "definition")]
use happens_before::definition::Recorder as Detector;

pub use audit::PRIVATE;
pub use backend::{Emulator, Error, Loaded, executes, operand_sets};
pub use exec::{Difference, NOT_BIT_EQUAL, knows_special};
pub use machine::Unsupported;
pub use operand_sets::{ENOUGH, OperandSets, Special, needed_sets, special_types};
pub use sanitize::{DEFAULT_SEEDS, Sanitized, sanitize, sanitize_under};
