//! One case: a file and its kind.

use std::path::{Path, PathBuf};

/// Recipes for PTX that others wrote.
const CORPUS: &str = "corpus";
/// Folders that hold cases; the last one in a path counts.
const ROOTS: [&str; 2] = ["filetests", CORPUS];
/// The folder under `fail` for bugs that no check finds.
pub const WRONG_RESULT: &str = "wrong-result";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its expectations hold.
    Run,
    /// No check finds anything.
    Pass,
    /// The checks find exactly what its `//~` lines say, and nothing once it is cured.
    Fail,
    /// The same for lints, which tell of costs.
    Lint,
    /// The parser or the verifier refuses it, as its `//~` lines say.
    Reject,
    /// A recipe under `corpus/` for PTX that another compiler wrote: its expectations hold, and no check finds anything
    /// but what its `#~` lines say.
    Corpus,
}

impl Kind {
    pub const ALL: [(&'static str, Kind); 5] = [
        ("run", Kind::Run),
        ("pass", Kind::Pass),
        ("fail", Kind::Fail),
        ("lint", Kind::Lint),
        ("reject", Kind::Reject),
    ];

    /// The folder behind the last `filetests` in the path says what a case is; under `corpus` all are alike.
    fn of(path: &Path) -> Option<Kind> {
        let folders: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        let root = folders.iter().rposition(|folder| ROOTS.contains(&folder.as_ref()))?;
        if folders[root] == CORPUS {
            return (path.extension()? == "toml").then_some(Kind::Corpus);
        }
        let kind = folders.get(root + 1)?;
        Kind::ALL.iter().find(|(name, _)| name == kind).map(|(_, kind)| *kind)
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    /// As reports name it: its path under `filetests/` or `corpus/`.
    pub name: String,
    pub path: PathBuf,
    pub kind: Kind,
    pub text: String,
}

impl Case {
    /// Does a `fail` case compute something wrong, which only its `expect` shows?
    pub fn is_about_results(&self) -> bool {
        self.kind == Kind::Fail && self.name.split('/').nth(1) == Some(WRONG_RESULT)
    }

    /// Does a corpus case say that its kernel traps?
    pub fn traps(&self) -> bool {
        self.kind == Kind::Corpus
            && self.text.lines().any(|line| line.starts_with("#~") && line.contains("error[trap]"))
    }
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
        let expected = "expected `.ptx` files under `filetests`, or `.toml` files under `corpus`";
        return Err(format!("{}: no case there: {expected}", paths.join(", ")));
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
        if path.is_dir() || is_case(&path)? {
            walk(&path, files)?;
        }
    }
    Ok(())
}

/// A `.ptx`, unless it is one that a recipe of the corpus names, or such a recipe.
fn is_case(path: &Path) -> std::io::Result<bool> {
    let full = path.canonicalize()?;
    let root = full.iter().rev().find(|name| ROOTS.iter().any(|root| name == root));
    let expected = if root.is_some_and(|root| root == CORPUS) { "toml" } else { "ptx" };
    Ok(full.extension().is_some_and(|extension| extension == expected))
}

fn read(path: &Path) -> Result<Case, String> {
    let full = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    let kind = Kind::of(&full).ok_or_else(|| {
        format!(
            "{}: expected a folder `filetests/run`, `pass`, `fail`, `lint` or `reject` around it, or a `.toml` under `corpus`",
            path.display()
        )
    })?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text_name = full.display().to_string();
    let root = if kind == Kind::Corpus { "corpus/" } else { "filetests/" };
    let name = text_name.rsplit_once(root).map_or(text_name.clone(), |(_, name)| name.to_string());
    Ok(Case { name, path: path.to_path_buf(), kind, text })
}
