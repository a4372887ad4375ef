//! The operand counter: proves that every byte that an instruction moves is looked at by the checks.
//!
//! Two books are kept apart. Bytes are noted where they leave or enter memory, by whoever hands them out: the definition's
//! `fetch` and `put`, the whole-warp kernels' view of memory, the pieces of `wgmma`, the objects of mbarriers. What the
//! checks see is noted at the doors of the race detector's shadow, and where it is asked whether bytes were written. Every
//! execution is compared for itself, lane by lane; what a unit does later goes to the account of who started it, and is
//! compared byte by byte when all of it has landed.

mod balance;
mod hooks;
mod tally;
#[cfg(test)]
mod tests;

pub use balance::{Column, Line, Region};
pub use tally::Tally;

use crate::Detector;
use crate::async_engines::Number;
use balance::{Rule, gap};
use happens_before::{Seen, Sight, Space};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// What no race detector needs to see, and why.
pub const PRIVATE: [(&str, &str); 6] = [
    ("parameters of the entry", "the host fills them before the launch, and no thread can write them"),
    ("local memory and stack frames", "one thread alone can reach them; that they were written is checked"),
    ("the objects of mbarriers", "the check of mbarriers sees each use, and data that is stored over them"),
    ("prefetches and cache hints", "they move nothing, here or to where a thread could see it"),
    ("addresses in `fence.proxy.tensormap` and `createpolicy`", "they name memory and leave it alone"),
    ("the text of a failed assertion", "the report reads it, not the kernel"),
];

/// One execution of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// The books of a cluster.
#[derive(Default)]
pub struct Audit {
    books: RefCell<Books>,
}

#[derive(Default)]
struct Books {
    last: Ticket,
    /// Whose account bytes that move now go to.
    current: Ticket,
    /// The instruction that is being executed.
    draft: Option<(Ticket, Account)>,
    /// Those of which something is still to come.
    open: BTreeMap<Ticket, Account>,
    /// Who started an operation in flight.
    starters: BTreeMap<Number, Ticket>,
    tally: Tally,
}

#[derive(Default)]
struct Account {
    step: u32,
    lines: Vec<Line>,
    /// Something of it happens later, or happened so.
    flies: bool,
    /// How much is still to come.
    flights: u32,
}

impl Audit {
    /// An instruction begins.
    pub fn begin(&self, step: u32, detector: &mut Detector) {
        self.end(detector);
        let mut books = self.books.borrow_mut();
        books.last.0 += 1;
        books.current = books.last;
        books.draft = Some((books.last, Account { step, ..Account::default() }));
    }

    /// It has been executed.
    pub fn end(&self, detector: &mut Detector) {
        let seen = detector.take_record().into_iter().map(line);
        let mut books = self.books.borrow_mut();
        let Some((ticket, mut account)) = books.draft.take() else {
            return seen.for_each(|line| books.tally.orphan(line));
        };
        account.lines.extend(seen);
        match account.flights {
            0 => books.tally.settle(account),
            _ => drop(books.open.insert(ticket, account)),
        }
        books.current = Ticket::default();
    }

    /// Bytes move, or somebody asks for them.
    pub fn note(&self, column: Column, region: Region, range: Range<u64>, lanes: u32) {
        let mut books = self.books.borrow_mut();
        let current = books.current;
        let line = Line { column, region, range, lanes };
        match books.account(current) {
            Some(account) => account.lines.push(line),
            // A warp is given its parameters before its first instruction, and reports ask again when all is over: what
            // nobody asked for in time is a fault of the account that lacks the line.
            None if region == Region::Parameter || column == Column::Asked => {}
            None => books.tally.orphan(line),
        }
    }

    /// Something of the current instruction happens later.
    pub fn starts(&self) -> Ticket {
        let mut books = self.books.borrow_mut();
        let current = books.current;
        match books.account(current) {
            Some(account) => {
                account.flies = true;
                account.flights += 1;
            }
            None => books.tally.orphan("something that no instruction started"),
        }
        current
    }

    /// An operation that the current instruction starts.
    pub fn departs(&self, number: Number) {
        let ticket = self.starts();
        self.books.borrow_mut().starters.insert(number, ticket);
    }

    /// What moves from now on goes to the account of who started it; returns to whose it went.
    pub fn go_on(&self, ticket: Ticket) -> Ticket {
        std::mem::replace(&mut self.books.borrow_mut().current, ticket)
    }

    /// The same for a part of an operation in flight.
    pub fn go_on_with(&self, number: Number) -> Ticket {
        let starter = self.books.borrow().starters.get(&number).copied();
        self.go_on_for(starter)
    }

    /// The same for the rest of it.
    pub fn finish(&self, number: Number) -> Ticket {
        let starter = self.books.borrow_mut().starters.remove(&number);
        self.go_on_for(starter)
    }

    fn go_on_for(&self, starter: Option<Ticket>) -> Ticket {
        if starter.is_none() {
            self.books.borrow_mut().tally.orphan("a part of an operation that did not start");
        }
        self.go_on(starter.unwrap_or_default())
    }

    /// A part of it has happened.
    pub fn pauses(&self, outer: Ticket) {
        self.books.borrow_mut().current = outer;
    }

    /// All of it has happened. Instructions go on where they were.
    pub fn lands(&self, outer: Ticket) {
        let mut books = self.books.borrow_mut();
        let ticket = std::mem::replace(&mut books.current, outer);
        let Some(account) = books.account(ticket) else {
            return books.tally.orphan("the end of something that did not start");
        };
        account.flights -= 1;
        if account.flights == 0
            && let Some(account) = books.open.remove(&ticket)
        {
            books.tally.settle(account);
        }
    }

    /// The cluster has ended.
    pub fn into_tally(self, detector: &mut Detector) -> Tally {
        self.end(detector);
        let Books { open, mut tally, .. } = self.books.into_inner();
        open.into_values().for_each(|account| tally.settle(account));
        tally
    }
}

impl Books {
    fn account(&mut self, ticket: Ticket) -> Option<&mut Account> {
        match &mut self.draft {
            Some((draft, account)) if *draft == ticket => Some(account),
            _ => self.open.get_mut(&ticket),
        }
    }
}

impl Account {
    fn rule(&self) -> Rule {
        match (self.flies, self.flights) {
            (false, _) => Rule::Lanes,
            (true, 0) => Rule::Bytes,
            (true, _) => Rule::Unfinished,
        }
    }

    /// What is wrong with it, in words.
    fn fault(&self) -> Option<String> {
        let gap = gap(&self.lines, self.rule())?;
        let bytes = gap.range.end - gap.range.start;
        Some(format!("{bytes} bytes of {} at {:#x} are {}", gap.region, gap.range.start, gap.what))
    }
}

fn line(seen: Seen) -> Line {
    let region = match (seen.sight, seen.space) {
        (Sight::Barrier, _) => Region::Barrier,
        (_, Space::Shared) => Region::Shared,
        (_, Space::Global) => Region::Global,
    };
    let column = if seen.sight == Sight::Write { Column::SeenWritten } else { Column::SeenRead };
    Line { column, region, range: seen.range, lanes: seen.lanes }
}
