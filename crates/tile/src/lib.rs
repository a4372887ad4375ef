//! The language kernels are written in: Rust functions that print PTX.
