//! What `prove` does with what it cannot read, cannot write or cannot finish: a clear error, other stages kept, and never half a pack.
#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_veriflash");

/// Full disks are full for peers' scripts, too; these are only needed beside a GPU.
const MORE: [&str; 1] = ["--no-gpu"];

/// A folder with a kernel, and room for a pack.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let printed = Command::new(PROGRAM).args(["ptx", "--problem", "B1 H1 Sq17 Sk33 D64", "--config", "1"]).output();
        std::fs::write(folder.path().join("kernel.ptx"), printed.unwrap().stdout).unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The kernel with something else in it.
    fn edited(&self, from: &str, to: &str) -> Bench {
        let other = Bench { folder: tempfile::tempdir().unwrap() };
        let text = std::fs::read_to_string(self.path("kernel.ptx")).unwrap();
        assert!(text.contains(from), "{from}\n{text}");
        std::fs::write(other.path("kernel.ptx"), text.replacen(from, to, 1)).unwrap();
        other
    }

    /// `prove` of the kernel, behind some lines of shell, without tools.
    fn command(&self, shell: &str, out: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        let script = format!("{shell}\nexec \"$0\" prove --kernel \"$@\"");
        command.args(["-c", &script, PROGRAM]).arg(self.path("kernel.ptx")).arg("--out").arg(out).args(MORE);
        command.env("PATH", "/nowhere").env("NO_COLOR", "1").env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS");
        command
    }

    fn prove(&self, shell: &str) -> Output {
        self.command(shell, &self.path("pack")).output().unwrap()
    }

    /// All there is beside the kernel.
    fn left(&self) -> Vec<String> {
        let entries = self.folder.path().read_dir().unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "kernel.ptx");
        names.sort();
        names
    }

    fn verifies(&self) -> bool {
        let pack = self.path("pack");
        let mut command = Command::new(PROGRAM);
        command.arg("verify").arg(pack).arg("--no-rerun").env("PATH", "/nowhere").stdout(Stdio::null());
        command.status().unwrap().success()
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Nothing but an error with these words.
fn refused(bench: &Bench, output: &Output, words: &[&str]) {
    assert_eq!(output.status.code(), Some(2), "{}", said(output));
    assert!(words.iter().all(|word| said(output).contains(word)), "{words:?}: {}", said(output));
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[test]
fn ptx_that_cannot_be_read_is_told_with_its_line() {
    let bench = Bench::new().edited("bar.sync 0;", "bar.sync 0");
    refused(&bench, &bench.prove(""), &["kernel.ptx:", "expected"]);
    std::fs::write(bench.path("kernel.ptx"), [0xff, 0xfe, 0x00]).unwrap();
    refused(&bench, &bench.prove(""), &["kernel.ptx"]);
    std::fs::remove_file(bench.path("kernel.ptx")).unwrap();
    refused(&bench, &bench.prove(""), &["kernel.ptx", "No such file"]);
}

#[test]
fn an_entry_that_is_not_there_and_arguments_that_do_not_fit_are_told() {
    let whole = Bench::new();
    let bench = whole.edited("entry = \"attention_forward\"", "entry = \"attention_backward\"");
    refused(&bench, &bench.prove(""), &["attention_backward", "attention_forward"]);
    let bench = whole.edited("args = [", "args = [{ u32 = 1 }, ");
    refused(&bench, &bench.prove(""), &["kernel.ptx:", "argument"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let bench = Bench::new();
    let beneath_a_file = bench.path("kernel.ptx").join("pack");
    for out in [beneath_a_file.as_path(), Path::new("/proc/veriflash/pack")] {
        let output = bench.command("", out).output().unwrap();
        refused(&bench, &output, &["pack: the pack cannot be written: "]);
    }
}

/// Files of at most 4 blocks of 512 bytes, as if the disk ended there: the pack's files are longer.
const FULL: &str = "trap '' XFSZ; ulimit -f 4";

#[test]
fn a_full_disk_leaves_no_pack_or_the_old_one() {
    let bench = Bench::new();
    refused(&bench, &bench.prove(FULL), &["pack: the pack cannot be written: ", "File too large"]);
    assert!(bench.prove("").status.success());
    let full = bench.prove(FULL);
    assert_eq!((full.status.code(), bench.left()), (Some(2), vec!["pack".to_string()]), "{}", said(&full));
    assert!(bench.verifies());
}

/// Without room for temporary files ptxas has nothing to read: that is a stage's affair, and the others go on.
#[test]
fn a_stage_without_room_for_its_files_is_told_and_the_others_are_kept() {
    let bench = Bench::new();
    let tools = bench.path("tools");
    std::fs::create_dir(&tools).unwrap();
    let ptxas = tools.join("ptxas");
    std::fs::write(&ptxas, "#!/bin/sh\necho release 13.0, V13.0.88\n").unwrap();
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&ptxas, runnable).unwrap();
    let mut command = bench.command("export TMPDIR=/proc/veriflash", &bench.path("pack"));
    let output = command.env("VERIFLASH_TOOLS", &tools).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let line = |stage: &str| said(&output).lines().find(|line| line.starts_with(stage)).unwrap_or_default().to_string();
    assert!(line("assemble").contains("not run") && line("assemble").contains("/proc/veriflash"), "{}", said(&output));
    assert!(line("parity").contains("pass") && line("sanitize").contains("pass"), "{}", said(&output));
    assert!(bench.verifies());
}

/// The signal that a file grew too long comes in the midst of writing the pack.
#[test]
fn killed_while_the_pack_is_written_the_old_one_stays_and_the_next_run_works_and_cleans_up() {
    let bench = Bench::new();
    let killed = bench.prove("ulimit -c 0; ulimit -f 4");
    assert!(killed.status.signal().is_some(), "{}", said(&killed));
    let hidden = |names: Vec<String>| matches!(&names[..], [name] if name.starts_with(".veriflash-"));
    assert!(hidden(bench.left()), "it was killed elsewhere: {:?}", bench.left());
    assert!(bench.prove("").status.success() && bench.verifies());
    assert_eq!(bench.left(), ["pack"]);
    let killed = bench.prove("ulimit -c 0; ulimit -f 4");
    assert!(killed.status.signal().is_some(), "{}", said(&killed));
    assert!(bench.verifies() && bench.left().len() == 2);
    assert!(bench.prove("").status.success() && bench.verifies());
    assert_eq!(bench.left(), ["pack"]);
}

#[test]
fn killed_half_way_there_is_no_pack_and_the_next_run_works() {
    let bench = Bench::new();
    let mut child = bench.command("", &bench.path("pack")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert!(child.try_wait().unwrap().is_none(), "it has ended already");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(bench.left(), Vec::<String>::new());
    assert!(bench.prove("").status.success() && bench.verifies());
}

/// Evidence counts once.
#[test]
fn the_same_kernel_twice() {
    let bench = Bench::new();
    let mut command = bench.command("", &bench.path("pack"));
    refused(
        &bench,
        &command.arg("--kernel").arg(bench.path("kernel.ptx")).output().unwrap(),
        &["is the same kernel as"],
    );
}

/// `prove` of kernels of ours, beside nothing.
fn prove(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("prove").args(arguments).arg("--out").arg(bench.path("pack")).args(MORE).output().unwrap()
}

#[test]
fn a_word_that_is_no_family() {
    let bench = Bench::new();
    let expected = "there is no file `amper`: expected a .toml, .ptx or .cu, or one of the families";
    refused(&bench, &prove(&bench, &["--kernel", "amper"]), &[expected]);
}

/// Kernels of sm_80 under the name of those for sm_90a, and the other way round.
#[test]
fn kernels_of_another_family() {
    let (bench, problem) = (Bench::new(), ["--problem", "B1 H1 S64 D64"]);
    for (family, flags) in [
        ("hopper", &problem[..]),
        ("hopper", &["--problem", "B1 H1 S64 D64", "--config", "1"]),
        ("hopper", &["--config", "1"]),
        ("ampere", &["--problem", "B1 H1 S64 D64", "--config", "12"]),
        ("ampere", &["--config", "12"]),
    ] {
        let output = prove(&bench, &[&["--kernel", family][..], flags].concat());
        refused(&bench, &output, &[&format!("none of `--kernel {family}`: give a `--config` of that family")]);
    }
}
