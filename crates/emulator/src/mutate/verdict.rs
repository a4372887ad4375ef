//! What became of a mutant.

use launch::Finding;
use std::fmt;

/// The verdict on one mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody would have noticed.
    Caught(Catch),
    /// It makes no difference, and here is why.
    Equivalent(Proof),
    /// No thread of any witness ran the statement, so nothing is known of it.
    NotExecuted,
    /// Nobody noticed, and nothing proves that there was nothing to notice.
    Missed(Cause),
}

/// Who noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Catch {
    /// A check: its first finding that the kernel does not have.
    Finding(Box<Finding>),
    /// No check, but results differ from those of the kernel.
    WrongResult { seed: u64 },
}

/// Why a mutant orders what the kernel orders, computed from runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Another synchronisation orders these two lines as well: they conflict only where neither does.
    Path { by: u32, text: String, first: u32, second: u32 },
    /// Several others do, each of which suffices: these lines conflict only where none of them does.
    Paths { first: u32, second: u32 },
    /// No two lines conflict for want of it, even where no other synchronisation orders anything.
    NothingToOrder,
    /// The mutant waits for more than the kernel does.
    Stronger,
    /// This assembler makes the same machine code of both.
    SameCode { assembler: String },
}

/// Why nobody noticed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// What it orders is not watched: this is why.
    Blind(&'static str),
    /// The emulator does not run it: this is why. Hardware might.
    Refused(String),
    /// It went well, and yet these lines of the kernel are ordered by nothing else.
    Needed { first: u32, second: u32 },
    /// The runs that would have proven that it orders nothing did not end.
    Undecided,
    /// Mbarriers are left with other arrivals in an open phase than the kernel leaves there: more rounds might go wrong.
    Strays,
}

impl Verdict {
    /// The column of the table.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Caught(_) => "caught",
            Verdict::Equivalent(_) => "equivalent",
            Verdict::NotExecuted => "not executed",
            Verdict::Missed(_) => "missed",
        }
    }
}

impl Catch {
    /// What caught it, in a word: a check's name, or what took its place.
    pub fn by(&self) -> &'static str {
        match self {
            Catch::Finding(finding) => finding.check,
            Catch::WrongResult { .. } => "wrong result",
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::Path { by, text, first, second } => {
                write!(formatter, "`{text}` (line {by}) orders {} as well", Lines(*first, *second))
            }
            Proof::Paths { first, second } => {
                write!(formatter, "several others order {}, and each suffices", Lines(*first, *second))
            }
            Proof::NothingToOrder => {
                formatter.write_str("no two lines conflict for want of it, even if nothing else orders anything")
            }
            Proof::Stronger => formatter.write_str("it waits for more than the kernel does"),
            Proof::SameCode { assembler } => write!(formatter, "{assembler} makes the same machine code of it"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Blind(why) => formatter.write_str(why),
            Cause::Refused(why) => write!(formatter, "the emulator does not run it: {why}"),
            Cause::Needed { first, second } => {
                write!(formatter, "nothing else orders {}, which went well by luck", Lines(*first, *second))
            }
            Cause::Strays => formatter.write_str(
                "phases of mbarriers are left with other arrivals than the kernel leaves there, and these launches are too \
                 short to show what comes of it",
            ),
            Cause::Undecided => formatter.write_str("what it orders could not be found out: runs do not end"),
        }
    }
}

/// `line 4`, `lines 4 and 7`.
struct Lines(u32, u32);

impl fmt::Display for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lines(first, second) if first == second => write!(formatter, "line {first}"),
            Lines(first, second) => write!(formatter, "lines {first} and {second}"),
        }
    }
}
