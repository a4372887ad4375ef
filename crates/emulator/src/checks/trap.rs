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
//! A kernel whose recipe has `[assertions]` reports before it traps; the finding then says what should have held, and
//! for which thread it did not.
//!
//! Fix: find out why the guard of the `trap` holds; the finding names the first threads for which it did.
//! PTX ISA, "trap".

use super::{Check, words};
use crate::exec::{At, Next};
use crate::finding::Report;
use crate::machine::Cluster;
use launch::assertion::Failure;

pub const CHECK: Check = Check::error("trap", include_str!("trap.rs"));

pub fn report(cluster: &mut Cluster, at: At) {
    let (message, help) = match reported(cluster) {
        Some(failure) => (failure.to_string(), "find out why the assertion does not hold"),
        None => {
            let (text, who) = (cluster.findings.text(at.statement), words::who(cluster, at.warp, at.mask));
            let help = "find out why the guard of this `trap` holds, or why control comes here";
            (format!("`{text}` is executed by {who}"), help)
        }
    };
    let second = cluster.actor(at, "the kernel stops here");
    cluster.findings.add(Report::new(&CHECK, message, second).help(help));
}

/// What a thread has written to the report of the kernel's assertions, if there is one.
fn reported(cluster: &Cluster) -> Option<Failure> {
    let assertions = cluster.findings.assertions()?;
    let word = cluster.global.pages_of(&assertions.report)?.read(0, 8);
    assertions.failure(word, cluster.shape.grid)
}

/// Something that hardware answers with a trap, or worse.
pub fn stop(cluster: &mut Cluster, at: At, message: String, help: &str) -> Next {
    let second = cluster.actor(at, &format!("{} stops here", words::who(cluster, at.warp, at.mask)));
    cluster.findings.add(Report::new(&CHECK, message, second).help(help));
    cluster.stopped = true;
    Next::Done
}
