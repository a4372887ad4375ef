//! What an H200 computes, to the bit.
//!
//! Each part is a pure function of bit patterns: [`tensor_core`] (fused dot products), [`product`] (matrix products of a
//! warp), [`special`] (the table unit behind `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos`, `tanh`) with
//! [`special_double`] for f64, [`convert`], and [`arithmetic`] on f32, with [`double`] for f64 and [`mod@half`] for f16
//! and bf16. The rules and tables were solved from results of an NVIDIA H200 (driver 580.159.04, November 2026) and then
//! compared with it: 2^30 outputs per tensor-core instruction and all 2^32 inputs of every special function of f32,
//! without a difference. Recorded results stand under test; `cargo run --release --example special_functions` compares
//! the special functions again, on a machine with a GPU.
//!
//! Values travel as bits, because a host may change the payload of a NaN when it moves a float.

pub mod arithmetic;
pub mod convert;
pub mod double;
pub mod format;
pub mod fragment;
pub mod half;
pub mod product;
pub mod special;
pub mod special_double;
pub(crate) mod tables;
pub mod tensor_core;
mod tile;
pub mod update;

/// The only NaN that f32 instructions produce.
pub const NAN: u32 = 0x7fff_ffff;
/// The only NaN that f16 and bf16 instructions produce, per half.
pub const NAN_16: u16 = 0x7fff;

pub(crate) const SIGN: u32 = 0x8000_0000;
pub(crate) const INFINITY: u32 = 0x7f80_0000;
pub(crate) const SMALLEST_NORMAL: u32 = 0x0080_0000;
