//! NaN and infinities: what the definition makes NaN or infinite is so with every instruction set, and numbers stay numbers.

use crate::{Given, Random, Type};
use attention::cpu::{Change, InstructionSet, Sight};
use half::{bf16, f16};

/// NaN, ±∞, or any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Nan,
    Infinite { negative: bool },
    Number,
}

impl Class {
    fn of(value: f64) -> Class {
        match value {
            _ if value.is_nan() => Class::Nan,
            _ if value.is_infinite() => Class::Infinite { negative: value < 0.0 },
            _ => Class::Number,
        }
    }
}

/// O and the log-sum-exp by the definition, of one head; `seen` says which keys a query sees.
fn definition<N: Type>(given: &Given<N>, seen: impl Fn(usize, usize) -> bool) -> (Vec<f64>, Vec<f64>) {
    let problem = &given.problem;
    let [queries, keys, head, value] =
        [problem.queries(), problem.keys(), problem.head_dim(), problem.value_dim()].map(|extent| extent as usize);
    let [q, k, v] =
        given.tensors.each_ref().map(|tensor| tensor.iter().map(|x| f64::from(x.value())).collect::<Vec<_>>());
    let (mut o, mut lse) = (vec![], vec![]);
    for query in 0..queries {
        let score = |key: usize| -> f64 {
            let product: f64 = (0..head).map(|column| q[query * head + column] * k[key * head + column]).sum();
            let of = problem.lengths();
            let at =
                attention::scoring::At { head: 0, number: given.numbers[0], query: query as u32, key: key as u32, of };
            problem.scoring().change(product * f64::from(problem.scale()), at)
        };
        let scores: Vec<(usize, f64)> =
            (0..keys).filter(|key| seen(query, *key)).map(|key| (key, score(key))).collect();
        let top = scores.iter().fold(f64::NEG_INFINITY, |top, (_, score)| top.max(*score));
        if scores.iter().all(|(_, score)| *score == f64::NEG_INFINITY) {
            // A score of −∞ is that of a key that is not seen.
            lse.push(f64::NEG_INFINITY);
            o.extend(vec![0.0; value]);
            continue;
        }
        let sum: f64 = scores.iter().map(|(_, score)| (score - top).exp()).sum();
        lse.push(top + sum.ln());
        for column in 0..value {
            let weighed = scores.iter().map(|(key, score)| (score - top).exp() * v[key * value + column]);
            o.push(weighed.sum::<f64>() / sum);
        }
    }
    (o, lse)
}

fn every_set_agrees_with_the_definition<N: Type>(dtype: &str) {
    let mut random = Random(17);
    for (lengths, column) in
        [("Sq1 Sk40 D16", 3), ("Sq3 Sk700 D40/24", 7), ("Sq20 Sk40 D33/20", 0), ("Sq40 Sk300 D64", 63)]
    {
        for score in ["plain", "softcap5", "alibi"] {
            for mask in ["full", "causal-top-left"] {
                let mut given = Given::<N>::new(&format!("{dtype} B1 H1 {lengths} {mask} {score}"), 1.0, &mut random);
                given.numbers = vec![0.01]; // So that no weight is too small for f32.
                for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    for tensor in 0..3 {
                        let mut given = given.clone();
                        let columns = [given.problem.head_dim(), given.problem.value_dim()][usize::from(tensor == 2)];
                        let row = if tensor == 0 { 0 } else { given.problem.keys() as usize / 3 };
                        given.tensors[tensor][row * columns as usize + column.min(columns as usize - 1)] =
                            N::round(special);
                        check(&given, &format!("{special} in tensor {tensor}: {}", given.problem));
                    }
                }
            }
        }
    }
}

/// Under a mask a key that a query does not see has weight 0, and 0 times NaN is NaN where queries are computed together: there it
/// is only asked that nothing is lost.
fn check<N: Type>(given: &Given<N>, name: &str) {
    let problem = &given.problem;
    let masked = problem.mask() != Default::default();
    let (o, lse) =
        definition(given, |query, key| problem.visibility().sees(query as u32, key as u32, problem.lengths()));
    let expected: Vec<Class> = o.iter().chain(&lse).map(|value| Class::of(*value)).collect();
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_here()) {
        let (o, lse) = given.run(set, Sight::Kind(problem.mask()), Change::Kind(problem.score()));
        let found = o.iter().map(|value| value.value()).chain(lse).map(|value| Class::of(value.into()));
        for (index, (found, expected)) in found.zip(&expected).enumerate() {
            let lost = if masked { *expected == Class::Nan && found != Class::Nan } else { found != *expected };
            assert!(!lost, "{name}, {set:?}: output {index} is {found:?}, expected {expected:?}");
        }
    }
}

#[test]
fn nan_and_infinities_show_in_f32() {
    every_set_agrees_with_the_definition::<f32>("f32");
}

#[test]
fn nan_and_infinities_show_in_f16() {
    every_set_agrees_with_the_definition::<f16>("f16");
}

#[test]
fn nan_and_infinities_show_in_bf16() {
    every_set_agrees_with_the_definition::<bf16>("bf16");
}
