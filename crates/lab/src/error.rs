//! Why there is no pack, or nothing to verify. A kernel that is wrong is not an error: its stage fails.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kernel(#[from] launch::Error),
    #[error(transparent)]
    Problem(#[from] attention::Error),
    #[error("{kernel}: {message}")]
    Contract { kernel: String, message: String },
    /// The file with gates does not read.
    #[error(transparent)]
    Settings(launch::Error),
    #[error("{}: {message}", path.display())]
    Folder { path: PathBuf, message: String },
    #[error("interrupted: nothing was written")]
    Interrupted,
}

impl Error {
    pub(crate) fn folder(path: &Path, message: impl ToString) -> Error {
        Error::Folder { path: path.into(), message: message.to_string() }
    }
}
