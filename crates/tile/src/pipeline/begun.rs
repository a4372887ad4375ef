//! Rings and the loop that goes through their tiles.

use super::CopyRing;
use super::copy_ring::Pass;
use crate::builder::{here, with};
use crate::control::Trips;
use crate::error::{BuildError, Place};
use crate::values::{Element, U32};
use std::ops::Range;

/// Starts the first `stages - 1` tiles of each ring, in the order in which they will be used. `for_each` goes through the tiles; its body takes one of each ring.
#[track_caller]
pub fn begin<'ring, E: Element>(rings: &[&'ring CopyRing<E>], tiles: Range<U32>) -> Begun<'ring, E> {
    let at = here();
    let ahead = rings.iter().map(|ring| ring.stages - 1).max().unwrap_or(0);
    for round in 0..ahead {
        for ring in rings.iter().filter(|ring| round < ring.stages - 1) {
            ring.start_if_any(tiles.start + round, tiles.end);
        }
    }
    Begun { rings: rings.to_vec(), tiles, at }
}

/// Rings whose first tiles are under way.
#[must_use = "the copies that were started must be used: give it to `for_each`"]
pub struct Begun<'ring, E: Element> {
    rings: Vec<&'ring CopyRing<E>>,
    tiles: Range<U32>,
    at: Place,
}

impl<E: Element> Trips for Begun<'_, E> {
    #[track_caller]
    fn run(mut self, body: &mut dyn FnMut(U32)) {
        let at = here();
        let (rings, Range { start, end }) = (std::mem::take(&mut self.rings), self.tiles.clone());
        let taken = || rings.iter().map(|ring| ring.state.borrow().taken).collect::<Vec<u32>>();
        self.tiles.clone().run(&mut |tile| {
            let before = taken();
            let pass = Some(Pass { tile, start, end, scope: with(|b| b.scopes.innermost()) });
            rings.iter().for_each(|ring| ring.state.borrow_mut().pass = pass);
            body(tile);
            let counts = taken().into_iter().zip(before).map(|(after, before)| after - before);
            if let Some((ring, count)) = rings.iter().zip(counts).find(|(_, count)| *count != 1) {
                let name = ring.state.borrow().name.clone();
                BuildError::new(format!("one pass takes {count} tiles of ring `{name}`, expected one"), at).raise()
            }
        });
        rings.iter().for_each(|ring| ring.end());
    }
}

impl<E: Element> Drop for Begun<'_, E> {
    fn drop(&mut self) {
        if !self.rings.is_empty() && !std::thread::panicking() {
            BuildError::new("the tiles of these rings are never used", self.at).help("give it to `for_each`").raise()
        }
    }
}
