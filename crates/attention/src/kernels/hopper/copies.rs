//! What the copying thread does: it fills the rings, tile of the output after tile of the output.

use super::super::parts::sequences::Sequence;
use super::Setup;
use super::schedule::{NextTile, Order, OutputTile};
use std::ops::Range;
use tile::prelude::*;

pub struct Copies<E> {
    pub queries: Loads<E>,
    pub keys: Loads<E>,
    pub values: Loads<E>,
    /// V by single rows, for packed sequences.
    pub value_rows: Option<TensorMap<E>>,
}

impl<E: Element> Copies<E> {
    /// The block's first tile is the next one.
    pub fn produce(mut self, setup: &Setup<E>, order: &Order, mut next_tile: NextTile) {
        let mut number = Var::new("number", setup.schedule.first());
        let count = setup.schedule.count();
        repeat_while(number.get().lt(count), || {
            let tile = next_tile.get();
            let sequence = setup.sequences.entry(tile.batch);
            setup.when_it_exists(&sequence, tile.block, || self.load(setup, tile, &sequence));
            let next = order.next(number.get(), &setup.schedule);
            number.set(next);
            next_tile.set(setup.schedule.tile(next));
            next.lt(count)
        });
        self.for_each_part(setup, |queries, _| queries.note([0; 4].map(U32::from)));
    }

    /// What a tile of the output is made of. Where queries leave early, the first keys need not wait for the next ones to come.
    fn load(&mut self, setup: &Setup<E>, tile: OutputTile, sequence: &Sequence) {
        if setup.config.queries_leave_early() {
            return self.load_keys_first(setup, tile, sequence);
        }
        self.load_queries(setup, tile, sequence);
        let head = tile.head / setup.heads_per_kv_head;
        for_each(setup.key_tiles(sequence.of, tile), |tile| {
            let first = tile * setup.config.keys;
            let at = sequence.key_tile(first, head);
            self.keys.load(at);
            self.load_values(at, sequence.of.keys, first);
        });
    }

    fn load_keys_first(&mut self, setup: &Setup<E>, tile: OutputTile, sequence: &Sequence) {
        let head = tile.head / setup.heads_per_kv_head;
        let Range { start, end } = setup.key_tiles(sequence.of, tile);
        self.keys.load(sequence.key_tile(start * setup.config.keys, head));
        self.load_queries(setup, tile, sequence);
        for_each(start..end, |tile| {
            let first = tile * setup.config.keys;
            let at = sequence.key_tile(first, head);
            when(tile.ne(start), || self.keys.load(at));
            self.load_values(at, sequence.of.keys, first);
        });
    }

    fn load_queries(&mut self, setup: &Setup<E>, tile: OutputTile, sequence: &Sequence) {
        let OutputTile { block, head, batch, share } = tile;
        let first = block * setup.config.rows;
        self.for_each_part(setup, |queries, row| {
            let first = if row == 0 { first } else { first + row };
            queries.load_noted(sequence.query_tile(first, head), [block, head, batch, share + 1]);
        });
    }

    /// The queries of a tile of the output, or of each warpgroup: the ring, and their first row.
    fn for_each_part(&mut self, setup: &Setup<E>, mut load: impl FnMut(&mut Loads<E>, u32)) {
        let (_, rows) = setup.config.query_tiles();
        (0..setup.config.rows).step_by(rows as usize).for_each(|row| load(&mut self.queries, row));
    }

    /// Of `keys` that there are, those from `first` on.
    fn load_values(&mut self, at: TileAt, keys: U32, first: U32) {
        match &self.value_rows {
            None => self.values.load(at),
            // What is behind belongs to the next sequence, and no weight makes nothing of a NaN.
            Some(rows) => self.values.load_first(at, keys.saturating_sub(first), rows),
        }
    }
}

/// Tells the other blocks of the cluster, tile of the output after tile of the output, that this one has read its keys, or its values.
pub fn pass_on<E: Element>(setup: &Setup<E>, order: &Order, mut relay: Relay) {
    let mut number = Var::new("number", setup.schedule.first());
    let count = setup.schedule.count();
    repeat_while(number.get().lt(count), || {
        let tile = setup.schedule.tile(number.get());
        let Range { start, end } = setup.key_tiles(setup.sequences.entry(tile.batch).of, tile);
        relay.pass_on(end - start);
        number.set(order.next(number.get(), &setup.schedule));
        number.get().lt(count)
    });
}
