//! Where a warpgroup is in the row of all items of its block.

use super::Setup;
use super::schedule::{OutputTile, Walk};
use tile::prelude::*;

/// An item is a key tile of a tile of the output. Every thread of the warpgroup holds the same.
pub struct Position {
    /// Where the output tile is, and the number of the one before it.
    walk: Walk,
    before: Var<u32>,
    /// Its block of queries.
    block: Var<u32>,
    /// The key tile, and where those of this output tile end.
    tile: Var<u32>,
    end: Var<u32>,
    /// Whether the item is the first of its output tile, and whether the item before it was.
    is_first: Var<u32>,
    was_first: Var<u32>,
}

impl Position {
    /// The first item of the block. A grid has no more blocks than there are output tiles.
    #[track_caller]
    pub fn first<E: Element>(setup: &Setup<E>) -> Position {
        let walk = Walk::new();
        let number = walk.number();
        let OutputTile { block, .. } = setup.schedule.tile(number);
        let tiles = setup.key_tiles(block);
        let var = |name: &str, value: U32| Var::new(name, value).reaching(Reach::Warpgroup);
        Position {
            walk,
            before: var("number_before", number),
            block: var("block", block),
            tile: var("key_tile", tiles.start),
            end: var("key_tile_end", tiles.end),
            is_first: var("is_first", 1.into()),
            was_first: var("was_first", 1.into()),
        }
    }

    #[track_caller]
    pub fn exists<E: Element>(&self, setup: &Setup<E>) -> Pred {
        self.walk.number().lt(setup.schedule.count())
    }

    /// The block of queries.
    #[track_caller]
    pub fn block(&self) -> U32 {
        self.block.get()
    }

    /// The key tile.
    #[track_caller]
    pub fn tile(&self) -> U32 {
        self.tile.get()
    }

    #[track_caller]
    pub fn is_first(&self) -> Pred {
        self.is_first.get().ne(0)
    }

    /// Whether the item before was the first of its output tile.
    #[track_caller]
    pub fn was_first(&self) -> Pred {
        self.was_first.get().ne(0)
    }

    /// The output tile before this one.
    #[track_caller]
    pub fn tile_before<E: Element>(&self, setup: &Setup<E>) -> OutputTile {
        setup.schedule.tile(self.before.get())
    }

    /// On to the next item; where it begins another output tile, `turn` is called.
    #[track_caller]
    pub fn advance<E: Element>(&mut self, setup: &Setup<E>, turn: impl FnOnce()) {
        self.was_first.set(self.is_first.get());
        self.is_first.set(0);
        self.tile += 1;
        when(self.tile.get().ge(self.end.get()), || {
            self.before.set(self.walk.number());
            self.walk.advance();
            self.is_first.set(1);
            when(self.exists(setup), || {
                let OutputTile { block, .. } = setup.schedule.tile(self.walk.number());
                let tiles = setup.key_tiles(block);
                self.block.set(block);
                self.tile.set(tiles.start);
                self.end.set(tiles.end);
                turn();
            });
        });
    }
}
