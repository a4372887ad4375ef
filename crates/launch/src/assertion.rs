//! `[assertions]`: what a kernel asserts of itself, and the report that a thread leaves before it traps.
//!
//! A report is one word, so that one store writes it whole and no thread has to wait for another: the thread in the low
//! ten bits, the number of the assertion in the next ten, counted from one, and above them the number of the block,
//! counted along x, then y, then z. Zero: no assertion has failed.

use std::fmt;

use crate::buffer::Init;
use crate::element::Element;
use crate::error::Fault;
use crate::read::unknown_buffer;
use crate::recipe::Recipe;
use crate::source::Spot;
use crate::toml_table::Item;

/// What a kernel asserts of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertions {
    /// `report`: the buffer of u64 whose first word is the report.
    pub report: String,
    /// `list`: the first is number one.
    pub list: Vec<Assertion>,
}

/// Something that must hold wherever the kernel comes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// `message`: what must hold.
    pub message: String,
    /// `at`: the line that says so, where it is known.
    pub at: Option<String>,
}

/// An assertion that did not hold for a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The assertion.
    pub assertion: Assertion,
    /// The block in x, y and z.
    pub block: [u32; 3],
    /// The thread in its block.
    pub thread: u32,
}

const THREAD_BITS: u32 = 10;
const NUMBER_BITS: u32 = 10;

impl Assertions {
    pub(crate) fn read(item: Item) -> Result<Assertions, Fault> {
        let table = item.table("[assertions]")?;
        table.allow(&["report", "list"])?;
        let list = table.need("list")?.list()?.into_iter().map(Assertion::read).collect::<Result<_, Fault>>()?;
        Ok(Assertions { report: table.need("report")?.string()?.to_string(), list })
    }

    /// The buffer exists, has words of the right size, and says that nothing has failed yet.
    pub(crate) fn check(&self, recipe: &Recipe, spot: Spot) -> Result<(), Fault> {
        let buffer = recipe.buffer(&self.report).ok_or_else(|| unknown_buffer(recipe, &self.report, spot))?;
        let (name, element) = (&self.report, buffer.element.name());
        let fault = |message| Err(Fault::new(spot, message));
        match (buffer.element, &buffer.init) {
            (Element::U64, Init::Zeros) => Ok(()),
            (Element::U64, _) => fault(format!(
                "`report` is buffer `{name}`, which may say something already: expected `init = \"zeros\"`"
            )),
            _ => fault(format!("`report` is buffer `{name}` of {element}: expected one of u64")),
        }
    }

    /// What the report of a launch with this grid says; none if no assertion failed.
    ///
    /// ```
    /// use launch::assertion::{Assertion, Assertions};
    ///
    /// let list = vec![Assertion { message: "scores are finite".into(), at: None }];
    /// let assertions = Assertions { report: "report".into(), list };
    /// let failure = assertions.failure(7 << 20 | 1 << 10 | 81, [4, 1, 2]).unwrap();
    /// assert_eq!(failure.to_string(), "assertion `scores are finite` failed in CTA (3,0,1), warp 2, lane 17");
    /// assert_eq!(assertions.failure(0, [4, 1, 2]), None);
    /// ```
    pub fn failure(&self, word: u64, grid: [u32; 3]) -> Option<Failure> {
        let low = |bits: u32| word & ((1 << bits) - 1);
        let number = (low(THREAD_BITS + NUMBER_BITS) >> THREAD_BITS) as usize;
        let block = word >> (THREAD_BITS + NUMBER_BITS);
        let [x, y] = [grid[0], grid[1]].map(|blocks| u64::from(blocks.max(1)));
        let unlisted = || Assertion { message: format!("number {number}, which the recipe does not list"), at: None };
        Some(Failure {
            assertion: self.list.get(number.checked_sub(1)?).cloned().unwrap_or_else(unlisted),
            block: [block % x, block / x % y, block / x / y].map(|place| place as u32),
            thread: low(THREAD_BITS) as u32,
        })
    }
}

impl Assertion {
    fn read(item: Item) -> Result<Assertion, Fault> {
        let table = item.table("the assertion")?;
        table.allow(&["message", "at"])?;
        let at = table.optional("at", |item| Ok(item.string()?.to_string()))?;
        Ok(Assertion { message: table.need("message")?.string()?.to_string(), at })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure { assertion, block: [x, y, z], thread }, warp) = (self, self.thread / 32);
        let (message, lane) = (&assertion.message, thread % 32);
        write!(formatter, "assertion `{message}` failed in CTA ({x},{y},{z}), warp {warp}, lane {lane}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last block of a large grid, its last thread, and a number that nobody knows.
    #[test]
    fn words_say_who_and_where() {
        let assertions = Assertions { report: "report".into(), list: vec![] };
        let (grid, block) = ([70_000, 300, 40], [69_999u32, 299, 39]);
        let number = u64::from(block[0]) + 70_000 * (u64::from(block[1]) + 300 * u64::from(block[2]));
        let failure = assertions.failure(number << 20 | 1023 << 10 | 1023, grid).unwrap();
        assert_eq!((failure.block, failure.thread), (block, 1023));
        assert_eq!(failure.assertion.message, "number 1023, which the recipe does not list");
    }
}
