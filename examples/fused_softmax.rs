//! A kernel of your own in `tile`: the softmax of every row of a matrix, in one pass for the statistics and one to write.
//!
//! `cargo run --release --example fused_softmax` prints it with its recipe, ready for `veriflash sanitize`, and says what
//! the emulator's checks found.

use std::error::Error;
use veriflash::emulator::sanitize;
use veriflash::launch::{Kernel, Memory, Recipe};
use veriflash::tile::{self, prelude::*};

const THREADS: u32 = 128;
const WARPS: u32 = THREADS / 32;

/// Maximum of some scores, and the sum of their powers of two below it.
#[derive(Clone, Copy)]
struct Statistics {
    max: F32,
    sum: F32,
}

impl Statistics {
    fn join(self, other: Statistics) -> Statistics {
        let max = self.max.max(other.max);
        let sum = self.sum * (self.max - max).exp2() + other.sum * (other.max - max).exp2();
        Statistics { max, sum }
    }

    /// Those of all threads of the block, for each of them.
    fn of_block(self) -> Statistics {
        let of_warp = [16, 8, 4, 2, 1].into_iter().fold(self, |all, lanes| {
            all.join(Statistics { max: all.max.shuffle_xor(lanes), sum: all.sum.shuffle_xor(lanes) })
        });
        let [maxima, sums] = [0, 1].map(|_| SharedVector::<f32>::new(WARPS));
        let warp = warp_index();
        when(lane_index().eq(0), || {
            maxima.store(warp, 0, of_warp.max);
            sums.store(warp, 0, of_warp.sum);
        });
        barrier();
        let of = |warp: u32| Statistics { max: maxima.load(warp.into(), 0), sum: sums.load(warp.into(), 0) };
        (1..WARPS).fold(of(0), |all, warp| all.join(of(warp)))
    }
}

/// One block per row.
fn softmax() {
    let row = block_index(0);
    let (columns, scale) = (parameter::<u32>("columns"), parameter::<f32>("scale_log2"));
    let [x, y] = ["x", "y"].map(|name| Slice::<f32>::parameter(name).skip(row.widening_mul(columns)));
    let each_column = |body: &mut dyn FnMut(U32)| {
        for_each(U32::from(0)..columns.div_ceil(THREADS), |pass| {
            let column = pass * THREADS + thread_index();
            when(column.lt(columns), || body(column));
        });
    };

    // Not −∞: a thread without a column must not subtract it from itself.
    let (mut max, mut sum) = (Var::new("max", f32::MIN), Var::new("sum", 0.0));
    each_column(&mut |column| {
        let score = Statistics { max: x.load(column) * scale, sum: 1.0.into() };
        let joint = Statistics { max: max.get(), sum: sum.get() }.join(score);
        max.set(joint.max);
        sum.set(joint.sum);
    });
    let all = Statistics { max: max.get(), sum: sum.get() }.of_block();
    let inverse = all.sum.recip();
    each_column(&mut |column| y.store(column, (x.load(column) * scale - all.max).exp2() * inverse));
}

fn kernel(rows: u32, columns: u32) -> Result<Kernel, Box<dyn Error>> {
    let options = Options {
        target: veriflash::ptx::Target::SM_80,
        threads: THREADS,
        cluster: 1,
        blocks_per_processor: None,
        checks: false,
    };
    let built = tile::build("softmax", options, softmax)?;
    let recipe = format!(
        r#"
        [let]
        rows = {rows}
        columns = {columns}
        [buffer.x]
        type = "f32"
        shape = ["rows", "columns"]
        init = "normal(3.0)"
        [buffer.y]
        type = "f32"
        shape = ["rows", "columns"]
        [[launch]]
        grid = ["rows", 1, 1]
        block = [{THREADS}, 1, 1]
        shared = {}
        args = [{{ u32 = "columns" }}, {{ f32 = 1.4426950408889634 }}, {{ buffer = "x" }}, {{ buffer = "y" }}]
        "#,
        built.shared_bytes
    );
    Ok(Kernel::generated("softmax", &built.module, Recipe::parse("softmax.toml", &recipe)?)?)
}

/// The largest difference from the definition in f64.
fn largest_error(memory: &Memory, columns: usize) -> f64 {
    let floats = |name: &str| -> Vec<f64> {
        let bytes = memory.buffer(name).map(|buffer| buffer.contents.to_vec()).unwrap_or_default();
        bytes.as_chunks().0.iter().map(|float| f64::from(f32::from_le_bytes(*float))).collect()
    };
    let (x, y) = (floats("x"), floats("y"));
    let rows = x.chunks(columns).zip(y.chunks(columns));
    let errors = rows.flat_map(|(x, y)| {
        let sum: f64 = x.iter().map(|score| score.exp()).sum();
        x.iter().zip(y).map(move |(score, weight)| (score.exp() / sum - weight).abs())
    });
    errors.fold(0.0, f64::max)
}

fn main() -> Result<(), Box<dyn Error>> {
    let kernel = kernel(4, 300)?;
    println!("{}", kernel.parsed.source.text);
    let sanitized = sanitize(&kernel, &[0, 1], 0, &Default::default())?;
    sanitized.findings.iter().for_each(|finding| println!("// {}: {}", finding.check, finding.message));
    let error = largest_error(&sanitized.runs[0].2, 300);
    println!("// {} findings; largest error {error:.1e}", sanitized.findings.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_length_are_right_and_without_findings() {
        for columns in [1, 31, 128, 129, 300, 1000] {
            let sanitized = sanitize(&kernel(3, columns).unwrap(), &[0, 1, 2], 0, &Default::default()).unwrap();
            assert_eq!(sanitized.findings, vec![], "{columns} columns");
            for (seed, _, memory) in &sanitized.runs {
                let error = largest_error(memory, columns as usize);
                assert!(error < 1e-6, "{columns} columns, schedule {seed}: {error}");
            }
        }
    }

    /// The checks see what the barrier is for.
    #[test]
    fn without_its_barrier_the_kernel_races() {
        let text = kernel(3, 300).unwrap().parsed.source.text;
        let without = text.replacen("bar.sync 0;", "", 1);
        assert_ne!(text, without);
        let kernel = Kernel::parse("softmax.ptx", &without).unwrap();
        let sanitized = sanitize(&kernel, &[0], 0, &Default::default()).unwrap();
        assert!(sanitized.findings.iter().any(|finding| finding.check == "race-shared"), "{:?}", sanitized.findings);
    }
}
