//! A GPU on a CPU that says whether a kernel is right or lucky.

pub mod happens_before;
pub mod numerics;
