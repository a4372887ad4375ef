//! FlashAttention for NVIDIA GPUs in Rust, with evidence.

pub mod filetests;
