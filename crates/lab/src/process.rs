//! Runs tools: each in a process group of its own, with a limit. What a tool started ends with it, so that a kernel that hangs under
//! compute-sanitizer does not hold the GPU when the tool is gone.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Waits for a process, and ends one that takes too long, with all that it started.
pub(crate) fn ended(command: &mut Command, limit: Duration) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    group::apart(command);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| format!("{name} did not run: {error}"))?;
    // Read from threads: a pipe that nobody reads holds the process up.
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    group::remember(&child);
    let in_time = waited(&mut child, limit);
    group::end(&mut child);
    group::forget(&child);
    let status = child.wait().map_err(|error| format!("{name}: {error}"))?;
    if !in_time {
        return Err(format!("{name} did not end within {} s", limit.as_secs()));
    }
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().unwrap_or_default());
    Ok(Output { status, stdout, stderr })
}

/// Did it end within the limit?
fn waited(child: &mut Child, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    while !group::has_ended(child) {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

/// Ends every tool that runs: to be called before this process ends without waiting for them. Ctrl-C on a terminal does not reach
/// groups of their own.
pub fn end_tools() {
    group::end_all();
}

fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is kept.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

#[cfg(unix)]
pub(crate) mod group {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::sync::Mutex;

    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    /// Groups that run.
    static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

    fn running() -> std::sync::MutexGuard<'static, Vec<Pid>> {
        RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn remember(child: &Child) {
        running().push(Pid::from_child(child));
    }

    pub fn forget(child: &Child) {
        running().retain(|pid| *pid != Pid::from_child(child));
    }

    pub fn end_all() {
        running().drain(..).for_each(kill);
    }

    fn kill(pid: Pid) {
        // An error means that nobody is left.
        let _ = kill_process_group(pid, Signal::KILL);
    }

    pub fn apart(command: &mut Command) {
        command.process_group(0);
    }

    /// The process is left to be waited for, so that its number, which is that of its group, is nobody else's.
    pub fn has_ended(child: &mut Child) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(None))
    }

    /// Ends whoever is left of the group.
    pub fn end(child: &mut Child) {
        kill(Pid::from_child(child));
    }
}

#[cfg(not(unix))]
pub(crate) mod group {
    use std::process::{Child, Command};

    pub fn apart(_: &mut Command) {}

    pub fn remember(_: &Child) {}

    pub fn forget(_: &Child) {}

    pub fn end_all() {}

    pub fn has_ended(child: &mut Child) -> bool {
        !matches!(child.try_wait(), Ok(None))
    }

    /// The process alone: there are no groups.
    pub fn end(child: &mut Child) {
        let _ = child.kill();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, limit: Duration) -> Result<Output, String> {
        ended(Command::new("sh").args(["-c", script]), limit)
    }

    /// Is there such a process, and is it no corpse that nobody has buried?
    fn lives(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    fn dies(pid: &str) -> bool {
        (0..400).any(|_| {
            std::thread::sleep(LOOK_AGAIN);
            !lives(pid)
        })
    }

    #[test]
    fn what_a_process_says_and_how_it_ends_is_kept() {
        let said = shell("echo hello; echo no >&2; exit 3", LONG).unwrap();
        assert_eq!((said.status.code(), &said.stdout[..], &said.stderr[..]), (Some(3), &b"hello\n"[..], &b"no\n"[..]));
        assert!(ended(&mut Command::new("/no/such/program"), LONG).unwrap_err().contains("did not run"));
    }

    #[test]
    fn a_tool_that_hangs_ends_with_the_process_that_it_watches() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("watched");
        let script = format!("sleep 90 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let why = shell(&script, Duration::from_secs(2)).unwrap_err();
        assert_eq!(why, "sh did not end within 2 s");
        let watched = std::fs::read_to_string(&file).unwrap();
        assert!(dies(&watched), "process {watched} is left");
    }

    /// It holds the pipe, too: who waits for the pipe's end would wait for it.
    #[test]
    fn what_a_tool_leaves_behind_is_ended() {
        let begun = Instant::now();
        let said = shell("sleep 90 & echo $!", LONG).unwrap();
        assert!(dies(&String::from_utf8(said.stdout).unwrap()));
        assert!(begun.elapsed() < LONG);
    }
}
