//! FlashAttention for NVIDIA GPUs in Rust, with evidence.
