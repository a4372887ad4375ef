//! The command line as a user meets it: exit codes, help, errors, JSON.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn veriflash(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env("NO_COLOR", "1");
    command.output().expect("the binary runs")
}

/// As on a machine that has no tool at all.
fn veriflash_without_tools(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).env("PATH", "/nowhere").env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS");
    command.output().expect("the binary runs")
}

fn exit(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A case in a folder that vanishes with it.
fn case(name: &str, content: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, content).expect("the case is written");
    (folder, path)
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

const HEAD: &str =
    "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [32, 1, 1]\n.version 7.0\n.target sm_80\n.address_size 64\n";

#[test]
fn every_command_has_help_with_examples() {
    for command in [
        "prove",
        "sanitize",
        "run",
        "bisect",
        "leaderboard",
        "mutate",
        "ptx",
        "inspect",
        "filetests",
        "explain",
        "doctor",
        "verify",
        "report",
        "compare",
    ] {
        let output = veriflash(&[command, "--help"]);
        assert_eq!(exit(&output), 0, "{command}");
        assert!(text(&output).contains("Examples:\n  veriflash "), "{command} shows no example:\n{}", text(&output));
    }
}

#[test]
fn exact_numbers_are_compared_with_nothing_but_another_run() {
    let hash = |problem: &str, seed: &str| {
        let output = veriflash(&["run", "--algebra", "--problem", problem, "--seed", seed]);
        assert_eq!(exit(&output), 0, "{}", text(&output));
        assert!(text(&output).ends_with("; exact numbers in place of floats: compare the hashes with another run's\n"));
        text(&output).lines().find(|line| line.starts_with("buffer `o`")).map(ToString::to_string)
    };
    let causal = hash("B1 H1 S40 D64 causal", "0");
    assert!(causal.is_some());
    assert_eq!(causal, hash("B1 H1 S40 D64 causal", "4"));
    assert_ne!(causal, hash("B1 H1 S40 D64 full", "0"));
}

#[test]
fn exact_numbers_need_the_emulator() {
    let output = veriflash(&["run", "--algebra", "--backend", "cuda", "--problem", "B1 H1 S40 D64"]);
    assert_eq!(exit(&output), 2);
    assert!(text(&output).starts_with("error: `--algebra` needs `--backend emulator`"), "{}", text(&output));
    assert_eq!(exit(&veriflash(&["run", "--algebra", "--arithmetic", "fast", "--problem", "B1 H1 S40 D64"])), 2);
}

#[test]
fn an_audit_says_what_it_counted() {
    let (_folder, path) = case("clean.ptx", &format!("{HEAD}.entry k() {{ ret; }}\n"));
    let counted = veriflash(&["sanitize", "--audit", shown(&path)]);
    assert_eq!(exit(&counted), 0, "{}", text(&counted));
    assert!(text(&counted).contains("all seen by the checks\nnot for the race detector: parameters of the entry; "));
    let json = veriflash(&["sanitize", "--audit", "--format", "json", shown(&path)]);
    let document: Value = serde_json::from_slice(&json.stdout).expect("a document");
    assert_eq!((&document["operands"], &document["unseen"]), (&Value::from(vec![0; 0]), &Value::from(vec![0; 0])));
    let sarif = veriflash(&["sanitize", "--audit", "--format", "sarif", shown(&path)]);
    assert_eq!(exit(&sarif), 2);
    assert!(text(&sarif).starts_with("error: `--audit` needs `--format text` or `--format json`"), "{}", text(&sarif));
}

#[test]
fn a_clean_kernel_exits_0_and_a_finding_1() {
    let (_folder, path) = case("clean.ptx", &format!("{HEAD}.entry k() {{ ret; }}\n"));
    let clean = veriflash(&["sanitize", shown(&path)]);
    assert_eq!(exit(&clean), 0, "{}", text(&clean));
    let found = veriflash(&["sanitize", "filetests/fail/missing-wait/never_waited.ptx"]);
    assert_eq!(exit(&found), 1, "{}", text(&found));
    assert!(text(&found).contains("error[missing-wait]"), "{}", text(&found));
}

#[test]
fn warnings_and_lints_exit_0_unless_they_are_denied() {
    let exits = |file: &str| {
        let more = [&[][..], &["--deny-warnings"], &["--deny-lints"], &["--no-lints"]];
        more.map(|more| exit(&veriflash(&[&["sanitize", file], more].concat())))
    };
    assert_eq!(exits("filetests/fail/nondeterminism/first_come_first_served.ptx"), [0, 1, 0, 0]);
    assert_eq!(exits("filetests/lint/bank-conflict/column_of_a_tile.ptx"), [0, 0, 1, 0]);
    let both = veriflash(&["sanitize", "filetests/lint/bank-conflict/column_of_a_tile.ptx"]);
    assert!(text(&both).contains("lint[bank-conflict]: 32-way bank conflict"), "{}", text(&both));
    assert!(text(&both).contains("0 errors, 0 warnings, 2 lints; "), "{}", text(&both));
}

#[test]
fn policies_are_asked_for_by_name() {
    let file = "filetests/fail/missing-wait/never_waited.ptx";
    let output = veriflash(&["sanitize", file, "--policy", "spurious", "--policy", "eager", "--seeds", "2"]);
    assert_eq!(exit(&output), 1, "{}", text(&output));
    assert!(text(&output).contains(" --policy spurious --seed 0`"), "{}", text(&output));
    assert!(text(&output).contains("4 launches ran under 4 schedules"), "{}", text(&output));
    assert_eq!(exit(&veriflash(&["sanitize", file, "--policy", "lasy"])), 2);
}

#[test]
fn bad_input_exits_2_with_place_and_advice() {
    let missing = veriflash(&["sanitize", "no/such/file.ptx"]);
    assert_eq!(exit(&missing), 2, "{}", text(&missing));
    assert!(text(&missing).contains("no/such/file.ptx"), "{}", text(&missing));
    let (_folder, path) =
        case("wrong.ptx", &format!("{HEAD}.entry k() {{ .reg .b32 %r1; add.u32 %r1, %r2, 1; ret; }}\n"));
    let wrong = veriflash(&["sanitize", shown(&path)]);
    assert_eq!(exit(&wrong), 2, "{}", text(&wrong));
    assert!(text(&wrong).contains("wrong.ptx:7"), "{}", text(&wrong));
    assert!(text(&wrong).contains("did you mean"), "{}", text(&wrong));
}

#[test]
fn what_was_meant_is_told() {
    let slip = veriflash(&["explain", "mising-wait"]);
    assert_eq!((exit(&slip), text(&slip).contains("did you mean `missing-wait`?")), (2, true), "{}", text(&slip));
    let other = veriflash(&["explain", "no-check-at-all"]);
    assert!(text(&other).contains("expected one of ") && text(&other).contains("race-shared"), "{}", text(&other));
    let (_folder, path) = case("slip.ptx", &format!("{HEAD}.entry k() {{ bra_sync 0; baar.sync 0; ret; }}\n"));
    assert!(
        text(&veriflash(&["sanitize", shown(&path)])).contains("the nearest instruction is `bar`: did you mean it?")
    );
}

#[test]
fn sanitize_says_that_it_compares_nothing_where_something_is_expected() {
    let clean = veriflash(&["sanitize", "examples/bisect/two_streams.ptx", "--seeds", "1"]);
    assert_eq!(exit(&clean), 0, "{}", text(&clean));
    assert!(text(&clean).contains("results were not compared"), "{}", text(&clean));
    let (_folder, path) = case("idle.ptx", &format!("{HEAD}.entry k() {{ ret; }}\n"));
    let idle = veriflash(&["sanitize", shown(&path)]);
    assert!(exit(&idle) == 0 && !text(&idle).contains("compared"), "{}", text(&idle));
}

#[test]
fn an_unknown_form_exits_3_with_its_name() {
    let (_folder, path) = case("unknown.ptx", &format!("{HEAD}.entry k() {{ tcgen05.shift 20; ret; }}\n"));
    let output = veriflash(&["sanitize", shown(&path)]);
    assert_eq!(exit(&output), 3, "{}", text(&output));
    assert!(text(&output).contains("tcgen05.shift"), "{}", text(&output));
    let out = path.with_file_name("pack");
    let proved = veriflash(&["prove", "--kernel", shown(&path), "--out", shown(&out)]);
    assert_eq!((exit(&proved), text(&proved)), (3, text(&output)));
}

#[test]
fn flags_that_would_be_ignored_are_refused() {
    for flag in [["--grid", "3"], ["--block", "32"], ["--arg", "n=u32:1"], ["--entry", "k"], ["--shared", "16"]] {
        let output = veriflash(&[&["sanitize", "--problem", "B1 H1 S1 D64"], &flag[..]].concat());
        assert_eq!(exit(&output), 2, "{flag:?}: {}", text(&output));
        assert!(text(&output).contains(flag[0]), "{}", text(&output));
    }
}

/// The command that a finding names gives the same report again.
/// Runs the command that a report names.
fn repeated(report: &str) -> Output {
    let (_, rest) = report.split_once("repeat with `veriflash ").expect(report);
    let (command, _) = rest.split_once('`').expect(report);
    let line = format!("'{}' {command}", env!("CARGO_BIN_EXE_veriflash"));
    Command::new("sh").args(["-c", &line]).env("NO_COLOR", "1").output().expect("a shell")
}

#[test]
fn the_command_that_repeats_a_finding_does() {
    let body = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 x) {\n.reg .b64 %a;\n\
                .reg .b32 %v;\nld.param.u64 %a, [x];\nld.global.u32 %v, [%a+4096];\nret;\n}\n";
    let (_folder, path) = case("it's far.ptx", body);
    let flags = ["--block", "32", "--arg", "x=f32[64]:normal(1.0)", "--seed", "2"];
    let output = veriflash(&[&["sanitize", shown(&path)], &flags[..]].concat());
    let report = text(&output);
    assert_eq!(exit(&output), 1, "{report}");
    let again = repeated(&report);
    assert_eq!((exit(&again), text(&again)), (1, report));
}

#[test]
fn a_run_that_its_budget_ended_ends_there_again() {
    let (_folder, path) = case("loop.ptx", &format!("{HEAD}.entry k() {{ again: bra again; }}\n"));
    let output = veriflash(&["run", shown(&path), "--budget", "5000"]);
    let again = repeated(&text(&output));
    assert_eq!((exit(&output), exit(&again)), (1, 1));
    assert!(text(&again).contains("does not end within 5000 instructions"), "{}", text(&again));
}

/// Of the runs of an attention kernel on tensor cores: what it left, and what became of its expectations.
fn results_with(arithmetic: &str) -> (Value, Value) {
    let shown = json(&["run", "corpus/tri_fa_fwd.sm_90a.toml", "--arithmetic", arithmetic]);
    (shown["changed"].clone(), shown["failures"].clone())
}

#[test]
fn fast_arithmetic_is_close_and_not_equal() {
    let ((exact, no_failure), (fast, failures)) = (results_with("exact"), results_with("fast"));
    assert_eq!(no_failure, failures, "both are within the tolerance");
    assert_eq!(failures, serde_json::json!([]));
    assert_ne!(exact, fast, "they sum in another order");
}

#[test]
fn a_finding_that_nobody_reads_is_no_pass() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(["sanitize", "filetests/fail/missing-wait/never_waited.ptx"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!([1, 4].contains(&exit(&output)), "{:?}", output.status);
    assert_eq!(text(&output), "");
}

#[test]
fn no_case_is_no_pass() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = veriflash(&["filetests", shown(folder.path())]);
    assert_eq!(exit(&output), 2, "{}", text(&output));
    assert!(text(&output).contains("no case there"), "{}", text(&output));
}

/// A case of the corpus in a folder of its own: vector addition of four numbers.
fn corpus_case(more: &str, expect: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let corpus = folder.path().join("corpus");
    std::fs::create_dir(&corpus).unwrap();
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/ptx/vadd.sm_75.ptx"), corpus.join("add.ptx"))
        .unwrap();
    let buffer = |name: &str, line: &str| format!("[buffer.{name}]\ntype = \"f32\"\nshape = [4]\n{line}\n");
    let launch = "[[launch]]\nentry = \"vadd\"\ngrid = [1, 1, 1]\nblock = [32, 1, 1]\n";
    let args = r#"args = [{ buffer = "a" }, { buffer = "a" }, { buffer = "c" }, { s32 = 4 }]"#;
    let [a, c] = [buffer("a", "init = \"ramp\""), buffer("c", &format!("expect = {expect}"))];
    std::fs::write(corpus.join("add.toml"), format!("{more}ptx = \"add.ptx\"\n{a}{c}{launch}{args}\n")).unwrap();
    text(&veriflash(&["filetests", shown(&corpus)]))
}

#[test]
fn a_case_of_the_corpus_is_judged_by_its_recipe() {
    let right = "[0, 2, 4, 6]";
    assert_eq!(corpus_case("", right), "passed   add.toml\n1 passed, 0 failed, 0 skipped\n");
    assert!(corpus_case("", "[0, 2, 4, 7]").contains("FAILED   add.toml\n         seed 0: "));
    let missed = corpus_case("#~ 30 error[race-warp]: both write\n", right);
    assert!(missed.contains("line 30: expected error[race-warp]: both write, which did not happen"), "{missed}");
    assert!(corpus_case("#~ error[race-warp]\n", right).contains("expected `#~ LINE error[check]: TEXT`"));
}

#[test]
fn an_endless_kernel_ends_at_the_budget() {
    let (_folder, path) = case("endless.ptx", &format!("{HEAD}.entry k() {{ again: bra again; }}\n"));
    let output = veriflash(&["sanitize", shown(&path), "--budget", "10000"]);
    assert_eq!(exit(&output), 1, "{}", text(&output));
    assert!(text(&output).contains("does not end within 10000 instructions"), "{}", text(&output));
}

#[test]
fn a_block_that_begins_without_budget_is_reported() {
    let head = HEAD.replace("grid = [1, 1, 1]", "grid = [600, 1, 1]");
    let alone = "ret;";
    let talking = ".reg .b64 %p; .reg .b32 %v; ld.param.u64 %p, [p]; atom.global.add.u32 %v, [%p], 1; ret;";
    for (body, each) in [(alone, 1), (talking, 3)] {
        let buffer = "//@ [buffer.p]\n//@ type = \"u32\"\n//@ shape = [1]\n//@ init = \"zeros\"\n";
        let head = head.replace(".version", "//@ args = [{ buffer = \"p\" }]\n.version");
        let (_folder, path) = case("many.ptx", &format!("{buffer}{head}.entry k(.param .u64 p) {{ {body} }}\n"));
        for blocks in [1, 264, 599] {
            let output = veriflash(&["sanitize", shown(&path), "--budget", &(blocks * each).to_string()]);
            assert_eq!(exit(&output), 1, "{}", text(&output));
            assert!(text(&output).contains("does not end within"), "{}", text(&output));
        }
        let output = veriflash(&["sanitize", shown(&path), "--budget", &(600 * each).to_string()]);
        assert_eq!(exit(&output), 0, "{}", text(&output));
    }
}

#[test]
fn a_trap_keeps_what_other_blocks_have_found() {
    let buffer = "//@ [buffer.p]\n//@ type = \"u32\"\n//@ shape = [2]\n//@ init = \"zeros\"\n";
    let head = HEAD.replace("grid = [1, 1, 1]", "grid = [2, 1, 1]");
    let head = head.replace(".version", "//@ args = [{ buffer = \"p\" }]\n.version");
    let body = "
.entry k(.param .u64 p) {
    .reg .b64 %p; .reg .b32 %block, %lane, %steps, %old; .reg .pred %first, %more;
    .shared .align 4 .b32 word;
    ld.param.u64 %p, [p];
    mov.u32 %block, %ctaid.x;
    mov.u32 %lane, %tid.x;
    mov.u32 %steps, 0;
    setp.eq.u32 %first, %block, 0;
    @%first bra turn;
    st.shared.u32 [word], %lane;
turn:
    add.u32 %steps, %steps, 1;
    setp.lt.u32 %more, %steps, 3000;
    @%more bra turn;
    atom.global.add.u32 %old, [%p], 1;
    @%first trap;
    ret;
}
";
    let (_folder, path) = case("trap.ptx", &format!("{buffer}{head}{body}"));
    let output = veriflash(&["sanitize", shown(&path)]);
    assert_eq!(exit(&output), 1, "{}", text(&output));
    assert!(text(&output).contains("error[trap]"), "{}", text(&output));
    assert!(text(&output).contains("error[race-warp]"), "{}", text(&output));
}

#[test]
fn an_allocation_bomb_is_refused() {
    let bomb = format!(
        "//@ [buffer.x]\n//@ type = \"u8\"\n//@ shape = [1000000, 1000000, 1000000]\n{HEAD}.entry k() {{ ret; }}\n"
    );
    let (_folder, path) = case("bomb.ptx", &bomb);
    let output = veriflash(&["run", shown(&path)]);
    assert_eq!(exit(&output), 2, "{}", text(&output));
    assert!(text(&output).contains("more than the limit"), "{}", text(&output));
}

#[test]
fn a_missing_gpu_is_a_sentence() {
    let output = veriflash(&["run", "--problem", "B1 H1 S1 D64", "--backend", "cuda"]);
    assert!([0, 4].contains(&exit(&output)), "{}", text(&output));
    assert!(!text(&output).contains("panicked"), "{}", text(&output));
}

#[test]
fn what_ptx_prints_is_a_complete_case() {
    let printed = veriflash(&["ptx", "--problem", "B1 H1 Sq5 Sk70 D64 causal"]);
    assert_eq!(exit(&printed), 0, "{}", text(&printed));
    let (_folder, path) = case("kernel.ptx", &String::from_utf8_lossy(&printed.stdout));
    let output = veriflash(&["sanitize", shown(&path), "--seeds", "1"]);
    assert_eq!(exit(&output), 0, "{}", text(&output));
}

#[test]
fn flags_build_a_recipe() {
    let body = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 x, .param .u32 n) { ret; }\n";
    let (_folder, path) = case("plain.ptx", body);
    let flags = ["--grid", "ceil_div(n,32)", "--block", "32", "--arg", "x=f32[64]:normal(1.0)", "--arg", "n=u32:64"];
    let output = veriflash(&[&["run", shown(&path)][..], &flags].concat());
    assert_eq!(exit(&output), 0, "{}", text(&output));
    assert!(text(&output).contains("grid 2x1x1, block 32x1x1"), "{}", text(&output));
}

/// Words for values, and one element for a list: what a reader of the JSON may rely on, on every machine.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
        Value::Array(items) => items.first().map(shape).into_iter().collect(),
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "true or false".into(),
        Value::Null => "nothing".into(),
    }
}

/// The JSON that a command prints, which says the exit code of the process too.
fn json(arguments: &[&str]) -> Value {
    let output = veriflash(&[arguments, &["--format", "json"]].concat());
    let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    assert_eq!(value["exit"], exit(&output), "{value:#}");
    assert_eq!(value["command"], arguments[0], "{value:#}");
    value
}

#[test]
fn every_command_that_lists_speaks_json() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pack = folder.path().join("pack");
    let kernel = veriflash(&["ptx", "--problem", "B1 H1 Sq5 Sk70 D64 causal"]);
    let (_folder, path) = case("kernel.ptx", &String::from_utf8_lossy(&kernel.stdout));
    let commands: [&[&str]; 8] = [
        &["run", shown(&path)],
        &["prove", "--kernel", shown(&path), "--out", shown(&pack)],
        &["verify", shown(&pack), "--no-rerun"],
        &["filetests", "filetests/reject"],
        &["filetests", "filetests/reject", "--coverage"],
        &["explain"],
        &["explain", "missing-wait"],
        &["explain", "forms"],
    ];
    for arguments in commands {
        let places = [shown(&path), shown(&pack)];
        let words = arguments.iter().filter(|word| !places.contains(word) && !word.starts_with("--o"));
        let words: Vec<_> = words.map(|word| word.trim_start_matches('-').replace('/', "_")).collect();
        insta::assert_snapshot!(format!("json_{}", words.join("_")), format!("{:#}", shape(&json(arguments))));
    }
}

/// Tools and GPUs differ between machines: what is there has a version and a path, what is not has neither.
#[test]
fn doctor_speaks_json_about_this_machine() {
    let report = json(&["doctor"]);
    for tool in report["tools"].as_array().expect("a list") {
        assert!(tool["tool"].is_string() && tool["purpose"].is_string() && tool["install"].is_string(), "{tool:#}");
        assert_eq!(tool["version"].is_string(), tool["path"].is_string(), "{tool:#}");
    }
    assert_ne!(report["gpu"]["device"].is_string(), report["gpu"]["why"].is_string(), "{report:#}");
    assert!(report["emulator"]["forms"].as_u64() > Some(0), "{report:#}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("a mode");
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    let doctor = doctor.arg("doctor").env("VERIFLASH_CACHE", folder.path()).output().expect("the binary runs");
    assert!(text(&doctor).contains("is not used: other users can write to it"), "{}", text(&doctor));
    let bare = veriflash_without_tools(&["doctor", "--require", "ptxas", "--format", "json"]);
    assert_eq!(exit(&bare), 1, "{}", text(&bare));
    let bare: Value = serde_json::from_slice(&bare.stdout).expect("JSON");
    assert_eq!((&bare["verdict"], &bare["tools"][0]["path"]), (&"fail".into(), &Value::Null), "{bare:#}");
}

#[test]
fn doctor_names_everything_optional_with_what_installs_it() {
    let bare = text(&veriflash_without_tools(&["doctor"]));
    for name in ["ptxas", "nvdisasm", "compute-sanitizer", "ncu", "nvcc", "nvrtc", "python3", "torch"] {
        let line = bare.lines().find(|line| line.split_whitespace().nth(1) == Some(name)).unwrap_or_default();
        assert!(line.starts_with("missing") && line.contains("; install with `"), "{name}:\n{bare}");
        assert_eq!(exit(&veriflash_without_tools(&["doctor", "--require", name])), 1, "{name}");
    }
    assert!(bare.lines().any(|line| line.split_whitespace().nth(1) == Some("driver")), "{bare}");
    assert!(bare.lines().any(|line| line.split_whitespace().nth(1) == Some("gpu")), "{bare}");
    let unknown = veriflash_without_tools(&["doctor", "--require", "gcc"]);
    assert_eq!(exit(&unknown), 2);
    assert!(text(&unknown).contains("expected one of ptxas, nvdisasm, "), "{}", text(&unknown));
}

#[test]
fn a_trace_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("trace.json");
    for command in ["run", "sanitize"] {
        let case = "filetests/pass/ring_of_boxes.ptx";
        let traced = veriflash(&[command, case, "--seed", "5", "--trace", shown(&file), "--trace-blocks", "1"]);
        assert_eq!(exit(&traced), 0, "{}", text(&traced));
        assert!(text(&traced).contains("trace.json (blocks: 1, events: "), "{}", text(&traced));
        let written = std::fs::read_to_string(&file).expect("the trace");
        let value: Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(value["otherData"]["seed"], 5);
        assert!(value["traceEvents"].as_array().is_some_and(|events| events.len() > 20));
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let nowhere = folder.path().join("missing").join("trace.json");
    let refused = veriflash(&["run", "filetests/pass/ring_of_boxes.ptx", "--trace", shown(&nowhere)]);
    assert_eq!(exit(&refused), 2, "{}", text(&refused));
    assert!(text(&refused).contains(&format!("cannot write the trace to {}", shown(&nowhere))), "{}", text(&refused));
}

#[test]
fn sanitize_traces_the_schedule_of_the_finding() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("trace.json");
    let case = "filetests/fail/deadlock/crossed_barriers.ptx";
    let found = veriflash(&["sanitize", case, "--seed", "3", "--trace", shown(&file), "--format", "json"]);
    assert_eq!(exit(&found), 1, "{}", text(&found));
    let result: Value = serde_json::from_slice(&found.stdout).expect("nothing but JSON");
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("the trace")).expect("JSON");
    assert_eq!(trace["otherData"]["seed"], result["findings"][0]["seed"]);
}

#[test]
fn a_gpu_draws_no_timeline() {
    let (_folder, path) = case("clean.ptx", &format!("{HEAD}.entry k() {{ ret; }}\n"));
    let refused = veriflash(&["run", shown(&path), "--backend", "cuda", "--trace", "trace.json"]);
    assert_eq!(exit(&refused), 2, "{}", text(&refused));
    assert!(text(&refused).contains("`--trace` needs `--backend emulator`"), "{}", text(&refused));
    let alone = veriflash(&["run", shown(&path), "--trace-blocks", "2"]);
    assert_eq!(exit(&alone), 2, "{}", text(&alone));
}

/// A problem in flags is the problem in one line.
#[test]
fn a_problem_may_come_in_flags() {
    let printed = |arguments: &[&str]| {
        let output = veriflash(&[&["ptx"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let flags =
        "--batch 3 --heads 6 --kv-heads 2 --seq 40 --seq-kv 70 --head-dim 128 --dtype bf16 --mask window --window 16,2";
    let flags: Vec<&str> = flags.split(' ').chain(["--config", "5"]).collect();
    let line = ["--problem", "bf16 B3 H6/2 Sq40 Sk70 D128 window16/2", "--config", "5"];
    assert_eq!(printed(&flags), printed(&line));
    assert_eq!(printed(&["--seq", "512"]), printed(&[]));
    let wide = printed(&["--head-dim", "192", "--value-dim", "128", "--config", "6"]);
    assert_eq!(wide, printed(&["--problem", "D192/128", "--config", "6"]));
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("kernels");
    let said = printed(&["--mask", "causal", "--out", place.to_str().expect("a name")]);
    let written = std::fs::read_to_string(said.trim()).expect("the file that it names");
    assert_eq!(written, printed(&["--mask", "causal"]));
    for (wrong, expected) in [
        (&["--mask", "window"][..], "`--mask window` needs `--window LEFT[,RIGHT]`"),
        (&["--window", "5"], "`--window` needs `--mask window`"),
        (
            &["--head-dim", "136", "--config", "1"],
            "bytes of shared memory for a block, expected at most 101376: use config 2 or 4 or 6",
        ),
        (&["--head-dim", "264"], "no kernel has heads of 264 columns: expected a multiple of 8 from 16 to 256"),
        (&["--value-dim", "12"], "no kernel has heads of 12 columns: expected a multiple of 8 from 16 to 256"),
        (&["--config", "6", "--math", "scalar"], "config 6 has no scalar math: expected one of configs 1 to 5"),
        (&["--math", "vector"], "expected one of tensor, scalar"),
        (&["--config", "99"], "there is no config 99: expected one of 1, 2, 3, 4, 5, 6"),
        (&["--config", "10", "--math", "scalar"], "config 10 has no scalar math: expected one of configs 1 to 5"),
        (&["--config", "12", "--head-dim", "128"], "expected at most 232448: use config 10 or 13 or 15"),
        (&["--arch", "sm_75"], "expected one of sm_80, sm_86, sm_89, sm_90"),
    ] {
        let output = veriflash(&[&["ptx"], wrong].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{wrong:?}");
    }
}

/// Without `--config` the planner chooses, by the GPU that `--arch` names.
#[test]
fn the_planner_chooses_the_printed_kernel() {
    let printed = |flags: &[&str]| {
        let output = veriflash(&[&["ptx", "--problem", "B1 H32 S1024 D64 causal"], flags].concat());
        assert_eq!(exit(&output), 0, "{}", text(&output));
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"))
    };
    let kernel = |flags: &[&str]| printed(flags)[0].clone();
    assert_eq!(kernel(&[]), kernel(&["--config", "8"]));
    assert_eq!(kernel(&["--arch", "sm_90"]), kernel(&["--config", "14"]));
    assert_eq!(kernel(&["--arch", "sm_100"]), kernel(&["--config", "9"]));
    assert_eq!(printed(&["--math", "scalar"]), printed(&["--config", "1", "--math", "scalar"]));
    assert_ne!(kernel(&["--math", "scalar"]), kernel(&["--config", "1"]));
    assert!(kernel(&["--arch", "sm_90"]).contains(".target sm_90a"));
    assert!(kernel(&["--arch", "sm_100"]).contains(".target sm_80"));

    let said = |flags: &[&str]| printed(flags)[1].clone();
    let named = "--problem 'f16 B1 H32 S1024 D64 causal' --config 9\n";
    assert_eq!(said(&["--config", "9"]), named);
    let own = named.replace('9', "14");
    assert_eq!(said(&["--arch", "sm_90"]), format!("{own}note: the planner chose it for `--arch sm_90`\n"));
    let model = "note: the planner chose it for `--arch sm_100` by a model: measured is sm_90 alone\n";
    assert_eq!(said(&["--arch", "sm_100"]), format!("{named}{model}"));
}

/// What is printed with `--debug` has assertions, runs silently, and names the one that an input breaks.
#[test]
fn debug_kernels_name_what_an_input_breaks() {
    let built_in = ["--problem", "B1 H1 Sq5 Sk70 D64 causal", "--config", "1", "--debug"];
    let output = veriflash(&[&["run"], &built_in[..]].concat());
    assert_eq!(exit(&output), 0, "{}", text(&output));
    let printed = veriflash(&[&["ptx"], &built_in[..]].concat()).stdout;
    let printed = String::from_utf8(printed).expect("text");
    let (head, inputs) = printed.split_once("[buffer.k]").expect("keys");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("broken.ptx");
    std::fs::write(&path, format!("{head}[buffer.k]{}", inputs.replacen("normal(1.0)", "const(nan)", 1)))
        .expect("a file");
    let output = veriflash(&["run", shown(&path)]);
    assert_eq!(exit(&output), 1, "{}", text(&output));
    let expected = "error[trap]: assertion `scores are finite` failed in CTA (0,0,0), warp 0, lane 31";
    assert!(text(&output).contains(expected), "{}", text(&output));
    for (wrong, expected) in [("--debug", "not into a file"), ("--algebra", "leave out `--algebra`, or `--debug`")] {
        let output = veriflash(&["run", shown(&path), wrong]);
        assert_eq!(exit(&output), 2, "{wrong}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{wrong}");
    }
}

/// A kernel in a file is what it is: flags that choose one of ours are refused by name.
#[test]
fn flags_of_our_kernels_are_refused_beside_a_file() {
    for flag in
        [&["--config", "3"][..], &["--math", "tensor"], &["--arch", "sm_90"], &["--config", "3", "--splits", "2"]]
    {
        for command in [&["run"][..], &["sanitize"], &["mutate"], &["prove", "--kernel"]] {
            if flag[0] == "--arch" && command[0] == "prove" {
                continue;
            }
            let output = veriflash(&[command, &["corpus/none.ptx"], flag].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(exit(&output), 2, "{command:?} {flag:?}");
            let expected =
                [format!("`{}` asks for a kernel of ours", flag[0]), format!("cannot be used with '{} <", flag[0])];
            assert!(expected.iter().any(|words| said.contains(words)), "{command:?} {flag:?}: {said}");
        }
    }
}

/// Kernels that differ in anything have files of their own; what is replaced all the same is said.
#[test]
fn kernels_share_a_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = |problem: &str, more: &[&str]| {
        let arguments = ["ptx", "--problem", problem, "--config", "3", "--out", shown(folder.path())];
        let output = veriflash(&[&arguments, more].concat());
        assert_eq!(exit(&output), 0, "{}", text(&output));
        let stdout = String::from_utf8_lossy(&output.stdout).trim().to_string();
        (stdout, String::from_utf8_lossy(&output.stderr).contains("is replaced"))
    };
    let problems = [
        "f16 D64 causal",
        "bf16 D64 causal",
        "D64 S1024 causal",
        "D64 B1 causal",
        "D64/32 causal",
        "H8/2 D64 causal",
        "D64 causal bshd",
        "S40,30 D64 causal",
    ];
    let mut files: Vec<String> = problems.iter().map(|problem| written(problem, &[]).0).collect();
    let flags: [&[&str]; 3] = [&["--debug"], &["--math", "scalar"], &["--splits", "2"]];
    files.extend(flags.iter().map(|flags| written(problems[0], flags).0));
    let last = |file: &String| Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    assert_eq!(last(&files[0]).as_deref(), Some("attention_config3_f16_B2_H8_S512_D64_causal.ptx"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), files.len(), "{files:#?}");
    assert!(!written(problems[0], &[]).1, "the same again");
    std::fs::write(&files[0], "other").expect("a file");
    assert!(written(problems[0], &[]).1);
}

#[test]
fn built_in_kernels_are_proven_by_problem_and_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["prove", "--problem", "B1 H1 Sq5 Sk70 D64 causal", "--config", "9", "--out", shown(folder.path())];
    let output = veriflash(&arguments);
    assert_eq!(exit(&output), 0, "{}", text(&output));
    let kernel = "kernels/attention_config9_f16_B1_H1_Sq5_Sk70_D64_causal/kernel.ptx";
    assert!(folder.path().join(kernel).is_file(), "{}", text(&output));
    assert_eq!(exit(&veriflash(&["prove", "--config", "9"])), 2);
    let (out, family) = (shown(folder.path()), ["prove", "--kernel", "ampere"]);
    let output = veriflash(&[&family[..], &["--config", "1", "--out", out]].concat());
    assert_eq!(exit(&output), 0, "{}", text(&output));
    assert!(text(&output).contains("2 kernels called 3 times under each of 11 policies"), "{}", text(&output));
    let report = std::fs::read_to_string(folder.path().join("REPORT.md")).expect("a report");
    assert!(report.contains("`veriflash prove --kernel ampere --config 1`"), "{report}");
    for wrong in [&["--kernel", "a.ptx"][..], &["--config", "99"]] {
        assert_eq!(exit(&veriflash(&[&family, wrong, &["--out", out]].concat())), 2, "{wrong:?}");
    }
}

#[test]
fn bench_names_a_wrong_argument_before_it_looks_for_a_gpu() {
    for (arguments, word) in [
        (["--kernel", "nope.ptx"], "`--kernel nope.ptx`"),
        (["--peers", "foo"], "--peers"),
        (["--python", "/nonexistent"], "`--python /nonexistent` does not run"),
        (["--csv", "/nonexistent/a.csv"], "`--csv /nonexistent/a.csv`"),
        (["--seconds", "nan"], "`--seconds NaN`"),
        (["--config", "99"], "there is no config 99"),
    ] {
        let output = veriflash(&["bench", arguments[0], arguments[1]]);
        assert_eq!(exit(&output), 2, "{}", text(&output));
        assert!(text(&output).contains(word), "{}", text(&output));
    }
    if cuda::Cuda::open(0).is_err() {
        let output = veriflash(&["bench"]);
        assert_eq!(exit(&output), 4, "{}", text(&output));
        assert!(text(&output).starts_with("error: times need a GPU: "), "{}", text(&output));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_no_reader_who_is_gone() {
    let full = std::fs::File::create("/dev/full").expect("a device that is always full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    let output = command.args(["explain", "forms"]).stdout(full).output().expect("the binary runs");
    assert_eq!(exit(&output), 4);
    let said = text(&output);
    assert!(said.starts_with("error: standard output cannot be written: No space left on device"), "{said}");
}

#[test]
fn a_problem_has_words_and_numbers_that_fit() {
    let said = |problem: &str| {
        let output = veriflash(&["ptx", "--problem", problem]);
        assert_eq!(exit(&output), 2, "{}", text(&output));
        text(&output)
    };
    assert!(said("").contains("the problem is empty: expected words"), "{}", said(""));
    let large = said("B99999999999");
    assert!(large.contains("`B99999999999`: the number is too large: expected at most 4294967295"), "{large}");
}

#[test]
fn a_module_without_an_entry_says_what_to_do() {
    let (_folder, path) = case("none.ptx", &format!("{HEAD}.func f() {{ ret; }}\n"));
    let output = veriflash(&["sanitize", shown(&path)]);
    assert_eq!(exit(&output), 2);
    assert!(text(&output).contains("the module has no entry: expected a `.entry`"), "{}", text(&output));
}

#[test]
fn a_folder_of_tools_that_is_none_is_said() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    let output = command.arg("doctor").env("VERIFLASH_TOOLS", "/nonexistent").output().expect("the binary runs");
    assert_eq!(exit(&output), 0, "{}", text(&output));
    assert!(text(&output).contains("VERIFLASH_TOOLS names \"/nonexistent\", which is no folder"), "{}", text(&output));
}

/// What a kernel does not write is not judged, and not spoken of.
#[test]
fn a_kernel_without_a_log_sum_exp_is_told_nothing_of_it() {
    let printed = veriflash(&["ptx", "--problem", "B1 H1 S17 D64", "--config", "1"]).stdout;
    let printed = String::from_utf8(printed).expect("a text");
    let said = |text_of: &str| {
        let (_folder, path) = case("k.ptx", text_of);
        let output = veriflash(&["run", shown(&path)]);
        let said = text(&output);
        said.lines().find(|line| line.starts_with("against the float64 oracle: ")).expect(&said).to_string()
    };
    assert!(said(&printed).contains("; lse "), "{}", said(&printed));
    let without: Vec<&str> = printed.lines().filter(|line| !line.starts_with("//@ lse = ")).collect();
    assert!(without.len() < printed.lines().count(), "{printed}");
    let said = said(&(without.join("\n") + "\n"));
    assert!(said.contains("pass: output ") && !said.contains("lse"), "{said}");
}
