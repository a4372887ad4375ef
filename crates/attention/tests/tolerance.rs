//! The rule lets right results pass and no wrong one.

#[path = "support/online.rs"]
mod online;
mod support;

use attention::Problem;
use attention::oracle::{Control, Oracle, Outcome, Outputs, Parity};
use attention::problem::DType;
use attention::scoring::ScoreKind;
use attention::visibility::MaskKind;
use online::online;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use support::{Random, decode, draw, encode, inputs, problem};

/// The problems that `prove` runs by default.
const DEFAULTS: [&str; 4] = [
    "f16 B2 H2 Sq97 Sk161 D64 full",
    "f16 B2 H2 Sq97 Sk161 D64 causal",
    "f16 B2 H2 S128 D64 full",
    "f16 B2 H2 S128 D64 causal",
];

/// What a kernel would have written, had it computed `outputs`.
fn written(problem: &Problem, outputs: &Outputs) -> (Vec<u16>, Vec<f32>) {
    let bits = outputs.output().iter().map(|&output| encode(problem.dtype(), output as f32)).collect();
    (bits, outputs.log_sum_exp().iter().map(|&lse| lse as f32).collect())
}

/// Judges the plain result after `edit` went over what a kernel would have written.
fn judge_edited(problem: &Problem, edit: impl Fn(&mut [u16], &mut [f32])) -> Parity {
    let inputs = inputs(problem, &draw(problem, 1));
    let oracle = Oracle::new(problem, &inputs).unwrap();
    let (mut output, mut lse) = written(problem, oracle.plain());
    edit(&mut output, &mut lse);
    oracle.judge(&Outputs::from_bits(problem, &output, &lse).unwrap()).unwrap()
}

#[test]
fn one_wrong_element_fails_and_is_named() {
    let problem = problem("f16 B2 H2 S20 D64 causal");
    let at = ((2 + 1) * 20 + 7) * 64 + 5;
    let parity = judge_edited(&problem, |output, _| {
        output[at] = encode(DType::F16, decode(DType::F16, output[at]) + 0.02);
    });
    assert!(!parity.output.element.holds() && parity.log_sum_exp.passes() && !parity.passes());
    assert_eq!(parity.output.worst.to_string(), "batch 1 head 1 query 7 column 5");
    assert!((parity.output.element.error - 0.02).abs() < 2e-3);

    let parity = judge_edited(&problem, |_, lse| lse[3] += 1e-4);
    assert!(parity.output.passes() && !parity.log_sum_exp.element.holds() && !parity.passes());
    assert_eq!(parity.log_sum_exp.worst.to_string(), "batch 0 head 0 query 3");
    assert!(parity.to_string().starts_with("fail: output element error"), "{parity}");
}

#[test]
fn many_small_errors_fail_by_their_norm() {
    // Each element stays inside its own bound; together they are too many.
    let problem = problem("f16 B1 H1 S256 D64 full");
    let inputs = inputs(&problem, &draw(&problem, 1));
    let oracle = Oracle::new(&problem, &inputs).unwrap();
    let allowed = oracle.judge(oracle.plain()).unwrap().output.element.allowed;
    let (_, lse) = written(&problem, oracle.plain());
    let shifted = oracle.exact().output().iter().map(|output| encode(DType::F16, (output + 0.5 * allowed) as f32));
    let parity = oracle.judge(&Outputs::from_bits(&problem, &shifted.collect::<Vec<_>>(), &lse).unwrap()).unwrap();
    assert!(parity.output.element.holds() && !parity.output.frobenius.holds(), "{parity}");
    assert!(!parity.passes());
}

#[test]
fn nan_and_infinity_never_pass() {
    let problem = problem("f16 B1 H1 Sq6 Sk4 D16 causal"); // queries 0 and 1 see nothing
    assert!(judge_edited(&problem, |_, _| ()).passes());
    for row in 0..6 {
        for bits in [0x7e00, 0xfe00, 0x7c00, 0xfc00] {
            let parity = judge_edited(&problem, |output, _| output[row * 16 + 3] = bits);
            assert!(!parity.passes());
            assert_eq!((parity.output.element.error, parity.output.worst.query), (f64::INFINITY, row as u32));
        }
        for value in [f32::NAN, -f32::NAN, f32::INFINITY] {
            assert!(!judge_edited(&problem, |_, lse| lse[row] = value).passes());
        }
        let parity = judge_edited(&problem, |_, lse| lse[row] = f32::NEG_INFINITY);
        assert_eq!(parity.passes(), row < 2);
    }
}

#[test]
fn blind_queries_have_no_tolerance() {
    let problem = problem("f16 B1 H1 Sq6 Sk4 D16 causal");
    assert!(!judge_edited(&problem, |output, _| output[5] = 1).passes()); // 2^-24, far below any other bound
    assert!(judge_edited(&problem, |output, _| output[5] = 0x8000).passes()); // −0 is zero
    assert!(!judge_edited(&problem, |_, lse| lse[0] = f32::MIN).passes());
}

#[test]
fn nan_in_the_inputs_makes_nothing_pass() {
    let problem = problem("f16 B1 H1 S4 D16 full");
    let mut values = draw(&problem, 1);
    values[1][0] = f32::NAN;
    let inputs = inputs(&problem, &values);
    let oracle = Oracle::new(&problem, &inputs).unwrap();
    assert!(!oracle.judge(oracle.plain()).unwrap().passes());
    let zeros = Outputs::from_bits(&problem, &[0; 64], &[0.0; 4]).unwrap();
    assert!(!oracle.judge(&zeros).unwrap().passes());
}

/// Where the plain computation overflows there is nothing to measure by, so not even the exact result passes.
#[test]
fn an_infinite_bound_holds_for_nothing() {
    let problem = problem("bf16 B1 H1 S4 D16 full");
    let mut values = draw(&problem, 1);
    values[0].fill(1e30);
    values[1].fill(1e30);
    let inputs = inputs(&problem, &values);
    let oracle = Oracle::new(&problem, &inputs).unwrap();
    assert!(oracle.exact().log_sum_exp().iter().all(|lse| lse.is_finite()));
    assert!(!oracle.judge(oracle.exact()).unwrap().passes());
}

#[test]
fn cheap_answers_fail() {
    for line in DEFAULTS {
        let problem = problem(line);
        assert!(!judge_edited(&problem, |output, _| output.fill(0)).output.passes());
        assert!(!judge_edited(&problem, |output, _| output.fill(0x3c00)).output.passes());
        assert!(!judge_edited(&problem, |output, _| output.rotate_left(1)).output.passes());
        assert!(!judge_edited(&problem, |_, lse| lse.fill(0.0)).log_sum_exp.passes());
    }
}

#[test]
fn every_control_fails_on_the_default_problems() {
    for line in DEFAULTS {
        let problem = problem(line);
        for seed in 0..4 {
            let inputs = inputs(&problem, &draw(&problem, seed));
            let oracle = Oracle::new(&problem, &inputs).unwrap();
            for control in Control::ALL {
                let outcome = oracle.control(control);
                println!("{line}, seed {seed}: {control}: {outcome}");
                let inapplicable = match control {
                    Control::WiderMask => problem.mask() == MaskKind::None,
                    Control::ForgottenScore | Control::MirroredScore => problem.score() == ScoreKind::Plain,
                    Control::ForgottenSinks => !problem.sinks(),
                    Control::ForgottenDocuments => !problem.documents(),
                    _ => false,
                };
                assert_eq!(matches!(outcome, Outcome::DoesNotApply(_)), inapplicable, "{control}: {outcome}");
                // The output alone gives each of them away, for kernels that write no log-sum-exp.
                if let Outcome::Applies(parity) = outcome {
                    println!("    output alone: {:.3e} times the bound", parity.output.ratio());
                    assert!(!parity.output.passes(), "{control}: {parity}");
                }
            }
        }
    }
}

#[test]
fn controls_that_prove_nothing_say_so() {
    let outcome = |line: &str, control| {
        let problem = problem(line);
        let inputs = inputs(&problem, &draw(&problem, 1));
        Oracle::new(&problem, &inputs).unwrap().control(control).to_string()
    };
    assert_eq!(outcome("H1 S4", Control::SwappedHeads), "does not apply: one head has none to be swapped with");
    assert_eq!(outcome("H1 S4", Control::WiderMask), "does not apply: no mask: every query sees every key already");
    assert_eq!(outcome("H1 Sq4 Sk0", Control::Scale), "does not apply: no query sees a key");
    let unchanged = "does not apply: changes no bit of the result on these inputs";
    assert_eq!(outcome("H1 Sq4 Sk1", Control::Fp8Weights), unchanged);
    // All keys are in the one block: without it, queries see nothing.
    assert_eq!(outcome("H1 Sq9 Sk3", Control::SkippedBlock), "noticed: infinitely wrong");
}

#[test]
fn controls_fail_for_a_mask_that_only_the_caller_knows() {
    let problem = problem("f16 B1 H2 S96 D64 full sinks documents");
    let documents = || (0..96).map(|row| row / 40).collect();
    let inputs =
        inputs(&problem, &draw(&problem, 1)).with_sinks(vec![0.5, 1.5]).with_documents(documents(), documents());
    let window = |query: u32, key: u32, _| key <= query && query - key < 16;
    let oracle = Oracle::with(&problem, &inputs, &window, &ScoreKind::SoftCap { cap: 2.0 }).unwrap();
    for control in Control::ALL {
        let outcome = oracle.control(control);
        assert!(matches!(outcome, Outcome::Applies(parity) if !parity.passes()), "{control}: {outcome}");
    }
}

/// As many threads as there are, and one: the same bits.
#[test]
fn the_number_of_threads_changes_nothing() {
    let problem = problem("f16 B2 H3 Sq65 Sk70 D64 causal");
    let inputs = inputs(&problem, &draw(&problem, 1));
    let compute = || {
        let oracle = Oracle::new(&problem, &inputs).unwrap();
        (oracle.exact().clone(), oracle.plain().clone())
    };
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(compute);
    assert_eq!(alone, compute());
}

fn problems(least_keys: u32) -> impl Strategy<Value = Problem> {
    let dtype = prop_oneof![Just(DType::F16), Just(DType::Bf16)];
    let window = (0u32..60, 0u32..60).prop_map(|(left, right)| MaskKind::Window { left, right });
    let named = [MaskKind::None, MaskKind::CausalBottomRight, MaskKind::CausalTopLeft].map(Just);
    let [none, bottom_right, top_left] = named;
    let mask = prop_oneof![none, bottom_right, top_left, window];
    let dims = (2u32..=16, 2u32..=16).prop_map(|(head, value)| (head * 8, value * 8));
    (1u32..=2, 1u32..=2, 1u32..=2, 1u32..=150, least_keys..=200, dims, dtype, mask).prop_map(
        |(batch, kv_heads, group, queries, keys, (head_dim, value_dim), dtype, mask)| {
            let heads = Problem::builder().batch(batch).heads(kv_heads * group).kv_heads(kv_heads);
            let lengths = heads.queries(queries).keys(keys).head_dim(head_dim).value_dim(value_dim);
            lengths.dtype(dtype).mask(mask).build().unwrap()
        },
    )
}

/// Normal inputs that the dtype holds; sharper softmax with larger `spread`.
fn spread_inputs(problem: &Problem, seed: u64, spread: f32) -> [Vec<f32>; 3] {
    let [q, k, v] = draw(problem, seed);
    let round = |value: f32| decode(problem.dtype(), encode(problem.dtype(), value));
    let q = q.iter().map(|value| value * spread).collect::<Vec<_>>();
    [q, k, v].map(|values| values.into_iter().map(round).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(10), ..ProptestConfig::with_cases(64) })]

    #[test]
    fn right_results_pass(problem in problems(0), seed: u64, spread in prop_oneof![Just(0.0f32), Just(1.0), Just(30.0)]) {
        let values = spread_inputs(&problem, seed, spread);
        let inputs = inputs(&problem, &values);
        let oracle = Oracle::new(&problem, &inputs).unwrap();
        let plain = oracle.judge(oracle.plain()).unwrap();
        prop_assert!(plain.passes() && plain.ratio() <= 0.5, "{problem}, the plain computation: {plain}");
        let online = oracle.judge(&online(&problem, &values)).unwrap();
        prop_assert!(online.passes(), "{problem}, an online softmax: {online}");
    }

    #[test]
    fn noise_of_one_rounding_passes(problem in problems(2), seed: u64) {
        let inputs = inputs(&problem, &draw(&problem, seed));
        let oracle = Oracle::new(&problem, &inputs).unwrap();
        let mut random = Random(!seed);
        let mut noise = |size: f64| (2.0 * random.uniform() - 1.0) * size;
        // Half a step of the dtype for O, and a quarter of what the rule grants for the log-sum-exp.
        let half_step = match problem.dtype() { DType::F16 => 2f64.powi(-12), DType::Bf16 => 2f64.powi(-9), DType::F32 => 2f64.powi(-25) };
        let output = oracle.exact().output().iter().map(|&output| (output * (1.0 + noise(half_step))) as f32);
        let output: Vec<u16> = output.map(|output| encode(problem.dtype(), output)).collect();
        let lse = oracle.exact().log_sum_exp().iter().map(|&lse| (lse * (1.0 + noise(2f64.powi(-21)))) as f32);
        let lse: Vec<f32> = lse.collect();
        let parity = oracle.judge(&Outputs::from_bits(&problem, &output, &lse).unwrap()).unwrap();
        prop_assert!(parity.passes(), "{problem}: {parity}");
    }

    #[test]
    fn controls_fail(problem in problems(16), seed: u64) {
        let inputs = inputs(&problem, &draw(&problem, seed));
        let oracle = Oracle::new(&problem, &inputs).unwrap();
        for control in Control::ALL {
            let outcome = oracle.control(control);
            println!("{problem}: {control}: {outcome}");
            prop_assert!(!outcome.is_missed(), "{problem}: {control}: {outcome}");
        }
    }
}
