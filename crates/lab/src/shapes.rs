//! Other shapes of a case: whoever is right for the tested shape alone shows.

use launch::{Expr, Kernel};

use crate::case::Case;

/// How many are drawn.
const DRAWS: usize = 2;
/// A length that is a multiple of this stays one: the kernel may take nothing else.
const MOST_ALIGNED: u32 = 64;

/// The same kernel on shapes that its recipe could name as well: where lengths are numbers of `[let]`, smaller ones, drawn with the
/// seed. None where they are not, or where nothing smaller keeps what the shape keeps: multiples, squares, more keys than queries.
pub fn drawn(case: &Case, seed: u64) -> Vec<Case> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut shapes: Vec<Case> = Vec::new();
    for _ in 0..DRAWS {
        let shape = draw(case, &mut random);
        let new =
            |shape: &Case| shape.problem != case.problem && shapes.iter().all(|other| other.problem != shape.problem);
        shapes.extend(shape.filter(new));
    }
    shapes
}

fn draw(case: &Case, random: &mut fastrand::Rng) -> Option<Case> {
    if case.contract.cumulative.is_some() {
        return None;
    }
    let (queries, keys) = (case.problem.queries(), case.problem.keys());
    let fewer_keys = smaller(keys, random);
    let fewer_queries = match queries == keys {
        true => fewer_keys,
        false => smaller(queries, random),
    };
    let fewer_queries = if queries <= keys { fewer_queries.min(fewer_keys) } else { fewer_queries };
    let batch = random.u32(1..=case.problem.batch().max(1));
    let lengths = &case.contract.lengths;
    let mut kernel = case.kernel.clone();
    for (length, value) in [(&lengths.q, fewer_queries), (&lengths.k, fewer_keys), (&lengths.batch, batch)] {
        set(&mut kernel, length, value);
    }
    Case::new(kernel).ok()
}

/// At least half of it, and a multiple of what it is a multiple of.
fn smaller(length: u32, random: &mut fastrand::Rng) -> u32 {
    if length < 2 {
        return length;
    }
    let step = (1 << length.trailing_zeros()).min(MOST_ALIGNED);
    let steps = length / step;
    step * random.u32(steps.div_ceil(2)..=steps)
}

/// Where the length is a number of `[let]`.
fn set(kernel: &mut Kernel, length: &Expr, value: u32) {
    let named = kernel
        .recipe
        .lets
        .iter_mut()
        .find(|(name, expression)| *name == length.to_string() && expression.literal().is_some());
    if let (Some((_, expression)), Ok(value)) = (named, Expr::parse(&value.to_string())) {
        *expression = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str, seed: u64) -> Vec<String> {
        let kernel = attention::kernels::kernel(&text.parse().unwrap(), &attention::configs::CONFIGS[0]).unwrap();
        drawn(&Case::new(kernel).unwrap(), seed).iter().map(|case| case.problem.to_string()).collect()
    }

    #[test]
    fn shapes_follow_from_the_seed_and_keep_what_the_shape_keeps() {
        let first = problems("f16 B2 H2 Sq33 Sk161 D64 full", 0);
        assert_eq!(first, problems("f16 B2 H2 Sq33 Sk161 D64 full", 0));
        assert_ne!(first, problems("f16 B2 H2 Sq33 Sk161 D64 full", 1));
        assert_eq!(first.len(), DRAWS);
        for text in problems("f16 B2 H2 S128 D64 causal", 3) {
            assert!(text.contains(" S64 ") || text.contains(" S128 "), "{text}");
        }
    }

    #[test]
    fn what_nothing_smaller_keeps_has_no_other_shape() {
        assert_eq!(problems("f16 B1 H2 S64 D64 full", 0), Vec::<String>::new());
    }
}
