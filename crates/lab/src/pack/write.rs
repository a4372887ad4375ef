//! Packs on disk: a folder is there complete, or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use super::workplace::{OLD, Workplace};
use super::{Files, MANIFEST};
use crate::Error;

/// What would keep a pack from being written, said before anything is run: stages may take long.
pub fn check_target(folder: &Path) -> Result<(), Error> {
    check_contents(folder)?;
    let parent = parent(folder);
    let there = parent.ancestors().find(|place| place.exists()).unwrap_or(&parent);
    // Only a try tells whether something can be made there. It removes itself.
    Workplace::new(there, folder).map(drop).map_err(|error| unwritten(folder, there, error))
}

fn parent(folder: &Path) -> PathBuf {
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Which file of the pack could not be written, or where it was to be.
fn unwritten(folder: &Path, place: &Path, error: impl std::fmt::Display) -> Error {
    Error::folder(folder, format!("the pack cannot be written: {}: {error}", place.display()))
}

/// A folder that is there already is replaced only if it is empty or a pack.
fn check_contents(folder: &Path) -> Result<(), Error> {
    let Ok(mut entries) = folder.read_dir() else {
        return match folder.exists() {
            true => Err(Error::folder(folder, "is there and is no folder: choose another")),
            false => Ok(()),
        };
    };
    if entries.next().is_none() || folder.join(MANIFEST).is_file() {
        return Ok(());
    }
    Err(Error::folder(folder, "is a folder that is no pack, and is not replaced: choose another"))
}

/// Writes beside the target, and renames at the end.
pub fn write(folder: &Path, files: &Files) -> Result<(), Error> {
    check_contents(folder)?;
    let parent = parent(folder);
    fs::create_dir_all(&parent).map_err(|error| unwritten(folder, &parent, error))?;
    // Removes itself where anything goes wrong from here on.
    let unfinished = Workplace::new(&parent, folder).map_err(|error| unwritten(folder, &parent, error))?;
    let fresh = unfinished.path().join("new");
    for (name, bytes) in files {
        let path = fresh.join(name);
        let place = path.parent().unwrap_or(&fresh);
        let written = fs::create_dir_all(place).and_then(|()| fs::write(&path, bytes));
        written.map_err(|error| unwritten(folder, Path::new(name), error))?;
    }
    put(&fresh, folder, &unfinished.path().join(OLD)).map_err(|error| unwritten(folder, folder, error))
}

/// Puts the new pack into the place of the old one. On Linux in one step, so that there is a whole pack whenever the process is killed.
fn put(fresh: &Path, folder: &Path, old: &Path) -> std::io::Result<()> {
    if !folder.exists() {
        return fs::rename(fresh, folder);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        // Not every file system can do it.
        if renameat_with(CWD, fresh, CWD, folder, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    fs::rename(folder, old)?;
    fs::rename(fresh, folder)
}

/// Reads every file; what is neither file nor folder is refused.
pub fn read(folder: &Path) -> Result<Files, Error> {
    let mut files = Files::new();
    read_into(folder, "", &mut files)?;
    Ok(files)
}

fn read_into(folder: &Path, prefix: &str, files: &mut Files) -> Result<(), Error> {
    let entries = folder.read_dir().map_err(|error| Error::folder(folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::folder(folder, error))?;
        let path = entry.path();
        let name = entry.file_name().into_string().map_err(|_| Error::folder(&path, "has a name that is not text"))?;
        let kind = entry.file_type().map_err(|error| Error::folder(&path, error))?;
        if kind.is_dir() {
            read_into(&path, &format!("{prefix}{name}/"), files)?;
        } else if kind.is_file() {
            let bytes = fs::read(&path).map_err(|error| Error::folder(&path, error))?;
            files.insert(format!("{prefix}{name}"), bytes);
        } else {
            return Err(Error::folder(&path, "is neither a file nor a folder: a pack has nothing else"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Files {
        [(MANIFEST.to_string(), text.into()), ("logs/a.json".to_string(), b"{}".to_vec())].into()
    }

    #[test]
    fn a_pack_is_replaced_and_leaves_nothing_beside() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("deep/pack");
        write(&folder, &files("old")).unwrap();
        write(&folder, &files("new")).unwrap();
        assert_eq!(read(&folder).unwrap(), files("new"));
        assert_eq!(folder.parent().unwrap().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn another_folder_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("thesis.tex"), "mine").unwrap();
        assert!(write(parent.path(), &files("new")).unwrap_err().to_string().contains("is no pack"));
        assert_eq!(fs::read(parent.path().join("thesis.tex")).unwrap(), b"mine");
        let file = parent.path().join("thesis.tex");
        assert!(check_target(&file).is_err());
    }

    #[test]
    fn where_nothing_can_be_made_is_told_beforehand() {
        let parent = tempfile::tempdir().unwrap();
        check_target(&parent.path().join("not/yet/there")).unwrap();
        assert_eq!(parent.path().read_dir().unwrap().count(), 0, "a try leaves nothing");
        fs::write(parent.path().join("file"), "").unwrap();
        let error = check_target(&parent.path().join("file/pack")).unwrap_err().to_string();
        assert!(error.contains("file/pack: the pack cannot be written: "), "{error}");
    }

    #[test]
    fn a_pack_that_cannot_be_finished_leaves_the_old_one() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("pack");
        write(&folder, &files("old")).unwrap();
        // A file and a folder of the same name.
        let mut impossible = files("new");
        impossible.insert("logs".into(), Vec::new());
        assert!(write(&folder, &impossible).is_err());
        assert_eq!(read(&folder).unwrap(), files("old"));
        assert_eq!(parent.path().read_dir().unwrap().count(), 1);
    }
}
