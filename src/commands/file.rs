//! Files that a command writes: checked before it runs, and never left half written.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};

/// Refuses a path that cannot become a file, before the work is done that it is for.
pub fn check(flag: &str, path: &Path) -> anyhow::Result<()> {
    let folder = folder_of(path);
    let (shown, missing) = (path.display(), folder.display());
    ensure!(folder.is_dir(), "`{flag} {shown}`: there is no folder {missing}: make it, or name another");
    ensure!(!path.is_dir(), "`{flag} {shown}` is a folder: expected a file");
    Ok(())
}

/// Puts a text into a file, all of it or nothing: what was there stays until all is written.
pub fn write(flag: &str, path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("`{flag} {}` cannot be written", path.display());
    // A link stays one, and a device or a pipe must not be replaced by a file.
    let target = path.canonicalize().unwrap_or_else(|_| path.into());
    if target.exists() && !target.is_file() {
        return std::fs::write(&target, text).with_context(failed);
    }
    let beside = beside(&target);
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, &target));
    if written.is_err() {
        // What matters is why it was not written.
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(failed)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name of this process alone.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    folder_of(path).join(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        for text in ["one", "two"] {
            write("--csv", &path, text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing lies beside it");
        let lost = write("--csv", &folder.path().join("no/a.csv"), "three").unwrap_err().to_string();
        assert!(lost.starts_with("`--csv ") && lost.ends_with("a.csv` cannot be written"), "{lost}");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_replaced_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::fs::write(folder.path().join("file"), "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write("--out", &link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "new");
        write("--out", Path::new("/dev/null"), "gone").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn a_path_without_a_folder_is_refused_at_once() {
        check("--csv", Path::new("a.csv")).unwrap();
        let said = |path: &str| check("--csv", Path::new(path)).unwrap_err().to_string();
        assert_eq!(
            said("/nonexistent/a.csv"),
            "`--csv /nonexistent/a.csv`: there is no folder /nonexistent: make it, or name another"
        );
        assert_eq!(said("/"), "`--csv /` is a folder: expected a file");
    }
}
