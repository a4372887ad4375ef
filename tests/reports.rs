//! Findings as people and programs read them: one of every check, from the command line to the last line.

use emulator::sanitize;
use launch::Kernel;
use launch::backend::Options;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use veriflash::filetests::{Case, Kind, find};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn veriflash(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.current_dir(folder).args(arguments).output().expect("the binary runs")
}

/// What `sanitize` prints about a case that has findings.
fn sanitized(case: &str, more: &[&str]) -> String {
    let file = format!("filetests/fail/{case}.ptx");
    let output = veriflash(&root(), &[&["sanitize", &file], more].concat());
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

macro_rules! reports {
    ($($name:ident: $case:literal;)*) => { $(
        #[test]
        fn $name() {
            insta::assert_snapshot!(sanitized($case, &["--budget", "50000"]));
        }
    )* };
}

reports! {
    async_leak: "async-leak/early_return";
    barrier: "barrier/two_counts";
    deadlock: "deadlock/crossed_barriers";
    deadlock_by_budget: "deadlock/endless_loop";
    deadlock_for_arrivals: "deadlock/ring_waits_for_one_arrival_too_many";
    deadlock_for_bytes: "deadlock/fewer_bytes_announced_than_come";
    early_release: "early-release/source_overwritten";
    launch_refused: "launch/too_much_shared_memory";
    mbarrier: "mbarrier/initialised_by_each_warp";
    missing_wait: "missing-wait/wait_group_off_by_one";
    out_of_bounds: "out-of-bounds/negative_index";
    proxy_fence: "proxy-fence/fence_for_shared_memory_only";
    race_global: "race-global/split_k_without_fence";
    race_shared: "race-shared/missing_barrier";
    race_shared_after_a_wait: "race-shared/barrier_before_the_wait";
    race_shared_by_one_instruction: "race-shared/every_thread_starts_the_store";
    race_shared_with_a_copy: "race-shared/double_buffer_refilled_early";
    race_warp: "race-warp/exchange_without_sync";
    trap: "trap/failed_assertion";
    uninitialised_memory: "uninitialised-memory/padding_never_written";
}

#[test]
fn findings_as_json() {
    insta::assert_snapshot!(sanitized("race-shared/double_buffer_refilled_early", &["--format", "json"]));
}

/// A recipe that is a file of its own is shown beside the entry that it launches.
#[test]
fn a_launch_points_into_the_recipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    write("k.toml", "[[launch]]\ngrid = [1, 1, 1]\nblock = [64, 1, 1]\nargs = []\n");
    write(
        "k.ptx",
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() .maxntid 32, 1, 1\n{\n    ret;\n}\n",
    );
    let output = veriflash(folder.path(), &["sanitize", "k.ptx"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8(output.stdout).expect("text"));
}

/// A kernel whose two lines were written by `src/main.rs`, at 2:5 and 3:5.
const OF_MAIN: &str = r#"
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [64, 1, 1]
.version 7.0
.target sm_80
.address_size 64
.file 1 "src/main.rs"
.visible .entry k()
{
    .shared .align 4 .b8 stage[4];
    .reg .b32 %r<2>;
    .loc 1 2 5
    mov.u32 %r1, stage;
    .loc 1 3 5
    st.shared.u32 [%r1], %r1;
    ret;
}
"#;

/// Names are relative to wherever the compiler ran: the nearest file around the kernel in which all its lines make sense
/// is shown, never another program's of the same name, and the place in any case.
#[test]
fn source_lines_are_those_of_the_kernel_and_not_of_the_current_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        std::fs::write(file, text).expect("a file");
    };
    write("theirs/kernels/k.ptx", OF_MAIN);
    write("ours/src/main.rs", "fn main() {}\n// a\n// one line only fits by its number\n");
    let told = |from: &str| {
        let output = veriflash(&folder.path().join(from), &["sanitize", "../theirs/kernels/k.ptx"]);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.split_once("note: (1) was written here\n").unwrap_or_else(|| panic!("{text}")).1.to_string()
    };
    let is_the_place_alone = |told: &str| {
        let first = told.lines().next().unwrap_or_default().trim();
        first == "--> src/main.rs:3:5" && !told.contains('|')
    };
    let lost = told("ours");
    assert!(is_the_place_alone(&lost), "{lost}");
    write("theirs/src/main.rs", "fn kernel() {\n    begin();\n    store(stage);\n}\n");
    for from in ["ours", "theirs"] {
        assert!(told(from).contains("    store(stage);"), "{}", told(from));
    }
    write("theirs/src/main.rs", "fn kernel() {\n    store(stage);\n}\n");
    let edited = told("theirs");
    assert!(is_the_place_alone(&edited), "{edited}");
}

/// What is missing is the same in every schedule; what a warp did instead, told behind a colon, depends on who came first.
const TOLD_AS_IT_HAPPENED: [&str; 6] = [
    "race-global/blocks_of_one_cluster.ptx",
    "race-shared/arrive_without_sync.ptx",
    "race-shared/barrier_before_the_store.ptx",
    "race-shared/block_barrier_for_the_cluster.ptx",
    "race-shared/fragment_of_another_warp.ptx",
    "race-shared/loop_back_barrier_missing.ptx",
];

/// Which seed shows a finding must not matter: every schedule alone, five of each policy, finds the same, by the same
/// check, at the same lines, with the same missing edge.
#[test]
fn every_schedule_finds_the_same() {
    let cases = find(&[root().join("filetests/fail")]).expect("cases");
    assert!(cases.len() >= 20);
    // These compare schedules, or must be asked for.
    let apart = |case: &Case| ["fail/nondeterminism/", "fail/nan-birth/"].iter().any(|one| case.name.starts_with(one));
    let found_by_checks = |case: &&Case| case.kind == Kind::Fail && !case.is_about_results() && !apart(case);
    let silent = cases.iter().filter(found_by_checks).find(|case| found(case, 0).is_empty());
    assert_eq!(silent.map(|case| &case.name), None);
    let first =
        |case: &&Case| (1..55).find(|seed| found(case, *seed) != found(case, 0)).map(|seed| (case.name.clone(), seed));
    let surprising: Vec<String> = cases
        .iter()
        .filter(found_by_checks)
        .filter_map(|case| {
            let (name, seed) = first(&case)?;
            Some(format!("{name} with seed {seed}: {:#?}, and with seed 0: {:#?}", found(case, seed), found(case, 0)))
        })
        .collect();
    assert!(surprising.is_empty(), "{surprising:#?}");
}

/// Severity and check, both lines, and what is missing.
fn found(case: &Case, seed: u64) -> Vec<(String, u32, Option<u32>, Option<String>)> {
    let kernel = Kernel::parse(&case.name, &case.text).expect("a kernel");
    let options = Options { instruction_budget: 50_000, ..Options::default() };
    let sanitized = sanitize(&kernel, &[seed], 0, &options).expect("a run");
    let told = |finding: &launch::Finding| {
        let what = format!("{}[{}]", finding.severity.word(), finding.check);
        let as_it_happened = TOLD_AS_IT_HAPPENED.iter().any(|one| case.name.ends_with(one));
        let settled = |text: &str| whoever(if as_it_happened { text.split(": ").next().unwrap_or(text) } else { text });
        let missing = finding.missing.as_deref().map(settled);
        (what, finding.first.line, finding.second.as_ref().map(|second| second.line), missing)
    };
    sanitized.findings.iter().map(told).collect()
}

/// The text for any warp, lane, block and byte: which of them a schedule shows first is luck. Lines stay.
fn whoever(text: &str) -> String {
    let mut after = "";
    let words = text.split_inclusive(|one: char| !one.is_alphanumeric()).map(|word| {
        let (bare, end) = word.split_at(word.trim_end_matches(|one: char| !one.is_alphanumeric()).len());
        let number = bare.chars().all(|one| one.is_ascii_digit()) && after != "line";
        after = if bare.is_empty() { after } else { bare };
        if number { format!("_{end}") } else { word.into() }
    });
    words.collect()
}
