//! What a kernel asserts of itself, compiled in only where its options say so.
//!
//! A thread whose assertion fails stores one word to the buffer `report`, waits until the host could read it, and
//! traps. The word says all: which assertion, which block, which thread. So no thread has to claim the report and none
//! has to wait for another: whichever word stays is true, and one is there before any trap.

use crate::builder::{checks, relative, with};
use crate::control::predicated;
use crate::error::{BuildError, Place};
use crate::instructions::{
    Pointer, block_index, cvta_to_global_u64, fence_sc_sys, grid_size, ld_param, st_relaxed_sys_global, thread_index,
    trap,
};
use crate::values::{Pred, U64, declare};
use std::panic::Location;

/// Something that must hold wherever the kernel comes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    pub message: String,
    pub at: Place,
}

impl Assertion {
    /// File and line, the file from the workspace on.
    pub fn place(&self) -> String {
        format!("{}:{}", relative(self.at.file()), self.at.line())
    }
}

/// The parameter that points to the report, before all others.
const REPORT: (&str, ptx::ParameterId) = ("report", ptx::ParameterId(0));

// The word of a report: the thread in its low bits, above it the number of the assertion, then that of the block.
const NUMBER_SHIFT: u32 = 10; // 1024 threads are the most that a block has
const BLOCK_SHIFT: u32 = 20;
const MOST_ASSERTIONS: usize = (1 << (BLOCK_SHIFT - NUMBER_SHIFT)) - 1;

/// Asserts what `holds` says: the threads for which it does not hold report and trap. Where checks are off it is not even
/// asked, and the kernel is the same as without the line.
#[track_caller]
pub fn check(holds: impl FnOnce() -> Pred, message: &str) {
    if !checks() {
        return;
    }
    let at = Location::caller();
    let fails = !holds();
    if fails.known() == Some(false) {
        return;
    }
    let number = with(|b| {
        let at = b.author_place(at);
        let assertion = Assertion { message: message.into(), at };
        // A loop body is generated twice, and a loop of Rust's may pass by many times: it is one assertion.
        let known = b.assertions.iter().position(|known| *known == assertion);
        known.unwrap_or_else(|| {
            b.assertions.push(assertion);
            b.assertions.len() - 1
        })
    });
    if number >= MOST_ASSERTIONS {
        BuildError::new(format!("a kernel has at most {MOST_ASSERTIONS} assertions"), at).raise()
    }
    let (report, word) = (cvta_to_global_u64(ld_param(REPORT.1)), word(number as u64 + 1));
    // Predicates, not a branch: lanes of a warp stay together, so that the trap is the first thing that happens. Only
    // what has an effect is predicated: to ptxas, a register set under a condition is alive from the kernel's start.
    predicated(fails, || {
        st_relaxed_sys_global(Pointer::new(report), word);
        fence_sc_sys();
        trap();
    });
}

#[track_caller]
fn word(number: u64) -> U64 {
    let row = block_index(2) * grid_size(1) + block_index(1);
    let block = row.widening_mul(grid_size(0)) + block_index(0).to_u64();
    block * (1 << BLOCK_SHIFT) + thread_index().to_u64() + (number << NUMBER_SHIFT)
}

/// Before the kernel declares parameters of its own.
#[track_caller]
pub(crate) fn declare_report() {
    if checks() {
        declare::<u64>(REPORT.0, Some((Some(ptx::Space::Global), 8)));
    }
}
