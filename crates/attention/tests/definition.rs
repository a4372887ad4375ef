//! The exact and the plain computation against what can be worked out by hand or must hold by symmetry.

mod support;

use attention::oracle::{Inputs, Oracle, Outputs};
use attention::problem::DType;
use attention::scoring::ScoreKind;
use attention::visibility::Lengths;
use attention::{Error, Problem};
use support::{draw, encode, inputs, problem};

/// One value in the first column, zeros after it.
fn first_columns(values: &[f32], columns: usize) -> Vec<f32> {
    values.iter().flat_map(|&value| (0..columns).map(move |column| if column == 0 { value } else { 0.0 })).collect()
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(found == expected || (found - expected).abs() <= tolerance, "{at}: found {found}, expected {expected}");
    }
}

fn exact(problem: &Problem, values: &[Vec<f32>; 3]) -> Outputs {
    Oracle::new(problem, &inputs(problem, values)).unwrap().exact().clone()
}

#[test]
fn two_keys_by_hand() {
    // Scores 0 and ln 3: weights 1/4 and 3/4, of values 4 and 8.
    let problem =
        Problem::builder().batch(1).heads(1).queries(1).keys(2).head_dim(16).scale(3f32.ln()).build().unwrap();
    let values = [first_columns(&[1.0], 16), first_columns(&[0.0, 1.0], 16), first_columns(&[4.0, 8.0], 16)];
    let inputs = inputs(&problem, &values);
    let oracle = Oracle::new(&problem, &inputs).unwrap();
    assert_near(&oracle.exact().output()[..2], &[7.0, 0.0], 1e-6);
    assert_near(oracle.exact().log_sum_exp(), &[4f64.ln()], 1e-6);
    assert_near(&oracle.plain().output()[..2], &[7.0, 0.0], 4e-3);
    assert_near(oracle.plain().log_sum_exp(), &[4f64.ln()], 1e-6);
}

#[test]
fn the_plain_computation_rounds_weights_before_they_are_divided() {
    // Weights 1/3 and 1: the former is 0.333251953125 in f16 when it meets its value, and 1/3 in the sum.
    let problem =
        Problem::builder().batch(1).heads(1).queries(1).keys(2).head_dim(16).scale(3f32.ln()).build().unwrap();
    let values = [first_columns(&[1.0], 16), first_columns(&[0.0, 1.0], 16), first_columns(&[3072.0, -1024.0], 16)];
    let inputs = inputs(&problem, &values);
    let oracle = Oracle::new(&problem, &inputs).unwrap();
    assert_near(&oracle.exact().output()[..1], &[0.0], 1e-4);
    // (0.333251953125 · 3072 − 1024) / (4/3)
    assert_eq!(oracle.plain().output()[0], -0.1875);
}

#[test]
fn causal_by_hand() {
    // Equal scores: a mean over the keys that are seen.
    let problem = problem("B1 H1 S3 D16 causal");
    let values = [vec![0.0; 48], vec![0.0; 48], first_columns(&[3.0, 6.0, 12.0], 16)];
    let exact = exact(&problem, &values);
    let means: Vec<f64> = exact.output().iter().copied().step_by(16).collect();
    assert_near(&means, &[3.0, 4.5, 7.0], 1e-12);
    assert_near(exact.log_sum_exp(), &[0.0, 2f64.ln(), 3f64.ln()], 1e-12);
}

#[test]
fn queries_that_see_nothing_give_zeros_and_minus_infinity() {
    for (line, blind) in [("B1 H2 Sq5 Sk2 D16 causal", 3), ("B1 H2 Sq5 Sk0 D16 full", 5)] {
        let problem = problem(line);
        let inputs = inputs(&problem, &draw(&problem, 1));
        let oracle = Oracle::new(&problem, &inputs).unwrap();
        for outputs in [oracle.exact(), oracle.plain()] {
            for (row, lse) in outputs.log_sum_exp().iter().enumerate() {
                let sees_nothing = row % 5 < blind;
                assert_eq!(*lse == f64::NEG_INFINITY, sees_nothing);
                assert_eq!(outputs.output()[row * 16..][..16].iter().all(|output| *output == 0.0), sees_nothing);
            }
        }
        assert!(oracle.judge(oracle.plain()).unwrap().passes());
    }
}

#[test]
fn one_key_gives_its_value() {
    for dtype in [DType::F16, DType::Bf16] {
        let problem = Problem::builder().queries(3).keys(1).heads(2).dtype(dtype).build().unwrap();
        let values = draw(&problem, 2);
        let inputs = inputs(&problem, &values);
        let oracle = Oracle::new(&problem, &inputs).unwrap();
        for (row, output) in oracle.exact().output().chunks(64).enumerate() {
            let value =
                values[2][row / 3 * 64..][..64].iter().map(|&v| f64::from(support::decode(dtype, encode(dtype, v))));
            assert!(value.eq(output.iter().copied()));
        }
        assert_eq!(oracle.exact().output(), oracle.plain().output());
    }
}

#[test]
fn the_order_of_keys_does_not_matter() {
    let problem = problem("B1 H2 Sq7 Sk50 D64 full");
    let [q, k, v] = draw(&problem, 3);
    let reverse = |values: &[f32]| -> Vec<f32> {
        values.chunks(50 * 64).flat_map(|head| head.chunks(64).rev().flatten().copied()).collect()
    };
    let reversed = exact(&problem, &[q.clone(), reverse(&k), reverse(&v)]);
    let straight = exact(&problem, &[q, k, v]);
    assert_near(reversed.output(), straight.output(), 1e-14);
    assert_near(reversed.log_sum_exp(), straight.log_sum_exp(), 1e-14);
}

#[test]
fn shifted_scores_shift_only_the_log_sum_exp() {
    let problem = problem("B1 H1 Sq9 Sk33 D64 causal");
    let [mut q, mut k, v] = draw(&problem, 4);
    q.chunks_mut(64).for_each(|row| row[63] = 1.0);
    k.chunks_mut(64).for_each(|row| row[63] = 0.0);
    let before = exact(&problem, &[q.clone(), k.clone(), v.clone()]);
    k.chunks_mut(64).for_each(|row| row[63] = 800.0);
    let after = exact(&problem, &[q, k, v]);
    assert_near(after.output(), before.output(), 1e-12);
    let shifted: Vec<f64> = before.log_sum_exp().iter().map(|lse| lse + 100.0).collect();
    assert_near(after.log_sum_exp(), &shifted, 1e-12);
}

#[test]
fn grouped_heads_equal_repeated_ones() {
    let (grouped, repeated) = (problem("B2 H4/2 Sq5 Sk9 D16 full"), problem("B2 H4 Sq5 Sk9 D16 full"));
    let [q, k, v] = draw(&grouped, 5);
    let repeat =
        |values: &[f32]| -> Vec<f32> { values.chunks(9 * 16).flat_map(|head| [head, head].concat()).collect() };
    let expected = exact(&repeated, &[q.clone(), repeat(&k), repeat(&v)]);
    assert_eq!(exact(&grouped, &[q, k, v]), expected);
}

#[test]
fn the_layout_changes_nothing_but_the_places() {
    let (bhsd, bshd) = (problem("B2 H3 S5 D16/24 causal"), problem("B2 H3 S5 D16/24 causal bshd"));
    let [q, k, v] = draw(&bhsd, 6);
    let swap = |values: &[f32], columns: usize| -> Vec<f32> {
        let row =
            |batch: usize, head: usize, row: usize| &values[((batch * 3 + head) * 5 + row) * columns..][..columns];
        let rows = (0..2).flat_map(|b| (0..5).flat_map(move |r| (0..3).map(move |h| (b, h, r))));
        rows.flat_map(|(b, h, r)| row(b, h, r).to_vec()).collect()
    };
    let expected = exact(&bhsd, &[q.clone(), k.clone(), v.clone()]);
    assert_eq!(exact(&bshd, &[swap(&q, 16), swap(&k, 16), swap(&v, 24)]), expected);

    let values: Vec<f32> = expected.output().iter().map(|&output| output as f32).collect();
    let bits = |values: &[f32]| -> Vec<u16> { values.iter().map(|&value| encode(DType::F16, value)).collect() };
    let [straight, swapped] = [bits(&values), bits(&swap(&values, 24))];
    let lse = vec![0.0; 30];
    assert_eq!(Outputs::from_bits(&bshd, &swapped, &lse).unwrap(), Outputs::from_bits(&bhsd, &straight, &lse).unwrap());
}

#[test]
fn bits_and_values_are_the_same_inputs() {
    for dtype in [DType::F16, DType::Bf16] {
        let problem = Problem::builder().batch(1).heads(2).queries(3).dtype(dtype).build().unwrap();
        let values = draw(&problem, 7);
        let [q, k, v] =
            values.clone().map(|values| values.iter().map(|&value| encode(dtype, value)).collect::<Vec<_>>());
        let from_bits = Inputs::from_bits(&problem, &q, &k, &v).unwrap();
        let oracle = Oracle::new(&problem, &from_bits).unwrap();
        assert_eq!(*oracle.exact(), exact(&problem, &values));
    }
}

#[test]
fn a_closure_is_a_mask() {
    let problem = problem("B1 H1 Sq4 Sk6 D16 full");
    let inputs = inputs(&problem, &draw(&problem, 8));
    let causal = |query: u32, key: u32, of: Lengths| key + of.queries <= query + of.keys;
    let by_closure = Oracle::with(&problem, &inputs, &causal, &ScoreKind::Plain).unwrap().exact().clone();
    let causal = support::problem("B1 H1 Sq4 Sk6 D16 causal");
    assert_eq!(&by_closure, Oracle::new(&causal, &inputs).unwrap().exact());
}

#[test]
fn tensors_of_another_problem_are_refused() {
    let (small, large) = (problem("B1 H1 S4 D16 full"), problem("B1 H1 Sq4 Sk5 D16 full"));
    let [q, k, v] = draw(&small, 9);
    let error = Inputs::from_values(&large, &q, &k, &v).err().unwrap();
    assert_eq!(error.to_string(), "tensor k holds 64 elements: expected 80 for f16 B1 H1 Sq4 Sk5 D16 full");
    let inputs = inputs(&small, &[q, k, v]);
    assert!(matches!(Oracle::new(&large, &inputs), Err(Error::Length { tensor: "k", .. })));
    let short = Outputs::from_bits(&small, &[0; 64], &[0.0; 3]);
    assert!(matches!(short, Err(Error::Length { tensor: "lse", found: 3, expected: 4, .. })));
    let other = Outputs::from_bits(&problem("B1 H1 S5 D16 full"), &[0; 80], &[0.0; 5]).unwrap();
    let oracle = Oracle::new(&small, &inputs).unwrap();
    assert!(matches!(oracle.judge(&other), Err(Error::Length { tensor: "o", .. })));
}
