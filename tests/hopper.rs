//! Kernels for sm_90a on the emulator: right by the oracle's rule, and silent under every schedule.

use attention::configs::HOPPER;
use attention::kernels;
use emulator::{DEFAULT_SEEDS, sanitize};
use lab::Case;
use launch::backend::Options;

/// No finding, and the result that the oracle accepts, under every schedule, for each configuration that has room.
fn check(problem: &str) {
    let problem = problem.parse().unwrap();
    let mut serving = 0;
    for config in HOPPER.iter().filter(|config| config.serves(&problem)) {
        let case = Case::new(kernels::kernel(&problem, config).unwrap()).unwrap();
        assert_eq!(case.problem, problem, "config {}: what the recipe says", config.id);
        let seeds: Vec<u64> = (0..DEFAULT_SEEDS).collect();
        let sanitized = sanitize(&case.kernel, &seeds, 0, &Options::default()).unwrap();
        assert_eq!(sanitized.findings, vec![], "{} {problem}", case.kernel.name);
        for (seed, _, memory) in &sanitized.runs {
            let parity = case.judge(memory).unwrap();
            assert!(parity.passes(), "{} {problem}, schedule {seed}: {parity:?}", case.kernel.name);
        }
        serving += 1;
    }
    assert!(serving > 0, "no configuration serves {problem}");
}

/// Both types and layouts, every mask, ragged and even lengths, groups of heads, narrow, wide and unequal heads, rows without keys.
#[test]
fn kernels_are_right_and_silent() {
    for problem in [
        "f16 B1 H2 S256 D64 full",
        "f16 B2 H4/2 Sq97 Sk161 D64 causal",
        "bf16 B1 H2 Sq300 Sk300 D64 causal bshd",
        "f16 B1 H2 Sq64 Sk128 D64 causal-top-left",
        "f16 B1 H1 Sq400 Sk400 D64 window100/20",
        "f16 B1 H1 Sq1 Sk130 D64 causal",
        "f16 B1 H1 Sq300 Sk5 D64 causal",
        "f16 B1 H1 Sq33 Sk0 D64 full",
        "f16 B1 H2/1 Sq300 Sk260 D128 causal",
        "bf16 B1 H1 Sq200 Sk65 D128 full bshd",
        "f16 B1 H1 Sq20 Sk70 D16 full",
        "f16 B1 H1 Sq20 Sk70 D40/72 causal",
        "bf16 B1 H1 Sq20 Sk70 D72/40 full",
        "f16 B1 H1 Sq130 Sk270 D96 causal",
    ] {
        check(problem);
    }
}

/// More tiles of the output than blocks: warpgroups go from one to the next without emptying their pipelines, tiles of one item among them.
#[test]
fn blocks_go_from_tile_to_tile() {
    for problem in
        ["f16 B3 H50/10 Sq70 Sk200 D64 causal", "f16 B5 H40 Sq65 Sk64 D16 full", "f16 B2 H70 Sq130 Sk130 D16 causal"]
    {
        check(problem);
    }
}
