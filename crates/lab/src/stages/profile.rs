//! # profile
//!
//! What Nsight Compute counts while the kernel runs on a GPU. This version does not do it, and says so: what was not
//! run never counts as a pass.

super::not_yet!(Stage::Profile, "needs a GPU and Nsight Compute; this version of veriflash does not read profiles yet");
