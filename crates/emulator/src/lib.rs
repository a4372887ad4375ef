//! A GPU on a CPU that says whether a kernel is right or lucky.

pub mod numerics;
