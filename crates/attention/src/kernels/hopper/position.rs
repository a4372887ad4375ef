//! Where a warpgroup is in the row of all items of its block.

use super::super::parts::Lengths;
use super::super::parts::sequences::{Sequence, Sequences};
use super::Setup;
use super::query::Query;
use super::schedule::OutputTile;
use tile::prelude::*;

/// An item is a key tile of a tile of the output. Every thread of the warpgroup holds the same.
pub struct Position {
    /// The block of queries.
    block: Var<u32>,
    /// The output tile before this one, where queries leave before it is stored. Others keep the note that came with them.
    before: Option<Held>,
    /// Lengths and rows before, where sequences have their own, and the number of the head, where heads have one.
    sequence: Option<HeldSequence>,
    number: Option<Var<f32>>,
    /// The key tile, and where those of this output tile end: at zero, if there is no item. Each output tile has one.
    tile: Var<u32>,
    end: Var<u32>,
    /// Tiles that only other warpgroups see, in the halves of a word: those of keys of this output tile, behind the last of this one's own; and
    /// those of values that are to be skipped, once those of the output tile before have been used.
    others: Var<u32>,
    /// Whether the item is the first of its output tile, and whether the item before it was.
    is_first: Var<u32>,
    was_first: Var<u32>,
}

/// An output tile that is remembered.
struct Held {
    block: Var<u32>,
    /// Head and batch entry: the halves of a word.
    head: Var<u32>,
    /// Where keys are split.
    share: Option<Var<u32>>,
}

struct HeldSequence {
    queries: Var<u32>,
    keys: Var<u32>,
    before: [Var<u32>; 2],
}

impl HeldSequence {
    /// Of one that is packed.
    fn new(sequence: &Sequence) -> Option<HeldSequence> {
        let [queries, keys] = sequence.rows_before()?;
        Some(HeldSequence {
            queries: var("queries", sequence.of.queries),
            keys: var("keys", sequence.of.keys),
            before: [var("queries_before", queries), var("keys_before", keys)],
        })
    }

    #[track_caller]
    fn set(&mut self, sequence: &Sequence) {
        self.queries.set(sequence.of.queries);
        self.keys.set(sequence.of.keys);
        let before = sequence.rows_before().into_iter().flatten();
        self.before.iter_mut().zip(before).for_each(|(held, rows)| held.set(rows));
    }

    #[track_caller]
    fn get(&self) -> Sequence {
        Sequence::packed(self.lengths(), self.before.each_ref().map(Var::get))
    }

    #[track_caller]
    fn lengths(&self) -> Lengths {
        Lengths { queries: self.queries.get(), keys: self.keys.get() }
    }
}

fn var(name: &str, value: impl Into<U32>) -> Var<u32> {
    Var::new(name, value).reaching(Reach::Warpgroup)
}

impl Held {
    fn new(name: &str, tile: OutputTile, split: bool) -> Held {
        let [block, head, share] = ["block", "head", "share"].map(|word| format!("{word}{name}"));
        let share = split.then(|| var(&share, tile.share));
        Held { block: var(&block, tile.block), head: var(&head, pack(tile.head, tile.batch)), share }
    }

    #[track_caller]
    fn set(&mut self, tile: OutputTile) {
        self.block.set(tile.block);
        self.head.set(pack(tile.head, tile.batch));
        self.share.iter_mut().for_each(|share| share.set(tile.share));
    }

    #[track_caller]
    fn get(&self) -> OutputTile {
        let [head, batch] = unpack(self.head.get());
        let share = self.share.as_ref().map_or(0.into(), Var::get);
        OutputTile { block: self.block.get(), head, batch, share }
    }
}

/// Two halves of a word.
fn pack(low: U32, high: U32) -> U32 {
    low + high * (1 << 16)
}

fn unpack(word: U32) -> [U32; 2] {
    [word % (1 << 16), word / (1 << 16)]
}

impl Position {
    /// The first item of the block.
    #[track_caller]
    pub fn first<E: Element>(
        setup: &Setup<E>,
        query: &Query<E>,
        warpgroup: &Warpgroup,
        keys: &mut Tiles<E>,
    ) -> Position {
        let (tile, _) = query.tile(setup);
        let sequence = setup.sequences.entry(tile.batch);
        let own = setup.own_key_tiles(sequence.of, tile, warpgroup);
        keys.skip(own.before);
        let split = setup.output.splits().is_some();
        Position {
            block: var("block", tile.block),
            before: setup.config.queries_leave_early().then(|| Held::new("_before", tile, split)),
            sequence: HeldSequence::new(&sequence),
            number: setup.scores.number(tile.head).map(|number| Var::new("number", number)),
            tile: var("key_tile", own.tiles.start),
            end: var("key_tile_end", own.tiles.end),
            others: var("others", pack(own.behind, own.before)),
            is_first: var("is_first", 1),
            was_first: var("was_first", 1),
        }
    }

    #[track_caller]
    pub fn exists(&self) -> Pred {
        self.end.get().ne(0)
    }

    /// The block of queries.
    #[track_caller]
    pub fn block(&self) -> U32 {
        self.block.get()
    }

    /// The batch entry.
    #[track_caller]
    pub fn sequence<E: Element>(&self, setup: &Setup<E>, query: &Query<E>) -> Sequence {
        let even = || setup.sequences.entry(query.tile(setup).0.batch);
        self.sequence.as_ref().map_or_else(even, HeldSequence::get)
    }

    /// How many queries and keys it has.
    #[track_caller]
    pub fn lengths<E: Element>(&self, setup: &Setup<E>, query: &Query<E>) -> Lengths {
        match (&self.sequence, &setup.sequences) {
            (None, Sequences::Even(of)) => *of,
            _ => self.sequence(setup, query).of,
        }
    }

    /// What the score has for the head.
    #[track_caller]
    pub fn number(&self) -> Option<F32> {
        self.number.as_ref().map(Var::get)
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
    pub fn tile_before<E: Element>(&self, setup: &Setup<E>, query: &Query<E>) -> OutputTile {
        self.before.as_ref().map_or_else(|| query.tile_before(setup), Held::get)
    }

    /// Tiles of values between those of the output tile before and those of this one.
    #[track_caller]
    pub fn skipped(&self) -> U32 {
        unpack(self.others.get())[1]
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
            self.before.iter_mut().for_each(|before| before.set(query.tile(setup).0));
            self.is_first.set(1);
            query.exchange();
            let (tile, exists) = query.tile(setup);
            let [left, _] = unpack(self.others.get());
            when(exists.eq(0), || {
                self.end.set(0);
                self.others.set(pack(0.into(), left));
                setup.skip(keys, left);
            });
            when(exists.ne(0), || {
                let sequence = setup.sequences.entry(tile.batch);
                let own = setup.own_key_tiles(sequence.of, tile, warpgroup);
                self.block.set(tile.block);
                self.sequence.iter_mut().for_each(|held| held.set(&sequence));
                self.number.iter_mut().zip(setup.scores.number(tile.head)).for_each(|(held, number)| held.set(number));
                self.tile.set(own.tiles.start);
                self.end.set(own.tiles.end);
                let skipped = left + own.before;
                self.others.set(pack(own.behind, skipped));
                setup.skip(keys, skipped);
                query.load();
            });
        });
    }
}
