//! Kernels that split the keys of their queries over several blocks, on the emulator: right by the oracle's rule, and silent
//! under every schedule.

use attention::configs::{CONFIGS, Config};
use attention::{Problem, kernels};
use emulator::{DEFAULT_SEEDS, Sanitized, sanitize};
use lab::Case;
use launch::backend::Options;
use launch::{Kernel, hash};

/// Configuration 5 lets warps share their queries, 7 does not; 21 and 23 are the same for heads that share keys together.
const HERE: [u32; 4] = [5, 7, 21, 23];

fn run(kernel: &Kernel) -> Sanitized {
    let seeds: Vec<u64> = (0..DEFAULT_SEEDS).collect();
    sanitize(kernel, &seeds, 0, &Options::default()).unwrap()
}

/// No finding, and the result that the oracle accepts, under every schedule; the same bits under all of them.
fn check(problem: &str, config: &Config) {
    let problem: Problem = problem.parse().unwrap();
    let case = Case::new(kernels::kernel(&problem, config).unwrap()).unwrap();
    let name = format!("config {} {problem} in {}", config.id, config.splits);
    assert_eq!(case.problem, problem, "{name}: what the recipe says");
    let sanitized = run(&case.kernel);
    assert_eq!(sanitized.findings, vec![], "{name}");
    let mut outputs = vec![];
    for (seed, _, memory) in &sanitized.runs {
        let parity = case.judge(memory).unwrap();
        assert!(parity.passes(), "{name}, schedule {seed}: {parity:?}");
        outputs.push(["o", "lse"].map(|buffer| hash::of(&memory.buffer(buffer).unwrap().contents)));
    }
    outputs.dedup();
    assert_eq!(outputs.len(), 1, "{name}: schedules differ");
}

fn check_all(problems: &[&str], splits: &[u32]) {
    for (problem, splits) in problems.iter().flat_map(|problem| splits.iter().map(move |splits| (problem, *splits))) {
        let parsed = problem.parse::<Problem>().unwrap();
        for config in CONFIGS.into_iter().filter(|config| HERE.contains(&config.id) && config.serves(&parsed)) {
            check(problem, &Config { splits, ..config });
        }
    }
}

/// Even and ragged lengths, one query and several blocks of them, more shares than tiles, groups of heads.
#[test]
fn shares_of_the_keys_are_joined() {
    let problems = ["f16 B2 H4/2 Sq1 Sk449 D64 full", "bf16 B1 H2/1 Sq97 Sk161 D64 full bshd", "f16 B1 H1 S1 D64 full"];
    check_all(&problems, &[2, 3, 7, 32]);
}

/// Shares are those of the tiles that a block sees, which are not all, nor the first.
#[test]
fn masks_are_right_in_every_share() {
    let problems = [
        "f16 B1 H2/1 Sq97 Sk161 D64 causal",
        "bf16 B1 H1 Sq70 Sk300 D64 causal-top-left",
        "f16 B1 H1 Sq35 Sk449 D64 window150/3",
        "f16 B1 H2 Sq97 Sk161 D64 causal documents",
    ];
    check_all(&problems, &[3, 7]);
}

/// Rows that see no key are zeros with a log-sum-exp of −∞, or have the sink for it.
#[test]
fn rows_without_keys_are_zeros() {
    let problems =
        ["f16 B1 H2 Sq33 Sk0 D64 full", "f16 B1 H1 Sq70 Sk5 D64 causal", "f16 B1 H2 Sq33 Sk0 D64 full sinks"];
    check_all(&problems, &[2, 7]);
}

#[test]
fn heads_of_any_width_are_right() {
    let problems = [
        "f16 B1 H2/1 Sq17 Sk161 D128 causal",
        "bf16 B1 H1 Sq3 Sk161 D40/72 full",
        "f16 B1 H1 Sq3 Sk161 D72/40 full bshd",
        "f16 B1 H1 Sq3 Sk161 D16 full",
    ];
    check_all(&problems, &[3]);
    let wide = Config { splits: 3, ..Config::by_id(6).unwrap() };
    check("f16 B1 H2/1 Sq17 Sk161 D256 causal", &wide);
    check("bf16 B1 H1 Sq3 Sk97 D192/200 full", &wide);
}

/// A sink counts once, however many shares there are.
#[test]
fn scores_and_sinks_are_right() {
    let problems = [
        "f16 B1 H2/1 Sq35 Sk161 D64 causal sinks",
        "bf16 B1 H2 Sq1 Sk300 D64 full softcap2 sinks",
        "f16 B1 H2 Sq35 Sk161 D64 full alibi",
    ];
    check_all(&problems, &[2, 7]);
}

/// Sequences without queries, without keys, and shorter than others have shares.
#[test]
fn packed_sequences_are_right() {
    let problems = [
        "f16 B4 H2/1 Sq97,0,5,33 Sk161,40,0,33 D64 causal",
        "bf16 B3 H2/1 Sq1,1,1 Sk449,70,1 D64 full",
        "f16 B2 H2/1 Sq1,33 Sk130,5 D40/72 causal softcap2 sinks",
    ];
    check_all(&problems, &[2, 7]);
}

/// Parts have the place of their query and head, whichever rows of a block these are.
#[test]
fn heads_that_share_keys_are_right_together() {
    let problems = [
        "f16 B2 H8/2 Sq1 Sk449 D128 full",
        "bf16 B1 H7/1 Sq9 Sk300 D64 causal alibi sinks bshd",
        "f16 B2 H6/2 Sq30 Sk300 D64/40 window100/3 softcap2",
        "f16 B3 H14/2 Sq1,9,2 Sk449,70,1 D64 causal sinks documents",
    ];
    check_all(&problems, &[3, 7]);
}

/// Every configuration can, on tensor cores and on plain ones.
#[test]
fn all_configurations_split() {
    for config in CONFIGS.into_iter().chain(CONFIGS.into_iter().filter_map(Config::scalar)) {
        check("f16 B1 H2/1 Sq35 Sk200 D64/40 causal", &Config { splits: 3, ..config });
    }
}

/// How many shares there are is a number of the recipe: the text of the kernel is the same.
#[test]
fn one_module_serves_any_number_of_splits() {
    let problem: Problem = "f16 B1 H2 Sq1 Sk300 D64 full".parse().unwrap();
    let module = |splits| kernels::build(&problem, &Config { splits, ..CONFIGS[0] }).unwrap().module;
    assert!(module(2) == module(32));
    assert_eq!(module(1).functions.len(), 1);
    assert!(module(1).functions[0] != module(2).functions[0]);
}
