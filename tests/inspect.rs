//! `inspect` as a user meets it. Scripts in `tests/tools` take the place of ptxas and nvdisasm, so that every machine
//! prints the same; the last test asks the real ones, where they are.
#![cfg(unix)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn inspect(arguments: &[&str]) -> Output {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools");
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.arg("inspect").args(arguments).env("VERIFLASH_TOOLS", tools).env("NO_COLOR", "1");
    command.output().expect("the binary runs")
}

fn exit(output: &Output) -> Option<i32> {
    output.status.code()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const RECIPE: &str = "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [128, 1, 1]\n//@ shared = 45056\n";

/// `plain.ptx` and `checked.ptx` with a recipe, and `bare.ptx` without one.
fn kernels() -> (tempfile::TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |file: &str, head: &str, entry: &str| {
        let path = folder.path().join(file);
        let module = format!("{head}.version 7.0\n.target sm_80\n.address_size 64\n.entry {entry}() {{ ret; }}\n");
        std::fs::write(&path, module).expect("the kernel is written");
        path
    };
    let paths = [("plain.ptx", RECIPE, "plain"), ("checked.ptx", RECIPE, "checked"), ("bare.ptx", "", "plain")];
    let paths = paths.map(|(file, head, entry)| write(file, head, entry));
    (folder, paths)
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

#[test]
fn a_kernel_and_its_machine_code_read_well() {
    let (_folder, [plain, ..]) = kernels();
    let output = inspect(&[shown(&plain), "--arch", "sm_90", "--sass"]);
    assert_eq!(exit(&output), Some(0), "{}", text(&output));
    insta::assert_snapshot!(text(&output));
}

#[test]
fn two_kernels_differ_in_what_they_differ_in() {
    let (_folder, [plain, checked, _]) = kernels();
    let output = inspect(&[shown(&plain), shown(&checked), "--sass"]);
    assert_eq!(exit(&output), Some(0), "{}", text(&output));
    insta::assert_snapshot!(text(&output));
    let flag = inspect(&[shown(&plain), "--against", shown(&checked), "--sass"]);
    assert_eq!(text(&flag), text(&output));
    let registers = inspect(&[shown(&plain), shown(&checked), "--sass", "--registers"]);
    assert!(text(&registers).contains("\n-HMMA.16816.F32 R56, R16.reuse, R68, RZ\n"), "{}", text(&registers));
}

#[test]
fn json_has_every_figure() {
    let (_folder, [plain, checked, _]) = kernels();
    let output = inspect(&[shown(&plain), shown(&checked), "--sass", "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!((&document["command"], &document["exit"]), (&"inspect".into(), &0.into()));
    let build = &document["kernels"][1]["builds"][0];
    let launch = &build["launches"][0];
    assert_eq!((&launch["registers"], &launch["spill_load_bytes"]), (&128.into(), &12.into()));
    assert_eq!((&launch["static_shared_bytes"], &launch["dynamic_shared_bytes"]), (&1024.into(), &45056.into()));
    assert_eq!(launch["occupancy"]["limited_by"], Value::from(vec!["shared memory"]));
    let main = &build["functions"][0]["loops"][0];
    assert_eq!(
        (&main["main"], &main["classes"]["local"], &main["classes"]["trap"]),
        (&true.into(), &1.into(), &1.into())
    );
    assert_eq!(build["functions"][0]["sass"][0]["text"], "MOV R1, c[0x0][0x28]");
    assert_eq!((&document["difference"][0]["removed"], &document["difference"][0]["added"]), (&0.into(), &2.into()));
}

#[test]
fn a_kernel_without_a_recipe_has_no_occupancy_until_its_block_is_given() {
    let (_folder, [_, _, bare]) = kernels();
    let output = inspect(&[shown(&bare)]);
    assert_eq!(exit(&output), Some(0), "{}", text(&output));
    assert!(text(&output).contains("occupancy      unknown: there is no recipe, give `--block THREADS`"));
    let given = text(&inspect(&[shown(&bare), "--block", "128", "--shared", "45056"]));
    assert!(
        given.contains("occupancy      3 blocks a processor, 12 of 64 warps (18 %), limited by shared memory"),
        "{given}"
    );
}

#[test]
fn a_missing_tool_is_named_with_what_installs_it() {
    let (_folder, [plain, ..]) = kernels();
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(["inspect", shown(&plain)]).env("PATH", "/nowhere");
    let output = command.env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS").output().expect("the binary runs");
    assert_eq!(exit(&output), Some(4));
    assert!(
        text(&output).starts_with("error: ptxas was not found: get it with `pip install nvidia-"),
        "{}",
        text(&output)
    );
}

#[test]
fn what_cannot_be_inspected_is_bad_input() {
    let (_folder, [plain, checked, _]) = kernels();
    let too_old = inspect(&[shown(&plain), "--arch", "sm_75"]);
    assert_eq!(exit(&too_old), Some(2));
    assert!(text(&too_old).contains("it is written for sm_80, and sm_75 does not run that"), "{}", text(&too_old));
    let twice = inspect(&[shown(&plain), shown(&checked), "--against", shown(&plain)]);
    assert_eq!(exit(&twice), Some(2));
    assert_eq!(exit(&inspect(&["no-such-file.ptx"])), Some(2));
    assert_eq!(exit(&inspect(&[shown(&plain), "--arch", "sm_1"])), Some(2));
}

#[test]
fn real_tools_find_products_and_copies_in_the_main_loop_of_our_kernel() {
    let tools = lab::Toolbox::find();
    if tools.ptxas.is_none() || tools.nvdisasm.is_none() {
        eprintln!("skipped: ptxas or nvdisasm is missing");
        return;
    }
    let problem = "B2 H8 S512 D64".parse().expect("a problem");
    let config = attention::configs::Config::by_id(9).expect("a configuration");
    let kernel = attention::kernels::kernel(&problem, &config).expect("a kernel");
    let hopper = attention::configs::Config::by_id(12).expect("a configuration");
    let hopper = attention::kernels::kernel(&"B2 H8 S512 D64".parse().expect("a problem"), &hopper).expect("a kernel");
    let plain =
        lab::inspect(&hopper, &[ptx::Target::SM_90], lab::BlockShape::default(), &tools).expect("an inspection");
    assert_eq!(plain.builds[0].target.to_string(), "sm_90a", "the same GPU");
    let targets = [ptx::Target::SM_80, ptx::Target::SM_90];
    let inspection = lab::inspect(&kernel, &targets, lab::BlockShape::default(), &tools).expect("an inspection");
    for build in &inspection.builds {
        let code = &build.code[0];
        let main = &code.loops[code.main.expect("a main loop")];
        let count = |class| main.counts.of(class);
        assert_eq!(count(lab::sass::Class::Tensor), 64, "{}", build.target);
        assert!(count(lab::sass::Class::CopyIn) >= 16 && main.counts.all() < code.counts.all(), "{}", build.target);
        assert_eq!(code.counts.of(lab::sass::Class::Local) + code.counts.of(lab::sass::Class::Trap), 0);
    }
}

#[test]
fn what_belongs_to_kernels_of_ours_is_refused_beside_a_file() {
    let (_folder, [plain, ..]) = kernels();
    for flag in [&["--against-config", "9"][..], &["--against-debug"], &["--config", "9"], &["--debug"]] {
        let output = inspect(&[&[shown(&plain)], flag].concat());
        assert_eq!(exit(&output), Some(2), "{flag:?}: {}", text(&output));
        assert!(text(&output).contains(flag[0]) && text(&output).contains("cannot be used with"), "{}", text(&output));
    }
}

#[test]
fn a_block_that_no_gpu_has_is_refused() {
    let (_folder, [_, _, bare]) = kernels();
    for (flag, value) in [("--block", "0"), ("--block", "5000"), ("--shared", "999999999")] {
        let output = inspect(&[shown(&bare), flag, value]);
        assert_eq!(exit(&output), Some(2), "{}", text(&output));
        assert!(text(&output).contains(flag) && text(&output).contains(value), "{}", text(&output));
    }
}
