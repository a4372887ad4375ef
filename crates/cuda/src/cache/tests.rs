use super::*;
use crate::error::Error;
use std::process::Command;
use std::sync::Barrier;

fn device() -> Device {
    Device {
        name: "NVIDIA H200".into(),
        capability: (9, 0),
        cuda_version: (12, 8),
        uuid: String::new(),
        processors: 132,
        max_shared_bytes: 227 << 10,
        kilohertz: 1_980_000,
        memory_bandwidth: 4_800_000_000_000,
        cache_bytes: 60 << 20,
    }
}

/// Something that the driver would take for machine code: an ELF header of a GPU, and bytes of its own.
fn code(number: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    bytes[18] = 190;
    bytes.extend([number; 4096]);
    bytes
}

fn key(text: &str) -> Key {
    Key::new(text, &device())
}

fn get(cache: &Cache, text: &str, number: u8) -> Vec<u8> {
    cache.get_or_compile(&key(text), || Ok::<_, Error>(code(number))).unwrap().to_vec()
}

/// Files in the folder that are no complete entry.
fn leftovers(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| payload(&fs::read(path).unwrap()).is_none()).count()
}

#[test]
fn the_next_process_reads_what_this_one_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let first = Cache::at(folder.path().join("made/when/needed"));
    assert_eq!(get(&first, "a", 1), code(1));
    assert_eq!(get(&first, "a", 2), code(1));
    assert_eq!(first.counts(), Counts { compiled: 1, in_process: 1, ..Counts::default() });
    let second = Cache::at(folder.path().join("made/when/needed"));
    assert_eq!(get(&second, "a", 3), code(1));
    assert_eq!(get(&second, "b", 4), code(4));
    assert_eq!(second.counts(), Counts { from_disk: 1, compiled: 1, ..Counts::default() });
}

#[test]
fn text_gpu_and_driver_are_part_of_the_key() {
    let keys = [
        key("a"),
        key("b"),
        Key::new("a", &Device { name: "NVIDIA L4".into(), ..device() }),
        Key::new("a", &Device { capability: (8, 9), ..device() }),
        Key::new("a", &Device { cuda_version: (13, 0), ..device() }),
    ];
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len());
    assert_eq!(key("a"), Key::new("a", &Device { uuid: "GPU-1".into(), ..device() }));
}

#[test]
fn a_broken_entry_is_compiled_again_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    get(&Cache::at(folder.path()), "a", 1);
    let path = folder.path().join(format!("{}.cubin", key("a").as_str()));
    let whole = fs::read(&path).unwrap();
    let head = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    // A length and a hash that are right for something that is no machine code.
    let forged = entry(b"not code");
    let broken = [vec![], whole[..head].to_vec(), whole[..whole.len() - 1].to_vec(), flipped(0), flipped(head - 1)];
    for bytes in broken.into_iter().chain([flipped(whole.len() - 1), [&whole[..], b"more"].concat(), forged]) {
        fs::write(&path, &bytes).unwrap();
        let cache = Cache::at(folder.path());
        assert_eq!(get(&cache, "a", 2), code(2), "{} bytes", bytes.len());
        assert_eq!(cache.counts(), Counts { corrupt: 1, compiled: 1, ..Counts::default() });
        assert_eq!(get(&Cache::at(folder.path()), "a", 3), code(2), "the entry is whole again");
    }
}

/// A folder that nothing can be written to stands for a full disk; a file in its place holds for root, too.
#[test]
fn an_unwritable_folder_costs_a_compilation_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let cache = Cache::at(file.join("below"));
    assert_eq!(get(&cache, "a", 1), code(1));
    assert_eq!(get(&cache, "a", 2), code(1), "the process still has it");
    let counts = cache.counts();
    assert_eq!((counts.compiled, counts.unwritable, counts.in_process), (1, 1, 1));
}

#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    // A folder in the entry's place lets the writing succeed and the renaming fail.
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    fs::create_dir(cache.path(&key("a")).unwrap()).unwrap();
    assert_eq!(get(&cache, "a", 1), code(1));
    assert_eq!(cache.counts(), Counts { compiled: 1, unreadable: 1, unwritable: 1, ..Counts::default() });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the temporary file is gone");
}

#[test]
fn a_refused_text_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let refused = cache.get_or_compile(&key("a"), || Err::<Vec<u8>, _>(Error::NoGpu));
    assert!(matches!(refused, Err(Error::NoGpu)));
    assert_eq!(get(&cache, "a", 1), code(1));
}

#[test]
fn threads_that_want_the_same_compile_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, barrier) = (Cache::at(folder.path()), Barrier::new(8));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                assert_eq!(get(&cache, "a", 1), code(1));
            });
        }
    });
    assert_eq!(cache.counts(), Counts { compiled: 1, in_process: 7, ..Counts::default() });
    assert_eq!(leftovers(folder.path()), 0);
}

#[test]
fn code_that_the_driver_refuses_is_replaced_in_the_process_and_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    get(&Cache::at(folder.path()), "a", 1);
    let cache = Cache::at(folder.path());
    let compile = |number| move || Ok::<_, Error>(code(number));
    let refused = cache.get_or_compile(&key("a"), compile(2)).unwrap();
    assert_eq!(*refused, code(1));
    assert_eq!(*cache.replace(&key("a"), &refused, compile(3)).unwrap(), code(3));
    assert_eq!(*cache.replace(&key("a"), &refused, compile(4)).unwrap(), code(3), "replaced already");
    assert_eq!(cache.counts(), Counts { from_disk: 1, refused: 2, compiled: 1, ..Counts::default() });
    assert_eq!(get(&cache, "a", 5), code(3));
    assert_eq!(get(&Cache::at(folder.path()), "a", 6), code(3));
}

#[test]
#[cfg(unix)]
fn a_folder_that_others_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    get(&Cache::at(folder.path()), "a", 1);
    for mode in [0o770, 0o702, 0o1777] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let cache = Cache::at(folder.path());
        assert_eq!(get(&cache, "a", 2), code(2), "what lies there is not believed");
        assert_eq!(cache.counts(), Counts { compiled: 1, unreadable: 1, unwritable: 1, ..Counts::default() });
        let note = cache.note().unwrap();
        assert!(note.contains(&format!("(mode {mode:o}): `chmod go-w` it")), "{note}");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let cache = Cache::at(folder.path());
    assert_eq!((get(&cache, "a", 3), cache.note()), (code(1), None), "what others can only read is used");
}

#[test]
fn what_crashed_writers_left_and_the_oldest_entries_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now();
    let file = |name: &str, minutes: u64| {
        let file = File::create(folder.path().join(name)).unwrap();
        file.set_len(100).unwrap();
        file.set_modified(now - std::time::Duration::from_secs(60 * minutes)).unwrap();
    };
    for (name, minutes) in [("1.tmp", 61), ("2.tmp", 5), ("a.cubin", 3), ("b.cubin", 9), ("c.cubin", 1), ("other", 99)]
    {
        file(name, minutes);
    }
    let names = || {
        let entries =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = entries.collect();
        names.sort();
        names.join(" ")
    };
    disk::tidy(folder.path(), 300);
    assert_eq!(names(), "2.tmp a.cubin b.cubin c.cubin other");
    disk::tidy(folder.path(), 299);
    assert_eq!(names(), "2.tmp a.cubin c.cubin other", "the oldest goes, though only a byte is too much");
    disk::tidy(folder.path(), 0);
    assert_eq!(names(), "2.tmp other");
}

/// Not a test of its own: what a process does that must not write more than a few hundred bytes.
#[test]
fn a_process_with_a_full_disk() {
    let Some(folder) = std::env::var_os("CACHE_TEST_FULL_DISK") else { return };
    let cache = Cache::at(&folder);
    assert_eq!(get(&cache, "a", 1), code(1));
    assert_eq!(get(&cache, "a", 2), code(1), "the process still has it");
    assert_eq!(cache.counts(), Counts { compiled: 1, unwritable: 1, in_process: 1, ..Counts::default() });
    fs::write(Path::new(&folder).join("done"), "").unwrap();
}

#[test]
#[cfg(unix)]
fn a_full_disk_costs_a_compilation_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    // The shell limits the length of files, and has the write fail rather than the process end.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact cache::tests::a_process_with_a_full_disk";
    let mut command = Command::new("sh");
    command.args(["-c", limited]).arg(std::env::current_exe().unwrap()).env("CACHE_TEST_FULL_DISK", folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["done"], "no half of a file");
}

/// Not a test of its own: what each process of the next test does.
#[test]
fn one_process_of_many() {
    let Some(folder) = std::env::var_os("CACHE_TEST_FOLDER") else { return };
    for round in 0..50 {
        let cache = Cache::at(&folder);
        let text = format!("{}", round % 5);
        assert_eq!(get(&cache, &text, round % 5), code(round % 5));
        assert_eq!((cache.counts().corrupt, cache.counts().unwritable, cache.counts().unreadable), (0, 0, 0));
        if round % 10 == 9 {
            let _ = fs::remove_file(cache.path(&key(&text)).unwrap());
        }
    }
}

#[test]
fn processes_never_see_half_an_entry() {
    let folder = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let start = || {
        let mut command = Command::new(&this);
        command.args(["--exact", "cache::tests::one_process_of_many"]).env("CACHE_TEST_FOLDER", folder.path());
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut processes: Vec<_> = (0..6).map(|_| start()).collect();
    assert!(processes.iter_mut().all(|process| process.wait().unwrap().success()));
    assert_eq!(leftovers(folder.path()), 0);
    assert!(fs::read_dir(folder.path()).unwrap().count() >= 1);
}

#[test]
#[cfg(target_os = "linux")]
fn the_folder_comes_from_the_environment() {
    let of = |variables: &[(&str, &str)]| {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        folder(found).map(|path| path.display().to_string())
    };
    assert_eq!(of(&[("VERIFLASH_CACHE", "off"), ("HOME", "/home/a")]), None);
    assert_eq!(of(&[("VERIFLASH_CACHE", "/fast"), ("HOME", "/home/a")]).unwrap(), "/fast");
    assert_eq!(of(&[("VERIFLASH_CACHE", ""), ("HOME", "/home/a")]).unwrap(), "/home/a/.cache/veriflash");
    assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/home/a")]).unwrap(), "/x/veriflash");
    assert_eq!(of(&[("XDG_CACHE_HOME", "x"), ("HOME", "/home/a")]).unwrap(), "/home/a/.cache/veriflash");
    assert_eq!(of(&[]), None);
}
