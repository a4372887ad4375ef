//! # race-warp
//!
//! Two lanes of one warp access the same bytes, at least one writes, and nothing orders them. Lanes of a warp are not
//! ordered by running in lockstep: since sm_70 they have control flow of their own.
//!
//! ```ptx
//! st.shared.u32 [%mine], %value;
//! ld.shared.u32 %other, [%neighbours];   // another lane's store may not have happened
//! ```
//!
//! Fix: `bar.warp.sync` between the two, with a mask that names both lanes. Shuffles and votes do not order memory.
//! PTX ISA, "bar.warp.sync"; "Memory Consistency Model".

use super::{Check, order};
use crate::finding::Report;
use crate::happens_before::Fault;
use crate::machine::Block;

pub const CHECK: Check = Check::error("race-warp", include_str!("race_warp.rs"));

pub fn report(block: &Block, fault: &Fault) -> Report {
    let place = order::place(block, fault);
    let message = if fault.first.site == fault.second.site {
        format!("lanes of warp {} access {place} in one instruction, and one of them writes", fault.first.warp)
    } else {
        format!("lanes of warp {} access {place} without `bar.warp.sync` between them", fault.first.warp)
    };
    let missing = Some(format!("bar.warp.sync by lanes {} and {}", fault.first.lane, fault.second.lane));
    let help = "emit `bar.warp.sync` between (1) and (2)".to_string();
    order::report(block, fault, &CHECK, message, missing, help)
}
