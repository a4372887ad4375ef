//! Synchronisations taken away: a verdict of `mutate` is what it says. (`synchronisation` holds our own kernel to it.)

use serde_json::Value;
use std::process::{Command, Output};

fn veriflash(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env("NO_COLOR", "1");
    command.output().expect("the binary runs")
}

/// The exit code and the document.
fn mutate(arguments: &[&str]) -> (i32, Value) {
    let output = veriflash(&[&["mutate", "--format", "json"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (output.status.code().expect("it was not killed"), document)
}

fn mutants(document: &Value) -> &[Value] {
    document["kernels"][0]["mutants"].as_array().expect("a list")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Two barriers where one would do, one that nobody comes to, and one that orders nothing.
const BARRIERS: &str = r#"
//@ [buffer.out]
//@ type = "u32"
//@ shape = [64]
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [64, 1, 1]
//@ args = [{ buffer = "out" }]
.version 7.0
.target sm_80
.address_size 64
.visible .entry exchange(.param .u64 out)
{
    .reg .pred %never;
    .reg .b64 %address, %offset;
    .reg .b32 %thread, %mine, %other;
    .shared .b32 all[64];
    mov.u32 %thread, %tid.x;
    setp.gt.u32 %never, %thread, 63;
    bar.sync 0;
    mov.u32 %mine, all;
    mad.lo.u32 %mine, %thread, 4, %mine;
    st.shared.u32 [%mine], %thread;
    bar.sync 0;
    bar.sync 0;
    xor.b32 %other, %mine, 128;
    ld.shared.u32 %other, [%other];
    bar.sync 0;
    st.shared.u32 [%mine], %other;
    @%never bra SKIP;
    bra STORE;
SKIP:
    bar.sync 0;
STORE:
    ld.param.u64 %address, [out];
    mul.wide.u32 %offset, %thread, 4;
    add.u64 %address, %address, %offset;
    st.global.u32 [%address], %other;
    ret;
}
"#;

/// A file in a folder that vanishes with it; its name on the command line.
fn case() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("barriers.ptx");
    std::fs::write(&path, BARRIERS).expect("the case is written");
    let name = path.to_str().expect("a readable path").to_string();
    (folder, name)
}

#[test]
fn a_verdict_says_why() {
    let (_folder, path) = case();
    let (exit, document) = mutate(&[&path]);
    let verdicts: Vec<(u64, &str, &str)> = mutants(&document)
        .iter()
        .map(|one| (one["line"].as_u64().expect("a line"), text(one, "verdict"), text(&one["proof"], "text")))
        .collect();
    let expected = [
        (20, "equivalent", "no two lines conflict for want of it, whatever else is removed"),
        (24, "equivalent", "`bar.sync 0` (line 25) orders lines 23 and 27 as well"),
        (25, "equivalent", "`bar.sync 0` (line 24) orders lines 23 and 27 as well"),
        (28, "caught", ""),
        (33, "not executed", ""),
    ];
    assert_eq!(verdicts, expected);
    assert_eq!(exit, 0, "nothing was missed");
}

/// The table, and every mutant that the share of equivalent ones makes worth a look.
#[test]
fn the_table_reads_well() {
    let (folder, path) = case();
    let output = veriflash(&["mutate", &path, "--list"]);
    let shown = String::from_utf8_lossy(&output.stdout).replace(folder.path().to_str().expect("a readable path"), "…");
    insta::assert_snapshot!(shown);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("5 mutants in "), "{said}");
}

#[test]
fn the_same_whatever_the_number_of_threads() {
    let run = |threads: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
        command.args(["mutate", "corpus/barrier_ring.sm_80.toml", "--list"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = command.env("RAYON_NUM_THREADS", threads).output().expect("the binary runs");
        assert!(String::from_utf8_lossy(&output.stdout).contains("mutants; caught"), "{output:?}");
        output.stdout
    };
    assert_eq!(run("1"), run("3"));
}
