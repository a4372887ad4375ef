//! The machine: a grid of clusters, clusters of blocks, blocks of warps, warps of 32 lanes with control flow of their own.

mod asynchrony;
mod call;
mod cluster;
mod definedness;
mod definite;
mod flow;
mod fragments;
mod gathered;
mod grid;
mod in_use;
mod isolation;
mod liveness;
mod meeting;
mod program;
mod register_pool;
mod register_set;
mod registers;
mod special;
mod warp;

pub use call::{CallSite, Slot, defined};
pub use cluster::Cluster;
pub use definite::Watched;
pub use fragments::Touched;
pub use grid::{Grid, LaunchShape};
pub use in_use::InUse;
pub use isolation::is_isolated;
pub use meeting::Barrier;
pub use program::{AddressSource, Decoder, Program, Source, Step, Unsupported, Wants, Why, constant, truncate};
pub use register_set::RegisterSet;
pub use registers::{Chunk, Fixed, Layout, Place, Registers};
pub use warp::{State, Warp};

/// One value per lane, as wide as the widest register.
pub type Values = [u64; 32];

/// The lanes of a mask.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// A mask as people write it: `lanes 0-15, 17`.
pub fn describe_lanes(mask: u32) -> String {
    if mask == u32::MAX {
        return "all lanes".into();
    }
    let mut runs: Vec<(usize, usize)> = vec![];
    for lane in lanes(mask) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == lane => *end = lane,
            _ => runs.push((lane, lane)),
        }
    }
    let run = |(start, end): &(usize, usize)| if start == end { start.to_string() } else { format!("{start}-{end}") };
    let all = runs.iter().map(run).collect::<Vec<_>>().join(", ");
    format!("{} {all}", if mask.count_ones() == 1 { "lane" } else { "lanes" })
}
