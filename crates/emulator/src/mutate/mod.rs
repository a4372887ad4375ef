//! Mutation: one synchronisation is taken away or weakened, and the checks must notice.
//!
//! [`operators`] says what can be done to an instruction, [`rewrite`] makes the changed kernel, [`trial`] runs it beside
//! the kernel itself, [`witnesses`] asks several launches, [`results`] tells whether what it leaves in memory is the
//! kernel's, [`path`] proves that a silent mutant had nothing to order, unless [`blind`] says that nobody looked.
//!
//! ```
//! use emulator::mutate::{Trial, Verdict, mutants};
//! use launch::Kernel;
//!
//! let kernel = Kernel::parse("exchange.ptx", r#"
//! //@ [buffer.out]
//! //@ type = "u32"
//! //@ shape = [64]
//! //@ [[launch]]
//! //@ grid = [1, 1, 1]
//! //@ block = [64, 1, 1]
//! //@ args = [{ buffer = "out" }]
//! .version 7.0
//! .target sm_80
//! .address_size 64
//! .visible .entry exchange(.param .u64 out)
//! {
//!     .reg .b64 %address, %offset;
//!     .reg .b32 %thread, %mine, %other;
//!     .shared .b32 all[64];
//!     mov.u32 %thread, %tid.x;
//!     mov.u32 %mine, all;
//!     mad.lo.u32 %mine, %thread, 4, %mine;
//!     st.shared.u32 [%mine], %thread;
//!     bar.sync 0;
//!     xor.b32 %other, %mine, 128;
//!     ld.shared.u32 %other, [%other];
//!     ld.param.u64 %address, [out];
//!     mul.wide.u32 %offset, %thread, 4;
//!     add.u64 %address, %address, %offset;
//!     st.global.u32 [%address], %other;
//!     ret;
//! }
//! "#)?;
//! let trial = Trial::new(&kernel, 2, 0)?;
//! let all = mutants(&kernel, trial.resolved());
//! assert_eq!(all[0].text, "bar.sync 0");
//! assert!(matches!(trial.judge(&all[0]), Verdict::Caught(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blind;
mod operators;
mod path;
mod results;
mod rewrite;
mod trial;
mod verdict;
mod witnesses;

pub use operators::Operator;
pub use rewrite::{Mutant, mutants};
pub use trial::Trial;
pub use verdict::{Catch, Cause, Proof, Verdict};
pub use witnesses::{assigned, judge};
