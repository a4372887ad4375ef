//! The folder on disk: whom it belongs to, how entries get there, and what is cleared away.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most that entries may take together; above it the oldest go. A kernel has about 100 KB.
pub const MOST_FOLDER_BYTES: u64 = 256 << 20;

/// A temporary file of that age has no writer any more.
pub const STALE: Duration = Duration::from_secs(3600);

/// Why the folder must not be used: what lies in it is executed, so nobody else may write there. A folder that is not
/// there yet is made so.
pub fn distrust(folder: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        unsafe extern "C" {
            safe fn geteuid() -> u32;
        }
        let (metadata, user) = (fs::metadata(folder).ok()?, geteuid());
        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
        let why = match (owner == user || owner == 0, mode & 0o022) {
            (true, 0) => return None,
            (true, _) => format!("other users can write to it (mode {mode:o}): `chmod go-w` it"),
            (false, _) => format!("it belongs to user {owner}, this process to user {user}"),
        };
        Some(format!("the cache {} is not used: {why}, or name another folder in VERIFLASH_CACHE", folder.display()))
    }
    #[cfg(not(unix))]
    {
        let _ = folder; // The platform's place for caches is the user's own.
        None
    }
}

/// Readers see the whole entry or none: it is written under another name in the same folder, and renamed.
pub fn write(path: &Path, entry: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    if distrust(folder).is_some() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let (temporary, mut file) = temporary(path)?;
    let written = file.write_all(entry).and_then(|()| {
        drop(file);
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A name that no other process takes, in no other container that shares the folder: process numbers repeat there.
fn temporary(path: &Path) -> Result<(PathBuf, File)> {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let name = path.with_extension(format!("{random:016x}.tmp"));
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (name, file)),
        }
    }
}

fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Removes what crashed writers left, and the oldest entries of a folder that has grown too large. Others may do the
/// same at the same time: what is gone already is no fault.
pub fn tidy(folder: &Path, most_bytes: u64) {
    let Ok(files) = fs::read_dir(folder) else { return };
    let mut entries = Vec::new();
    for file in files.flatten() {
        let (path, Ok(metadata)) = (file.path(), file.metadata()) else { continue };
        let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("tmp") if written.elapsed().is_ok_and(|age| age > STALE) => drop(fs::remove_file(&path)),
            Some("cubin") => entries.push((written, metadata.len(), path)),
            _ => {}
        }
    }
    let mut bytes: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    entries.sort();
    for (_, length, path) in entries {
        if bytes <= most_bytes {
            break;
        }
        let _ = fs::remove_file(path);
        bytes -= length;
    }
}
