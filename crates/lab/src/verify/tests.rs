//! A careful forger has this very code: it edits a log and makes everything that follows from it anew.

use super::*;
use crate::figures::{Figure, Launched};
use crate::pack::write;
use crate::prove::{self, Bench};
use crate::stages::half::Half;
use crate::stages::parity::{Controlled, Noticed};
use crate::stages::stress::Verdict;
use crate::stages::{profile, sanitize};
use crate::{Cost, Request, Settings};
use tempfile::TempDir;

/// What a forger does to the logs.
type Edit = fn(&mut Evidence);

/// An honest request, what it gave, and a folder.
struct Forger {
    request: Request,
    evidence: Evidence,
    kernels: Files,
    cost: Cost,
    folder: TempDir,
}

impl Forger {
    /// `edit` changes the kernel's text.
    fn new(edit: impl Fn(String) -> String) -> Forger {
        let folder = tempfile::tempdir().unwrap();
        let problem = "f16 B1 H2 Sq33 Sk65 D64 full".parse().unwrap();
        let kernel = attention::kernels::kernel(&problem, &attention::configs::CONFIGS[0]).unwrap();
        let kernel = Kernel::parse("case.ptx", &edit(kernel.parsed.source.text)).unwrap();
        let mut request = Request::new(vec![Case::new(kernel).unwrap()], folder.path().join("pack"));
        request.settings = Settings { seeds: vec![0, 1], rounds: 1, ..Settings::default() };
        request.tools = Toolbox::none();
        let bench = Bench::emulated(&request.cases, &request.settings, &Silent);
        let gathered = bench.gather(&request.tools, None).unwrap();
        let kernels = gathered.kernel_files(&request);
        Forger { evidence: gathered.evidence, kernels, cost: gathered.cost, folder, request }
    }

    /// A pack of edited evidence, consistent in itself; verified with a run of its own.
    fn forge(&self, edit: impl Fn(&mut Evidence)) -> Verification {
        let mut evidence = self.evidence.clone();
        edit(&mut evidence);
        let (files, _) = prove::files(&self.request, &evidence, self.kernels.clone(), &self.cost);
        self.verify(&files, true)
    }

    fn verify(&self, files: &Files, rerun: bool) -> Verification {
        let folder = self.folder.path().join("pack");
        write::write(&folder, files).unwrap();
        verify(&folder, &VerifyOptions { rerun, tools: Toolbox::none(), progress: &Silent }).unwrap()
    }
}

fn ran<L>(record: &mut Record<L>) -> &mut L {
    match record {
        Record::Ran(log) => log,
        Record::NotRun { why } => panic!("{why}"),
    }
}

fn fault(verification: &Verification) -> &str {
    verification.fault().expect("the forgery was accepted")
}

#[test]
fn an_honest_pack_is_accepted() {
    let forger = Forger::new(|text| text);
    let verification = forger.forge(|_| {});
    assert!(verification.accepted(), "{}", verification.table());
    assert_eq!(verification.tally().to_string(), "4 passed, 0 failed, 4 not run");
}

#[test]
fn a_pass_cannot_be_forged_for_a_wrong_kernel() {
    let forger = Forger::new(|text| {
        let load = "ld.param.f32 %scale_log2, [scale_log2];";
        text.replace(load, &format!("{load}\n    mul.f32 %scale_log2, %scale_log2, 0f3F8147AE;"))
    });
    let honest = forger.forge(|_| {});
    assert!(honest.accepted(), "{}", honest.table());
    assert_eq!(honest.tally().failed, 3);
    let forged = forger.forge(|evidence| {
        for entry in &mut ran(&mut evidence.parity).kernels {
            entry.shapes.iter_mut().for_each(|shaped| shaped.error = Figure::new(0.1));
            let lse = entry.log_sum_exp.as_mut().unwrap();
            for compared in [&mut entry.output, lse] {
                compared.element_error = Figure::new(1e-9);
                compared.frobenius_error = Figure::new(1e-9);
            }
        }
        let entries = ran(&mut evidence.sanitize).kernels.iter_mut();
        entries.flat_map(|entry| &mut entry.runs).for_each(|run| run.error = Figure::new(0.1));
        let entries = ran(&mut evidence.stress).kernels.iter_mut();
        entries.flat_map(|entry| &mut entry.shown).for_each(|shown| shown.error = Figure::new(0.1));
    });
    assert_eq!(forged.tally().failed, 0, "the forgery is consistent: {}", forged.table());
    assert!(fault(&forged).contains("parity: another run of the emulator"));
}

#[test]
fn edited_figures_are_found_by_another_run() {
    let forger = Forger::new(|text| text);
    let edits: [(&str, Edit); 9] = [
        ("parity", |evidence| ran(&mut evidence.parity).kernels[0].output.element_error = Figure::new(1e-7)),
        ("parity", |evidence| {
            let controls = &mut ran(&mut evidence.parity).kernels[0].controls;
            controls[1] = Controlled { result: Noticed::Ratio(Figure::new(1e6)), ..controls[1].clone() };
        }),
        ("parity", |evidence| evidence.parity = Record::NotRun { why: "no time".into() }),
        ("sanitize", |evidence| ran(&mut evidence.sanitize).kernels[0].runs[0].seen.launches[0].count = 7),
        ("sanitize", |evidence| {
            let outputs = &mut ran(&mut evidence.sanitize).kernels[0].runs[0].seen.outputs;
            outputs[0].before = "0".repeat(64);
        }),
        ("sanitize", |evidence| ran(&mut evidence.sanitize).kernels[0].runs[1].error = Figure::new(0.01)),
        ("stress", |evidence| ran(&mut evidence.stress).kernels[0].shown[1].error = Figure::new(0.01)),
        ("stress", |evidence| {
            let mutation = &mut ran(&mut evidence.stress).mutations[0];
            mutation.tried.truncate(3);
            mutation.mutants = 3;
        }),
        ("stress", |evidence| evidence.stress = Record::NotRun { why: "no time".into() }),
    ];
    for (stage, edit) in edits {
        let forged = forger.forge(edit);
        assert!(fault(&forged).starts_with(stage), "{stage}: {}", forged.table());
    }
}

#[test]
fn claims_that_need_no_run_are_refused_without_one() {
    let forger = Forger::new(|text| text);
    let edits: [(&str, Edit); 9] = [
        ("some stages ran on a GPU", |evidence| evidence.stress_gpu = Half::Died { why: "it was too fast".into() }),
        ("some stages ran on a GPU", |evidence| evidence.code_gpu = Half::Died { why: "nobody disassembled".into() }),
        // A pack of a machine without a GPU is never too old to have been asked.
        ("some stages ran on a GPU", |evidence| {
            (evidence.resources_gpu, evidence.code_gpu) = (Half::NotAsked, Half::NotAsked);
        }),
        ("bench or profile", |evidence| evidence.profile = Record::NotRun { why: "busy all the time".into() }),
        ("bench or profile", |evidence| evidence.bench = Record::NotRun { why: "twice as fast, trust us".into() }),
        ("resources", |evidence| evidence.resources = Record::NotRun { why: "later".into() }),
        ("a log has other seeds", |evidence| ran(&mut evidence.sanitize).kernels[0].runs.truncate(1)),
        ("a log has other seeds", |evidence| ran(&mut evidence.parity).kernels[0].data_seed = 3),
        ("a log has other seeds", |evidence| {
            let shown = &mut ran(&mut evidence.stress).kernels[0].shown;
            shown.iter_mut().flat_map(|one| one.schedules.values_mut()).for_each(|seeds| seeds.push(1));
        }),
    ];
    for (expected, edit) in edits {
        let mut evidence = forger.evidence.clone();
        edit(&mut evidence);
        let (files, _) = prove::files(&forger.request, &evidence, forger.kernels.clone(), &forger.cost);
        let forged = forger.verify(&files, false);
        assert!(fault(&forged).starts_with(expected), "{}", forged.table());
    }
}

#[test]
fn a_log_of_another_kernel_is_stale() {
    let forger = Forger::new(|text| text);
    let forged = forger.forge(|evidence| ran(&mut evidence.parity).kernels[0].subject.module = "0".repeat(64));
    assert_eq!(forged.tally().undecided, 1);
    assert!(!forged.accepted());
}

#[test]
fn a_listed_file_that_belongs_to_no_log_is_refused() {
    let forger = Forger::new(|text| text);
    let mut kernels = forger.kernels.clone();
    kernels.insert("benchmarks.csv".into(), b"ours,1000".to_vec());
    let (files, _) = prove::files(&forger.request, &forger.evidence, kernels, &forger.cost);
    assert_eq!(fault(&forger.verify(&files, false)), "benchmarks.csv belongs to no log");
}

#[test]
fn figures_alone_decide() {
    let forger = Forger::new(|text| text);
    let subjects = Subjects::of(&forger.request.cases, &[]);
    let said = |stage: Stage, edit: Edit| {
        let mut evidence = forger.evidence.clone();
        edit(&mut evidence);
        let outcome = &evidence.outcomes(&subjects)[stage as usize];
        format!("{}: {}", outcome.state().word(), outcome.state().why().unwrap_or_default())
    };
    let parity = |edit: Edit| said(Stage::Parity, edit);
    let sanitize = |edit: Edit| said(Stage::Sanitize, edit);
    let stress = |edit: Edit| said(Stage::Stress, edit);
    let expected = [
        (parity(|_| {}), "pass"),
        (
            parity(|evidence| ran(&mut evidence.parity).kernels[0].output.element_error = Figure::new(f64::NAN)),
            "FAIL: case: the output is wrong: element error inf exceeds",
        ),
        (
            parity(|evidence| {
                ran(&mut evidence.parity).kernels[0].controls[2].result = Noticed::Ratio(Figure::new(1.0))
            }),
            "FAIL: case: the rule lets a wrong result pass: one key block skipped",
        ),
        (
            parity(|evidence| drop(ran(&mut evidence.parity).kernels[0].controls.pop())),
            "not run: case: not every wrong result was tried",
        ),
        (
            parity(|evidence| ran(&mut evidence.parity).kernels[0].seen.launches.clear()),
            "not run: case: 0 of 1 launches were seen",
        ),
        (
            parity(|evidence| ran(&mut evidence.parity).kernels[0].seen.inputs[1].after = "other".into()),
            "FAIL: case: the kernel changed its input `k`",
        ),
        (parity(|evidence| ran(&mut evidence.parity).kernels.clear()), "stale: the log does not speak of kernel case"),
        (sanitize(|_| {}), "pass"),
        (sanitize(|evidence| ran(&mut evidence.sanitize).kernels[0].runs.clear()), "not run: nothing was run"),
        (
            sanitize(|evidence| ran(&mut evidence.sanitize).kernels[0].runs[1].seen.launches.clear()),
            "not run: case: 0 of 1 launches were seen with seed 1",
        ),
        (
            sanitize(|evidence| ran(&mut evidence.sanitize).kernels[0].runs[1].seen.outputs[0].after = "other".into()),
            "FAIL: case: different seeds give 2 different results",
        ),
        (
            sanitize(|evidence| ran(&mut evidence.sanitize).kernels[0].runs[1].error = Figure::new(1.01)),
            "FAIL: case: the result is wrong with seed 1",
        ),
        (stress(|_| {}), "pass"),
        (
            stress(|evidence| {
                ran(&mut evidence.stress).kernels[0].shown[1].seen.outputs[0].after = "other".into();
            }),
            "FAIL: case: calls under different schedules leave 2 different results",
        ),
        (
            stress(|evidence| ran(&mut evidence.stress).kernels[0].shown[0].seen.launches.clear()),
            "not run: case: 0 of 1 launches were seen in its first call with policy consumers-ahead, seed 0",
        ),
        (
            stress(|evidence| drop(ran(&mut evidence.stress).kernels[0].shown[1].seen.launches.pop())),
            "not run: case: 1 of 2 launches were seen called again on the same buffers",
        ),
        (
            stress(|evidence| drop(ran(&mut evidence.stress).kernels[0].shown[1].schedules.remove("parted"))),
            "not run: case: not every seed was run called again on the same buffers with policy parted",
        ),
        (
            stress(|evidence| ran(&mut evidence.stress).kernels[0].shown[0].error = Figure::new(1.01)),
            "FAIL: case: the result is wrong in its first call with policy",
        ),
        (
            stress(|evidence| {
                let tried = &mut ran(&mut evidence.stress).mutations[0].tried;
                tried.iter_mut().find(|one| one.verdict == Verdict::Caught).unwrap().verdict = Verdict::Missed;
            }),
            "FAIL: case: 14 of 15 injected faults caught; missed: line",
        ),
        (
            stress(|evidence| {
                let tried = &mut ran(&mut evidence.stress).mutations[0].tried;
                tried.iter_mut().for_each(|one| one.verdict = Verdict::NotExecuted);
            }),
            "not run: case: no injected fault was executed",
        ),
        (stress(|evidence| ran(&mut evidence.stress).mutations.clear()), "not run: case: no fault was injected"),
    ];
    for (said, expected) in expected {
        assert!(said.starts_with(expected), "{said}: expected {expected}");
    }
}

#[test]
fn logs_of_a_gpu_ask_for_the_launches_of_the_recipe() {
    let forger = Forger::new(|text| text);
    let case = &forger.request.cases[0];
    let asked = crate::harness::asked(&case.kernel, &case.resolved.launches);
    let said = |asked: Vec<Launched>, words: Vec<String>, code_gpu: Half<code::gpu::Report>| {
        let checked = sanitize::gpu::Entry { subject: case.subject(), asked: words, checked: vec![] };
        let profiled = profile::Entry {
            subject: case.subject(),
            problem: case.problem.to_string(),
            largest: true,
            asked,
            launches: vec![],
        };
        let mut evidence = forger.evidence.clone();
        evidence.code_gpu = code_gpu;
        evidence.sanitize_gpu =
            Half::Ran(sanitize::gpu::Report { version: String::new(), planted: vec![], kernels: vec![checked] });
        evidence.profile = Record::Ran(profile::Report { ncu: String::new(), kernels: vec![profiled] });
        consistency::check_launches(case, &evidence).err().unwrap_or_default()
    };
    let words = sanitize::gpu::asked(case);
    let died = || Half::Died { why: "x".into() };
    assert_eq!(said(asked.clone(), words.clone(), died()), "");
    assert_eq!(said(vec![], vec![], Half::NotAsked), "", "older packs ask for none");
    assert!(said(asked.clone(), vec![], died()).starts_with("sanitize: the log asks for other launches"));
    assert!(said(vec![], words.clone(), died()).starts_with("profile: the log asks for other launches"));
    assert!(
        said(asked.clone(), vec![], Half::NotAsked).starts_with("profile: "),
        "older in one log and not in another"
    );
    let other = asked.into_iter().map(|one| Launched { grid: [1, 1, 1], ..one }).collect();
    assert!(said(other, words, died()).starts_with("profile: the log asks for other launches than the recipe of case"));
}
