//! Packed sequences have nothing to do with their neighbours, though tiles reach over into them.

use super::kernel;
use attention::Problem;
use attention::configs::HOPPER;
use emulator::sanitize;
use launch::backend::Options;
use launch::buffer::{Float, Init};
use launch::recipe::Number;
use launch::{Kernel, Limits, Memory};

const PROBLEM: &str = "f16 B3 H1 Sq70,50,90 Sk90,70,140 D64 causal";
/// Rows of queries and of keys of the sequence in the middle.
const MIDDLE: [std::ops::Range<usize>; 2] = [70..120, 90..160];
const COLUMNS: usize = 64;

/// The kernel with no number in all rows of a tensor but the middle sequence's.
fn alone(mut kernel: Kernel, tensor: &str, rows: &std::ops::Range<usize>) -> Kernel {
    let resolved = kernel.resolve(&Limits::default()).unwrap();
    let memory = Memory::new(&resolved, 0).unwrap();
    let bytes = memory.buffer(tensor).unwrap().contents.to_vec();
    let bits = bytes.as_chunks().0.iter().map(|pair| half::f16::from_bits(u16::from_le_bytes(*pair)));
    let number = |(index, number): (usize, half::f16)| {
        let number = if rows.contains(&(index / COLUMNS)) { number.into() } else { f64::NAN };
        Number::Float(Float(number))
    };
    let numbers = bits.enumerate().map(number).collect();
    let buffer = kernel.recipe.buffers.iter_mut().find(|buffer| buffer.name == tensor).unwrap();
    buffer.init = Init::Values(numbers);
    kernel
}

/// Output of the middle sequence.
fn middle(kernel: &Kernel) -> Vec<u8> {
    let sanitized = sanitize(kernel, &[0, 4], 0, &Options::default()).unwrap();
    assert_eq!(sanitized.findings, vec![], "{}", kernel.name);
    let outputs = sanitized.runs.iter().map(|(_, _, memory)| {
        let all = memory.buffer("o").unwrap().contents.to_vec();
        all[MIDDLE[0].start * COLUMNS * 2..MIDDLE[0].end * COLUMNS * 2].to_vec()
    });
    let outputs: Vec<Vec<u8>> = outputs.collect();
    assert_eq!(outputs[0], outputs[1]);
    outputs[0].clone()
}

#[test]
fn numbers_of_other_sequences_do_not_matter() {
    let problem: Problem = PROBLEM.parse().unwrap();
    for config in HOPPER.iter().filter(|config| config.serves(&problem)) {
        let kernel = kernel(&problem, config, 2);
        let expected = middle(&kernel);
        let [queries, keys] = &MIDDLE;
        let lonely = alone(alone(alone(kernel, "q", queries), "k", keys), "v", keys);
        assert!(middle(&lonely) == expected, "config {}", config.id);
    }
}
