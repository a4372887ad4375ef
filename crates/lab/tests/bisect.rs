//! Failures of several kinds, and the smallest change that each depends on.

use attention::configs::{Config, Math};
use lab::bisect::{
    Axis, Bench, Between, Bisection, Design, Effect, OnEmulator, Setup, Spectator, Subject, Symptom, Trial, bisect,
};
use launch::Kernel;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two key tiles and ragged tails: small, and every role works.
const PROBLEM: &str = "f16 B1 H2 Sq33 Sk130 D64 causal";

fn kernel_text() -> String {
    let kernel = attention::kernels::kernel(&PROBLEM.parse().unwrap(), &Config::by_id(1).unwrap());
    kernel.unwrap().parsed.source.text
}

/// Counts what is announced and what is done.
#[derive(Default)]
struct Count(AtomicUsize, AtomicUsize);

impl Spectator for Count {
    fn more(&self, trials: usize) {
        self.0.fetch_add(trials, Ordering::Relaxed);
    }

    fn tried(&self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

fn found(subject: &Subject) -> Bisection {
    let count = Count::default();
    let found = bisect(subject, &OnEmulator, &count).unwrap();
    assert_eq!(count.0.into_inner(), count.1.into_inner(), "every trial that is announced is made");
    found
}

fn of_text(text: &str) -> Bisection {
    found(&Subject::of(Setup::new(Kernel::parse("case.ptx", text).unwrap(), 2)))
}

fn of_file(path: &str) -> Bisection {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    found(&Subject::of(Setup::new(Kernel::open(&path).unwrap(), 2)))
}

/// The check behind the failure.
fn check(found: &Bisection) -> &str {
    found.symptom.as_ref().and_then(Symptom::finding).map_or("", |finding| finding.check)
}

fn edited(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

#[test]
fn a_second_call_that_dies_is_laid_to_the_variable_that_outlives_the_first() {
    // Both calls of the two blocks of 128 threads in two heads.
    let counter = "    {\n    .reg .b32 %call;\n    .reg .pred %late;\n    atom.global.add.u32 %call, [calls], 1;\n    \
                   setp.ge.u32 %late, %call, 512;\n    @%late trap;\n    }\n    ld.param";
    let text = edited(&kernel_text(), ".visible .entry", ".global .u32 calls = 0;\n.visible .entry");
    let found = of_text(&edited(&text, "    ld.param", counter));
    assert!(found.given.is_empty());
    assert_eq!(check(&found), "trap");
    let on = found.on().unwrap();
    assert_eq!((on.axis, on.what.as_str()), (Axis::Calls, "2 calls on the same buffers instead of 1"));
    let off = found.off().unwrap();
    assert_eq!(off.axis, Axis::State);
    assert!(off.what.contains("the module's variables (`calls`)"), "{}", off.what);
}

#[test]
fn a_phase_that_is_kept_in_a_buffer_is_laid_to_that_buffer() {
    let found = of_file("examples/bisect/second_call.ptx");
    assert!(found.given.is_empty(), "{:?}", found.given);
    assert_eq!(found.on().unwrap().axis, Axis::Calls);
    assert_eq!(check(&found), "race-shared");
    let state =
        |effect: &Effect| found.cured.iter().filter(|one| one.axis == Axis::State && one.effect == *effect).count();
    assert_eq!(state(&Effect::Off), 1, "one buffer alone is the culprit");
    let culprit = found.cured.iter().find(|one| one.axis == Axis::State && one.effect == Effect::Off).unwrap();
    assert_eq!(culprit.what, "before each call buffer `phase` is as at first");
}

#[test]
fn a_trap_that_a_compiler_left_depends_on_nothing_but_itself() {
    let found = of_file("corpus/wmma_local.sm_80.toml");
    assert_eq!(check(&found), "trap");
    let off = found.off().unwrap();
    assert_eq!((off.axis, off.what.as_str()), (Axis::Trap, "`trap` at line 23 deleted"));
    let others = found.cured.iter().filter(|one| one.axis != Axis::Trap);
    others.for_each(|one| assert!(matches!(one.effect, Effect::Fails(_)), "{one:?}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/wmma_local.sm_80.toml");
    let note = lab::bisect::left_by_compiler(&Kernel::open(&path).unwrap(), &found.symptom.unwrap()).unwrap();
    assert!(note.contains("all that is left of `wmma_local`"), "{note}");
}

#[test]
fn a_trap_with_a_guard_is_the_kernels_own() {
    let text = edited(
        &kernel_text(),
        "    ld.param",
        "    {\n    .reg .pred %all;\n    setp.eq.u32 %all, 0, 0;\n    @%all trap;\n    }\n    ld.param",
    );
    let kernel = Kernel::parse("case.ptx", &text).unwrap();
    let found = found(&Subject::of(Setup::new(kernel.clone(), 1)));
    assert_eq!(found.off().unwrap().axis, Axis::Trap);
    assert_eq!(lab::bisect::left_by_compiler(&kernel, &found.symptom.unwrap()), None);
}

#[test]
fn a_missing_barrier_is_put_back() {
    let found = of_text(&edited(&kernel_text(), "bar.sync 0;", ""));
    assert_eq!(check(&found), "race-shared");
    let off = found.off().unwrap();
    assert_eq!(off.axis, Axis::Instruction);
    assert!(off.what.starts_with("`bar.sync 0` added before line"), "{}", off.what);
}

/// A barrier that only half of a block reaches, with a cure beside it.
const STUCK: &str = "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [64, 1, 1]\n.version 7.0\n.target sm_80\n.address_size 64\n\
    .visible .entry stuck()\n{\n    .reg .b32 %thread;\n    .reg .pred %low;\n    mov.u32 %thread, %tid.x;\n    \
    setp.lt.u32 %low, %thread, 32;\n    @!%low bra done;\n    bar.sync 0, 64; //@ fix: bar.sync 0, 32;\ndone:\n    ret;\n}\n";

#[test]
fn a_barrier_too_many_is_taken_away_unless_the_file_knows_better() {
    let found = of_text(STUCK);
    assert_eq!(found.off().unwrap().what, "the cure at line 14 of the file");
    let found = of_text(&STUCK.replace("//@ fix: bar.sync 0, 32;", ""));
    let off = found.off().unwrap();
    assert_eq!(off.what, "barrier deleted at line 14: `bar.sync 0, 64`");
    let one_warp = found.cured.iter().find(|one| one.what == "blocks of one warp").unwrap();
    assert!(matches!(one_warp.effect, Effect::Fails(_)), "{one_warp:?}");
}

/// A scale that is wrong by a hundredth.
fn wrongly_scaled(text: &str) -> String {
    let load = "ld.param.f32 %scale_log2, [scale_log2];";
    edited(text, load, &format!("{load}\n    mul.f32 %scale_log2, %scale_log2, 0f3F8147AE;"))
}

#[test]
fn data_that_decides_is_named() {
    let found = of_text(&wrongly_scaled(&kernel_text()));
    assert!(matches!(found.symptom, Some(Symptom::WrongResult(_))), "{:?}", found.symptom);
    // Scores of zero are right with any scale.
    let off: Vec<&str> =
        found.cured.iter().filter(|one| one.effect == Effect::Off).map(|one| one.what.as_str()).collect();
    assert!(off.contains(&"all inputs zero") && off.contains(&"input `q` zero"), "{off:?}");
    assert_eq!(found.off().unwrap().axis, Axis::Data);
}

#[test]
fn an_instruction_that_the_target_lacks_is_laid_to_the_target() {
    let text = "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [32, 1, 1]\n.version 8.0\n.target sm_80\n.address_size 64\n\
                .visible .entry late()\n{\n    fence.proxy.async;\n    ret;\n}\n";
    let found = of_text(text);
    assert!(matches!(found.symptom, Some(Symptom::LaunchFailure(_))), "{:?}", found.symptom);
    assert_eq!(found.off().unwrap().what, "proxy fence deleted at line 9: `fence.proxy.async`");
    let targets = found.cured.iter().filter(|one| one.axis == Axis::Target && one.effect == Effect::Off);
    assert_eq!(targets.map(|one| one.what.as_str()).collect::<Vec<_>>()[0], "target sm_90 instead of sm_80");
}

/// Kernels of ours, spoiled wherever `spoils` says.
fn spoiled(spoils: fn(&Config) -> bool) -> Subject {
    let (problem, config) = (PROBLEM.parse().unwrap(), Config::by_id(1).unwrap());
    let mut design = Design::new(problem, config);
    let build = std::mem::replace(&mut design.build, Box::new(|_| unreachable!()));
    design.build = Box::new(move |config| {
        let kernel = build(config)?;
        let text = &kernel.parsed.source.text;
        Ok(if spoils(config) { Kernel::parse(kernel.file(), &wrongly_scaled(text))? } else { kernel })
    });
    let kernel = (design.build)(&config).unwrap();
    Subject::designed(Setup::new(kernel, 1), design)
}

#[test]
fn a_fault_of_one_way_to_compute_is_laid_to_that_way() {
    let off = |subject: &Subject, axis: Axis| {
        let found = found(subject);
        found
            .cured
            .iter()
            .filter(|one| one.axis == axis && one.effect == Effect::Off)
            .map(|one| one.what.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(off(&spoiled(|config| config.math == Math::Tensor), Axis::Math), ["math scalar"]);
    let staged = spoiled(|config| config.stages == 2);
    assert!(off(&staged, Axis::Stages).contains(&"stages 1 instead of 2".to_string()));
    assert!(off(&staged, Axis::Math).is_empty());
    assert!(off(&spoiled(|_| true), Axis::Tile).is_empty());
}

#[test]
fn a_kernel_that_works_stays_without_a_finding() {
    let found = found(&spoiled(|_| false));
    assert!(found.symptom.is_none() && found.on().is_none() && found.off().is_none());
    let axes: Vec<Axis> = found.provoked.iter().map(|one| one.axis).collect();
    for axis in
        [Axis::Calls, Axis::Schedule, Axis::Data, Axis::Debug, Axis::Math, Axis::Stages, Axis::Splits, Axis::Tile]
    {
        assert!(axes.contains(&axis), "{}", axis.name());
    }
    assert!(found.provoked.iter().all(|one| one.effect == Effect::Fine));
}

/// A GPU on which several streams with one module are wrong.
struct Crowded;

impl Bench for Crowded {
    fn trial(&self, setup: &Setup) -> Trial {
        let wrong = setup.streams > 1 && setup.between == Between::Nothing;
        Ok(wrong.then(|| Symptom::WrongResult("stream 3: element 0 is 93".into())).into_iter().collect())
    }

    fn is_emulator(&self) -> bool {
        false
    }
}

#[test]
fn streams_that_meet_at_a_variable_are_told_and_the_emulator_has_one_stream() {
    assert!(of_file("examples/bisect/two_streams.ptx").symptom.is_none());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bisect/two_streams.ptx");
    let subject = Subject::of(Setup::new(Kernel::open(&path).unwrap(), 1));
    let found = bisect(&subject, &Crowded, &Count::default()).unwrap();
    let on = found.on().unwrap();
    let what = "8 streams at once, each with buffers of its own, instead of 1";
    assert_eq!((on.axis, on.what.as_str()), (Axis::Streams, what));
    let off = found.off().unwrap();
    assert_eq!((off.axis, off.what.contains("a module of its own")), (Axis::State, true));
    assert!(found.cured.iter().any(|one| one.axis == Axis::Streams && one.effect == Effect::Off));
}
