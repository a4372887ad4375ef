//! Errors found while a kernel is generated. They point at the author's line, never into this crate.

use crate::builder;
use std::fmt;
use std::panic::{Location, resume_unwind};

pub type Place = &'static Location<'static>;

/// Why a kernel could not be generated.
#[derive(Debug)]
pub struct BuildError {
    pub message: String,
    pub at: Place,
    pub notes: Vec<Note>,
}

/// What the reader should know besides: another line that matters, or what to do.
#[derive(Debug)]
pub struct Note {
    pub text: String,
    /// None: the note is a help line.
    pub at: Option<Place>,
}

impl BuildError {
    pub(crate) fn new(message: impl Into<String>, at: Place) -> BuildError {
        BuildError { message: message.into(), at, notes: vec![] }
    }

    pub(crate) fn note(mut self, text: impl Into<String>, at: Place) -> BuildError {
        self.notes.push(Note { text: text.into(), at: Some(at) });
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> BuildError {
        self.notes.push(Note { text: text.into(), at: None });
        self
    }

    /// Leaves the kernel's closure; [`crate::build`] returns the error. Kernel code thus needs no `?`. Without a kernel
    /// nobody would catch it: then it is a panic like any other.
    #[track_caller]
    pub(crate) fn raise(self) -> ! {
        match builder::is_building() {
            true => resume_unwind(Box::new(self)),
            false => panic!("{self}"),
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}\n{}", self.message, snippet(self.at))?;
        for note in &self.notes {
            match note.at {
                Some(at) => write!(f, "\nnote: {}\n{}", note.text, snippet(at))?,
                None => write!(f, "\nhelp: {}", note.text)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

/// The line with a caret where the source is at hand, its place alone where it is not.
fn snippet(at: Place) -> String {
    let place = format!("  --> {}:{}:{}", at.file(), at.line(), at.column());
    let Some(line) = source_line(at) else { return place };
    let number = at.line().to_string();
    let caret = format!("{:1$}", "^", 1);
    format!("{place}\n   {number} | {line}\n   {:1$} | {caret:>2$}", "", number.len(), at.column() as usize)
}

/// Paths are relative to the workspace, and tests run two folders below it.
fn source_line(at: Place) -> Option<String> {
    let read = |up: &&str| std::fs::read_to_string(format!("{up}{}", at.file())).ok();
    let text = ["", "../../"].iter().find_map(read)?;
    text.lines().nth(at.line() as usize - 1).map(str::to_owned)
}
