//! Exact numbers in place of floats (`--algebra`): two tilings, schedules or stage counts of one formula agree to the bit,
//! so that a difference is an error of dataflow and never one of rounding.
//!
//! `docs/algebra.md` says what for, `docs/decisions/0009-exact-numbers-in-place-of-floats.md` why it is done this way.

mod encoding;
mod payload;
mod product;

pub use encoding::{convert_buffers, decode, encode, settle_buffers};
pub use payload::Payload;
pub use product::multiply;
