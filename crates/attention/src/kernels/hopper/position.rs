//! Where a warpgroup is in the row of all items of its block.

use super::Setup;
use super::query::Query;
use super::schedule::OutputTile;
use tile::prelude::*;

/// An item is a key tile of a tile of the output. Every thread of the warpgroup holds the same.
pub struct Position {
    /// The output tile, and the one before it.
    here: Held,
    before: Held,
    /// Whether there is one.
    exists: Var<u32>,
    /// The key tile, and where those of this output tile end.
    tile: Var<u32>,
    end: Var<u32>,
    /// Key tiles of this output tile that only other warpgroups see, behind the last of this one's own.
    left: Var<u32>,
    /// Tiles of values that are to be skipped, once those of the output tile before have been used.
    skipped: Var<u32>,
    /// Whether the item is the first of its output tile, and whether the item before it was.
    is_first: Var<u32>,
    was_first: Var<u32>,
}

/// An output tile that is remembered.
struct Held {
    block: Var<u32>,
    /// Head and batch entry: the halves of a word.
    head: Var<u32>,
}

fn var(name: &str, value: impl Into<U32>) -> Var<u32> {
    Var::new(name, value).reaching(Reach::Warpgroup)
}

impl Held {
    fn new(name: &str, tile: OutputTile) -> Held {
        Held { block: var(&format!("block{name}"), tile.block), head: var(&format!("head{name}"), pack(tile)) }
    }

    #[track_caller]
    fn set(&mut self, tile: OutputTile) {
        self.block.set(tile.block);
        self.head.set(pack(tile));
    }

    #[track_caller]
    fn get(&self) -> OutputTile {
        let head = self.head.get();
        OutputTile { block: self.block.get(), head: head % (1 << 16), batch: head / (1 << 16) }
    }
}

fn pack(tile: OutputTile) -> U32 {
    tile.head + tile.batch * (1 << 16)
}

impl Position {
    /// The first item of the block. A grid has no more blocks than there are output tiles.
    #[track_caller]
    pub fn first<E: Element>(
        setup: &Setup<E>,
        query: &Query<E>,
        warpgroup: &Warpgroup,
        keys: &mut Tiles<E>,
    ) -> Position {
        let (tile, _) = query.tile();
        let own = setup.own_key_tiles(tile.block, warpgroup);
        keys.skip(own.before);
        Position {
            here: Held::new("", tile),
            before: Held::new("_before", tile),
            exists: var("exists", 1),
            tile: var("key_tile", own.tiles.start),
            end: var("key_tile_end", own.tiles.end),
            left: var("left", own.behind),
            skipped: var("skipped", own.before),
            is_first: var("is_first", 1),
            was_first: var("was_first", 1),
        }
    }

    #[track_caller]
    pub fn exists(&self) -> Pred {
        self.exists.get().ne(0)
    }

    /// The block of queries.
    #[track_caller]
    pub fn block(&self) -> U32 {
        self.here.block.get()
    }

    /// The key tile.
    #[track_caller]
    pub fn key_tile(&self) -> U32 {
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
    pub fn tile_before(&self) -> OutputTile {
        self.before.get()
    }

    /// Tiles of values between those of the output tile before and those of this one.
    #[track_caller]
    pub fn skipped(&self) -> U32 {
        self.skipped.get()
    }

    /// On to the next item, and where this was the last of its output tile, to the queries of the next one.
    #[track_caller]
    pub fn advance<E: Element>(
        &mut self,
        setup: &Setup<E>,
        warpgroup: &Warpgroup,
        query: &mut Query<E>,
        keys: &mut Tiles<E>,
    ) {
        self.was_first.set(self.is_first.get());
        self.is_first.set(0);
        self.tile += 1;
        when(self.tile.get().ge(self.end.get()), || {
            self.before.set(self.here.get());
            self.is_first.set(1);
            query.exchange();
            let (tile, exists) = query.tile();
            self.exists.set(exists);
            let left = self.left.get();
            when(exists.eq(0), || {
                self.skipped.set(left);
                setup.skip(keys, left);
            });
            when(exists.ne(0), || {
                let own = setup.own_key_tiles(tile.block, warpgroup);
                self.here.set(tile);
                self.tile.set(own.tiles.start);
                self.end.set(own.tiles.end);
                self.left.set(own.behind);
                let skipped = left + own.before;
                self.skipped.set(skipped);
                setup.skip(keys, skipped);
                query.load();
            });
        });
    }
}
