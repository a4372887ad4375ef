//! Kernels for sm_90a on the emulator: right by the oracle's rule, and silent under every schedule.

mod adversarial;
mod packed;

use attention::configs::{Config, HOPPER};
use attention::kernels::parts::Lengths;
use attention::kernels::parts::masks::{Mask, OnHost};
use attention::{Problem, kernels};
use emulator::{DEFAULT_SEEDS, sanitize};
use lab::Case;
use launch::backend::Options;
use launch::{Expr, Kernel};
use std::ops::Range;
use tile::prelude::{Coordinate, Pred, U32, select};

/// The kernel, launched as on a GPU of so many processors: blocks then go from tile to tile, however small the problem.
fn kernel(problem: &Problem, config: &Config, processors: u32) -> Kernel {
    let mut kernel = kernels::kernel(problem, config).unwrap();
    let count = kernel.recipe.lets.iter_mut().find(|(name, _)| name == "processors").unwrap();
    count.1 = Expr::from(processors);
    kernel
}

/// No finding, and the result that the oracle accepts, under every schedule.
fn check_kernel(kernel: Kernel, problem: &Problem) {
    let case = Case::new(kernel).unwrap();
    assert_eq!(case.problem, *problem, "{}: what the recipe says", case.kernel.name);
    let seeds: Vec<u64> = (0..DEFAULT_SEEDS).collect();
    let sanitized = sanitize(&case.kernel, &seeds, 0, &Options::default()).unwrap();
    assert_eq!(sanitized.findings, vec![], "{} {problem}", case.kernel.name);
    for (seed, _, memory) in &sanitized.runs {
        let parity = case.judge(memory).unwrap();
        assert!(parity.passes(), "{} {problem}, schedule {seed}: {parity:?}", case.kernel.name);
    }
}

/// On three processors, for each configuration that serves.
fn check(problem: &str) {
    check_splits(problem, &[1]);
}

fn check_splits(problem: &str, splits: &[u32]) {
    let problem = problem.parse().unwrap();
    let mut serving = 0;
    for config in HOPPER.iter().filter(|config| config.serves(&problem)) {
        for &splits in splits {
            check_kernel(kernel(&problem, &Config { splits, ..*config }, 3), &problem);
        }
        serving += 1;
    }
    assert!(serving > 0, "no configuration serves {problem}");
}

/// Both types and layouts, every mask, ragged and even lengths, groups of heads, rows without keys.
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
    ] {
        check(problem);
    }
}

/// Narrow, wide and unequal heads.
#[test]
fn heads_have_any_width() {
    for problem in [
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

/// Above 128 columns, where queries leave early: every mask, ragged lengths, groups of heads, rows without keys.
#[test]
fn heads_may_be_wide() {
    for problem in [
        "f16 B1 H2/1 Sq300 Sk260 D256 causal",
        "bf16 B1 H1 Sq200 Sk65 D256 full bshd",
        "f16 B1 H1 Sq260 Sk400 D256 window100/20",
        "f16 B1 H2 Sq260 Sk300 D192 causal-top-left",
        "bf16 B1 H2/1 Sq70 Sk250 D192/128 full bshd",
        "f16 B1 H1 Sq400 Sk290 D192/128 causal",
        "f16 B1 H1 Sq97 Sk161 D136/200 full",
        "f16 B1 H1 Sq33 Sk0 D256 full",
    ] {
        check(problem);
    }
}

/// Tiles of one item among them, one after the other.
#[test]
fn wide_heads_go_from_tile_to_tile() {
    for problem in ["f16 B2 H6/3 Sq70 Sk64 D256 causal", "bf16 B1 H5 Sq130 Sk130 D192/128 causal"] {
        check(problem);
    }
}

#[test]
fn wide_heads_have_every_feature() {
    for problem in [
        "f16 B1 H2/1 Sq97 Sk161 D256 causal softcap30 sinks",
        "bf16 B1 H2 Sq70 Sk200 D192/128 full alibi bshd",
        "f16 B2 H1 Sq97 Sk161 D256 window40/9 alibi sinks documents",
        "bf16 B2 H2 Sq70 Sk150 D192 causal documents",
        "f16 B3 H2/1 Sq97,0,70 Sk161,4,50 D256 causal",
        "bf16 B2 H1 Sq140,3 Sk20,190 D192/136 full sinks",
    ] {
        check(problem);
    }
    for problem in ["f16 B1 H1 Sq97 Sk300 D256 causal", "bf16 B1 H2 Sq35 Sk161 D192/128 window90/3"] {
        check_splits(problem, &[2, 7]);
    }
}

/// Many more tiles of the output than blocks: warpgroups go from one to the next without emptying their pipelines, tiles of one item among them.
#[test]
fn blocks_go_from_tile_to_tile() {
    for problem in
        ["f16 B2 H6/3 Sq70 Sk200 D64 causal", "f16 B2 H8 Sq65 Sk64 D16 full", "bf16 B1 H10 Sq130 Sk130 D16 causal"]
    {
        check(problem);
    }
}

/// What is done to scores changes from head to head, and so from tile to tile.
#[test]
fn scores_may_be_changed() {
    for problem in [
        "f16 B2 H4/2 Sq97 Sk161 D64 causal softcap30",
        "bf16 B1 H3 Sq130 Sk200 D128 full softcap5",
        "f16 B2 H4/2 Sq97 Sk161 D64 full alibi",
        "bf16 B1 H3 Sq130 Sk270 D128 causal alibi bshd",
    ] {
        check(problem);
    }
}

/// Rows without a key among them: of these, the sink is all.
#[test]
fn heads_may_have_sinks() {
    for problem in [
        "f16 B2 H3 Sq130 Sk70 D64 causal sinks",
        "bf16 B1 H4/2 Sq70 Sk200 D128 full sinks bshd",
        "f16 B1 H2 Sq20 Sk0 D40/72 full sinks",
    ] {
        check(problem);
    }
}

#[test]
fn sequences_may_have_documents() {
    for problem in [
        "f16 B3 H2 Sq97 Sk161 D64 full documents",
        "bf16 B2 H2 Sq200 Sk200 D128 causal documents bshd",
        "f16 B2 H1 Sq130 Sk130 D64 window40/3 documents",
    ] {
        check(problem);
    }
}

/// Long and short sequences, some without queries, some without keys, and the last tile of none of them whole.
#[test]
fn sequences_may_be_packed() {
    for problem in [
        "f16 B4 H4/2 Sq97,0,5,130 Sk161,40,0,70 D64 causal",
        "bf16 B3 H2 Sq300,1,64 Sk20,300,128 D64 full",
        "f16 B3 H2/1 Sq20,140,7 Sk30,150,260 D128 causal",
        "bf16 B3 H1 Sq65,3,80 Sk65,3,80 D40/72 window30/5",
    ] {
        check(problem);
    }
}

/// All at once.
#[test]
fn features_go_together() {
    for problem in [
        "f16 B2 H4/2 Sq97 Sk161 D64 causal softcap30 sinks documents",
        "bf16 B2 H2 Sq140 Sk100 D64 window50/9 alibi sinks documents bshd",
        "f16 B3 H2 Sq97,0,70 Sk161,4,50 D64 causal alibi sinks documents",
        "bf16 B2 H2/1 Sq40,130 Sk161,90 D128 full softcap20 sinks",
    ] {
        check(problem);
    }
}

/// The first queries see one key tile, and the others all: neighbouring warpgroups have next to nothing in common.
struct Step;

impl Mask for Step {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..Step::count(queries.end - 1, of)
    }
    fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..Step::count(queries.start, of)
    }
    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred {
        key.lt(Step::count(query.value(), of))
    }
}

impl Step {
    fn count(query: U32, of: Lengths) -> U32 {
        select(query.lt(60), of.keys.min(64), of.keys)
    }
}

#[test]
fn a_mask_may_be_ones_own() {
    let problem: Problem = "f16 B1 H2 Sq256 Sk900 D64 full".parse().unwrap();
    for config in &HOPPER {
        let case = Case::new(kernel(&problem, config, 3)).unwrap();
        let own = kernels::kernel_with(&problem, config, &Step, &*problem.score().score());
        if config.cluster > 1 {
            let refused = own.unwrap_err().to_string();
            assert!(refused.contains("expected no mask"), "config {}: {refused}", config.id);
            continue;
        }
        let own = own.unwrap();
        let sanitized = sanitize(&own, &[0, 3], 0, &Options::default()).unwrap();
        assert_eq!(sanitized.findings, vec![], "config {}", config.id);
        for (_, _, memory) in &sanitized.runs {
            let parity = case.judge_with(memory, &OnHost(&Step), problem.scoring()).unwrap();
            assert!(parity.passes(), "config {}: {parity:?}", config.id);
        }
    }
}

/// Shares without a key tile among them, and fewer shares than key tiles.
#[test]
fn keys_may_be_split() {
    for problem in [
        "f16 B1 H2/1 Sq1 Sk449 D64 full",
        "f16 B2 H2/1 Sq97 Sk161 D64 causal",
        "bf16 B1 H1 Sq35 Sk300 D128 window150/3 bshd",
        "f16 B1 H2 Sq70 Sk5 D64 causal sinks",
        "bf16 B3 H1 Sq3,70,0 Sk161,300,9 D40/72 causal alibi",
        "f16 B2 H2 Sq17 Sk400 D64 full softcap30 sinks documents",
    ] {
        check_splits(problem, &[2, 7]);
    }
}
