//! Our kernels on the emulator: right by the oracle's rule, and silent under every schedule.

use attention::configs::{CONFIGS, Config, HOPPER, Heads};
use attention::kernels::parts::scores::{Head, OnHost, Score};
use attention::oracle::Parity;
use attention::problem::{DType, Layout};
use attention::scoring::{ScoreKind, Scoring};
use attention::visibility::MaskKind;
use attention::{Problem, kernels};
use emulator::{DEFAULT_SEEDS, Sanitized, sanitize};
use lab::Case;
use launch::Kernel;
use launch::backend::Options;
use tile::prelude::{Coordinate, F32};

const MASKS: [MaskKind; 4] =
    [MaskKind::None, MaskKind::CausalBottomRight, MaskKind::CausalTopLeft, MaskKind::Window { left: 40, right: 3 }];

fn run(kernel: &Kernel) -> Sanitized {
    let seeds: Vec<u64> = (0..DEFAULT_SEEDS).collect();
    sanitize(kernel, &seeds, 0, &Options::default()).unwrap()
}

/// No finding, and the result that the oracle accepts, under every schedule, for each configuration that has room.
fn check(problem: &Problem) {
    check_each(problem, CONFIGS);
}

/// The same on plain cores, for the configurations that have them.
fn check_scalar(problem: &Problem) {
    check_each(problem, CONFIGS.into_iter().filter_map(Config::scalar));
}

fn check_each(problem: &Problem, configs: impl IntoIterator<Item = Config>) {
    for config in configs.into_iter().filter(|config| config.serves(problem)) {
        let case = Case::new(kernels::kernel(problem, &config).unwrap()).unwrap();
        assert_eq!(case.problem, *problem, "config {}: what the recipe says", config.id);
        let sanitized = run(&case.kernel);
        assert_eq!(sanitized.findings, vec![], "{} {problem}", case.kernel.name);
        for (seed, _, memory) in &sanitized.runs {
            let parity = case.judge(memory).unwrap();
            assert!(parity.passes(), "{} {problem}, schedule {seed}: {parity:?}", case.kernel.name);
        }
    }
}

#[test]
fn kernels_are_right_and_silent() {
    for (queries, keys) in [(97, 161), (128, 128), (33, 33), (1, 1), (1, 130)] {
        for mask in MASKS {
            let builder = Problem::builder().batch(2).heads(2).kv_heads(1).queries(queries).keys(keys);
            check(&builder.mask(mask).build().unwrap());
        }
    }
}

/// Both types and layouts, every mask, ragged and even lengths, groups of heads, narrow, wide and unequal heads, rows
/// without keys.
#[test]
fn scalar_kernels_are_right_and_silent() {
    for problem in [
        "f16 B1 H2/1 Sq35 Sk70 D64 full",
        "bf16 B2 H2/1 Sq33 Sk97 D64 causal bshd",
        "f16 B1 H2 Sq64 Sk128 D64 causal-top-left",
        "f16 B1 H1 Sq97 Sk161 D64 window40/3",
        "f16 B1 H1 Sq1 Sk130 D64 causal",
        "f16 B1 H1 Sq70 Sk5 D64 causal",
        "f16 B1 H1 Sq33 Sk0 D64 full",
        "f16 B1 H2/1 Sq35 Sk70 D128 causal",
        "bf16 B1 H1 Sq20 Sk65 D128 full bshd",
        "f16 B1 H1 Sq20 Sk70 D16 full",
        "f16 B1 H1 Sq20 Sk70 D40/72 causal",
        "bf16 B1 H1 Sq20 Sk70 D72/40 full",
        "f16 B1 H1 Sq20 Sk70 D120 causal",
        "f16 B1 H1 Sq20 Sk70 D192/256 full",
    ] {
        check_scalar(&problem.parse().unwrap());
    }
}

#[test]
fn scalar_kernels_have_every_part() {
    for problem in [
        "f16 B1 H2/1 Sq35 Sk70 D64 causal softcap2",
        "f16 B1 H2 Sq35 Sk70 D64 full alibi",
        "bf16 B1 H2 Sq35 Sk5 D64 causal sinks",
        "f16 B2 H1 Sq35 Sk70 D64 causal documents",
        "f16 B1 H2 Sq35 Sk70 D128 window20/3 alibi sinks documents",
        "f16 B4 H2/1 Sq35,0,5,1 Sk70,40,0,33 D64 causal",
        "bf16 B2 H2/1 Sq1,33 Sk70,5 D40/72 full softcap2 sinks documents",
    ] {
        check_scalar(&problem.parse().unwrap());
    }
}

/// Hundreds of tiles: an error that each of them repeats would have grown beyond what is allowed.
#[test]
fn errors_do_not_grow_with_the_number_of_tiles() {
    for queries in [1, 16] {
        let problem = Problem::builder().batch(1).heads(1).queries(queries).keys(16384).head_dim(16).build().unwrap();
        check(&problem);
        check_each(&problem, CONFIGS[0].scalar());
    }
}

/// Rows that see no key are zeros with a log-sum-exp of −∞.
#[test]
fn rows_without_keys_are_zeros() {
    for (queries, keys) in [(33, 0), (70, 5)] {
        for mask in MASKS {
            let builder = Problem::builder().batch(1).heads(1).queries(queries).keys(keys);
            check(&builder.mask(mask).build().unwrap());
        }
    }
}

#[test]
fn heads_of_any_width_are_right() {
    for head_dim in [16, 24, 40, 72, 80, 120] {
        let builder = Problem::builder().batch(1).heads(2).kv_heads(1).queries(35).keys(70).head_dim(head_dim);
        check(&builder.mask(MaskKind::CausalBottomRight).build().unwrap());
    }
}

#[test]
fn wide_heads_are_right_too() {
    for (queries, keys) in [(49, 97), (1, 65)] {
        for (mask, dtype) in [(MaskKind::None, DType::Bf16), (MaskKind::CausalBottomRight, DType::F16)] {
            let builder = Problem::builder().batch(1).heads(2).kv_heads(1).queries(queries).keys(keys).head_dim(128);
            check(&builder.mask(mask).dtype(dtype).build().unwrap());
        }
    }
}

/// Heads above 128 columns, and values with columns of their own: whole and ragged panels of 64, queries held and read again.
#[test]
fn heads_of_up_to_256_columns_are_right() {
    for problem in [
        "f16 B1 H2/1 Sq35 Sk70 D136 causal",
        "bf16 B1 H2/1 Sq70 Sk35 D136 full",
        "f16 B1 H2/1 Sq35 Sk70 D192 full",
        "bf16 B1 H2/1 Sq65 Sk97 D256 causal",
        "f16 B1 H2/1 Sq35 Sk70 D256 full",
        "f16 B1 H1 Sq70 Sk5 D256 causal",
        "f16 B1 H1 Sq1 Sk65 D248 window20/3",
    ] {
        check(&problem.parse().unwrap());
    }
}

#[test]
fn values_may_have_columns_of_their_own() {
    for problem in [
        "f16 B1 H4/2 Sq35 Sk70 D192/128 causal",
        "bf16 B2 H4/2 Sq65 Sk97 D192/128 full bshd",
        "f16 B1 H2/1 Sq35 Sk70 D64/128 causal",
        "bf16 B1 H2/1 Sq35 Sk70 D128/64 full",
        "f16 B1 H2/1 Sq35 Sk70 D40/72 causal bshd",
        "f16 B1 H2/1 Sq35 Sk70 D72/40 window20/3",
        "f16 B1 H2/1 Sq35 Sk70 D16/256 full",
        "bf16 B1 H2/1 Sq35 Sk70 D256/16 causal-top-left",
        "f16 B1 H2/1 Sq33 Sk0 D136/200 full",
    ] {
        check(&problem.parse().unwrap());
    }
}

#[test]
fn other_layouts_and_dtypes_are_right_too() {
    for (layout, dtype) in [(Layout::Bshd, DType::F16), (Layout::Bhsd, DType::Bf16)] {
        let builder = Problem::builder().batch(2).heads(4).kv_heads(2).queries(65).keys(100);
        check(&builder.layout(layout).dtype(dtype).mask(MaskKind::CausalBottomRight).build().unwrap());
    }
}

/// Caps that bend every score and caps that bend few, slopes of several heads, ragged tails, rows without keys.
#[test]
fn modified_scores_are_right() {
    for problem in [
        "f16 B2 H2/1 Sq97 Sk161 D64 causal softcap2",
        "bf16 B1 H4/2 Sq65 Sk100 D64 full softcap30 bshd",
        "f16 B1 H2 Sq35 Sk70 D128 window20/3 softcap0.5",
        "f16 B1 H1 Sq70 Sk5 D64 causal softcap5",
        "f16 B1 H1 Sq1 Sk1 D64 full softcap10 scale4",
        "f16 B2 H2/1 Sq97 Sk161 D64 causal alibi",
        "bf16 B1 H4/2 Sq65 Sk100 D64 full alibi bshd",
        "f16 B1 H2 Sq100 Sk35 D128 full alibi",
        "f16 B1 H2 Sq70 Sk5 D40/72 causal-top-left alibi",
        "f16 B1 H1 Sq33 Sk0 D256 full alibi",
    ] {
        check(&problem.parse().unwrap());
    }
}

/// `score / (1 + |score|)`, less for every key further on: what no problem has words for.
struct Bent;

impl Score for Bent {
    fn apply(&self, score: F32, _: Coordinate, key: Coordinate, _: Head) -> F32 {
        score / (score.abs() + 1.0) - key.value().signed().to_f32() * 0.125
    }
}

/// ALiBi that rewards distance.
struct Upward;

impl Score for Upward {
    fn numbers(&self) -> Option<&'static str> {
        Some("slopes")
    }

    fn apply(&self, score: F32, query: Coordinate, key: Coordinate, head: Head) -> F32 {
        key.minus(query + (head.of.keys - head.of.queries)).abs().mul_add(head.number, score)
    }
}

/// What the kernel of `problem` with another score computes, judged as `scoring` has it.
fn judged(problem: &str, score: &dyn Score, scoring: &dyn Scoring) -> Parity {
    judged_by(&CONFIGS[0], problem, score, scoring)
}

fn judged_by(config: &Config, problem: &str, score: &dyn Score, scoring: &dyn Scoring) -> Parity {
    let problem: Problem = problem.parse().unwrap();
    let case = Case::new(kernels::kernel(&problem, config).unwrap()).unwrap();
    let mask = problem.mask().mask();
    let sanitized = run(&kernels::kernel_with(&problem, config, &*mask, score).unwrap());
    assert_eq!(sanitized.findings, vec![]);
    case.judge_with(&sanitized.runs[0].2, problem.visibility(), scoring).unwrap()
}

/// The oracle asks the very score that the kernel was built with.
#[test]
fn a_score_of_ones_own_is_compiled_in() {
    let problem = "f16 B1 H2/1 Sq35 Sk70 D64 causal";
    let parity = judged(problem, &Bent, &OnHost(&Bent));
    assert!(parity.passes(), "{parity}");
    let parity = judged(problem, &Bent, &ScoreKind::Plain);
    assert!(!parity.passes(), "{parity}");
    let scalar = CONFIGS[0].scalar().unwrap();
    let parity = judged_by(&scalar, problem, &Bent, &OnHost(&Bent));
    assert!(parity.passes(), "{parity}");
    let parity = judged_by(&scalar, problem, &Bent, &ScoreKind::Plain);
    assert!(!parity.passes(), "{parity}");
    for config in &HOPPER {
        let problem = if config.cluster > 1 { &problem.replace("causal", "full") } else { problem };
        let parity = judged_by(config, problem, &Bent, &OnHost(&Bent));
        assert!(parity.passes(), "config {}: {parity}", config.id);
    }
}

/// A slope with the wrong sign, a cap that is forgotten, and one that is another.
#[test]
fn wrong_scores_are_noticed() {
    let (alibi, capped) = ("f16 B1 H2 Sq35 Sk70 D64 full alibi", "f16 B1 H2 Sq35 Sk70 D64 full softcap5");
    let cap = |cap| ScoreKind::SoftCap { cap };
    for (problem, score, right) in [
        (alibi, Box::new(Upward) as Box<dyn Score>, ScoreKind::Alibi),
        (capped, ScoreKind::Plain.score(), cap(5.0)),
        (capped, cap(5.1).score(), cap(5.0)),
    ] {
        let parity = judged(problem, &*score, &right);
        assert!(!parity.passes(), "{problem}: {parity}");
    }
}

/// A logit that only the sum counts; rows without keys have it for their log-sum-exp.
#[test]
fn sinks_are_right() {
    for problem in [
        "f16 B2 H4/2 Sq97 Sk161 D64 causal sinks",
        "bf16 B1 H2 Sq65 Sk100 D128 full sinks bshd",
        "f16 B1 H2 Sq70 Sk5 D64 causal sinks",
        "f16 B1 H2 Sq33 Sk0 D64 full sinks",
        "f16 B1 H2/1 Sq35 Sk70 D64 window20/3 softcap2 sinks",
    ] {
        check(&problem.parse().unwrap());
    }
}

/// Documents that end inside of tiles, with every mask, and queries whose document has no key.
#[test]
fn documents_are_right() {
    for problem in [
        "f16 B2 H2/1 Sq97 Sk161 D64 full documents",
        "f16 B2 H2/1 Sq97 Sk161 D64 causal documents",
        "bf16 B2 H2 S100 D64 window20/3 documents bshd",
        "bf16 B1 H2 Sq161 Sk65 D128 causal-top-left documents",
        "f16 B1 H2 Sq70 Sk5 D64 causal documents",
        "f16 B1 H2 Sq33 Sk0 D64 full documents",
        "f16 B2 H2/1 Sq35 Sk70 D64 causal alibi sinks documents",
    ] {
        check(&problem.parse().unwrap());
    }
}

/// Groups that divide a tile and such that do not, queries that lie in two tiles, every mask, layout and feature.
#[test]
fn heads_that_share_keys_are_right_together() {
    for problem in [
        "f16 B2 H4/2 Sq1 Sk130 D64 full",
        "f16 B1 H8/2 Sq4 Sk161 D128 causal",
        "bf16 B2 H8/1 Sq3 Sk97 D64 causal bshd",
        "f16 B1 H6/2 Sq40 Sk161 D64 causal",
        "f16 B1 H7/1 Sq19 Sk161 D128 causal-top-left",
        "bf16 B1 H14/2 Sq5 Sk200 D64 window40/3 bshd",
        "f16 B1 H3/1 Sq30 Sk7 D64 causal",
        "f16 B1 H8/2 Sq9 Sk0 D64 full sinks",
        "f16 B1 H6/2 Sq7 Sk161 D40/72 causal alibi",
        "bf16 B1 H7/1 Sq3 Sk161 D72/40 full softcap2 sinks",
        "f16 B1 H12/3 Sq9 Sk161 D64 causal alibi sinks bshd",
        "f16 B2 H6/2 Sq9 Sk161 D64 causal documents",
        "f16 B1 H8/1 Sq17 Sk161 D64 window20/3 alibi sinks documents",
        "f16 B4 H6/2 Sq33,0,5,1 Sk161,40,0,33 D64 causal alibi sinks",
        "bf16 B3 H7/1 Sq1,1,20 Sk130,5,35 D64/40 full documents",
        "f16 B1 H8/2 Sq3 Sk161 D256 causal",
        "f16 B1 H71/1 Sq1 Sk65 D64 full",
    ] {
        check_each(&problem.parse().unwrap(), CONFIGS.into_iter().filter(|config| config.heads == Heads::Together));
    }
}

/// Sequences without queries, without keys, and with more of either than a block has; blocks beyond their ends leave.
#[test]
fn packed_sequences_are_right() {
    for problem in [
        "f16 B4 H2/1 Sq97,0,5,33 Sk161,40,0,33 D64 causal",
        "bf16 B3 H4/2 Sq65,1,130 Sk7,70,65 D64 full",
        "f16 B2 H2 S70,35 D128 window20/3",
        "f16 B2 H2/1 Sq1,33 Sk130,5 D40/72 causal softcap2 sinks",
        "f16 B3 H2/1 Sq35,70,1 Sk70,35,1 D64 causal alibi documents",
    ] {
        check(&problem.parse().unwrap());
    }
}

/// Nothing is launched: the recipe names the buffer.
#[test]
fn places_that_go_backwards_are_refused() {
    let problem: Problem = "f16 B2 H1 Sq20,13 Sk40,30 D64 full".parse().unwrap();
    let kernel = kernels::kernel(&problem, &CONFIGS[0]).unwrap();
    for (right, wrong, expected) in [
        ("init = [0, 20, 33]", "init = [0, 33, 20]", "`cu_q` goes from 33 to 20 at entry 2"),
        ("init = [0, 40, 70]", "init = [0, 70, 40]", "`cu_k` goes from 70 to 40 at entry 2"),
        ("init = [0, 20, 33]", "init = [0, 25, 33]", "lengths.q is 20: expected 25, the longest sequence"),
    ] {
        let text = &kernel.parsed.source.text;
        assert!(text.contains(right));
        let error = Case::new(Kernel::parse("kernel.ptx", &text.replace(right, wrong)).unwrap()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Whoever launches the kernel with places that nobody has checked gets wrong rows, and no access outside of the tensors.
#[test]
fn wrong_places_touch_no_other_memory() {
    let problem: Problem = "f16 B2 H2 Sq20,13 Sk40,30 D64 full documents".parse().unwrap();
    for config in &CONFIGS {
        let kernel = kernels::kernel(&problem, config).unwrap();
        for (q, k) in [("0, 33, 20", "0, 70, 40"), ("4000, 90000, 7", "0, 40, 4294967295"), ("0, 20, 34", "0, 40, 71")]
        {
            let text = kernel.parsed.source.text.replace("[0, 20, 33]", &format!("[{q}]"));
            let text = text.replace("[0, 40, 70]", &format!("[{k}]"));
            assert!(text.contains(q) && text.contains(k));
            assert_eq!(run(&Kernel::parse("kernel.ptx", &text).unwrap()).findings, vec![], "config {}: {q}", config.id);
        }
    }
}
