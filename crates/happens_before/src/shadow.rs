//! Who touched each byte last.
//!
//! A granule of 16 bytes costs 24 bytes. It splits into words, and a word into a list of items, only where one mark
//! would lie; a weak write that follows everything before it makes them whole again. Marks answer "ordered"; only
//! lists, which are exact, report.

use super::actor::{Actor, Quick};
use super::earlier::Earlier;
use super::lists::{Hit, Lists};
use super::mark::{Item, LIST, MANY, Mark, SPLIT};
use super::pages::{PAGE, Pages};
use super::pool::{Pool, make_room, push};
use super::record::Record;

/// The last write and the reads that followed it.
#[derive(Clone, Copy, Default)]
struct Cell {
    write: Mark,
    read: Mark,
}

/// The shadow of one memory space.
#[derive(Clone, Default)]
pub struct Shadow {
    pages: Pages,
    cells: Vec<Cell>,
    words: Pool<[Cell; 4]>,
    readers: Pool<Vec<Mark>>,
    pub lists: Lists,
    /// What the last instruction found.
    pub hits: Vec<Hit>,
    /// Accesses so far that did not follow all before them, also where that was not worth a hit.
    strays: u64,
    pub record: Record,
    pub earlier: Earlier,
}

/// What is remembered of some bytes.
pub enum Remembered<'a> {
    /// Of a whole granule or word: the last write and one of the reads behind it.
    Marks { bytes: u64, write: Mark, read: Mark },
    /// Of a word.
    Items(&'a [Item]),
}

impl Remembered<'_> {
    /// Whether it is plain that nobody wrote, or that nobody read.
    #[inline]
    pub fn has_one_side(&self) -> bool {
        matches!(self, Remembered::Marks { write, read, .. } if write.time == 0 || read.time == 0)
    }

    /// The same, exactly, for the first word.
    pub fn items(&self) -> Vec<Item> {
        self.items_at(0)
    }

    /// The same, exactly, for one of its words.
    pub fn items_at(&self, word: u8) -> Vec<Item> {
        match self {
            Remembered::Items(items) => items.to_vec(),
            Remembered::Marks { write, read, .. } => {
                let [write, read] = [write, read].map(|mark| mark.at_word(word));
                write.items(true).chain(read.items(false)).collect()
            }
        }
    }
}

impl Shadow {
    /// Bytes that are allocated.
    pub fn allocated(&self) -> usize {
        let cells = self.cells.capacity() * size_of::<Cell>();
        let hits = self.hits.capacity() * size_of::<Hit>();
        let readers = self.readers.allocated(|readers| readers.capacity() * size_of::<Mark>());
        self.pages.allocated() + cells + self.words.allocated(|_| 0) + readers + self.lists.allocated() + hits
    }

    /// The addresses of the pages that were touched, in order.
    pub fn pages(&self) -> Vec<u64> {
        self.pages.in_order().into_iter().map(|(page, _)| page * PAGE * 16).collect()
    }

    /// All that is remembered, in the order of addresses.
    pub fn visit(&self, mut tell: impl FnMut(u64, Remembered)) {
        for (page, begin) in self.pages.in_order() {
            for (cell, granule) in self.cells[begin..begin + PAGE as usize].iter().zip(page * PAGE..) {
                if cell.write.is(SPLIT) {
                    let words = self.words.all[cell.write.site as usize].iter().zip(granule * 4..);
                    words.for_each(|(word, number)| tell(number * 4, self.remembered(word, 4)));
                } else if (cell.write.time | cell.read.time | cell.read.tag & MANY) != 0 {
                    tell(granule * 16, self.remembered(cell, 16));
                }
            }
        }
    }

    fn remembered(&self, cell: &Cell, bytes: u64) -> Remembered<'_> {
        if cell.write.is(LIST) {
            return Remembered::Items(self.lists.items(cell.write.site));
        }
        let many = cell.read.is(MANY).then(|| self.readers.all[cell.read.site as usize][0]);
        Remembered::Marks { bytes, write: cell.write, read: many.unwrap_or(cell.read) }
    }

    #[inline]
    fn place(&mut self, granule: u64) -> usize {
        let (place, new) = self.pages.place(granule);
        if new {
            make_room(&mut self.cells, PAGE as usize);
            self.cells.resize(self.cells.len() + PAGE as usize, Cell::default());
        }
        place
    }

    /// A weak access to `count` whole granules. `mark` is that of the first; each further one begins `step` lanes on.
    pub fn granules(&mut self, quick: &mut Quick, granule: u64, count: u64, mark: Mark, step: u32, write: bool) {
        self.record.mark(granule * 16, count * 16, &mark, write);
        self.earlier.mark(quick.actor.view.grids, granule * 16, count * 16, (&mark, step), write);
        let mut done = 0;
        while done < count {
            let here = (count - done).min(PAGE - (granule + done) % PAGE);
            let mark = mark.advance(done as u32 * step);
            match write {
                true => self.stretch::<true>(quick, granule + done, here, mark, step),
                false => self.stretch::<false>(quick, granule + done, here, mark, step),
            }
            done += here;
        }
    }

    /// `granules` within one page.
    fn stretch<const WRITE: bool>(&mut self, quick: &mut Quick, granule: u64, count: u64, mark: Mark, step: u32) {
        let begin = self.place(granule);
        let (mut place, end) = (begin, begin + count as usize);
        // The tag lives in a register of its own: a mark changed in part and then copied whole stalls on its own store.
        let mut tag = mark.tag;
        while place < end {
            for cell in &mut self.cells[place..end] {
                let now = Mark { tag, ..mark };
                if (cell.write.tag | cell.read.tag) & (SPLIT | MANY) != 0
                    || !quick.follows(&cell.write, now.pattern())
                    || !(quick.follows(&cell.read, now.pattern()) || !WRITE && cell.read.same_epoch(&now))
                {
                    break;
                }
                if WRITE {
                    *cell = Cell { write: now, read: Mark::default() };
                } else {
                    cell.read = now;
                }
                tag += step;
                place += 1;
            }
            if place < end {
                self.granule(quick.actor, granule + (place - begin) as u64, place, Mark { tag, ..mark }, WRITE);
                tag += step;
                place += 1;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn granule(&mut self, actor: &Actor, granule: u64, place: usize, mark: Mark, write: bool) {
        let cell = self.cells[place];
        let plain = !cell.write.is(SPLIT) && actor.follows(&cell.write, mark.pattern());
        let done = plain
            && if write { self.write_after_readers(actor, place, mark) } else { self.join_readers(actor, place, mark) };
        if !done {
            self.granule_by_word(actor, granule, place, mark, write);
        }
    }

    /// Concurrent readers of the whole granule, e.g. eight warps that read one tile.
    fn join_readers(&mut self, actor: &Actor, place: usize, mark: Mark) -> bool {
        if actor.detached && !self.all_or_nothing(actor, place, mark) {
            return false;
        }
        let cell = &mut self.cells[place];
        if !cell.read.is(MANY) {
            let index = self.readers.take();
            let readers = &mut self.readers.all[index as usize];
            make_room(readers, 2);
            readers.extend([cell.read, mark]);
            cell.read = Mark::link(MANY, index);
            return true;
        }
        let readers = &mut self.readers.all[cell.read.site as usize];
        readers.retain(|reader| !actor.follows(reader, mark.pattern()) && !mark.outlasts(reader));
        push(readers, mark);
        true
    }

    /// Whoever learns that a unit is done follows the accesses that the unit followed, lane by lane: where it follows
    /// some lanes of a mark, only lists can tell which.
    fn all_or_nothing(&self, actor: &Actor, place: usize, mark: Mark) -> bool {
        let read = &self.cells[place].read;
        let readers = if read.is(MANY) { &self.readers.all[read.site as usize] } else { std::slice::from_ref(read) };
        readers.iter().all(|reader| actor.follows(reader, mark.pattern()) || actor.ignores(reader))
    }

    fn write_after_readers(&mut self, actor: &Actor, place: usize, mark: Mark) -> bool {
        let cell = &mut self.cells[place];
        if !cell.read.is(MANY) {
            return false;
        }
        let readers = &mut self.readers.all[cell.read.site as usize];
        if !readers.iter().all(|reader| actor.follows(reader, mark.pattern())) {
            return false;
        }
        readers.clear();
        self.readers.free.push(cell.read.site);
        *cell = Cell { write: mark, read: Mark::default() };
        true
    }

    fn granule_by_word(&mut self, actor: &Actor, granule: u64, place: usize, mark: Mark, write: bool) {
        self.split(place);
        let strays = self.strays;
        for word in 0..4u8 {
            let (mark, address) = (mark.at_word(word), granule * 4 + word as u64);
            if mark.pattern().bytes_in_word() == 4 {
                self.enter_word(actor, address, mark, write);
            } else {
                mark.items(write).for_each(|item| self.enter_list(actor, address, item));
            }
        }
        if write && self.strays == strays {
            self.unsplit(place, mark);
        }
    }

    /// The words of a granule, which splits if it was whole.
    fn split(&mut self, place: usize) -> usize {
        let cell = self.cells[place];
        if cell.write.is(SPLIT) {
            return cell.write.site as usize;
        }
        let block = self.words.take() as usize;
        let part = |read: Mark, word: u8| Cell { write: cell.write.at_word(word), read: read.at_word(word) };
        if cell.read.is(MANY) {
            let readers = std::mem::take(&mut self.readers.all[cell.read.site as usize]);
            self.readers.free.push(cell.read.site);
            for word in 0..4u8 {
                self.words.all[block][word as usize] = part(readers[0], word);
                if readers.len() > 1 {
                    self.make_list(block, word, &readers[1..]);
                }
            }
        } else {
            self.words.all[block] = [0, 1, 2, 3].map(|word| part(cell.read, word));
        }
        self.cells[place] = Cell { write: Mark::link(SPLIT, block as u32), read: Mark::default() };
        block
    }

    /// After a weak write of the whole granule that follows everything nothing else is left to tell.
    fn unsplit(&mut self, place: usize, mark: Mark) {
        let block = self.cells[place].write.site;
        for cell in std::mem::take(&mut self.words.all[block as usize]) {
            self.free_list(&cell);
        }
        self.words.free.push(block);
        self.cells[place] = Cell { write: mark, read: Mark::default() };
    }

    fn free_list(&mut self, cell: &Cell) {
        if cell.write.is(LIST) {
            self.lists.free(cell.write.site);
        }
    }

    /// A weak access to a whole word by one lane or by every lane.
    pub fn word(&mut self, actor: &Actor, word: u64, mark: Mark, write: bool) {
        self.record.mark(word * 4, 4, &mark, write);
        self.earlier.mark(actor.view.grids, word * 4, 4, (&mark, 0), write);
        self.enter_word(actor, word, mark, write);
    }

    fn enter_word(&mut self, actor: &Actor, word: u64, mark: Mark, write: bool) {
        let place = self.place(word / 4);
        let block = self.split(place);
        let cell = &mut self.words.all[block][word as usize % 4];
        let known = |prior: &Mark| prior.time == 0 || actor.follows(prior, mark.pattern());
        let races_with_itself = write && mark.pattern().is_every();
        if !cell.write.is(LIST) && known(&cell.write) && known(&cell.read) && !races_with_itself {
            if write {
                *cell = Cell { write: mark, read: Mark::default() };
            } else {
                cell.read = mark;
            }
            return;
        }
        let strays = self.strays;
        mark.items(write).for_each(|item| self.enter_list(actor, word, item));
        if write && self.strays == strays {
            let listed = std::mem::replace(
                &mut self.words.all[block][word as usize % 4],
                Cell { write: mark, read: Mark::default() },
            );
            self.free_list(&listed);
        }
    }

    fn make_list(&mut self, block: usize, word: u8, more_reads: &[Mark]) -> u32 {
        let cell = self.words.all[block][word as usize];
        let reads = [cell.read].into_iter().chain(more_reads.iter().map(|mark| mark.at_word(word)));
        let index = self.lists.make(cell.write.items(true).chain(reads.flat_map(|mark| mark.items(false))));
        self.words.all[block][word as usize] = Cell { write: Mark::link(LIST, index), read: Mark::default() };
        index
    }

    fn open_list(&mut self, word: u64) -> u32 {
        let place = self.place(word / 4);
        let block = self.split(place);
        let cell = &self.words.all[block][word as usize % 4];
        if cell.write.is(LIST) { cell.write.site } else { self.make_list(block, word as u8 % 4, &[]) }
    }

    /// The exact case: any bytes of one word, any lanes, weak or strong.
    pub fn list(&mut self, actor: &Actor, word: u64, new: Item) {
        self.record.item(word, &new);
        self.earlier.item(actor.view.grids, word, &new);
        self.enter_list(actor, word, new);
    }

    fn enter_list(&mut self, actor: &Actor, word: u64, new: Item) {
        let index = self.open_list(word);
        let follows = self.lists.add(index, actor, word * 4, new, &mut self.hits);
        self.strays += u64::from(!follows);
    }
}
