//! # trap
//!
//! A thread executed `trap`, or an assertion failed: the kernel says of itself that something is wrong. Hardware stops the kernel with
//! "unspecified launch failure", and the context is lost.
//!
//! ```ptx
//! setp.ge.u32 %bad, %index, %length;
//! @%bad trap;                          // an assertion that failed
//! ```
//!
//! Fix: find out why the guard of the `trap` holds; the finding names the first threads for which it did.
//! PTX ISA, "trap".

use super::{Check, words};
use crate::exec::{At, Next};
use crate::finding::Report;
use crate::machine::Cluster;

pub const CHECK: Check = Check::error("trap", include_str!("trap.rs"));

pub fn report(cluster: &mut Cluster, at: At) {
    let text = cluster.findings.text(at.statement);
    let message = format!("`{text}` is executed by {}", words::who(cluster, at.warp, at.mask));
    let second = cluster.actor(at, "the kernel stops here");
    let help = "find out why the guard of this `trap` holds, or why control comes here";
    cluster.findings.add(Report::new(&CHECK, message, second).help(help));
}

/// Something that hardware answers with a trap, or worse.
pub fn stop(cluster: &mut Cluster, at: At, message: String, help: &str) -> Next {
    let second = cluster.actor(at, &format!("{} stops here", words::who(cluster, at.warp, at.mask)));
    cluster.findings.add(Report::new(&CHECK, message, second).help(help));
    cluster.stopped = true;
    Next::Done
}
