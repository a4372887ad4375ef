//! Inputs that the optimistic softmax does not hope for. That its slow paths ran is shown by kernels that trap there.

use super::{check_kernel, kernel};
use attention::Problem;
use attention::configs::HOPPER;
use emulator::sanitize;
use launch::backend::Options;
use launch::buffer::{Float, Init};
use launch::recipe::Number;
use launch::{Kernel, Memory, Recipe};

/// Where weights are too large and can be scaled back, and where they are no numbers any more and the scores are computed again: each path
/// has an instruction that there is nowhere else.
const BY_WEIGHTS: &str = "cvt.rn.f32.s32";
const BY_SCORES: &str = "mma.sync";

/// Whether the loop of the kernel comes by its first instruction of that name. What is seldom needed stands behind the kernel, that of the
/// loop last.
fn comes_by(kernel: &Kernel, instruction: &str) -> bool {
    let text = &kernel.parsed.source.text;
    let seldom = text.rfind("\n$seldom").unwrap();
    let place = seldom + text[seldom..].find(&format!("    {instruction}")).unwrap();
    let text = format!("{}    trap;\n{}", &text[..place], &text[place..]);
    let kernel = Kernel::with_text(kernel.file(), &text, Recipe::clone(&kernel.recipe)).unwrap();
    let findings = sanitize(&kernel, &[0], 0, &Options::default()).unwrap().findings;
    findings.iter().any(|finding| finding.check == "trap")
}

/// How keys differ from random ones.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// The last is larger than the first by so many powers of ten.
    Growing(f64),
    /// All are so many times as large.
    Huge(f64),
    /// The last but two is.
    Hot(f64),
}

impl Keys {
    fn factor(self, key: u32, keys: u32) -> f64 {
        match self {
            Keys::Growing(powers) => 10f64.powf(powers * f64::from(key) / f64::from(keys)),
            Keys::Huge(factor) => factor,
            Keys::Hot(factor) if key + 3 == keys => factor,
            Keys::Hot(_) => 1.0,
        }
    }

    /// Replaces the keys of a kernel. They are those of its recipe, times the factor.
    fn fill(self, kernel: &mut Kernel, problem: &Problem) {
        let resolved = kernel.resolve(&launch::Limits::default()).unwrap();
        let memory = Memory::new(&resolved, 0).unwrap();
        let bytes = memory.buffer("k").unwrap().contents.to_vec();
        let bits = bytes.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair));
        let (dims, is_bf16) = (problem.head_dim(), problem.dtype() == attention::problem::DType::Bf16);
        let number = |(index, bits): (u32, u16)| {
            let number =
                if is_bf16 { half::bf16::from_bits(bits).into() } else { f64::from(half::f16::from_bits(bits)) };
            Number::Float(Float(number * self.factor(index / dims % problem.keys(), problem.keys())))
        };
        let numbers = (0..).zip(bits).map(number).collect();
        let buffer = kernel.recipe.buffers.iter_mut().find(|buffer| buffer.name == "k").unwrap();
        buffer.init = Init::Values(numbers);
    }
}

/// Right and silent for each configuration that serves; each comes by the path, or by neither.
fn check(problem: &str, keys: Keys, path: Option<&str>) {
    let problem: Problem = problem.parse().unwrap();
    for config in HOPPER.iter().filter(|config| config.serves(&problem)) {
        let mut kernel = kernel(&problem, config, 3);
        keys.fill(&mut kernel, &problem);
        for slow in [BY_WEIGHTS, BY_SCORES].into_iter().filter(|slow| path.is_none_or(|path| path == *slow)) {
            assert_eq!(comes_by(&kernel, slow), path.is_some(), "config {} {problem} {keys:?} {slow}", config.id);
        }
        check_kernel(kernel, &problem);
    }
}

const FULL: &str = "f16 B1 H2/1 Sq100 Sk400 D64 full";
const CAUSAL: &str = "bf16 B1 H2 Sq300 Sk300 D64 causal";
/// Later queries of a block do not see its first key tile.
const WINDOW: &str = "f16 B1 H1 Sq300 Sk420 D64 window60/30";
/// The first queries see no key at all.
const FEW_KEYS: &str = "f16 B1 H1 Sq330 Sk260 D64 causal";
const WIDE: &str = "bf16 B1 H1 Sq100 Sk300 D128 full";
/// Queries leave as soon as the scores of their last keys have been checked.
const WIDEST: &str = "f16 B1 H2 Sq100 Sk300 D256 full";
const UNEQUAL: &str = "bf16 B1 H2 Sq270 Sk270 D192/128 causal";

#[test]
fn random_inputs_come_by_no_slow_path() {
    [FULL, CAUSAL, WINDOW, FEW_KEYS, WIDE, WIDEST, UNEQUAL]
        .iter()
        .for_each(|problem| check(problem, Keys::Huge(1.0), None));
}

#[test]
fn weights_are_scaled_back() {
    [FULL, CAUSAL, WIDE, WIDEST, UNEQUAL]
        .iter()
        .for_each(|problem| check(problem, Keys::Growing(1.2), Some(BY_WEIGHTS)));
    [FULL, WIDE, WIDEST].iter().for_each(|problem| check(problem, Keys::Hot(20.0), Some(BY_WEIGHTS)));
}

#[test]
fn scores_are_computed_again() {
    [FULL, CAUSAL, WINDOW, FEW_KEYS, WIDE, WIDEST, UNEQUAL]
        .iter()
        .for_each(|problem| check(problem, Keys::Growing(2.2), Some(BY_SCORES)));
    [FULL, CAUSAL, WINDOW, FEW_KEYS, WIDE, WIDEST, UNEQUAL]
        .iter()
        .for_each(|problem| check(problem, Keys::Huge(100.0), Some(BY_SCORES)));
    [FULL, WIDE, WIDEST].iter().for_each(|problem| check(problem, Keys::Hot(300.0), Some(BY_SCORES)));
}

/// With what is done to scores, once more: ALiBi and documents depend on the place.
#[test]
fn changed_scores_are_computed_again() {
    check("f16 B2 H2 Sq70 Sk400 D64 full alibi", Keys::Growing(2.2), Some(BY_SCORES));
    check("f16 B2 H2 Sq70 Sk400 D64 causal documents sinks", Keys::Growing(2.2), Some(BY_SCORES));
}
