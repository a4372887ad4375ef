//! What runs beside the threads: copies in flight.

mod copies;

pub use copies::{Copies, Flight};
