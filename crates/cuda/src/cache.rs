//! What the driver compiled, kept: in the process, and on disk for the next one.
//!
//! A cache must never be the reason why a program fails. Whatever is wrong with it (a folder that cannot be written, a full
//! disk, an entry that is cut off or changed), the kernel is compiled again; [`Cache::counts`] says how often and why.
//! What lies in the folder is executed: one that other users can write to is not used, and [`Cache::note`] says so.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::context::Device;
use crate::cubin;

mod disk;

/// The first word of an entry: its kind and the version of its form.
const MARK: &str = "veriflash-cubin-1";

/// No entry is longer: a length that says so is a broken one.
const MOST_BYTES: u64 = 1 << 30;

/// Names machine code: equal for equal text, GPU, driver and version of ours.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    /// For a text that the driver compiles for this GPU.
    pub fn new(text: &str, device: &Device) -> Key {
        let ((major, minor), (cuda, update)) = (device.capability, device.cuda_version);
        let (name, ours, build) = (&device.name, env!("CARGO_PKG_VERSION"), driver_build());
        let made_with = format!("{MARK} {ours}\n{name}\nsm_{major}{minor}\nCUDA {cuda}.{update}\n{build}\n");
        Key(launch::hash::hex(format!("{made_with}{text}").as_bytes()))
    }

    /// SHA-256 in hexadecimal; the name of the entry on disk.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The driver's own version, where Linux says it: drivers for the same CUDA have different compilers.
fn driver_build() -> String {
    fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default()
}

/// What happened in a cache so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Taken from this process.
    pub in_process: u64,
    /// Taken from disk.
    pub from_disk: u64,
    /// Compiled.
    pub compiled: u64,
    /// Entries on disk that were cut off or changed; each was compiled again.
    pub corrupt: u64,
    /// Entries on disk that could not be read, or must not be ([`Cache::note`]); each was compiled again.
    pub unreadable: u64,
    /// Code that the driver did not load; each was compiled again and replaced.
    pub refused: u64,
    /// Results that could not be written: no folder, no permission, no space, or a folder that must not be used.
    pub unwritable: u64,
}

#[derive(Debug, Default)]
struct Counters {
    in_process: AtomicU64,
    from_disk: AtomicU64,
    compiled: AtomicU64,
    corrupt: AtomicU64,
    unreadable: AtomicU64,
    refused: AtomicU64,
    unwritable: AtomicU64,
}

pub(crate) type Cubin = Arc<[u8]>;
type Slot = Arc<Mutex<Option<Cubin>>>;

/// Compiled code by key.
#[derive(Debug, Default)]
pub struct Cache {
    folder: Option<PathBuf>,
    slots: Mutex<HashMap<Key, Slot>>,
    counters: Counters,
}

impl Cache {
    /// In the folder that `VERIFLASH_CACHE` names, or in the platform's place for caches; `VERIFLASH_CACHE=off`: none.
    pub fn from_environment() -> Cache {
        Cache { folder: folder(|name| std::env::var_os(name)), ..Cache::default() }
    }

    /// In this folder; it is made when it is needed.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: Some(folder.into()), ..Cache::default() }
    }

    /// In this process only.
    pub fn in_process() -> Cache {
        Cache::default()
    }

    /// The folder on disk, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Why the folder is not used, though there is one: other users can write to it, and would have their code
    /// executed.
    pub fn note(&self) -> Option<String> {
        disk::distrust(self.folder()?)
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        let Counters { in_process, from_disk, compiled, corrupt, unreadable, refused, unwritable } = &self.counters;
        Counts {
            in_process: in_process.load(Relaxed),
            from_disk: from_disk.load(Relaxed),
            compiled: compiled.load(Relaxed),
            corrupt: corrupt.load(Relaxed),
            unreadable: unreadable.load(Relaxed),
            refused: refused.load(Relaxed),
            unwritable: unwritable.load(Relaxed),
        }
    }

    /// The code of that key; `compile` is asked if nobody has it. Threads that want the same code wait for one of them.
    ///
    /// ```
    /// let cache = cuda::Cache::in_process();
    /// let device = cuda::Device {
    ///     name: "NVIDIA H200".into(),
    ///     capability: (9, 0),
    ///     cuda_version: (12, 8),
    ///     uuid: String::new(),
    ///     processors: 132,
    ///     max_shared_bytes: 227 << 10,
    ///     kilohertz: 1_980_000,
    ///     memory_bandwidth: 4_800_000_000_000,
    ///     cache_bytes: 60 << 20,
    /// };
    /// let key = cuda::Key::new(".version 8.0", &device);
    /// for _ in 0..2 {
    ///     let code = cache.get_or_compile(&key, || Ok::<_, cuda::Error>(vec![1, 2, 3]))?;
    ///     assert_eq!(*code, [1, 2, 3]);
    /// }
    /// assert_eq!((cache.counts().compiled, cache.counts().in_process), (1, 1));
    /// # Ok::<(), cuda::Error>(())
    /// ```
    pub fn get_or_compile<E>(&self, key: &Key, compile: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Cubin, E> {
        let slot = lock(&self.slots).entry(key.clone()).or_default().clone();
        let mut held = lock(&slot);
        if let Some(cubin) = &*held {
            self.counters.in_process.fetch_add(1, Relaxed);
            return Ok(cubin.clone());
        }
        let cubin: Cubin = match self.read(key) {
            Some(cubin) => cubin.into(),
            None => {
                let cubin = compile()?;
                self.counters.compiled.fetch_add(1, Relaxed);
                self.write(key, &cubin);
                cubin.into()
            }
        };
        *held = Some(cubin.clone());
        Ok(cubin)
    }

    /// The driver did not load what was kept: compiles it again, and keeps that. If another thread has done so already,
    /// its code is given.
    pub(crate) fn replace<E>(
        &self,
        key: &Key,
        refused: &Cubin,
        compile: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Cubin, E> {
        self.counters.refused.fetch_add(1, Relaxed);
        let slot = lock(&self.slots).entry(key.clone()).or_default().clone();
        let mut held = lock(&slot);
        if let Some(other) = held.as_ref().filter(|held| !Arc::ptr_eq(held, refused)) {
            return Ok(other.clone());
        }
        let cubin = compile()?;
        self.counters.compiled.fetch_add(1, Relaxed);
        self.write(key, &cubin);
        let cubin: Cubin = cubin.into();
        *held = Some(cubin.clone());
        Ok(cubin)
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.cubin", key.as_str())))
    }

    fn read(&self, key: &Key) -> Option<Vec<u8>> {
        if self.note().is_some() {
            return self.count(&self.counters.unreadable);
        }
        let file = match File::open(self.path(key)?) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(_) => return self.count(&self.counters.unreadable),
        };
        let mut entry = Vec::new();
        if file.take(MOST_BYTES).read_to_end(&mut entry).is_err() {
            return self.count(&self.counters.unreadable);
        }
        match payload(&entry) {
            Some(cubin) => {
                self.counters.from_disk.fetch_add(1, Relaxed);
                Some(cubin.to_vec())
            }
            None => self.count(&self.counters.corrupt),
        }
    }

    fn count(&self, counter: &AtomicU64) -> Option<Vec<u8>> {
        counter.fetch_add(1, Relaxed);
        None
    }

    fn write(&self, key: &Key, cubin: &[u8]) {
        let Some(path) = self.path(key) else { return };
        match disk::write(&path, &entry(cubin)) {
            Ok(()) => disk::tidy(path.parent().unwrap_or(Path::new(".")), disk::MOST_FOLDER_BYTES),
            Err(_) => drop(self.count(&self.counters.unwritable)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line with length and hash, then the code.
fn entry(cubin: &[u8]) -> Vec<u8> {
    let head = format!("{MARK} {} {}\n", cubin.len(), launch::hash::hex(cubin));
    [head.as_bytes(), cubin].concat()
}

/// The code of an entry whose length and hash are right, and whose headers the driver may believe.
fn payload(entry: &[u8]) -> Option<&[u8]> {
    let end = entry.iter().position(|byte| *byte == b'\n')?;
    let (head, cubin) = (std::str::from_utf8(&entry[..end]).ok()?, &entry[end + 1..]);
    let expected = format!("{MARK} {} {}", cubin.len(), launch::hash::hex(cubin));
    (head == expected && cubin::fault(cubin).is_none()).then_some(cubin)
}

fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    match set("VERIFLASH_CACHE") {
        Some(value) if value == "off" => return None,
        Some(value) => return Some(value.into()),
        None => {}
    }
    let place = |name: &str, below: &str| Some(PathBuf::from(set(name)?).join(below));
    let caches = if cfg!(windows) {
        place("LOCALAPPDATA", "")
    } else if cfg!(target_os = "macos") {
        place("HOME", "Library/Caches")
    } else {
        // XDG Base Directory Specification: relative paths are invalid and ignored.
        place("XDG_CACHE_HOME", "").filter(|path| path.is_absolute()).or_else(|| place("HOME", ".cache"))
    };
    Some(caches?.join("veriflash"))
}

#[cfg(test)]
mod tests;
