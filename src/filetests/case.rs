//! One case: a `.ptx` file and its kind.

use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its expectations hold.
    Run,
    /// No check finds anything.
    Pass,
    /// The checks find exactly what its `//~` lines say, and nothing once it is cured.
    Fail,
    /// The parser or the verifier refuses it, as its `//~` lines say.
    Reject,
}

impl Kind {
    pub const ALL: [(&'static str, Kind); 4] =
        [("run", Kind::Run), ("pass", Kind::Pass), ("fail", Kind::Fail), ("reject", Kind::Reject)];

    /// The folder behind the last `filetests` in the path says what a case is.
    fn of(path: &Path) -> Option<Kind> {
        let folders: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        let root = folders.iter().rposition(|folder| folder == "filetests")?;
        let kind = folders.get(root + 1)?;
        Kind::ALL.iter().find(|(name, _)| name == kind).map(|(_, kind)| *kind)
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    /// As reports name it: from the kind's folder on.
    pub name: String,
    pub path: PathBuf,
    pub kind: Kind,
    pub text: String,
}

/// Every case under the given files and folders, in the order of their names. Nothing passes by silence: that there is
/// none is an error.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Case>, String> {
    let mut files = vec![];
    for path in paths {
        walk(path, &mut files).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    files.sort();
    files.dedup();
    if files.is_empty() {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(format!("{}: no case there: expected `.ptx` files", paths.join(", ")));
    }
    files.iter().map(|path| read(path)).collect()
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        std::fs::metadata(path)?;
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "ptx") {
            walk(&path, files)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Case, String> {
    let full = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    let kind = Kind::of(&full).ok_or_else(|| {
        format!("{}: expected a folder `filetests/run`, `pass`, `fail` or `reject` around it", path.display())
    })?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text_name = full.display().to_string();
    let name = text_name.rsplit_once("filetests/").map_or(text_name.clone(), |(_, name)| name.to_string());
    Ok(Case { name, path: path.to_path_buf(), kind, text })
}
