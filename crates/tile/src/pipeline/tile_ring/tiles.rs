//! The end of a ring that reads.

use super::{Stages, Turn};
use crate::builder::here;
use crate::control::{for_each, predicated};
use crate::error::{BuildError, Place};
use crate::instructions::{
    SharedPointer, bar_warp_sync, fence_proxy_async_shared, lane_index, mbarrier_arrive, mbarrier_wait_parity,
};
use crate::values::{Element, SharedTile, U32};
use std::ops::Deref;

/// The end that reads, for all warpgroups.
pub struct Tiles<E> {
    pub(super) stages: Stages<E>,
    pub(super) turn: Turn,
    pub(super) name: String,
}

impl<E: Element> Tiles<E> {
    /// Waits for the next tile.
    #[expect(clippy::should_implement_trait, reason = "tiles never end, and must be released")]
    #[track_caller]
    pub fn next(&mut self) -> Arrived<E> {
        let at = here();
        let stage = self.wait();
        let (tile, empty) = (self.stages.tile(stage), self.stages.empty(stage));
        Arrived { tile: Some(tile), empty, name: self.name.clone(), at }
    }

    /// Leaves the next tiles to the other warpgroups.
    #[track_caller]
    pub fn skip(&mut self, count: U32) {
        for_each(U32::from(0)..count, |_| {
            let stage = self.wait();
            arrive(self.stages.empty(stage));
        });
    }

    #[track_caller]
    pub(super) fn wait(&mut self) -> U32 {
        let (stage, parity) = self.turn.advance();
        mbarrier_wait_parity(self.stages.full(stage), parity);
        stage
    }
}

/// To be called between reads of a tile by lanes themselves, and not by products of warpgroups, and its release: the first lane, which tells
/// the copies, speaks for all, and copies go another way to memory than lanes do.
#[track_caller]
pub fn lanes_have_read() {
    fence_proxy_async_shared();
    bar_warp_sync();
}

/// The warp has read the stage: its first lane says so.
#[track_caller]
pub(super) fn arrive(empty: SharedPointer) {
    predicated(lane_index().eq(0), || mbarrier_arrive(empty));
}

/// A tile whose bytes are there.
#[must_use = "a tile that has arrived must be released"]
pub struct Arrived<E> {
    tile: Option<SharedTile<E>>,
    empty: SharedPointer,
    name: String,
    at: Place,
}

impl<E: Element> Arrived<E> {
    /// Its warps have read it: the stage may be filled again.
    #[track_caller]
    pub fn release(mut self) {
        self.tile = None;
        arrive(self.empty);
    }
}

impl<E> Deref for Arrived<E> {
    type Target = SharedTile<E>;
    fn deref(&self) -> &SharedTile<E> {
        let Some(tile) = &self.tile else { unreachable!("it is there until it is released") };
        tile
    }
}

impl<E> Drop for Arrived<E> {
    fn drop(&mut self) {
        if self.tile.is_some() && !std::thread::panicking() {
            BuildError::new(format!("this tile of ring `{}` is never released", self.name), self.at)
                .help("call `.release()` after the last read")
                .raise()
        }
    }
}
