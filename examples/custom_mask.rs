//! A mask of your own: documents of equal length, packed into one sequence, and a window inside each of them.
//!
//! `cargo run --release --example custom_mask` computes it in one call, on the emulator with all checks, and compares the
//! result with the oracle, which asks the same mask. On a GPU leave out `emulator()`.

use std::error::Error;
use std::ops::Range;
use veriflash::attention::kernels::parts::{Lengths, masks::OnHost};
use veriflash::attention::oracle::{Inputs, Oracle, Outputs};
use veriflash::attention::problem::Problem;
use veriflash::half::{f16, slice::HalfFloatSliceExt};
use veriflash::tile::prelude::*;
use veriflash::{Custom, HostOutput, HostTensor, Mask, Options, attention};

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

const SHAPE: [u32; 4] = [1, 2, 150, 64];

fn numbers(step: u32) -> Vec<f16> {
    (0..SHAPE.iter().product()).map(|index: u32| f16::from_f32((index * step % 97) as f32 / 48.0 - 1.0)).collect()
}

/// Whether O and the log-sum-exp are right by definition, where `mask` says who sees whom.
fn is_right(mask: &dyn Mask, [q, k, v]: [&[f16]; 3], output: &HostOutput<f16>) -> Result<bool, Box<dyn Error>> {
    let [batch, heads, rows, columns] = SHAPE;
    let problem = Problem::builder().batch(batch).heads(heads).queries(rows).head_dim(columns).build()?;
    let [q, k, v, o] = [q, k, v, &output.o].map(|values| values.reinterpret_cast());
    let inputs = Inputs::from_bits(&problem, q, k, v)?;
    let visibility = OnHost(mask);
    let oracle = Oracle::with(&problem, &inputs, &visibility, problem.scoring())?;
    Ok(oracle.judge(&Outputs::from_bits(&problem, o, &output.lse)?)?.passes())
}

fn main() -> Result<(), Box<dyn Error>> {
    let [q, k, v] = [5, 7, 11].map(numbers);
    let tensors = [&q, &k, &v].map(|values| HostTensor::new(values, SHAPE));
    let mask = Custom::new(Documents { length: 40, window: 16 });
    let output = attention(&tensors[0], &tensors[1], &tensors[2], &Options::new().mask_with(&mask).emulator())?;
    let right = is_right(&*mask, [&q, &k, &v], &output)?;
    println!("no findings; the result is {}", if right { "right" } else { "wrong" });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use veriflash::attention::configs::Config;
    use veriflash::attention::visibility::{Lengths, Visibility};

    /// The one call refuses a result with findings.
    #[test]
    fn every_configuration_computes_the_mask_without_findings() {
        let [q, k, v] = [5, 7, 11].map(numbers);
        let tensors = [&q, &k, &v].map(|values| HostTensor::new(values, SHAPE));
        for mask in [Documents { length: 40, window: 16 }, Documents { length: 33, window: 500 }].map(Custom::new) {
            // Clusters are for problems without a mask.
            for config in Config::all().filter(|config| config.cluster == 1) {
                let options = Options::new().mask_with(&mask).config(config.id).math(config.math).emulator();
                let output = attention(&tensors[0], &tensors[1], &tensors[2], &options).unwrap();
                assert!(is_right(&*mask, [&q, &k, &v], &output).unwrap(), "{config:?}");
                let other = Documents { window: mask.window - 1, length: mask.length - 1 };
                assert!(!is_right(&other, [&q, &k, &v], &output).unwrap(), "{config:?}");
            }
        }
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
