//! How many queries and keys one head has, each below 2³¹.

use tile::prelude::*;

#[derive(Clone, Copy)]
pub struct Lengths {
    pub queries: U32,
    pub keys: U32,
}

impl Lengths {
    /// As the launch passes them.
    #[track_caller]
    pub fn parameter() -> Lengths {
        Lengths { queries: parameter("queries"), keys: parameter("keys") }
    }
}

impl From<crate::visibility::Lengths> for Lengths {
    fn from(of: crate::visibility::Lengths) -> Lengths {
        Lengths { queries: of.queries.into(), keys: of.keys.into() }
    }
}
