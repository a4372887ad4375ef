//! Where a value was written, so that an error found late still points at the text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Fault, Place};

/// A byte offset in the text a recipe was read from, or nothing when it was made by a program.
///
/// Two spots always compare equal: a recipe is the same recipe wherever it stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spot(pub Option<usize>);

impl Spot {
    /// The spot at byte `offset`.
    pub fn at(offset: usize) -> Spot {
        Spot(Some(offset))
    }
}

impl PartialEq for Spot {
    fn eq(&self, _: &Spot) -> bool {
        true
    }
}

impl Eq for Spot {}

/// The text a recipe came from and its name; empty for a recipe that a program made. Always compares equal, as [`Spot`].
#[derive(Debug, Clone, Default)]
pub struct Source {
    name: String,
    text: Arc<str>,
}

impl PartialEq for Source {
    fn eq(&self, _: &Source) -> bool {
        true
    }
}

impl Eq for Source {}

impl Source {
    /// A text and the name that errors give it, mostly a path.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// The name that errors show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folder that file names in the text are relative to.
    pub fn folder(&self) -> PathBuf {
        Path::new(&self.name).parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// A fault as an error that names file, line and column.
    pub fn error(&self, fault: Fault) -> Error {
        Error::Recipe { place: fault.spot.0.and_then(|offset| self.place(offset)), message: fault.message }
    }

    fn place(&self, offset: usize) -> Option<Place> {
        if self.name.is_empty() {
            return None;
        }
        let before = self.text.get(..offset)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Some(Place { file: self.name.clone(), line, column })
    }
}
