//! What runs beside the threads: copies in flight, and what a copy of tiles moves where.

mod copies;
pub mod reduce;
pub mod tensor;
pub mod tensor_map;

pub(crate) use copies::{Copies, Flight};
