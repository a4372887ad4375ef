//! # bench
//!
//! Time against peers, by a protocol of paired rounds with an interval. The command `bench` does it, this stage not
//! yet, and says so: what was not run never counts as a pass.

super::not_yet!(
    Stage::Bench,
    "the stage needs a GPU and peers to compare with, and does not measure yet: `veriflash bench` does"
);
