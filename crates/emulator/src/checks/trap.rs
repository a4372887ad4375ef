//! # trap
//!
//! A thread executed `trap`: the kernel says of itself that something is wrong. Hardware stops the kernel with
//! "unspecified launch failure", and the context is lost.
//!
//! ```ptx
//! setp.ge.u32 %p, %index, %length;
//! @%p trap;                          // an assertion that failed
//! ```
//!
//! Fix: find out why the guard of the `trap` holds; the finding names the first threads for which it did.
//! PTX ISA, "trap".

use super::Check;
use crate::exec::At;
use crate::finding::Report;
use crate::machine::{Block, describe_lanes};

pub const CHECK: Check = Check::error("trap", include_str!("trap.rs"));

pub fn report(block: &mut Block, at: At) {
    let message = format!("`trap` was executed by {} of warp {}", describe_lanes(at.mask), at.warp);
    let second = block.actor(at, "the kernel stops here");
    let help = Some("find out why the guard of this `trap` holds".into());
    block.findings.add(Report { check: &CHECK, message, first: None, second, missing: None, help, count: 1 });
}
