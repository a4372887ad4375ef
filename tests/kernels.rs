//! Our kernels on the emulator: right by the oracle's rule, and silent under every schedule.

use attention::configs::CONFIGS;
use attention::oracle::{Inputs, Oracle, Outputs};
use attention::problem::{DType, Layout};
use attention::visibility::MaskKind;
use attention::{Problem, kernels};
use emulator::{DEFAULT_SEEDS, Sanitized, sanitize};
use launch::backend::Options;
use launch::{Kernel, Memory};

const MASKS: [MaskKind; 4] =
    [MaskKind::None, MaskKind::CausalBottomRight, MaskKind::CausalTopLeft, MaskKind::Window { left: 40, right: 3 }];

fn run(kernel: &Kernel) -> Sanitized {
    let seeds: Vec<u64> = (0..DEFAULT_SEEDS).collect();
    sanitize(kernel, &seeds, 0, &Options::default()).unwrap()
}

fn halves(memory: &Memory, name: &str, elements: usize) -> Vec<u16> {
    let bytes = memory.buffer(name).unwrap().contents.to_vec();
    bytes.chunks_exact(2).take(elements).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

fn floats(memory: &Memory, name: &str) -> Vec<f32> {
    let bytes = memory.buffer(name).unwrap().contents.to_vec();
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
}

/// No finding, and the result that the oracle accepts, under every schedule, for each configuration that has room.
fn check(problem: &Problem) {
    for config in CONFIGS.iter().filter(|config| config.fits(problem.dims())) {
        let sanitized = run(&kernels::kernel(problem, config).unwrap());
        assert_eq!(sanitized.findings, vec![], "config {} {problem}", config.id);
        for (seed, _, memory) in &sanitized.runs {
            let input = |name, shape: attention::problem::Shape| halves(memory, name, shape.elements());
            let [q, k, v] = [("q", problem.q_shape()), ("k", problem.k_shape()), ("v", problem.v_shape())]
                .map(|(name, shape)| input(name, shape));
            let inputs = Inputs::from_bits(problem, &q, &k, &v).unwrap();
            let output = halves(memory, "o", problem.o_shape().elements());
            let actual = Outputs::from_bits(problem, &output, &floats(memory, "lse")).unwrap();
            let parity = Oracle::new(problem, &inputs).unwrap().judge(&actual).unwrap();
            assert!(parity.passes(), "config {} {problem}, schedule {seed}: {parity:?}", config.id);
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

/// Hundreds of tiles: an error that each of them repeats would have grown beyond what is allowed.
#[test]
fn errors_do_not_grow_with_the_number_of_tiles() {
    for queries in [1, 16] {
        check(&Problem::builder().batch(1).heads(1).queries(queries).keys(16384).head_dim(16).build().unwrap());
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
