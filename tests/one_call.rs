//! Attention in one call, judged by the oracle: on the emulator everywhere, on a GPU where there is one. With
//! `VERIFLASH_REQUIRE_GPU` set, a machine without a GPU fails instead of passing with the sentence.

use ::attention::configs::{Config, HOPPER, Math};
use ::attention::kernels::parts::Lengths;
use ::attention::kernels::parts::masks;
use ::attention::kernels::parts::scores::{self, Head};
use ::attention::oracle::{Inputs, Oracle, Outputs};
use ::attention::planner;
use ::attention::problem::{DType, Layout, Problem, Shape};
use ::attention::scoring::ScoreKind;
use cuda::{Context, DeviceBuffer, Graph, Stream};
use half::{bf16, f16};
use std::ops::Range;
use std::sync::Arc;
use tile::prelude::{Coordinate, F32, Pred, U32};
use veriflash::{
    Backend, Custom, DeviceTensor, DeviceTensorMut, Error, HostOutput, HostTensor, Mask, Number, Options, Score,
    attention, attention_into, workspace_bytes,
};

const PROBLEMS: [&str; 16] = [
    "B1 H2 Sq5 Sk70 D64 causal",
    "B2 H4/2 Sq40 Sk33 D64/40 window16/2",
    "B2 H2 S33 D16 causal bshd",
    "B1 H1 Sq3 Sk0 D64",
    "B1 H2 S40 D192/128 causal scale0.5",
    "bf16 B1 H8/1 Sq1 Sk130 D128",
    "bf16 B2 H3 Sq17 Sk64 D128 causal-top-left bshd",
    "bf16 B1 H1 S130 D80 full",
    "B2 H2/1 S40 D64 causal softcap0.5",
    "bf16 B1 H4/2 Sq17 Sk70 D64 causal alibi bshd",
    "B2 H3 Sq33 Sk5 D64 causal sinks",
    "B2 H2 Sq40 Sk70 D64 window20/3 documents",
    "bf16 B1 H2 Sq5 Sk0 D64 documents sinks",
    "H4/2 Sq35,0,5,70 Sk70,40,0,33 D64 causal",
    "bf16 H2 S40,33 D40/72 window16/2 softcap2 sinks",
    "H2/1 Sq35,70,1 Sk70,35,1 D64 causal alibi sinks documents",
];

/// Numbers between −1 and 1 that repeat only after long.
fn numbers(shape: Shape, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    (0..shape.elements()).map(|_| next()).collect()
}

fn sizes(shape: Shape) -> [u32; 4] {
    [shape.batch, shape.heads, shape.rows, shape.columns]
}

/// What a problem reads besides Q, K and V.
#[derive(Clone)]
struct Arrays {
    slopes: Vec<f32>,
    sinks: Vec<f32>,
    q_ids: Vec<u32>,
    k_ids: Vec<u32>,
}

impl Arrays {
    fn new(problem: &Problem) -> Arrays {
        let ids = |shape: Shape| (0..shape.batch * shape.rows).map(|row| row / 15).collect();
        let slopes = (0..problem.heads()).map(|head| 0.25 / (head + 1) as f32).collect();
        let sinks = (0..problem.heads()).map(|head| head as f32 - 0.5).collect();
        Arrays { slopes, sinks, q_ids: ids(problem.q_shape()), k_ids: ids(problem.k_shape()) }
    }

    fn options<'a>(&'a self, problem: &'a Problem) -> Options<'a> {
        let mut options = options(problem);
        if problem.score() == ScoreKind::Alibi {
            options = options.alibi(&self.slopes);
        }
        if problem.sinks() {
            options = options.sinks(&self.sinks);
        }
        if problem.documents() {
            options = options.documents(&self.q_ids, &self.k_ids);
        }
        match problem.packed() {
            Some(packed) => options.packed(packed.queries(), packed.keys()),
            None => options,
        }
    }

    fn join(self, problem: &Problem, mut inputs: Inputs) -> Inputs {
        if problem.score() == ScoreKind::Alibi {
            inputs = inputs.with_numbers(self.slopes);
        }
        if problem.sinks() {
            inputs = inputs.with_sinks(self.sinks);
        }
        if problem.documents() {
            inputs = inputs.with_documents(self.q_ids, self.k_ids);
        }
        inputs
    }
}

/// What needs no array.
fn options(problem: &Problem) -> Options<'static> {
    let options = Options::new().mask(problem.mask()).scale(problem.scale());
    match problem.score() {
        ScoreKind::SoftCap { cap } => options.softcap(cap),
        _ => options,
    }
}

fn rounded<N: Number>(problem: &Problem, from: impl Fn(f32) -> N) -> [Vec<N>; 3] {
    let shapes = [(problem.q_shape(), 1), (problem.k_shape(), 2), (problem.v_shape(), 3)];
    shapes.map(|(shape, seed)| numbers(shape, seed).into_iter().map(&from).collect())
}

fn call<N: Number>(problem: &Problem, inputs: &[Vec<N>; 3], options: &Options) -> Result<HostOutput<N>, Error> {
    let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape()];
    let [q, k, v] =
        [0, 1, 2].map(|index| HostTensor::new(&inputs[index], sizes(shapes[index])).layout(problem.layout()));
    attention(&q, &k, &v, options)
}

/// What each call answers, held against one oracle.
fn judge<'o, N: Number>(
    problem: &Problem,
    inputs: &[Vec<N>; 3],
    calls: impl Iterator<Item = Options<'o>>,
) -> Result<(), Error> {
    let [q, k, v] = [0, 1, 2].map(|index| N::bits(&inputs[index]));
    let of_oracle = Arrays::new(problem).join(problem, Inputs::from_bits(problem, q, k, v).unwrap());
    let oracle = Oracle::new(problem, &of_oracle).unwrap();
    for (number, options) in calls.enumerate() {
        let output = call(problem, inputs, &options)?;
        let actual = Outputs::from_bits(problem, N::bits(&output.o), &output.lse).unwrap();
        let parity = oracle.judge(&actual).unwrap();
        assert!(parity.passes(), "{problem}, call {number}: {parity:?}");
    }
    Ok(())
}

fn check(text: &str, change: impl Fn(Options) -> Options) -> Result<(), Error> {
    let problem: Problem = text.parse().unwrap();
    let arrays = Arrays::new(&problem);
    check_calls(&problem, std::iter::once(change(arrays.options(&problem))))
}

/// Every configuration for sm_90a that has room.
fn check_sm_90a(text: &str) -> Result<(), Error> {
    let problem: Problem = text.parse().unwrap();
    let arrays = Arrays::new(&problem);
    check_calls(&problem, of_sm_90a(text).map(|config| arrays.options(&problem).config(config.id)))
}

fn check_calls<'o>(problem: &Problem, calls: impl Iterator<Item = Options<'o>>) -> Result<(), Error> {
    match problem.dtype() {
        DType::F16 => judge(problem, &rounded(problem, f16::from_f32), calls),
        DType::Bf16 => judge(problem, &rounded(problem, bf16::from_f32), calls),
        DType::F32 => panic!("no kernel has f32"),
    }
}

#[test]
fn the_emulator_answers_as_the_oracle_does() {
    for problem in PROBLEMS {
        check(problem, |options| options.emulator()).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
}

#[test]
fn plain_cores_answer_as_the_oracle_does() {
    for problem in PROBLEMS.into_iter().chain(SPLIT) {
        check(problem, |options| options.backend(Backend::Cpu)).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
}

#[test]
fn the_output_says_who_computed_it() {
    let values = vec![f16::ONE; 64];
    let tensor = HostTensor::new(&values, [1, 1, 1, 64]);
    let by = |options: Options| attention(&tensor, &tensor, &tensor, &options).map(|output| output.backend);
    for backend in [Backend::Cpu, Backend::Emulator] {
        assert_eq!(by(Options::new().backend(backend)).unwrap(), backend);
    }
    // With a GPU, `gpu` asks: another test may have lost the context meanwhile.
    if Context::here().is_err() {
        assert_eq!(by(Options::new()).unwrap(), Backend::Cpu);
        for options in [Options::new().backend(Backend::Gpu), Options::new().config(1)] {
            assert!(matches!(by(options).unwrap_err(), Error::NoGpu { .. }));
        }
        let advice = by(Options::new().debug()).unwrap_err().to_string();
        assert!(advice.contains("`Backend::Emulator` runs kernels without one"), "{advice}");
    }
    let of_kernels = [
        ("config", Options::new().config(1)),
        ("math", Options::new().math(Math::Scalar)),
        ("debug", Options::new().debug()),
    ];
    for (option, options) in of_kernels {
        let refused = by(options.backend(Backend::Cpu)).unwrap_err().to_string();
        let expected = "expected a GPU or the emulator: plain cores run no kernel";
        assert_eq!(refused, format!("`{option}` is given beside `Backend::Cpu`: {expected}"));
    }
    assert!(matches!(by(Options::new().config(99)).unwrap_err(), Error::Config { id: 99 }));
}

/// f32 and heads of any size are for plain cores, and no kernel's.
#[test]
fn what_no_kernel_computes_plain_cores_do() {
    let values = vec![1f32; 3 * 100];
    let wide = HostTensor::new(&values, [1, 1, 3, 100]);
    assert_eq!(attention(&wide, &wide, &wide, &Options::new()).unwrap().backend, Backend::Cpu);
    let refused = attention(&wide, &wide, &wide, &Options::new().emulator()).unwrap_err().to_string();
    assert_eq!(refused, "`q` has 100 columns: expected a multiple of 8 from 16 to 256");
    let narrow = HostTensor::new(&values[..192], [1, 1, 3, 64]);
    let refused = attention(&narrow, &narrow, &narrow, &Options::new().emulator()).unwrap_err().to_string();
    assert_eq!(refused, "no kernel computes f32: expected f16 or bf16, or the CPU backend");
}

/// A grid has no place for so many.
#[test]
fn plain_cores_take_more_sequences_than_a_grid_has() {
    let (values, begins) = (vec![f16::ONE; 70_000 * 16], (0..=70_000).collect::<Vec<u32>>());
    let tensor = HostTensor::packed(&values, [70_000, 1, 16]);
    let options = Options::new().packed(&begins, &begins);
    for options in [options.clone(), options.clone().backend(Backend::Cpu)] {
        let output = attention(&tensor, &tensor, &tensor, &options).unwrap();
        assert_eq!((output.backend, output.o == values), (Backend::Cpu, true));
    }
    let refused = attention(&tensor, &tensor, &tensor, &options.emulator()).unwrap_err().to_string();
    let expected = "expected at most 65535, which a grid has room for, or `Backend::Cpu`";
    assert_eq!(refused, format!("`cu_q` has 70000 sequences: {expected}"));
}

/// Sizes whose products no 64 bits hold are refused by name, and the numbers said are right.
#[test]
fn impossible_sizes_are_refused_by_name() {
    let (values, most) = (vec![1f32; 32], u32::MAX);
    let right = HostTensor::new(&values, [1, 1, 4, 8]);
    let refused = |q: HostTensor<f32>| attention(&q, &right, &right, &Options::new()).unwrap_err().to_string();
    let elements = u128::from(most).pow(4);
    assert_eq!(
        refused(HostTensor::new(&values, [most; 4])),
        format!("`q` has 32 elements: expected {elements} for its shape")
    );
    let reach = u128::from(u64::MAX) * 3 + 8;
    assert_eq!(
        refused(right.strides([0, 0, u64::MAX, 1])),
        format!("`q` has 32 elements: expected {reach} for its shape")
    );
    let repeated = HostTensor::new(&values, [most, most, most, 8]).strides([0, 0, 0, 1]);
    let error = attention(&repeated, &repeated, &repeated, &Options::new()).unwrap_err().to_string();
    assert!(error.ends_with("elements: expected at most 1099511627776"), "{error}");
}

/// Q with strides and K and V without, in the other order, are computed as if all were in one.
#[test]
fn tensors_may_differ_in_their_order() {
    let numbers: Vec<f16> = (0..2 * 5 * 16).map(|index| f16::from_f32((index * 7 % 11) as f32 / 8.0)).collect();
    let [plain, rows_first] = [[160, 80, 16, 1], [160, 16, 32, 1]];
    for (of_q, of_k) in [(plain, rows_first), (rows_first, plain)] {
        let of = |strides| HostTensor::new(&numbers, [1, 2, 5, 16]).strides(strides);
        let by = |options: Options| attention(&of(of_q), &of(of_k), &of(of_k), &options.causal()).unwrap();
        let (cores, emulated) = (by(Options::new().backend(Backend::Cpu)), by(Options::new().emulator()));
        for (one, other) in cores.o.iter().zip(&emulated.o) {
            assert!((one.to_f32() - other.to_f32()).abs() < 1e-2, "{one} and {other}");
        }
    }
}

/// The last one counts.
#[test]
fn a_layout_takes_the_place_of_strides() {
    let values = vec![1f32; 64];
    let plain = HostTensor::new(&values, [1, 2, 4, 8]);
    let other = plain.strides([64, 32, 8, 1]).layout(Layout::Bshd);
    let refused = attention(&other, &plain, &plain, &Options::new()).unwrap_err().to_string();
    assert_eq!(refused, "`k` is bhsd: expected bshd, as `q` is");
    assert!(attention(&other, &other, &other, &Options::new()).is_ok());
}

/// The same numbers with gaps between them, and in the other order, give the same bits.
#[test]
fn strides_change_nothing() {
    let [batch, heads, rows, columns] = [2, 3, 21, 24];
    let dense = rounded(&"B2 H3 S21 D24".parse().unwrap(), bf16::from_f32);
    let strides = [rows * 110, 36, 110, 1];
    let spread = dense.each_ref().map(|values| {
        let mut spread = vec![bf16::NAN; 2 * 21 * 110];
        for (index, value) in values.iter().enumerate() {
            let index = index as u64;
            let place = [
                index / columns / rows / heads,
                index / columns / rows % heads,
                index / columns % rows,
                index % columns,
            ];
            spread[place.into_iter().zip(strides).map(|(place, stride)| place * stride).sum::<u64>() as usize] = *value;
        }
        spread
    });
    let shape = [batch, heads, rows, columns].map(|extent| extent as u32);
    for options in [Options::new().causal().backend(Backend::Cpu), Options::new().causal().emulator()] {
        let [q, k, v] = dense.each_ref().map(|values| HostTensor::new(values, shape));
        let plain = attention(&q, &k, &v, &options).unwrap();
        let [q, k, v] = spread.each_ref().map(|values| HostTensor::new(values, shape).strides(strides));
        let strided = attention(&q, &k, &v, &options).unwrap();
        assert!(strided.lse == plain.lse);
        // O is in the order of Q: rows before heads.
        for (index, value) in plain.o.iter().enumerate() {
            let (head, row, column) = (index / 24 / 21 % 3, index / 24 % 21, index % 24);
            assert_eq!(strided.o[((index / 24 / 21 / 3 * 21 + row) * 3 + head) * 24 + column], *value);
        }
    }
}

/// Says that all queries see all keys, though they do not.
struct Boastful;

impl Mask for Boastful {
    fn seen_by_some(&self, _: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..of.keys
    }

    fn seen_by_all(&self, _: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..of.keys
    }

    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred {
        masks::Causal.sees(query, key, of)
    }
}

#[test]
fn the_emulator_finds_masks_that_contradict_themselves() {
    let values = vec![f16::ONE; 5 * 64];
    let (tensor, mask) = (HostTensor::new(&values, [1, 1, 5, 64]), Custom::new(Boastful));
    let error = attention(&tensor, &tensor, &tensor, &Options::new().mask_with(&mask).emulator()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the mask hides key 1 from query 0, and says that queries 0..5 all see keys 0..5 (`seen_by_all`): expected the \
         same of blocks of queries as of single ones"
    );
}

/// One or a few queries against so many keys that an H200 would split them over blocks; the last with a kernel for sm_90a.
const SPLIT: [&str; 5] = [
    "B1 H2/1 Sq1 Sk1100 D64",
    "bf16 B1 H2 Sq5 Sk1030 D128 causal sinks bshd",
    "B2 H1 Sq3 Sk2000 D64/40 softcap2",
    "bf16 B1 H14/2 Sq3 Sk1030 D64/40 causal alibi sinks",
    "bf16 B1 H4/2 Sq130 Sk4200 D64 causal sinks",
];

#[test]
fn the_emulator_splits_keys_as_a_gpu_does() {
    for problem in SPLIT {
        assert!(planner::plan(&problem.parse().unwrap(), &planner::Gpu::H200).unwrap().splits > 1, "{problem}");
        check(problem, |options| options.emulator()).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
}

/// A query sees itself, and keys before it that are as far away as a multiple of `step`.
struct Stride {
    step: u32,
}

impl Mask for Stride {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        0.into()..queries.end.min(of.keys)
    }

    fn seen_by_all(&self, _: Range<U32>, _: Lengths) -> Range<U32> {
        0.into()..0.into()
    }

    fn sees(&self, query: Coordinate, key: Coordinate, _: Lengths) -> Pred {
        let (query, key) = (query.value(), key.value());
        let distance = query.saturating_sub(key);
        key.le(query) & (distance / self.step * self.step).eq(distance)
    }
}

/// A number of the head's is added to every score.
struct Bias {
    times: f32,
}

impl Score for Bias {
    fn apply(&self, score: F32, _: Coordinate, _: Coordinate, head: Head) -> F32 {
        head.number.mul_add(self.times, score)
    }

    fn numbers(&self) -> Option<&'static str> {
        Some("bias")
    }
}

/// Masks and scores of the user's own, which differ in nothing but their fields.
fn custom_parts_are_right(text: &str, change: impl Fn(Options) -> Options) -> Result<(), Error> {
    let problem: Problem = text.parse().unwrap();
    let (arrays, inputs) = (Arrays::new(&problem), rounded(&problem, f16::from_f32));
    let masks = [1, 3].map(|step| Custom::new(Stride { step }));
    let scores = [1.0, -2.0].map(|times| Custom::new(Bias { times }));
    for _ in 0..2 {
        for (mask, score) in masks.iter().zip(&scores) {
            let options = arrays.options(&problem).mask_with(mask).score_with(score).score_numbers(&arrays.slopes);
            let output = call(&problem, &inputs, &change(options))?;
            let [q, k, v] = inputs.each_ref().map(|values| f16::bits(values));
            let inputs = arrays.clone().join(&problem, Inputs::from_bits(&problem, q, k, v).unwrap());
            let inputs = inputs.with_numbers(arrays.slopes.clone());
            let (visibility, scoring) = (masks::OnHost(&**mask), scores::OnHost(&**score));
            let oracle = Oracle::with(&problem, &inputs, &visibility, &scoring).unwrap();
            let actual = Outputs::from_bits(&problem, f16::bits(&output.o), &output.lse).unwrap();
            let parity = oracle.judge(&actual).unwrap();
            assert!(parity.passes(), "{text}, every {}: {parity:?}", mask.step);
        }
    }
    Ok(())
}

const CUSTOM: [&str; 2] = ["B2 H2 S70 D64", "H2/1 S40,33 D64 sinks documents"];

#[test]
fn the_emulator_computes_masks_and_scores_of_the_users() {
    for problem in CUSTOM {
        custom_parts_are_right(problem, |options| options.emulator()).unwrap();
    }
}

#[test]
fn a_configuration_may_be_asked_for() {
    check("B1 H1 S40 D64 causal", |options| options.emulator().config(5)).unwrap();
    let error = check("B1 H1 S40 D64", |options| options.emulator().config(99)).unwrap_err();
    assert!(
        error.to_string().starts_with("there is no config 99: expected one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,"),
        "{error}"
    );
    let error = check("B1 H1 S40 D256", |options| options.emulator().config(1)).unwrap_err();
    assert!(error.to_string().contains("use config 6"), "{error}");
}

/// Even and uneven masks, both layouts and types, unequal heads, no key at all.
const OF_SM_90A: [&str; 9] = [
    "B1 H2 Sq70 Sk130 D64 causal alibi sinks",
    "bf16 B1 H2/1 Sq70 Sk130 D64 softcap2 documents",
    "H4/2 Sq35,0,5,70 Sk70,40,0,33 D64 causal",
    "B1 H2 Sq200 Sk300 D64 causal",
    "bf16 B2 H4/2 Sq70 Sk130 D64 bshd",
    "B1 H2/1 Sq130 Sk70 D128 causal scale0.5 bshd",
    "B1 H1 Sq20 Sk70 D64/40 window16/2",
    "bf16 B1 H1 Sq20 Sk70 D40/64 causal-top-left",
    "B1 H1 Sq3 Sk0 D64",
];

/// Of those for sm_90a, all that have room.
fn of_sm_90a(problem: &str) -> impl Iterator<Item = Config> {
    let problem = problem.parse().unwrap();
    HOPPER.into_iter().filter(move |config| config.serves(&problem))
}

#[test]
fn the_emulator_runs_kernels_for_sm_90a() {
    for problem in OF_SM_90A {
        assert!(of_sm_90a(problem).count() > 0, "{problem}");
        for config in of_sm_90a(problem) {
            check(problem, |options| options.emulator().config(config.id))
                .unwrap_or_else(|error| panic!("{problem}, config {}: {error}", config.id));
        }
    }
    let refused = |problem| check(problem, |options| options.emulator().config(12)).unwrap_err().to_string();
    assert_eq!(
        refused("B1 H1 S40 D128"),
        "config 12 does not compute f16 B1 H1 S40 D128 full: 295104 bytes of shared memory for a block, expected at most \
         232448: use config 10 or 13 or 15 or 16 or 17 or 18 or 19"
    );
    assert!(
        refused("B1 H1 S40 D256").contains("shared memory for a block, expected at most 232448: use config 16 or 17")
    );
}

/// A mask of the user's own is compiled into them, too.
#[test]
fn kernels_for_sm_90a_take_masks_of_the_users() {
    let problem: Problem = "B2 H2 S70 D64".parse().unwrap();
    let (inputs, mask) = (rounded(&problem, f16::from_f32), Custom::new(Stride { step: 3 }));
    let options = options(&problem).mask_with(&mask).emulator();
    let old = call(&problem, &inputs, &options.clone().config(9)).unwrap();
    let new = call(&problem, &inputs, &options.config(12)).unwrap();
    let far = |(old, new): (&f32, &f32)| (old - new).abs() > 1e-4;
    assert!(!old.lse.iter().zip(&new.lse).any(far), "{:?} {:?}", old.lse, new.lse);
}

/// Keys whose last one of the second head is infinite.
fn with_an_infinite_key(problem: &Problem) -> [Vec<f16>; 3] {
    let mut inputs = rounded(problem, f16::from_f32);
    inputs[1].iter_mut().rev().take(64).for_each(|number| *number = f16::INFINITY);
    inputs
}

/// In one piece and split over blocks.
const DEBUGGED: [&str; 2] = ["B1 H2 Sq5 Sk70 D64 causal", "B1 H2 Sq1 Sk1100 D64"];
const ASSERTED: &str = "assertion `scores are finite` failed in CTA (";

#[test]
fn debug_kernels_on_the_emulator_are_right_and_name_what_fails() {
    for text in DEBUGGED {
        check(text, |options| options.emulator().debug()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let problem = text.parse().unwrap();
        let inputs = with_an_infinite_key(&problem);
        let error = call(&problem, &inputs, &options(&problem).emulator().debug()).unwrap_err();
        assert!(matches!(&error, Error::Emulator(why) if why.starts_with(ASSERTED)), "{error}");
        call(&problem, &inputs, &options(&problem).emulator()).expect("only debug kernels look");
    }
}

#[test]
fn plain_cores_may_be_asked_for() {
    let problem = "bf16 B1 H2/1 Sq20 Sk40 D64 causal";
    check(problem, |options| options.emulator().math(Math::Scalar)).unwrap();
    check(problem, |options| options.emulator().math(Math::Scalar).config(5)).unwrap();
    let error = check("B1 H1 S40 D64", |options| options.config(7).math(Math::Scalar).emulator()).unwrap_err();
    assert_eq!(error.to_string(), "config 7 has no scalar math: expected one of configs 1 to 5");
}

#[test]
fn wrong_arguments_are_named_before_a_gpu_is_looked_for() {
    let numbers = vec![f16::ZERO; 64 * 10];
    let tensor = |shape| HostTensor::new(&numbers, shape);
    let right = tensor([1, 1, 10, 64]);
    let refused = |k| attention(&right, &k, &right, &Options::new()).unwrap_err().to_string();
    assert_eq!(refused(tensor([1, 1, 9, 64])), "`k` has 640 elements: expected 576 for its shape");
    assert_eq!(refused(tensor([1, 10, 1, 64])), "`v` has 1 heads: expected 10, as in `k`");
    assert_eq!(refused(right.layout(Layout::Bshd)), "`k` is bshd: expected bhsd, as `q` is");
}

/// One test: its cases share the GPU.
#[test]
fn gpu() {
    let context = match Context::here() {
        Ok(context) => context,
        Err(error) => return no_gpu(error),
    };
    println!("GPU: {}", context.device());
    let values = vec![f16::ONE; 64];
    let tensor = HostTensor::new(&values, [1, 1, 1, 64]);
    assert_eq!(attention(&tensor, &tensor, &tensor, &Options::new()).unwrap().backend, Backend::Gpu);
    for problem in
        PROBLEMS.into_iter().chain(SPLIT).chain(["B1 H64 S640 D128 causal", "bf16 B1 H4 S2000 D256 window100/5"])
    {
        check(problem, |options| options).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
    for problem in CUSTOM {
        custom_parts_are_right(problem, |options| options).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
    for config in (1..=9).chain(20..=23) {
        check("B2 H3 Sq200 Sk300 D64 causal", |options| options.config(config)).unwrap();
    }
    kernels_for_sm_90a(&context);
    // One tile for a block, and several.
    for problem in ["B2 H8 S500 D64 causal bshd", "B2 H33 S500 D64 causal bshd"] {
        streams_and_graphs_agree(&context, problem);
    }
    a_workspace_splits_keys_as_attention_does(&context);
    arrays_on_the_gpu_give_the_same_bits(&context);
    wrong_device_arguments(&context);
    a_failed_assertion_ends_the_context();
}

/// Nothing runs on the GPU any more after this.
fn a_failed_assertion_ends_the_context() {
    for text in DEBUGGED {
        check(text, |options| options.debug()).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let problem = DEBUGGED[1].parse().unwrap();
    let error = call(&problem, &with_an_infinite_key(&problem), &options(&problem).debug()).unwrap_err();
    println!("{error}");
    assert!(matches!(error, Error::Cuda(cuda::Error::ContextLost { .. })), "{error}");
    let (text, second_head) = (error.to_string(), ",1,0), warp ");
    assert!(text.contains(ASSERTED) && text.contains(second_head) && text.contains(", lane "), "{text}");
    let error = check(PROBLEMS[0], |options| options).expect_err("the context is lost");
    assert!(matches!(error, Error::Cuda(cuda::Error::ContextLost { .. })), "{error}");
}

fn no_gpu(error: cuda::Error) {
    println!("not run on a GPU: {error}");
    assert!(std::env::var_os("VERIFLASH_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
    check(PROBLEMS[0], |options| options).expect("plain cores answer");
    let error = check(PROBLEMS[0], |options| options.backend(Backend::Gpu)).unwrap_err();
    assert!(matches!(error, Error::NoGpu { .. }), "{error}");
    assert!(error.to_string().contains("ask for `Backend::Cpu`"), "{error}");
}

/// Where the GPU has their instructions they are right, whoever chooses them; elsewhere they are refused.
fn kernels_for_sm_90a(context: &Arc<Context>) {
    let large = [
        "B4 H32 S2048 D64 causal",
        "bf16 B8 H33/11 S1000 D64",
        "B2 H40/8 S1000 D128 causal bshd",
        "B8 H16 S600 D96",
        "bf16 H32/8 S2000,1,900,300 D128 causal",
        "H64 Sq1000,1,0,300 Sk20,400,5,0 D64",
    ];
    if context.device().capability != (9, 0) {
        let error = check(OF_SM_90A[0], |options| options.config(12)).unwrap_err();
        assert!(error.to_string().starts_with("config 12 does not run on sm_"), "{error}");
        return println!("kernels for sm_90a are refused here: {error}");
    }
    // Without a key there is nothing that a tensor map could describe.
    for problem in OF_SM_90A.into_iter().filter(|problem| !problem.contains("Sk0")).chain(large) {
        check_sm_90a(problem).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
    for problem in large {
        let planned = planner::plan(&problem.parse().unwrap(), &planner::Gpu::H200).unwrap();
        assert!(planned.math == Math::Warpgroup, "{problem}: config {}", planned.id);
        check(problem, |options| options).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
    let error = check("B1 H1 Sq3 Sk0 D64", |options| options.config(12)).unwrap_err().to_string();
    assert_eq!(error, "`k` has 0 rows: expected at least 1 for config 12, which copies by tensor maps");
    one_head_of_keys_for_all(context);
}

/// Keys and values that repeat themselves by strides of zero: the planner leaves them to kernels that take such, and who asks for
/// one that does not is told.
fn one_head_of_keys_for_all(context: &Arc<Context>) {
    let problem: Problem = "B4 H32 S512 D64".parse().unwrap();
    let inputs = rounded(&"B1 H1 S512 D64".parse().unwrap(), f16::from_f32);
    let stream = Stream::new(context).unwrap();
    let mut memory = DeviceBuffer::new(context, 512 * 64 * 2).unwrap();
    memory.write(&stream, bytemuck::cast_slice(f16::bits(&inputs[0]))).unwrap();
    let one =
        DeviceTensor::new(memory.slice(), DType::F16, sizes(problem.q_shape()), Layout::Bhsd).strides([0, 0, 64, 1]);
    let options = options(&problem).stream(&stream);
    let error = attention(&one, &one, &one, &options.clone().config(11)).unwrap_err().to_string();
    assert_eq!(
        error,
        "`q` has a stride of 0 elements between batch entries: expected at least 1 for config 11, which copies by tensor maps"
    );
    let output = attention(&one, &one, &one, &options).unwrap();
    let mut lse = vec![0_f32; 4 * 32 * 512];
    output.lse.read(&stream, bytemuck::cast_slice_mut(&mut lse)).unwrap();
    assert!(lse.chunks(512).all(|head| head == &lse[..512]), "all heads are the same");
}

/// 1,000 launches in one stream, as many in eight, and a graph: the same bits.
fn streams_and_graphs_agree(context: &Arc<Context>, problem: &str) {
    let problem: Problem = problem.parse().unwrap();
    let (shape, bytes) = (sizes(problem.q_shape()), problem.q_shape().elements() * 2);
    let inputs = rounded(&problem, f16::from_f32);
    let expected = call(&problem, &inputs, &options(&problem)).unwrap();
    let streams: Vec<Stream> = (0..8).map(|_| Stream::new(context).unwrap()).collect();
    let memory = inputs.each_ref().map(|values| {
        let mut buffer = DeviceBuffer::new(context, bytes).unwrap();
        buffer.write(&streams[0], bytemuck::cast_slice(f16::bits(values))).unwrap();
        buffer
    });
    let [q, k, v] = memory.each_ref().map(|one| DeviceTensor::new(one.slice(), DType::F16, shape, Layout::Bshd));
    let run = |stream: &Stream, launches: usize, in_graph: bool| {
        let mut o = DeviceBuffer::new(context, bytes).unwrap();
        let mut lse = DeviceBuffer::new(context, bytes / 64 * 2).unwrap();
        let options = options(&problem).stream(stream);
        let mut launch = || {
            let mut o = DeviceTensorMut::new(o.slice_mut(), DType::F16, shape, Layout::Bshd);
            attention_into(&q, &k, &v, &mut o, &mut lse.slice_mut(), &options)
        };
        match in_graph {
            true => Graph::capture(stream, launch).unwrap().launch(stream).unwrap(),
            false => (0..launches).for_each(|_| launch().unwrap()),
        }
        (o, lse)
    };
    let alone = run(&streams[0], 1000, false);
    let side_by_side: Vec<_> = streams.iter().map(|stream| run(stream, 125, false)).collect();
    let recorded = run(&streams[1], 1, true);
    context.synchronise().unwrap();
    for (o, lse) in [alone, recorded].into_iter().chain(side_by_side) {
        let (mut halves, mut floats) = (vec![0_u16; bytes / 2], vec![0_f32; bytes / 128]);
        o.read(&streams[0], bytemuck::cast_slice_mut(&mut halves)).unwrap();
        lse.read(&streams[0], bytemuck::cast_slice_mut(&mut floats)).unwrap();
        assert!(halves == f16::bits(&expected.o) && floats == expected.lse, "results differ");
    }
    println!("1,000 launches in one stream, 1,000 in eight, one in a graph: equal to the bit");
}

/// With a workspace, recorded in a graph and run twice: the bits of `attention`.
fn a_workspace_splits_keys_as_attention_does(context: &Arc<Context>) {
    let problem: Problem = "B1 H2/1 Sq1 Sk1100 D64".parse().unwrap();
    let inputs = rounded(&problem, f16::from_f32);
    let expected = call(&problem, &inputs, &options(&problem)).unwrap();
    let stream = Stream::new(context).unwrap();
    let memory = inputs.each_ref().map(|values| {
        let mut buffer = DeviceBuffer::new(context, values.len() * 2).unwrap();
        buffer.write(&stream, bytemuck::cast_slice(f16::bits(values))).unwrap();
        buffer
    });
    let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape()].map(sizes);
    let [q, k, v] =
        [0, 1, 2].map(|index| DeviceTensor::new(memory[index].slice(), DType::F16, shapes[index], problem.layout()));
    let plain = options(&problem).stream(&stream);
    let bytes = workspace_bytes(&q, &k, &v, &plain).unwrap();
    assert!(bytes > 0, "keys are split");
    let mut workspace = DeviceBuffer::new(context, bytes).unwrap();
    let (mut o, mut lse) = (DeviceBuffer::new(context, 256).unwrap(), DeviceBuffer::new(context, 8).unwrap());
    let mut launch = |options: &Options| {
        let mut output = DeviceTensorMut::new(o.slice_mut(), DType::F16, shapes[0], problem.layout());
        attention_into(&q, &k, &v, &mut output, &mut lse.slice_mut(), options)
    };
    let mut small = DeviceBuffer::new(context, bytes - 1).unwrap();
    let error = launch(&plain.clone().workspace(small.slice_mut())).unwrap_err().to_string();
    assert!(error.starts_with(&format!("`workspace` has {} bytes: expected {bytes}, at least", bytes - 1)), "{error}");
    let error = call(&problem, &inputs, &options(&problem).workspace(small.slice_mut())).unwrap_err().to_string();
    assert_eq!(error, "`workspace` is given: expected tensors on a GPU: those of the host need none");
    let split = plain.workspace(workspace.slice_mut());
    let graph = Graph::capture(&stream, || launch(&split)).unwrap();
    (0..2).for_each(|_| graph.launch(&stream).unwrap());
    let own = attention(&q, &k, &v, &split).unwrap();
    for (o, lse) in [(&o, &lse), (&own.o, &own.lse)] {
        let (mut halves, mut floats) = (vec![0_u16; 128], vec![0_f32; 2]);
        o.read(&stream, bytemuck::cast_slice_mut(&mut halves)).unwrap();
        lse.read(&stream, bytemuck::cast_slice_mut(&mut floats)).unwrap();
        assert!(halves == f16::bits(&expected.o) && floats == expected.lse, "results differ");
    }
}

/// Packed sequences with slopes, sinks and documents, all of it on the GPU, told the longest sequence or not; and cumulative
/// lengths that are wrong, which nobody reads before the kernel.
fn arrays_on_the_gpu_give_the_same_bits(context: &Arc<Context>) {
    let problem: Problem = PROBLEMS[15].parse().unwrap();
    let (arrays, inputs) = (Arrays::new(&problem), rounded(&problem, f16::from_f32));
    let expected = call(&problem, &inputs, &arrays.options(&problem)).unwrap();
    let stream = Stream::new(context).unwrap();
    let copy = |bytes: &[u8]| {
        let mut buffer = DeviceBuffer::new(context, bytes.len()).unwrap();
        buffer.write(&stream, bytes).unwrap();
        buffer
    };
    let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape()];
    let memory = inputs.each_ref().map(|values| copy(bytemuck::cast_slice(f16::bits(values))));
    let [q, k, v] = [0, 1, 2].map(|index| {
        let Shape { rows, heads, columns, .. } = shapes[index];
        DeviceTensor::packed(memory[index].slice(), DType::F16, [rows, heads, columns])
    });
    let [slopes, sinks] = [&arrays.slopes, &arrays.sinks].map(|numbers| copy(bytemuck::cast_slice(numbers)));
    let [q_ids, k_ids] = [&arrays.q_ids, &arrays.k_ids].map(|numbers| copy(bytemuck::cast_slice(numbers)));
    let packed = problem.packed().unwrap();
    let [cu_q, cu_k] = [packed.queries(), packed.keys()].map(|places| copy(bytemuck::cast_slice(places)));
    let wrong = copy(bytemuck::cast_slice(&[4000_u32, 90_000, 0, u32::MAX]));
    let options = options(&problem).alibi(&slopes).sinks(&sinks).documents(&q_ids, &k_ids).stream(&stream);
    let right = options.clone().packed(&cu_q, &cu_k);
    for options in [right.clone(), right.clone().longest(problem.queries()), right.clone().longest(9999)] {
        let output = attention(&q, &k, &v, &options).unwrap();
        let (mut halves, mut floats) = (vec![0_u16; expected.o.len()], vec![0_f32; expected.lse.len()]);
        output.o.read(&stream, bytemuck::cast_slice_mut(&mut halves)).unwrap();
        output.lse.read(&stream, bytemuck::cast_slice_mut(&mut floats)).unwrap();
        assert!(halves == f16::bits(&expected.o) && floats == expected.lse, "results differ");
    }
    attention(&q, &k, &v, &options.packed(&wrong, &wrong)).unwrap();
    stream.synchronise().expect("the kernel stays inside of the tensors");
    let error = attention(&q, &k, &v, &right.sinks(&arrays.sinks)).unwrap_err();
    assert_eq!(error.to_string(), "`sinks` is a slice on the host: expected memory of the GPU, where `q` is");
}

fn wrong_device_arguments(context: &Arc<Context>) {
    let buffer = DeviceBuffer::new(context, 64 * 64 * 2).unwrap();
    let tensor = DeviceTensor::new(buffer.slice(), DType::F16, [1, 1, 64, 64], Layout::Bhsd);
    let error = attention(&tensor, &tensor, &tensor.strides([1, 1, 1 << 20, 1]), &Options::new()).unwrap_err();
    assert!(error.to_string().starts_with("`v` has 8192 bytes"), "{error}");
    let error = attention(&tensor, &tensor, &tensor, &Options::new().emulator()).unwrap_err();
    assert!(matches!(error, Error::HostBackend { .. }), "{error}");
    context.synchronise().expect("nothing was launched");
}
