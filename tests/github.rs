//! `--format github`: annotations on lines, a summary that is appended, the same exit codes as ever.

use std::path::Path;
use std::process::Command;

/// A thread reads shared memory that another wrote, without a barrier; `.loc` says who wrote the kernel.
const RACE: &str = r#"//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [64, 1, 1]
//@ args = []
.version 7.0
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .b32 %place, %value;
    .shared .align 4 .b32 values[64];
    mov.u32 %place, %tid.x;
    shl.b32 %place, %place, 2;
    st.shared.u32 [%place], %place;
    xor.b32 %place, %place, 128;
    .loc 1 9 5
    ld.shared.u32 %value, [%place];
    ret;
}
.file 1 "my,kernel.cu"
"#;

/// Exit code, standard output and the summary, which begins with what was there before.
fn github(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let summary = folder.join("summary.md");
    std::fs::write(&summary, "before\n").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).args(["--format", "github"]).current_dir(folder);
    command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_WORKSPACE", folder);
    command.env("PATH", "/nowhere").env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS");
    let output = command.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = std::fs::read_to_string(summary).expect("the summary");
    assert!(summary.starts_with("before\n## veriflash "), "{summary}{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code().expect("it was not killed"), said, summary)
}

/// The lines that GitHub understands.
fn commands(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with("::")).collect()
}

#[test]
fn a_finding_is_shown_on_the_line_that_wrote_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernel = folder.path().join("k.ptx");
    std::fs::write(&kernel, RACE).expect("a file");
    // An absolute path becomes one of the repository.
    let sanitize = ["sanitize", kernel.to_str().expect("a readable path"), "--no-lints"];
    let (exit, said, summary) = github(folder.path(), &sanitize);
    let [command] = commands(&said)[..] else { panic!("{said}") };
    assert_eq!(exit, 1);
    assert!(command.starts_with("::error file=k.ptx,line=17,col=5,title=error[race-shared]::"), "{command}");
    assert!(command.contains("%0AMissing: ") && command.contains("%0AHelp: "), "{command}");
    assert!(said.ends_with("1 error, 0 warnings, 0 lints\n"), "{said}");
    assert!(summary.contains("| error[race-shared] | ") && summary.contains("k.ptx:17 | "), "{summary}");

    std::fs::write(folder.path().join("my,kernel.cu"), "the source").expect("a file");
    let (_, said, _) = github(folder.path(), &sanitize);
    let [command] = commands(&said)[..] else { panic!("{said}") };
    assert!(command.starts_with("::error file=my%2Ckernel.cu,line=9,col=5,title="), "{command}");
    assert!(command.contains("%0APTX: "), "{command}");
}

#[test]
fn prove_and_verify_annotate_stages_gates_and_what_is_broken() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pack = |more: &[&str]| {
        let prove = ["prove", "--problem", "B1 H1 Sq5 Sk70 D64 causal", "--config", "1", "--out", "pack"];
        github(folder.path(), &[&prove, more].concat())
    };
    let (exit, said, summary) = pack(&[]);
    assert_eq!((exit, commands(&said).len()), (0, 0), "{said}");
    assert!(summary.contains("| parity | pass | ") && summary.contains("Gate `merge`: **undecided: "), "{summary}");
    let (exit, said, _) = pack(&["--gate", "merge"]);
    assert_eq!(exit, 4);
    assert!(commands(&said)[0].starts_with("::error title=gate merge::undecided: lacks "), "{said}");

    std::fs::write(folder.path().join("pack/REPORT.md"), "all is well").expect("a file");
    let (exit, said, summary) = github(folder.path(), &["verify", "pack", "--gate", "merge"]);
    assert_eq!(exit, 1);
    let [command] = commands(&said)[..] else { panic!("{said}") };
    assert!(command.starts_with("::error title=the pack is broken%3A files::"), "{command}");
    assert!(summary.contains("| files | BROKEN: ") && summary.contains("REJECTED"), "{summary}");
}

#[test]
fn failed_stages_are_errors_and_held_gates_notices() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut ptx = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    let kernel =
        ptx.args(["ptx", "--config", "1", "--problem", "B1 H1 Sq5 Sk70 D64 causal"]).output().expect("a kernel");
    let wrong = String::from_utf8_lossy(&kernel.stdout).replacen("bar.sync 0;", "", 1);
    std::fs::write(folder.path().join("k.ptx"), wrong).expect("a file");
    std::fs::write(folder.path().join("veriflash.toml"), "[gate.reads]\nrequire = ['assemble']\n").expect("a file");
    let (exit, said, _) = github(folder.path(), &["prove", "--kernel", "k.ptx", "--gate", "reads"]);
    let commands = commands(&said);
    assert_eq!(exit, 0, "{said}");
    assert!(commands.iter().any(|line| line.starts_with("::error file=k.ptx,line=")), "{said}");
    assert!(commands.iter().any(|line| line.starts_with("::error title=stage sanitize failed::")), "{said}");
    assert_eq!(commands.last(), Some(&"::notice title=gate reads::held"), "{said}");
}

#[test]
fn a_summary_that_cannot_be_written_changes_no_verdict() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("k.ptx"), RACE).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(["sanitize", "k.ptx", "--format", "github"]).current_dir(folder.path());
    let output = command.env("GITHUB_STEP_SUMMARY", folder.path()).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("warning: no summary in "));
}

#[test]
fn input_that_cannot_be_read_is_an_annotation_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
        command.args(arguments).args(["--format", "github"]).current_dir(folder.path()).env_remove("GITHUB_WORKSPACE");
        let output = command.output().expect("the binary runs");
        assert!(!output.stderr.is_empty());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    std::fs::write(folder.path().join("k.ptx"), RACE.replace("ret;", "ret")).expect("a file");
    for command in [&["sanitize", "k.ptx"][..], &["prove", "--kernel", "k.ptx", "--out", "pack"]] {
        let (code, said) = refused(command);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.starts_with("::error file=k.ptx,line=19,col=1,title=veriflash cannot go on::"), "{said}");
    }
    let (code, said) = refused(&["verify", "no-pack"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.starts_with("::error title=veriflash cannot go on::no-pack"), "{said}");
}
