//! A mask of your own: documents of equal length, packed into one sequence, and a window inside each of them.
//!
//! `cargo run --release --example custom_mask` builds the kernel, runs it on the emulator with all checks, and compares the
//! result with the oracle, which asks the same mask.

use std::error::Error;
use std::ops::Range;
use veriflash::attention::configs::Config;
use veriflash::attention::kernels::kernel_with;
use veriflash::attention::kernels::parts::Lengths;
use veriflash::attention::kernels::parts::masks::{Mask, OnHost};
use veriflash::attention::kernels::parts::scores::Plain;
use veriflash::attention::oracle::{Inputs, Oracle, Outputs};
use veriflash::attention::problem::Problem;
use veriflash::emulator::{Sanitized, sanitize};
use veriflash::launch::{Kernel, Memory};
use veriflash::tile::prelude::*;

/// A query sees itself and the `window` keys before it, as far as they belong to the same document.
struct Documents {
    length: u32,
    window: u32,
}

impl Documents {
    /// The first key that a query sees: that of its window or that of its document, whichever comes later.
    fn first(&self, query: U32) -> U32 {
        query.saturating_sub(self.window).max(query / self.length * self.length)
    }
}

/// Three answers and nothing else: which tiles are skipped, which need no test, and which single scores count.
impl Mask for Documents {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        let end = queries.end.min(of.keys);
        self.first(queries.start).min(end)..end
    }

    fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        self.first(queries.end - 1)..(queries.start + 1).min(of.keys)
    }

    fn sees(&self, query: Coordinate, key: Coordinate, _: Lengths) -> Pred {
        let query = query.value();
        !key.lt(self.first(query)) & key.lt(query + 1)
    }
}

/// The kernel with its recipe.
fn masked(problem: &Problem, config: &Config, mask: &Documents) -> Result<Kernel, Box<dyn Error>> {
    Ok(kernel_with(problem, config, mask, &Plain)?)
}

/// Whether O and the log-sum-exp that a run left are right by definition.
fn is_right(problem: &Problem, mask: &Documents, memory: &Memory) -> Result<bool, Box<dyn Error>> {
    let bytes = |name: &str| memory.buffer(name).map(|buffer| buffer.contents.to_vec()).unwrap_or_default();
    let halves =
        |name: &str| -> Vec<u16> { bytes(name).as_chunks().0.iter().map(|half| u16::from_le_bytes(*half)).collect() };
    let lse: Vec<f32> = bytes("lse").as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)).collect();
    let inputs = Inputs::from_bits(problem, &halves("q"), &halves("k"), &halves("v"))?;
    let visibility = OnHost(mask);
    let oracle = Oracle::with(problem, &inputs, &visibility, problem.scoring())?;
    Ok(oracle.judge(&Outputs::from_bits(problem, &halves("o"), &lse)?)?.passes())
}

fn check(problem: &Problem, config: &Config, mask: &Documents) -> Result<(Sanitized, bool), Box<dyn Error>> {
    let sanitized = sanitize(&masked(problem, config, mask)?, &[0, 1], 0, &Default::default())?;
    let right = is_right(problem, mask, &sanitized.runs[0].2)?;
    Ok((sanitized, right))
}

fn main() -> Result<(), Box<dyn Error>> {
    let problem: Problem = "B1 H2 S150 D64".parse()?;
    let config = Config::by_id(9).ok_or("config 9 exists")?;
    let (sanitized, right) = check(&problem, &config, &Documents { length: 40, window: 16 })?;
    sanitized.findings.iter().for_each(|finding| println!("{}: {}", finding.check, finding.message));
    println!("{} findings; the result is {}", sanitized.findings.len(), if right { "right" } else { "wrong" });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use veriflash::attention::configs::CONFIGS;
    use veriflash::attention::visibility::{Lengths, Visibility};

    #[test]
    fn every_configuration_computes_the_mask_without_findings() {
        for (problem, mask) in [
            ("B1 H1 S150 D64", Documents { length: 40, window: 16 }),
            ("bf16 B1 H1 S70 D64", Documents { length: 33, window: 500 }),
        ] {
            for config in &CONFIGS {
                let (sanitized, right) = check(&problem.parse().unwrap(), config, &mask).unwrap();
                assert_eq!(sanitized.findings, vec![], "config {}", config.id);
                assert!(right, "config {} {problem}", config.id);
            }
        }
    }

    #[test]
    fn another_mask_is_told_apart() {
        let problem = "B1 H1 S150 D64".parse().unwrap();
        let kernel = masked(&problem, &CONFIGS[0], &Documents { length: 40, window: 16 }).unwrap();
        let run = sanitize(&kernel, &[0], 0, &Default::default()).unwrap();
        assert!(!is_right(&problem, &Documents { length: 40, window: 17 }, &run.runs[0].2).unwrap());
    }

    #[test]
    fn documents_do_not_see_each_other() {
        let (mask, of) = (Documents { length: 4, window: 2 }, Lengths { queries: 8, keys: 8 });
        let row = |query| -> String {
            (0..8).map(|key| if OnHost(&mask).sees(query, key, of) { 'x' } else { '.' }).collect()
        };
        assert_eq!([row(0), row(3), row(4), row(7)], ["x.......", ".xxx....", "....x...", ".....xxx"]);
    }
}
