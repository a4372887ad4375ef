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
    written(BARRIERS)
}

fn written(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("barriers.ptx");
    std::fs::write(&path, text).expect("the case is written");
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
        (20, "equivalent", "no two lines conflict for want of it, even if nothing else orders anything"),
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

/// One warp adds a small number, the other adds a large one and takes it away, behind the barrier.
const SUM: &str = r#"
//@ [buffer.out]
//@ type = "f32"
//@ shape = [1]
//@ init = "zeros"
//@ expect = [0.5]
//@ tolerance = "abs(0.6)"
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [64, 1, 1]
//@ args = [{ buffer = "out" }]
.version 7.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 out)
{
    .reg .pred %first, %second;
    .reg .b64 %address;
    .reg .b32 %thread;
    ld.param.u64 %address, [out];
    mov.u32 %thread, %tid.x;
    setp.eq.u32 %first, %thread, 0;
    setp.eq.u32 %second, %thread, 32;
    @%second red.global.add.f32 [%address], 0f3F800000;
    bar.sync 0;
    @%first red.global.add.f32 [%address], 0f4CBEBC20;
    @%first red.global.add.f32 [%address], 0fCCBEBC20;
    ret;
}
"#;

/// The sum is 0 with the barrier and 1 without, under the first schedule, and both are as expected.
#[test]
fn sums_that_depend_on_the_schedule_are_held_to_the_tolerance() {
    let (_folder, path) = written(SUM);
    let (exit, document) = mutate(&[&path]);
    let deleted = mutants(&document).iter().find(|one| text(one, "operator") == "barrier deleted").expect("a barrier");
    assert_eq!((text(deleted, "verdict"), exit), ("equivalent", 0), "{deleted}");
}

/// All threads arrive, and nobody waits.
const ARRIVALS: &str = r#"
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [64, 1, 1]
.version 8.0
.target sm_90
.address_size 64
.visible .entry arrivals()
{
    .reg .pred %first;
    .reg .b32 %thread, %bar;
    .shared .align 8 .b64 done;
    mov.u32 %thread, %tid.x;
    mov.u32 %bar, done;
    setp.eq.u32 %first, %thread, 0;
    @%first mbarrier.init.shared.b64 [%bar], 64;
    bar.sync 0;
    mbarrier.arrive.shared.b64 _, [%bar];
    ret;
}
"#;

#[test]
fn an_mbarrier_that_is_left_with_other_arrivals_is_no_proof() {
    let (_folder, path) = written(ARRIVALS);
    let (exit, document) = mutate(&[&path]);
    let counts: Vec<&Value> =
        mutants(&document).iter().filter(|one| text(one, "operator").starts_with("arrive count")).collect();
    assert_eq!((counts.len(), exit), (2, 1));
    for one in counts {
        assert_eq!(text(one, "verdict"), "missed", "{one}");
        assert!(text(one, "cause").starts_with("phases of mbarriers are left with other arrivals"), "{one}");
    }
}

#[test]
fn what_is_wrong_with_the_kernel_itself_is_said_first() {
    let (_folder, path) = written(&BARRIERS.replacen(
        "    bar.sync 0;\n    st.shared.u32 [%mine], %other",
        "    st.shared.u32 [%mine], %other",
        1,
    ));
    let shown = veriflash(&["mutate", &path]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let note = "note: the kernel itself has error[race-shared] at line 28: mutants are judged by what is new";
    assert!(shown.lines().nth(1).is_some_and(|line| line.contains(note)), "{shown}");
    let (_, document) = mutate(&[&path]);
    assert_eq!(text(&document["kernels"][0]["findings"][0], "check"), "race-shared");
    assert_eq!(document["kernels"][0]["total"]["caught"], 0, "the race is not the mutants' doing");
}

/// A barrier that one launch needs and the other does not is needed.
/// Its second launch reads what all blocks of the first wrote: a kernel of which one block ran is not blamed for the others.
#[test]
fn launches_that_follow_each_other_are_run_as_a_whole() {
    let problem = ["--problem", "B1 H1 Sq17 Sk161 D64 causal", "--config", "5", "--splits", "3"];
    let (code, document) = mutate(&problem);
    assert_eq!((code, &document["kernels"][0]["findings"]), (0, &Value::Array(vec![])));
    assert!(mutants(&document).iter().filter(|mutant| text(mutant, "verdict") == "caught").count() >= 12, "{document}");
}

#[test]
fn recipes_of_one_module_are_its_witnesses() {
    let body = BARRIERS.split_once(".version").expect("a module").1;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let put = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("it is written");
    put("exchange.ptx", format!(".version{body}"));
    let mut paths = vec![];
    for threads in [32, 64] {
        let name = format!("exchange_{threads}.toml");
        let recipe = format!(
            "ptx = \"exchange.ptx\"\n[buffer.out]\ntype = \"u32\"\nshape = [64]\n[[launch]]\ngrid = [1, 1, 1]\n\
             block = [{threads}, 1, 1]\nargs = [{{ buffer = \"out\" }}]\n"
        );
        put(&name, recipe);
        paths.push(folder.path().join(name).to_str().expect("a readable path").to_string());
    }
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (_, document) = mutate(&paths);
    assert_eq!(document["kernels"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["kernels"][0]["witnesses"].as_array().map(Vec::len), Some(2));
    let caught = |document: &Value| document["kernels"][0]["total"]["caught"].as_u64();
    let alone = paths.iter().map(|path| caught(&mutate(&[path]).1)).max().flatten();
    assert_eq!(caught(&document), alone);
}

/// Four warps arrive in every round and wait for each other.
const ROUNDS: &str = r#".version 8.0
.target sm_90
.address_size 64
.visible .entry rounds(.param .u32 count)
{
    .reg .b32 %thread, %bar, %round, %parity, %count, %lane;
    .reg .pred %first, %more, %done, %elected;
    .shared .align 8 .b64 barrier;
    ld.param.u32 %count, [count];
    mov.u32 %thread, %tid.x;
    mov.u32 %bar, barrier;
    setp.eq.u32 %first, %thread, 0;
    @%first mbarrier.init.shared.b64 [%bar], 4;
    bar.sync 0;
    and.b32 %lane, %thread, 31;
    setp.eq.u32 %elected, %lane, 0;
    mov.u32 %round, 0;
$ROUND:
    @%elected mbarrier.arrive.shared.b64 _, [%bar];
    and.b32 %parity, %round, 1;
$WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [%bar], %parity;
    @!%done bra $WAIT;
    add.u32 %round, %round, 1;
    setp.lt.u32 %more, %round, %count;
    @%more bra $ROUND;
    ret;
}
"#;

/// With a count of three, one arrival is left over in every round, and after three rounds they make a phase of their own.
#[test]
fn a_longer_launch_shows_what_comes_of_arrivals_left_over() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it is written");
    put("rounds.ptx", ROUNDS);
    let recipe = |rounds: u32| {
        let name = format!("rounds_{rounds}.toml");
        let launch = "[[launch]]\ngrid = [1, 1, 1]\nblock = [128, 1, 1]\n";
        put(&name, &format!("ptx = \"rounds.ptx\"\n{launch}args = [{{ u32 = {rounds} }}]\n"));
        folder.path().join(name).to_str().expect("a readable path").to_string()
    };
    let (short, long) = (recipe(1), recipe(6));
    let verdict = |paths: &[&str]| {
        let (_, document) = mutate(paths);
        let down = mutants(&document).iter().find(|one| text(one, "operator") == "arrive count down").cloned();
        let down = down.expect("a mutant with a count of three");
        (text(&down, "verdict").to_string(), down["by"].as_str().map(str::to_string))
    };
    assert_eq!(verdict(&[&short]), ("missed".into(), None));
    // The longer one is asked whatever comes first on the command line.
    assert_eq!(verdict(&[&long, &short]), ("caught".into(), Some("deadlock".into())));
}

#[test]
fn a_kernel_without_a_recipe_takes_flags() {
    let (_folder, path) = written(ROUNDS);
    let (exit, document) = mutate(&[&path, "--arg", "count=u32:6", "--block", "128"]);
    assert_eq!((exit, &document["total"]["missed"]), (0, &Value::from(0)), "{document}");
    let down = mutants(&document).iter().find(|one| text(one, "operator") == "arrive count down");
    assert_eq!(down.map(|one| text(one, "by")), Some("deadlock"));
}

#[test]
fn mutants_of_a_kernel_that_hangs_are_not_judged() {
    let output = veriflash(&["mutate", "filetests/fail/deadlock/crossed_barriers.ptx"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the kernel itself has error[deadlock]"), "{said}");
    assert!(said.contains("its mutants cannot be judged"), "{said}");
    let (_, document) = mutate(&["filetests/fail/deadlock/crossed_barriers.ptx"]);
    assert!(!mutants(&document).is_empty());
    assert!(mutants(&document).iter().all(|one| text(one, "verdict") == "missed"), "{document:#}");
}

#[test]
fn a_kernel_that_does_not_synchronise_may_race() {
    let output = veriflash(&["mutate", "filetests/fail/race-warp/two_lanes_one_address.ptx"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("the kernel itself has error[race-warp]"), "{said}");
    assert!(said.contains("nothing synchronises"), "{said}");
    assert_eq!(output.status.code(), Some(0), "there was nothing to try");
}

/// The driver would refuse the launch, so that no instruction is reached.
#[test]
fn mutants_that_nobody_runs_show_nothing() {
    let printed = veriflash(&["ptx", "--problem", "B1 H1 Sq17 Sk33 D64", "--config", "1"]);
    let text = String::from_utf8_lossy(&printed.stdout).replace("block = [128, 1, 1]", "block = [64, 1, 1]");
    let (_folder, path) = written(&text);
    let output = veriflash(&["mutate", &path]);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not decided: no mutant of a kernel was executed"));
}
