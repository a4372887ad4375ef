//! # bench
//!
//! Time against peers, by a protocol of paired rounds with an interval. This version does not do it, and says so: what
//! was not run never counts as a pass.

super::not_yet!(
    Stage::Bench,
    "needs a GPU and peers to compare with; this version of veriflash does not measure time yet"
);
