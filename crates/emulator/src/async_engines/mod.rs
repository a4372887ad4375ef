//! What runs beside the threads: copies and products in flight, what a copy of tiles moves where, and the barriers that
//! tell of them.

mod copies;
mod flights;
mod mbarrier;
mod products;
pub mod reduce;
pub mod tensor;
pub mod tensor_map;

pub(crate) use copies::{Copies, Flight};
pub(crate) use flights::{Flights, Number, Operation, Piece, Transfer};
pub(crate) use mbarrier::{Effect, Mbarrier, Spot};
pub(crate) use products::{Product, Products, Touch};
