//! The exact case: every access to a word that still counts, with its lanes and bytes. Only lists find races.

use super::actor::{Actor, Gap};
use super::clock::bits;
use super::mark::{Chain, Item};
use super::pool::{Pool, make_room, push};
use std::collections::BTreeMap;

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
fn add(items: &mut Vec<Item>, actor: &Actor, address: u64, mut new: Item, hits: &mut Vec<Hit>) {
    let mut hit = |first: Item, bytes, (first_lane, second_lane, gap)| {
        hits.push(Hit { address, bytes, first, first_lane, second_lane, gap });
    };
    if new.races_with_itself() && !actor.agrees() {
        let others = new.mask & (new.mask - 1);
        hit(new, new.bytes, (new.mask.trailing_zeros() as u8, others.trailing_zeros() as u8, Gap::Order));
    }
    if new.is_atomic() {
        new.chain = chain(items, actor, &new);
    }
    let overlap = |item: &Item| item.bytes & new.bytes != 0;
    for index in (0..items.len()).filter(|index| overlap(&items[*index])) {
        if let Some(lanes) = clash(items, index, actor, &new) {
            hit(items[index], items[index].bytes & new.bytes, lanes);
        }
    }
    // Items keep their order, which is that of the atomics in a chain.
    let (followed, mut observers) = (Followed::by(items, actor, &new), Observers::default());
    let mut inserted = 0;
    for place in 0..items.len() {
        let index = place + inserted;
        let needed = observers.add(&items[index], place);
        let reached = followed.reaches(&items[index], place);
        if overlap(&items[index])
            && let Some(rest) = forget(&mut items[index], actor, &new, needed, reached)
        {
            make_room(items, 1);
            items.insert(index, rest);
            inserted += 1;
        }
    }
    items.retain(|item| item.bytes != 0 && item.mask != 0);
    // A write that came later stands later.
    let last = items.len().saturating_sub(1);
    let candidates = if new.write { last } else { 0 };
    match items[candidates..].iter_mut().find(|item| item.merges_with(&new)) {
        Some(item) => item.mask |= new.mask,
        None => push(items, new),
    }
}

/// The chain that an atomic goes on with, if it reads what another one left, or a new one.
fn chain(items: &[Item], actor: &Actor, new: &Item) -> Chain {
    let last = items.iter().rfind(|item| item.write && item.bytes & new.bytes != 0);
    let reads = |last: &&Item| last.is_atomic() && last.morally_strong_with(new, actor.is_at_home(last.name));
    let others = items.iter().map(|item| item.chain).max_by_key(|chain| chain.number()).unwrap_or_default();
    last.filter(reads).map_or(others.next(), |last| last.chain.continued())
}

/// Atomics that have read what this one left: whoever follows one of them follows it. PTX ISA, "Observation Order",
/// "Causality Order". Lanes of one instruction have no order among themselves.
fn observers<'a>(items: &'a [Item], index: usize, new: &'a Item) -> impl Iterator<Item = &'a Item> {
    let (item, later) = (&items[index], &items[index + 1..]);
    let reads = |later: &&Item| later.continues(item) && later.bytes & new.bytes != 0;
    later.iter().filter(move |later| item.is_atomic() && reads(later))
}

/// How far in each chain those who access now follow somebody: whoever follows an atomic follows those before it.
#[derive(Default)]
struct Followed(BTreeMap<u8, usize>);

impl Followed {
    fn by(items: &[Item], actor: &Actor, new: &Item) -> Followed {
        // Lanes that agree stand for each other only where all of them follow.
        if actor.agrees() || !items.iter().any(Item::is_atomic) {
            return Followed::default();
        }
        let mut chains = BTreeMap::new();
        let atomics =
            items.iter().enumerate().rev().filter(|(_, item)| item.is_atomic() && item.bytes & new.bytes != 0);
        for (index, item) in atomics {
            let number = item.chain.number();
            if !chains.contains_key(&number)
                && bits(actor.asking(new.mask)).any(|lane| actor.nearest(item, lane).is_none())
            {
                chains.insert(number, index);
            }
        }
        Followed(chains)
    }

    fn reaches(&self, item: &Item, index: usize) -> bool {
        item.is_atomic() && self.0.get(&item.chain.number()).is_some_and(|last| *last > index)
    }
}

/// Who has read what the atomics so far left, first.
#[derive(Default)]
struct Observers {
    /// By chain: the last one that counts for itself.
    last: BTreeMap<u8, usize>,
    /// By chain and row: which lanes, and where.
    seen: BTreeMap<(u8, u32), Vec<(u32, usize)>>,
}

impl Observers {
    /// The next item: is it the first of its lanes to have read what one before it left, of those that still count?
    fn add(&mut self, item: &Item, index: usize) -> bool {
        let chain = item.chain.number();
        if chain == 0 || item.mask == 0 {
            return false;
        }
        let seen = self.seen.entry((chain, item.name)).or_default();
        let before = seen.iter().rev().find(|(mask, _)| item.mask & !mask == 0).map(|(_, place)| *place);
        seen.push((item.mask, index));
        let needed = self.last.get(&chain).is_some_and(|last| before.is_none_or(|before| *last > before));
        if !item.chain.is_superseded() {
            self.last.insert(chain, index);
        }
        needed
    }
}

/// Only the last access counts, until a write follows it; true if this one does.
fn renew(items: &mut Vec<Item>, actor: &Actor, new: Item) -> bool {
    let follows = (0..items.len()).all(|index| clash(items, index, actor, &new).is_none());
    items.clear();
    push(items, new);
    follows && (actor.agrees() || !new.races_with_itself())
}

/// How two accesses to the same bytes race, if they do.
fn clash(items: &[Item], index: usize, actor: &Actor, new: &Item) -> Option<(u8, u8, Gap)> {
    let item = &items[index];
    let conflict = item.bytes & new.bytes != 0
        && !item.chain.is_superseded()
        && (item.write || new.write)
        && !(actor.agrees() && new.is_of_the_instruction(item))
        && !item.morally_strong_with(new, actor.is_at_home(item.name));
    if !conflict {
        return None;
    }
    let asking = actor.asking(new.mask);
    let worst = actor.unordered(item, asking)?;
    if !item.is_atomic() {
        return Some(worst);
    }
    let asked = |lane: u8| {
        let (first, second, gap) = actor.unordered(item, 1 << lane)?;
        let through = observers(items, index, new).map(|later| actor.nearest(later, lane));
        through.fold(Some(gap), Option::min).map(|gap| (first, second, gap))
    };
    bits(asking).filter_map(asked).max_by_key(|(.., gap)| *gap)
}

/// Drops of an earlier access what the new one stands for: whoever races with that races with the new one too.
/// A strong write does not stand for a weak one, which races with strong accesses that the strong write does not.
/// `needed`: it has read what those before it left, first of its lanes; `followed`: whoever accesses now follows one that has
/// read what it left. Returns what is left of the bytes that both touched, if those and the others no longer have the same
/// lanes.
fn forget(item: &mut Item, actor: &Actor, new: &Item, needed: bool, followed: bool) -> Option<Item> {
    if item.chain.is_superseded() {
        item.mask = if needed { item.mask } else { 0 };
        return None;
    }
    let same_class = (item.strong, item.asynchronous) == (new.strong, new.asynchronous) && actor.is_at_home(item.name);
    let stands_for = (new.write || !item.write) && (new.strong.is_none() || same_class);
    if !stands_for {
        return None;
    }
    let stood_for = if new.outlasts(item) && !actor.agrees() { new.mask } else { 0 };
    let left = if followed { 0 } else { actor.unfollowed(item, new.mask) & !stood_for };
    if needed && (new.strong.is_some() || actor.agrees()) {
        if left == 0 && item.bytes & !new.bytes == 0 {
            item.chain = item.chain.superseded();
        }
        return None;
    }
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

#[cfg(test)]
mod tests {
    use crate::{Detector, Kind, Lanes, Places, Scope, Semantics, Site, Space};

    /// A loop comes to one statement twice without a release in between, and others come to the word meanwhile.
    #[test]
    fn the_last_write_stands_last() {
        let mut detector = Detector::new(&[u32::MAX; 3], 3);
        let lane = |warp, lane: u32| Lanes { warp, mask: 1 << lane };
        let strong = (Semantics::relaxed(Scope::Gpu), Places::Same(0));
        let mut touch =
            |at, site, kind| detector.ordered_access(at, site, (kind, strong.0), Space::Shared, strong.1, 4);
        touch(lane(0, 0), Site(10), Kind::StrongWrite);
        touch(lane(1, 0), Site(20), Kind::Atomic);
        touch(lane(0, 1), Site(10), Kind::StrongWrite);
        let (one, other) = (Lanes { warp: 0, mask: u32::MAX }, Lanes { warp: 2, mask: u32::MAX });
        [one, other].iter().for_each(|at| detector.barrier_arrive(*at, Site(30), 1));
        detector.barrier_complete(1, &[one, other]);
        detector.ordered_access(lane(2, 0), Site(40), (Kind::Atomic, strong.0), Space::Shared, strong.1, 4);
        detector.access(lane(2, 0), Site(50), Kind::Write, Space::Shared, Places::Same(0), 4);
        let sites: Vec<_> =
            detector.take_faults().iter().map(|fault| (fault.first.site.0, fault.second.site.0)).collect();
        assert_eq!(sites, [(20, 50)], "what the second atomic read is not what the first one left");
    }
}
