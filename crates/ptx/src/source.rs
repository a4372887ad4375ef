//! The text a module was read from, and where in it each statement stands.

use std::ops::Range;

/// A named text. The name is what reports print; it need not be a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub text: String,
}

/// A range of bytes of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// A place as people count: both from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Where one statement stands: all of it, its mnemonic or name, and each operand.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    pub whole: Span,
    pub head: Span,
    pub operands: Vec<Span>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    pub fn position(&self, offset: u32) -> Position {
        let before = &self.text.as_bytes()[..(offset as usize).min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        // A character begins at every byte that does not continue one.
        let characters = before[line_start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        Position { line, column: characters as u32 + 1 }
    }

    /// The text of a line, counted from one, without its end.
    pub fn line(&self, line: u32) -> &str {
        self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or("")
    }
}

impl Span {
    pub fn new(range: Range<usize>) -> Span {
        Span { start: range.start as u32, end: range.end as u32 }
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}
