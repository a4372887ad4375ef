//! A tile that outlives a pass.

use super::tiles::arrive;
use super::{Tiles, Turn};
use crate::builder::{Reach, here};
use crate::control::when;
use crate::error::BuildError;
use crate::instructions::{bar_warp_sync, cp_async_bulk_wait_group_read, ld_shared_v4};
use crate::roles::Warpgroup;
use crate::values::{Element, SharedTile, U32, Var, View};

impl<E: Element> Tiles<E> {
    /// Waits for the first tile, and keeps one at a time from pass to pass of a loop.
    #[track_caller]
    pub fn keep(self) -> Kept<E> {
        self.kept()
    }

    /// The same of a ring whose tiles have one reader each: they go to the warpgroups in turn, and this one keeps its own.
    #[track_caller]
    pub fn keep_own(mut self, warpgroup: &Warpgroup) -> Kept<E> {
        let at = here();
        let count = self.turn.count;
        if !count.is_multiple_of(warpgroup.count) {
            let message = format!("{} warpgroups cannot share {count} stages of ring `{}`", warpgroup.count, self.name);
            BuildError::new(message, at).help("expected as many for each").raise()
        }
        self.turn = Turn::of_every(warpgroup.count, warpgroup.number, &format!("{}_read", self.name), count);
        self.kept()
    }

    #[track_caller]
    fn kept(mut self) -> Kept<E> {
        let stage = self.wait();
        let var = |end: &str, value: U32| Var::new(format!("{}_{end}", self.name), value).reaching(Reach::Warpgroup);
        Kept { held: var("held", stage), before: var("before", stage), is_due: var("due", 0.into()), tiles: self }
    }
}

/// A tile that stays over several passes of a loop, and after it for as long as its memory is used.
pub struct Kept<E> {
    tiles: Tiles<E>,
    /// Its stage, and that of the one before it.
    held: Var<u32>,
    before: Var<u32>,
    /// Whether the one before may be released.
    is_due: Var<u32>,
}

impl<E: Element> Kept<E> {
    #[track_caller]
    pub fn tile(&self) -> SharedTile<E> {
        self.tiles.stages.tile(self.held.get())
    }

    /// `count` rows from `first`, a multiple of eight.
    #[track_caller]
    pub fn rows(&self, first: impl Into<U32>, count: u32) -> View<'_, E> {
        self.tile().rows(first, count).of_owner(self)
    }

    /// The same of the tile before, until it is released.
    #[track_caller]
    pub fn rows_before(&self, first: impl Into<U32>, count: u32) -> View<'_, E> {
        self.tiles.stages.tile(self.before.get()).rows(first, count).of_owner(self)
    }

    /// What was said with the tile. All lanes have read it when they go on.
    #[track_caller]
    pub fn note(&self) -> [U32; 4] {
        self.note_of(self.held.get())
    }

    /// The same of the tile before, until it is released.
    #[track_caller]
    pub fn note_before(&self) -> [U32; 4] {
        self.note_of(self.before.get())
    }

    #[track_caller]
    fn note_of(&self, stage: U32) -> [U32; 4] {
        let note = ld_shared_v4::<u32>(self.tiles.stages.note(stage));
        bar_warp_sync();
        note.map(|word| word.reaching(Reach::Warpgroup))
    }

    /// On to the next tile, which is waited for. The one before stays until it is released.
    #[track_caller]
    pub fn take_next(&mut self) {
        self.before.set(self.held.get());
        let stage = self.tiles.wait();
        self.held.set(stage);
    }

    /// The warp has read the tile: its memory may be filled again, and is not read until the next one is taken.
    #[track_caller]
    pub fn release(&mut self) {
        arrive(self.tiles.stages.empty(self.held.get()));
    }

    /// The warp needs the memory of the tile before no more, once its copies out of there have read it.
    #[track_caller]
    pub fn is_done_with_before(&mut self) {
        self.is_due.set(1);
    }

    /// Releases the tile before, if that is due.
    #[track_caller]
    pub fn release_before(&mut self) {
        when(self.is_due.get().ne(0), || {
            cp_async_bulk_wait_group_read(0);
            arrive(self.tiles.stages.empty(self.before.get()));
            self.is_due.set(0);
        });
    }
}
