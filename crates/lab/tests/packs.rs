//! A pack is deterministic, and every byte of it counts.
#![cfg(unix)]

mod support;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use lab::{Case, CheckResult, Outcome, Progress, Request, Silent, Stage, Verification, VerifyOptions, prove, verify};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{CODE, SAID, kernel_text, request, tools};

/// A pack with machine code in it.
fn full_request(folder: &Path) -> Request {
    let mut request = request(&kernel_text(), &folder.join("pack"));
    request.tools = tools(folder, SAID, CODE);
    request
}

fn without_rerun(folder: &Path) -> Verification {
    let options = VerifyOptions { rerun: false, tools: lab::Toolbox::none(), progress: &Silent };
    verify(folder, &options).unwrap()
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

fn is_squeezed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz")
}

/// What a file says, also one that is squeezed.
fn text_of(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    match is_squeezed(path) {
        true => drop(GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap()),
        false => text = String::from_utf8(bytes).unwrap(),
    }
    text
}

fn write_text(path: &Path, text: &str) {
    if !is_squeezed(path) {
        return fs::write(path, text).unwrap();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    fs::write(path, encoder.finish().unwrap()).unwrap();
}

/// The finding is in the recipe, which a pack writes in a form of its own.
#[test]
fn a_pack_of_a_kernel_that_cannot_be_launched_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let text = kernel_text().replace("block = [128, 1, 1]", "block = [64, 1, 1]");
    let pack = prove(&request(&text, &folder.path().join("pack")), &Silent).unwrap();
    let sanitized = pack.outcomes.iter().find(|outcome| outcome.stage() == Stage::Sanitize).unwrap();
    assert!(sanitized.state().why().unwrap().contains("and in the recipe: a block of 64"), "{sanitized:?}");
    let options = VerifyOptions { rerun: true, tools: lab::Toolbox::none(), progress: &Silent };
    let verification = verify(&pack.folder, &options).unwrap();
    assert_eq!(verification.fault(), None, "{}", verification.table());
}

#[test]
fn a_pack_is_accepted_and_says_what_was_not_checked() {
    let folder = tempfile::tempdir().unwrap();
    let request = full_request(folder.path());
    let pack = prove(&request, &Silent).unwrap();
    let options = VerifyOptions { rerun: true, tools: request.tools.clone(), progress: &Silent };
    let verification = verify(&pack.folder, &options).unwrap();
    assert!(verification.checks.iter().all(|check| check.result == CheckResult::Holds), "{}", verification.table());
    assert_eq!(verification.outcomes, pack.outcomes);

    let newer = request.tools.ptxas.map(|tool| lab::Tool { version: "0.0.2".into(), ..tool });
    let tools = lab::Toolbox { ptxas: newer, nvdisasm: None };
    let verification = verify(&pack.folder, &VerifyOptions { rerun: false, tools, progress: &Silent }).unwrap();
    assert!(verification.accepted());
    insta::assert_snapshot!(verification.table(), @r"
    files        holds
    manifest     holds
    kernels      holds
    logs         holds
    report       holds
    emulator     not checked: not asked to run the emulator again
    assemble     not checked: the pack was made with ptxas 0.0.1, and here is 0.0.2
    code         not checked: nvdisasm 0.0.1 is not here
    ");
}

#[test]
fn one_changed_byte_anywhere_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let pack = prove(&full_request(folder.path()), &Silent).unwrap();
    assert!(without_rerun(&pack.folder).accepted());
    let files: Vec<(PathBuf, Vec<u8>)> = files(&pack.folder).into_iter().collect();
    let total: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut random = Random(7);
    let mut touched = BTreeMap::new();
    for round in 0..1000 {
        // Half of the positions over all bytes, half over all files, so that small files have their share.
        let (path, bytes, at) = if round % 2 == 0 {
            place(&files, random.below(total))
        } else {
            let (path, bytes) = &files[random.below(files.len())];
            (path, bytes, random.below(bytes.len()))
        };
        let mut changed = bytes.clone();
        changed[at] ^= 1 + random.below(255) as u8;
        fs::write(path, &changed).unwrap();
        let verification = without_rerun(&pack.folder);
        assert!(!verification.accepted(), "byte {at} of {}", path.display());
        fs::write(path, bytes).unwrap();
        *touched.entry(path).or_insert(0) += 1;
    }
    assert_eq!(touched.len(), files.len(), "every file had a byte changed");
    println!("{} of 1000 changed bytes rejected, in {} files", touched.values().sum::<u32>(), touched.len());
    assert!(without_rerun(&pack.folder).accepted());
}

fn place(files: &[(PathBuf, Vec<u8>)], mut at: usize) -> (&PathBuf, &Vec<u8>, usize) {
    for (path, bytes) in files {
        if at < bytes.len() {
            return (path, bytes, at);
        }
        at -= bytes.len();
    }
    unreachable!("the position is below the sum of the lengths")
}

/// Numbers that are the same each time: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn stray_missing_and_empty_files_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let pack = prove(&full_request(folder.path()), &Silent).unwrap();
    fs::write(pack.folder.join("logs/extra.json"), "{}").unwrap();
    assert!(without_rerun(&pack.folder).fault().unwrap().contains("logs/extra.json is not listed"));
    fs::remove_file(pack.folder.join("logs/extra.json")).unwrap();
    for (path, bytes) in files(&pack.folder) {
        fs::remove_file(&path).unwrap();
        assert!(!without_rerun(&pack.folder).accepted(), "{} removed", path.display());
        fs::write(&path, "").unwrap();
        assert!(!without_rerun(&pack.folder).accepted(), "{} emptied", path.display());
        fs::write(&path, bytes).unwrap();
    }
    assert!(without_rerun(&pack.folder).accepted());
}

/// Recomputes every hash, as somebody would who edits a pack by hand.
fn rehash(folder: &Path) {
    let manifest = folder.join("manifest.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let listed = value["predicate"]["files"].as_object_mut().unwrap();
    for (path, digest) in listed.iter_mut() {
        *digest = launch::hash::hex(&fs::read(folder.join(path)).unwrap()).into();
    }
    fs::write(&manifest, serde_json::to_string_pretty(&value).unwrap() + "\n").unwrap();
    let line = |(path, bytes): (PathBuf, Vec<u8>)| {
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        (name != "SHA256SUMS").then(|| format!("{}  {name}\n", launch::hash::hex(&bytes)))
    };
    let mut lines: Vec<String> = files(folder).into_iter().filter_map(line).collect();
    lines.sort_by(|left, right| left[66..].cmp(&right[66..]));
    fs::write(folder.join("SHA256SUMS"), lines.concat()).unwrap();
}

#[test]
fn edits_with_all_hashes_recomputed_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let request = full_request(folder.path());
    let pack = prove(&request, &Silent).unwrap();
    let edits = [
        ("logs/parity.json", "\"element_error\": ", "\"element_error\": 1"),
        ("logs/sanitize.json", "\"error\": ", "\"error\": 1"),
        ("logs/assemble.json", "\"cubin\": \"", "\"cubin\": \"0"),
        ("logs/resources.json", "\"registers\": 96", "\"registers\": 64"),
        ("logs/code.json", "\"tensor_in_loop\": 1", "\"tensor_in_loop\": 32"),
        ("logs/stress.json", "\"verdict\": \"equivalent\"", "\"verdict\": \"caught\""),
        ("logs/stress.json", "\"lazy-reversed\"", "\"lazy\""),
        ("manifest.json", "not-run", "not-ran"),
        ("manifest.json", "\"pass\"", "{\"fail\": {\"why\": \"\"}}"),
        ("REPORT.md", "**6 passed", "**8 passed"),
        ("report.html", "6 of 8 stages passed", "8 of 8 stages passed"),
        ("kernels/case/kernel.toml", "normal(1.0)", "normal(0.0)"),
        ("kernels/case/kernel.ptx", "bar.sync 0;", "bar.sync 1;"),
        ("kernels/case/kernel.sm_80.sass.gz", "EXIT", "EXIT.KEEPREFCOUNT"),
        ("kernels/case/kernel.sm_80.cubin.gz", "cubin", "cubic"),
    ];
    for (file, from, to) in edits {
        let path = pack.folder.join(file);
        let original = text_of(&path);
        assert!(original.contains(from), "{file} {from}");
        let before = files(&pack.folder);
        write_text(&path, &original.replacen(from, to, 1));
        rehash(&pack.folder);
        let options = VerifyOptions { rerun: true, tools: request.tools.clone(), progress: &Silent };
        let verification = verify(&pack.folder, &options).unwrap();
        assert!(!verification.accepted(), "{file}: {from} to {to}");
        assert_eq!(verification.checks[0].result, CheckResult::Holds, "the hashes were recomputed");
        before.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }
    println!("{} edits with all hashes recomputed rejected", edits.len());
    rehash(&pack.folder);
    assert!(without_rerun(&pack.folder).accepted(), "an honest pack survives the recomputing");
}

#[test]
fn two_packs_differ_in_machine_time_and_cost_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = full_request(folder.path());
    let mut packs = ["one", "two"].map(|name| {
        request.folder = folder.path().join(name);
        let pack = prove(&request, &Silent).unwrap();
        let strip = |(path, bytes): (PathBuf, Vec<u8>)| (path.strip_prefix(&pack.folder).unwrap().to_path_buf(), bytes);
        files(&pack.folder).into_iter().map(strip).collect::<BTreeMap<_, _>>()
    });
    for files in &mut packs {
        files.remove(Path::new("SHA256SUMS"));
        let manifest = files.get_mut(Path::new("manifest.json")).unwrap();
        let mut value: Value = serde_json::from_slice(manifest).unwrap();
        let predicate = value["predicate"].as_object_mut().unwrap();
        assert!(["time", "machine", "cost"].iter().all(|field| predicate.remove(*field).is_some()));
        assert!(predicate["files"].as_object_mut().unwrap().remove("REPORT.md").is_some());
        *manifest = value.to_string().into_bytes();
        let report = files.get_mut(Path::new("REPORT.md")).unwrap();
        let (before, cost) = std::str::from_utf8(report).unwrap().split_once("## Cost\n").unwrap();
        let (_, after) = cost.split_once("\n## ").unwrap();
        *report = format!("{before}{after}").into_bytes();
    }
    assert_eq!(packs[0], packs[1]);
}

/// Stops after so many steps.
struct Stop {
    after: usize,
    steps: AtomicUsize,
}

impl Progress for Stop {
    fn begin(&self, _: Stage, _: usize) {}
    fn end(&self, _: &Outcome) {}

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.steps.load(Ordering::Relaxed) >= self.after
    }
}

#[test]
fn an_interrupted_run_leaves_nothing_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(&kernel_text(), &folder.path().join("pack"));
    for after in [0, 1, 3] {
        let stop = Stop { after, steps: AtomicUsize::new(0) };
        assert!(matches!(prove(&request, &stop), Err(lab::Error::Interrupted)));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}

/// Which stages a run kept.
fn kept(request: &Request) -> Vec<&'static str> {
    let pack = prove(request, &Silent).unwrap();
    let kept: Vec<_> = Stage::ALL.into_iter().filter(|stage| pack.cost.is_kept(*stage)).map(Stage::name).collect();
    assert_eq!(pack.table().matches("(kept)").count(), kept.len(), "{}", pack.table());
    let options = VerifyOptions { rerun: true, tools: request.tools.clone(), progress: &Silent };
    let verification = verify(&pack.folder, &options).unwrap();
    assert!(verification.accepted(), "{}", verification.table());
    assert_eq!(verification.outcomes, pack.outcomes);
    kept
}

const ALL_SIX: [&str; 6] = ["assemble", "parity", "sanitize", "stress", "resources", "code"];

#[test]
fn another_run_keeps_what_the_same_inputs_gave() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = full_request(folder.path());
    assert_eq!(kept(&request), [""; 0]);
    let costs = |folder: &Path| {
        let value: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
        let stages = value["predicate"]["cost"]["stages"].as_array().unwrap().clone();
        stages.iter().take(6).map(|one| one["milliseconds"].clone()).collect::<Vec<_>>()
    };
    let before = costs(&request.folder);
    assert_eq!(kept(&request), ALL_SIX);
    assert_eq!(costs(&request.folder), before, "a kept stage costs what it did cost");
    request.fresh = true;
    assert_eq!(kept(&request), [""; 0]);
    request.fresh = false;

    let tools = request.tools.clone();
    request.tools.nvdisasm.as_mut().unwrap().version = "0.0.2".into();
    assert_eq!(kept(&request), ALL_SIX[..5]);
    request.tools.nvdisasm = None;
    assert_eq!(kept(&request), ALL_SIX[..5]);
    request.tools.ptxas.as_mut().unwrap().version = "0.0.2".into();
    assert_eq!(kept(&request), ["parity", "sanitize", "stress"]);
    request.tools = tools;
    request.settings.data_seed = 1;
    assert_eq!(kept(&request), [""; 0]);
    request.cases = vec![support::case(&kernel_text().replace("normal(1.0)", "normal(0.5)"))];
    assert_eq!(kept(&request), [""; 0], "another recipe");
    let text = kernel_text().replacen("    ld.param", "    bar.warp.sync -1;\n    ld.param", 1);
    request.cases = vec![support::case(&text)];
    assert_eq!(kept(&request), [""; 0], "another module");
}

#[test]
fn nothing_is_kept_of_a_pack_that_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let request = full_request(folder.path());
    let pack = prove(&request, &Silent).unwrap().folder;
    for (file, from, to, hashes) in [
        ("logs/code.json", "\"tensor_in_loop\": 1", "\"tensor_in_loop\": 2", false),
        ("logs/code.json", "\"tensor_in_loop\": 1", "\"tensor_in_loop\": 2", true),
        ("manifest.json", "\"program\": \"", "\"program\": \"0", true),
        ("manifest.json", "\"schema\": ", "\"schema\": 1", true),
    ] {
        let text = fs::read_to_string(pack.join(file)).unwrap();
        assert!(text.contains(from), "{file}");
        fs::write(pack.join(file), text.replacen(from, to, 1)).unwrap();
        if hashes {
            rehash(&pack);
        }
        assert_eq!(kept(&request), [""; 0], "{file}: {from} to {to}");
    }
    assert_eq!(kept(&request), ALL_SIX);
}

#[test]
fn what_failed_runs_again_and_shows_its_findings() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(&kernel_text().replacen("bar.sync 0;", "", 1), &folder.path().join("pack"));
    for _ in 0..2 {
        let pack = prove(&request, &Silent).unwrap();
        assert!(!pack.findings.is_empty() && !pack.cost.is_kept(Stage::Sanitize), "{}", pack.table());
    }
}

#[test]
fn a_pack_says_what_it_cost() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(&kernel_text(), &folder.path().join("pack"));
    request.rate = Some("3.50/h".parse().unwrap());
    let pack = prove(&request, &Silent).unwrap();
    assert!(pack.cost.seconds() > 0.0);
    let report = fs::read_to_string(pack.folder.join("REPORT.md")).unwrap();
    assert!(report.contains(&format!("## Cost\n\n{}.\n\n| stage | seconds |", pack.cost)), "{report}");
    assert!(pack.cost.to_string().contains(" hours × 3.50/h = "), "{}", pack.cost);
    let manifest: Value = serde_json::from_slice(&fs::read(pack.folder.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["predicate"]["cost"]["rate"], "3.50/h");
    assert_eq!(manifest["predicate"]["cost"]["stages"].as_array().unwrap().len(), 8);
    assert!(without_rerun(&pack.folder).accepted());
}

#[test]
fn the_kernel_in_a_pack_is_a_complete_case() {
    let folder = tempfile::tempdir().unwrap();
    let pack = prove(&request(&kernel_text(), &folder.path().join("pack")), &Silent).unwrap();
    for file in ["kernel.ptx", "kernel.toml"] {
        let case = Case::open(&pack.folder.join("kernels/case").join(file)).unwrap();
        assert_eq!(case.problem.to_string(), support::PROBLEM);
    }
}

#[test]
fn a_folder_that_is_no_pack_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let options = VerifyOptions::default();
    assert!(verify(folder.path(), &options).unwrap_err().to_string().contains("is no pack"));
    assert!(verify(&folder.path().join("nowhere"), &options).is_err());
}
