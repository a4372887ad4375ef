//! # tensor-map
//!
//! A bulk tensor copy that its tensor map does not allow: a box, stride, element or swizzle that the hardware does not
//! have, another number of coordinates than the tensor has dimensions, a first coordinate that is no multiple of 16
//! bytes (seen on an H200), or a box in shared memory that is not aligned to 128 bytes. Hardware stops the kernel with
//! "an illegal instruction was encountered", or copies other bytes.
//!
//! ```ptx
//! .shared .align 16 .b8 stage[8192];        // not a multiple of 128
//! cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%map, {%x, %y}], [full];
//! ```
//!
//! Fix: align the stage to 128 bytes (1024 with the 128-byte swizzle), and make map and copy agree.
//! PTX ISA, "Tensor copy restrictions"; CUDA Driver API Guide, cuTensorMapEncodeTiled.

use super::{Check, words};
use crate::async_engines::tensor_map::Fault;
use crate::exec::At;
use crate::finding::Report;
use crate::machine::Cluster;

pub const CHECK: Check = Check::error("tensor-map", include_str!("tensor_map.rs"));

/// The copy that one lane asked for is impossible.
pub fn report(cluster: &mut Cluster, at: At, fault: &Fault) {
    let label = format!("{} starts this copy", words::who(cluster, at.warp, at.mask));
    let help = "make the tensor map and the copy agree";
    let report = Report::new(&CHECK, fault.to_string(), cluster.actor(at, &label)).help(help);
    cluster.findings.add(report);
}
