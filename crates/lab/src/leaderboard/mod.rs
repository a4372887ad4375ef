//! All configurations of a problem, the living ranked by time and the others with what they died of.
//!
//! [`entrants`] are the configurations, [`fate`] takes each through the stages before anything is timed, [`ranking`] is a pure
//! function of a measured [`Point`](crate::bench::Point) and knows nothing of GPUs.

mod entrants;
mod fate;
mod ranking;

pub use entrants::{Entrant, Field, entrants};
pub use fate::{Death, Survey, survey};
pub use ranking::{Ranking, Standing, rank};
