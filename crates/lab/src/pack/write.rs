//! Packs on disk: a folder is there complete, or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Files, MANIFEST};
use crate::Error;

/// A folder that is there already is replaced only if it is empty or a pack.
pub fn check_target(folder: &Path) -> Result<(), Error> {
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
    check_target(folder)?;
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    fs::create_dir_all(&parent).map_err(|error| Error::folder(&parent, error))?;
    // Removes itself where anything goes wrong from here on.
    let unfinished = tempfile::Builder::new().prefix(".veriflash-").tempdir_in(&parent);
    let unfinished = unfinished.map_err(|error| Error::folder(&parent, error))?;
    let fresh = unfinished.path().join("new");
    for (path, bytes) in files {
        let path = fresh.join(path);
        let folder = path.parent().unwrap_or(&fresh);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
        written.map_err(|error| Error::folder(&path, error))?;
    }
    if folder.exists() {
        fs::rename(folder, unfinished.path().join("old")).map_err(|error| Error::folder(folder, error))?;
    }
    fs::rename(&fresh, folder).map_err(|error| Error::folder(folder, error))
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
