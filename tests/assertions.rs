//! Debug kernels on the emulator: right and silent on good inputs, and each of their assertions seen to fail.

use attention::configs::{CONFIGS, Config, HOPPER};
use attention::kernels::parts::Lengths;
use attention::kernels::parts::masks::Mask;
use attention::kernels::parts::scores::{Head, Score};
use attention::{Problem, kernels};
use emulator::{DEFAULT_SEEDS, sanitize};
use lab::Case;
use launch::Kernel;
use launch::backend::Options;
use launch::finding::Finding;
use std::collections::BTreeSet;
use std::ops::Range;
use tile::prelude::{Coordinate, F32, Pred, U32};

fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

#[test]
fn debug_kernels_are_right_and_silent() {
    for problem in ["f16 B2 H2/1 Sq33 Sk161 D64 causal", "bf16 B1 H1 Sq70 Sk5 D40/72 causal alibi sinks"].map(problem) {
        let split = Config { splits: 2, ..CONFIGS[0] };
        for config in Config::all().chain([split]).filter(|config| config.serves(&problem)) {
            let case = Case::new(kernels::kernel(&problem, &config.debug()).unwrap()).unwrap();
            assert!(case.kernel.name.ends_with("_debug"), "{}", case.kernel.name);
            let seeds: Vec<u64> = (0..DEFAULT_SEEDS).collect();
            let sanitized = sanitize(&case.kernel, &seeds, 0, &Options::default()).unwrap();
            assert_eq!(sanitized.findings, vec![], "config {} {problem}", config.id);
            for (seed, _, memory) in &sanitized.runs {
                let parity = case.judge(memory).unwrap();
                assert!(parity.passes(), "config {} {problem}, schedule {seed}: {parity:?}", config.id);
            }
        }
    }
}

/// The trap of a kernel that breaks its own assertions.
fn trap(kernel: &Kernel) -> Finding {
    let findings = sanitize(kernel, &[0], 0, &Options::default()).unwrap().findings;
    let trap = findings.iter().find(|finding| finding.check == "trap");
    trap.unwrap_or_else(|| panic!("{findings:?}")).clone()
}

/// What must have held, as the finding says; its line is the one that the recipe lists.
fn failed(kernel: &Kernel) -> String {
    let finding = trap(kernel);
    let message = finding.message.split('`').nth(1).unwrap_or_else(|| panic!("{}", finding.message));
    let list = &kernel.recipe.assertions.as_ref().unwrap().list;
    let listed = list.iter().find(|one| one.message == message).unwrap_or_else(|| panic!("{message} is not listed"));
    let (at, source) = (listed.at.as_deref().unwrap(), finding.primary().source.as_deref().unwrap());
    assert!(source.starts_with(at), "{at} {source}");
    message.into()
}

fn debug(text: &str) -> Kernel {
    kernels::kernel(&problem(text), &Config::by_id(1).unwrap().debug()).unwrap()
}

/// The kernel with its text changed in one place.
fn edited(kernel: &Kernel, from: &str, to: &str) -> Kernel {
    let text = &kernel.parsed.source.text;
    assert!(text.contains(from), "{from}");
    Kernel::parse(kernel.file(), &text.replacen(from, to, 1)).unwrap()
}

/// The kernel whose first line with `part` in it is another.
fn relined(kernel: &Kernel, part: &str, change: impl Fn(&str) -> String) -> Kernel {
    let line = kernel.parsed.source.text.lines().find(|line| line.contains(part)).unwrap();
    edited(kernel, line, &change(line))
}

/// The kernel whose input is filled with something else.
fn filled(kernel: &Kernel, buffer: &str, init: &str) -> Kernel {
    let text = &kernel.parsed.source.text;
    let (_, declared) = text.split_once(&format!("[buffer.{buffer}]\n")).unwrap();
    let (shape, _) = declared.split_once("\"normal(1.0)\"").unwrap();
    edited(kernel, &format!("[buffer.{buffer}]\n{shape}\"normal(1.0)\""), &format!("[buffer.{buffer}]\n{shape}{init}"))
}

/// Shows keys that do not exist.
struct Beyond;

impl Mask for Beyond {
    fn seen_by_some(&self, _: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..of.keys + 64
    }
    fn seen_by_all(&self, _: Range<U32>, _: Lengths) -> Range<U32> {
        0.into()..0.into()
    }
    fn sees(&self, _: Coordinate, _: Coordinate, _: Lengths) -> Pred {
        true.into()
    }
}

/// No number where query and key are equal.
struct Undefined;

impl Score for Undefined {
    fn apply(&self, score: F32, query: Coordinate, key: Coordinate, _: Head) -> F32 {
        let distance = query.minus(key);
        score * distance.abs() / distance
    }
}

/// The kernel that forgets the maxima of earlier tiles.
fn forgetful(kernel: &Kernel) -> Kernel {
    let text = &kernel.parsed.source.text;
    let old = text.lines().find_map(|line| line.trim().strip_prefix("mov.f32 ")?.strip_suffix(", %max_0;")).unwrap();
    relined(kernel, &format!(", {old}, "), |line| {
        let new = line.trim_end_matches(';').rsplit(' ').next().unwrap();
        line.replace(&format!("{old},"), &format!("{new},"))
    })
}

const PROBLEM: &str = "f16 B1 H1 Sq33 Sk161 D64 full";

#[test]
fn every_assertion_is_seen_to_fail() {
    let (problem, config, sound) = (problem(PROBLEM), Config::by_id(1).unwrap().debug(), debug(PROBLEM));
    let (mask, score) = (problem.mask().mask(), problem.score().score());
    let stuck = |ring: &str| {
        let stage = format!("mov.u32 %{ring}_stage, ");
        relined(&sound, &format!("{stage}%r"), |_| format!("{stage}0;"))
    };
    let broken = [
        edited(&sound, "ceil_div(sq,32)", "ceil_div(sq,32) + 1"),
        kernels::kernel_with(&problem, &config, &Beyond, &*score).unwrap(),
        stuck("keys"),
        stuck("values"),
        filled(&sound, "k", "\"const(inf)\""),
        forgetful(&sound),
        kernels::kernel_with(&problem, &config, &*mask, &Undefined).unwrap(),
        relined(&sound, "\"scale_log2\" },", |_| "//@   { f32 = 1e8, name = \"scale_log2\" },".into()),
        filled(&sound, "v", "\"const(nan)\""),
    ];
    let seen: BTreeSet<String> = broken.iter().map(failed).collect();
    let listed = sound.recipe.assertions.unwrap().list.into_iter().map(|one| one.message).collect();
    assert_eq!(seen, listed);
}

/// For sm_90a; what the softmax hopes for is asserted, too.
#[test]
fn every_assertion_of_hopper_kernels_is_seen_to_fail() {
    let (problem, config) = (problem(PROBLEM), Config::by_id(15).unwrap().debug());
    let sound = kernels::kernel(&problem, &config).unwrap();
    let (mask, score) = (problem.mask().mask(), problem.score().score());
    let broken = [
        kernels::kernel_with(&problem, &config, &Beyond, &*score).unwrap(),
        filled(&sound, "k", "\"const(inf)\""),
        kernels::kernel_with(&problem, &config, &*mask, &Undefined).unwrap(),
        relined(&sound, "\"scale_log2\" },", |_| "//@   { f32 = 1e8, name = \"scale_log2\" },".into()),
        filled(&sound, "v", "\"const(nan)\""),
    ];
    let seen: BTreeSet<String> = broken.iter().map(failed).collect();
    let listed = sound.recipe.assertions.unwrap().list.into_iter().map(|one| one.message).collect();
    assert_eq!(seen, listed);
}

/// The one query that is no number is the first of a block's second half.
#[test]
fn the_finding_names_assertion_block_and_lane() {
    let sound = debug("f16 B1 H2 Sq60 Sk64 D16 full");
    let (head, query, columns) = (1, 48, 16);
    let numbers: Vec<&str> =
        (0..2 * 60 * columns).map(|index| if index / columns == head * 60 + query { "nan" } else { "1.0" }).collect();
    let kernel = filled(&sound, "q", &format!("[{}]", numbers.join(", ")));
    let findings = sanitize(&kernel, &[0], 0, &Options::default()).unwrap().findings;
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(messages, ["assertion `scores are finite` failed in CTA (0,1,0), warp 1, lane 3"]);
}

/// What is not asked for is not there.
#[test]
fn release_kernels_have_none_of_it() {
    for problem in ["f16 B2 H2/1 Sq33 Sk161 D64 causal", "bf16 B1 H1 Sq70 Sk5 D40/72 causal alibi sinks"].map(problem) {
        for config in CONFIGS.iter().chain(&HOPPER).filter(|config| config.serves(&problem)) {
            let kernel = kernels::kernel(&problem, config).unwrap();
            let found = ["trap", "report", "fence.sc", "assertion"]
                .iter()
                .find(|word| kernel.parsed.source.text.contains(**word));
            assert_eq!(found, None, "config {}", config.id);
        }
    }
}
