//! Which stretches of shared memory products read: pieces, sorted and joined. The warps of a warpgroup share an operand,
//! and loops come back to the same few tiles, so the stretches of a tile are remembered.

use super::descriptor::Tile;
use super::{Issued, PIECE};
use crate::exec::access::watched_shared;
use crate::exec::bulk_copy::merged;
use happens_before::{Space, Stretch};
use std::collections::HashMap;
use std::sync::Arc;

/// Tiles that are remembered at most: more than loops of real kernels have.
const MOST: usize = 4096;

#[derive(Default)]
pub struct Reads {
    /// By the rank of the block.
    known: HashMap<(usize, Tile), Arc<[Stretch]>>,
}

impl Reads {
    /// What a product of a warp in the block of this rank reads.
    pub fn of(&mut self, rank: usize, issued: &Issued) -> Arc<[Stretch]> {
        let right = self.of_tile(rank, &issued.right);
        match &issued.left {
            None => right,
            Some(left) => {
                let left = self.of_tile(rank, left);
                merged(left.iter().chain(right.iter()).cloned().collect()).into()
            }
        }
    }

    fn of_tile(&mut self, rank: usize, tile: &Tile) -> Arc<[Stretch]> {
        if let Some(known) = self.known.get(&(rank, tile.clone())) {
            return known.clone();
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let stretch = |piece: u32| {
            let start = watched_shared(rank, piece as usize);
            (Space::Shared, start..start + u64::from(PIECE))
        };
        let stretches: Arc<[Stretch]> = merged(tile.pieces().map(stretch).collect()).into();
        self.known.insert((rank, tile.clone()), stretches.clone());
        stretches
    }
}
