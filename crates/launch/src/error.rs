//! What can be wrong with a recipe, its files, or what a kernel left in its buffers.

use std::fmt;
use std::path::PathBuf;

use crate::source::Spot;

/// Every error of this crate.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The recipe does not read or does not add up.
    #[error("{}{message}", Prefix(place))]
    Recipe {
        /// Where, when the recipe was read from a text.
        place: Option<Place>,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file named by the recipe cannot be used.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A buffer does not hold what the recipe expects.
    #[error("buffer `{buffer}`: {message}")]
    Expectation {
        /// The buffer.
        buffer: String,
        /// How many elements differ, and the first of them.
        message: String,
    },
    /// The PTX does not read.
    #[error(transparent)]
    Ptx(#[from] ptx::Diagnostics),
}

/// A line and column, both counted from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// The line, from one.
    pub line: usize,
    /// The column in characters, from one.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

struct Prefix<'a>(&'a Option<Place>);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => write!(formatter, "{place}: "),
            None => Ok(()),
        }
    }
}

/// An error that knows its byte offset but not yet its file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Where in the text.
    pub spot: Spot,
    /// What is wrong and what to do.
    pub message: String,
}

impl Fault {
    /// A fault at a spot.
    pub fn new(spot: Spot, message: impl Into<String>) -> Fault {
        Fault { spot, message: message.into() }
    }
}
