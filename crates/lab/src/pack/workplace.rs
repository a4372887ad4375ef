//! Where a pack is made: a hidden folder beside its place. What a run left that was killed there, the next run to the same place removes.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use tempfile::TempDir;

/// How what is not finished is called.
const HIDDEN: &str = ".veriflash-";
/// Where the pack is meanwhile that was in the place.
pub const OLD: &str = "old";
/// Says whose it is. It is locked as long as the process lives, and written when it is locked.
const OWNER: &str = "owner";

/// A folder that removes itself. The lock goes first.
pub struct Workplace {
    _owner: File,
    folder: TempDir,
}

impl Workplace {
    /// In `parent`, for the pack that will be `folder`.
    pub fn new(parent: &Path, folder: &Path) -> std::io::Result<Workplace> {
        sweep(parent, folder);
        let made = tempfile::Builder::new().prefix(HIDDEN).tempdir_in(parent)?;
        let mut owner = File::create_new(made.path().join(OWNER))?;
        // Where there are no locks nobody can tell whether it lives: its folder is left alone.
        if owner.try_lock().is_ok() {
            owner.write_all(inscription(folder).as_bytes())?;
        }
        Ok(Workplace { _owner: owner, folder: made })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn inscription(folder: &Path) -> String {
    format!("veriflash makes {} here\n", folder.file_name().unwrap_or(folder.as_os_str()).display())
}

/// Removes what is surely of a run to the same place that lives no more. Nothing depends on it: what cannot be removed stays.
fn sweep(parent: &Path, folder: &Path) {
    let entries = parent.read_dir().into_iter().flatten().flatten();
    let is_hidden = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with(HIDDEN));
    for entry in entries.filter(|entry| is_hidden(&entry.file_name())) {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && is_abandoned(&entry.path(), folder) {
            // It was killed while it put the new pack into the place of the old one.
            let old = entry.path().join(OLD);
            let is_safe = folder.exists() || !old.exists() || fs::rename(&old, folder).is_ok();
            let _ = is_safe.then(|| fs::remove_dir_all(entry.path()));
        }
    }
}

fn is_abandoned(place: &Path, folder: &Path) -> bool {
    let Ok(mut owner) = File::open(place.join(OWNER)) else { return false };
    let mut text = String::new();
    owner.read_to_string(&mut text).is_ok() && text == inscription(folder) && owner.try_lock().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(parent: &Path) -> usize {
        parent.read_dir().unwrap().count()
    }

    /// As a process leaves it that is killed: files are there, and no lock.
    fn killed(parent: &Path, folder: &Path) {
        let Workplace { _owner, folder } = Workplace::new(parent, folder).unwrap();
        fs::create_dir(folder.path().join("new")).unwrap();
        fs::write(folder.path().join("new/manifest.json"), "{").unwrap();
        let _ = folder.keep();
    }

    #[test]
    fn what_was_left_is_removed_by_the_next_to_the_same_place() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("pack");
        killed(parent.path(), &folder);
        assert_eq!(left(parent.path()), 1);
        drop(Workplace::new(parent.path(), &folder).unwrap());
        assert_eq!(left(parent.path()), 0);
    }

    #[test]
    fn a_pack_that_was_taken_out_of_its_place_comes_back() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("pack");
        let Workplace { _owner, folder: place } = Workplace::new(parent.path(), &folder).unwrap();
        fs::create_dir(place.path().join(OLD)).unwrap();
        fs::write(place.path().join(OLD).join("manifest.json"), "old").unwrap();
        drop(_owner);
        let _ = place.keep();
        drop(Workplace::new(parent.path(), &folder).unwrap());
        assert_eq!(fs::read_to_string(folder.join("manifest.json")).unwrap(), "old");
        assert_eq!(left(parent.path()), 1);
    }

    #[test]
    fn what_is_not_surely_ours_or_still_in_use_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, other) = (parent.path().join("pack"), parent.path().join("other"));
        let alive = Workplace::new(parent.path(), &folder).unwrap();
        killed(parent.path(), &other);
        for name in ["mine", ".veriflash-notes", ".veriflash-begun"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        fs::write(parent.path().join(".veriflash-notes/owner"), "me").unwrap();
        fs::write(parent.path().join(".veriflash-begun/owner"), "").unwrap();
        fs::write(parent.path().join(".veriflash-file"), inscription(&folder)).unwrap();
        drop(Workplace::new(parent.path(), &folder).unwrap());
        assert_eq!(left(parent.path()), 6);
        assert!(alive.path().join(OWNER).is_file());
    }
}
