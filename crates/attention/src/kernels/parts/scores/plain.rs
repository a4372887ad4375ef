//! Scores stay as they are: nothing is printed.

use super::{Head, Score};
use tile::prelude::*;

pub struct Plain;

impl Score for Plain {
    fn apply(&self, score: F32, _: Coordinate, _: Coordinate, _: Head) -> F32 {
        score
    }

    fn is_plain(&self) -> bool {
        true
    }
}
