//! The exact case: every access to a word that still counts, with its lanes and bytes. Only lists find races.

use super::actor::{Actor, Gap};
use super::mark::Item;
use super::pool::{Pool, push};

/// A word that has been raced for so often is quiet until a write that follows the last access: copies of whole tiles
/// that nobody waits for would else be compared each with all before it, word by word, for the same findings.
const MOST_CLASHES: u32 = 256;

/// Two unordered accesses to the same bytes of one word.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Address of the word.
    pub address: u64,
    /// The bytes of the word that both touched.
    pub bytes: u8,
    pub first: Item,
    pub first_lane: u8,
    pub second_lane: u8,
    pub gap: Gap,
}

/// All that is known of some words.
#[derive(Clone)]
pub struct Lists {
    pool: Pool<Vec<Item>>,
    /// How often somebody raced for the word of each; zero beyond the end, for most are never raced for.
    clashes: Vec<u32>,
    /// After so many clashes a word is quiet.
    pub patience: u32,
}

impl Default for Lists {
    fn default() -> Lists {
        Lists { pool: Pool::default(), clashes: Vec::new(), patience: MOST_CLASHES }
    }
}

impl Lists {
    pub fn make(&mut self, items: impl Iterator<Item = Item>) -> u32 {
        let index = self.pool.take();
        let list = &mut self.pool.all[index as usize];
        items.for_each(|item| push(list, item));
        index
    }

    pub fn items(&self, index: u32) -> &[Item] {
        &self.pool.all[index as usize]
    }

    pub fn free(&mut self, index: u32) {
        self.pool.all[index as usize].clear();
        self.pool.free.push(index);
        self.count_clashes(index, 0);
    }

    /// Bytes that are allocated.
    pub fn allocated(&self) -> usize {
        let clashes = self.clashes.capacity() * size_of::<u32>();
        self.pool.allocated(|items| items.capacity() * size_of::<Item>()) + clashes
    }

    /// Compares an access with all before it, and remembers it; true if it follows them.
    pub fn add(&mut self, index: u32, actor: &Actor, address: u64, new: Item, hits: &mut Vec<Hit>) -> bool {
        let (items, before) = (&mut self.pool.all[index as usize], hits.len());
        let clashes = self.clashes.get(index as usize).copied().unwrap_or_default();
        if clashes < self.patience {
            add(items, actor, address, new, hits);
            let found = hits.len() - before;
            self.count_clashes(index, clashes.saturating_add(found as u32));
            return found == 0;
        }
        let follows = renew(items, actor, new);
        if follows && new.write {
            self.count_clashes(index, 0);
        }
        follows
    }

    fn count_clashes(&mut self, index: u32, clashes: u32) {
        let place = index as usize;
        if clashes != 0 && self.clashes.len() <= place {
            self.clashes.resize(place + 1, 0);
        }
        if let Some(count) = self.clashes.get_mut(place) {
            *count = clashes;
        }
    }
}

/// Compares an access with all before it, and remembers it.
fn add(items: &mut Vec<Item>, actor: &Actor, address: u64, new: Item, hits: &mut Vec<Hit>) {
    let mut hit = |first: Item, bytes, (first_lane, second_lane, gap)| {
        hits.push(Hit { address, bytes, first, first_lane, second_lane, gap });
    };
    if new.races_with_itself() {
        let others = new.mask & (new.mask - 1);
        hit(new, new.bytes, (new.mask.trailing_zeros() as u8, others.trailing_zeros() as u8, Gap::Order));
    }
    let mut rests = Vec::new();
    for item in items.iter_mut().filter(|item| item.bytes & new.bytes != 0) {
        if let Some(lanes) = clash(actor, item, &new) {
            hit(*item, item.bytes & new.bytes, lanes);
        }
        rests.extend(forget(actor, item, &new));
    }
    // First those that are gone: rests may take their room.
    items.retain(|item| item.bytes != 0 && item.mask != 0);
    rests.into_iter().filter(|rest| rest.mask != 0).for_each(|rest| push(items, rest));
    match items.iter_mut().find(|item| item.merges_with(&new)) {
        Some(item) => item.mask |= new.mask,
        None => push(items, new),
    }
}

/// Only the last access counts, until a write follows it; true if this one does.
fn renew(items: &mut Vec<Item>, actor: &Actor, new: Item) -> bool {
    let follows = !new.races_with_itself() && items.iter().all(|item| clash(actor, item, &new).is_none());
    items.clear();
    push(items, new);
    follows
}

/// How two accesses to the same bytes race, if they do.
fn clash(actor: &Actor, item: &Item, new: &Item) -> Option<(u8, u8, Gap)> {
    let conflict = item.bytes & new.bytes != 0
        && (item.write || new.write)
        && !item.morally_strong_with(new, actor.is_at_home(item.name));
    if conflict { actor.unordered(item, new.mask) } else { None }
}

/// Drops of an earlier access what the new one stands for: whoever races with that races with the new one too.
/// A strong write does not stand for a weak one, which races with strong accesses that the strong write does not.
/// Returns what is left of the bytes that both touched, if those and the others no longer have the same lanes.
fn forget(actor: &Actor, item: &mut Item, new: &Item) -> Option<Item> {
    let same_class = (item.strong, item.asynchronous) == (new.strong, new.asynchronous) && actor.is_at_home(item.name);
    let stands_for = (new.write || !item.write) && (new.strong.is_none() || same_class);
    if !stands_for {
        return None;
    }
    let stood_for = if new.outlasts(item) { new.mask } else { 0 };
    let left = actor.unfollowed(item, new.mask) & !stood_for;
    if item.bytes & !new.bytes == 0 {
        item.mask = left;
        return None;
    }
    if left == item.mask {
        return None;
    }
    let rest = Item { mask: left, bytes: item.bytes & new.bytes, ..*item };
    item.bytes &= !new.bytes;
    Some(rest)
}
