//! What a call with a loaded kernel costs the host besides the driver.

use super::super::kernels::{Key, Loaded};
use super::Attempt;
use crate::Options;
use attention::configs::Config;
use attention::planner::Gpu;
use attention::problem::Layout;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CALLS: u32 = 20_000;
const BATCHES: u32 = 11;

/// All that `attention_into` does but ask the driver.
fn call(attempt: &Attempt, loaded: &Loaded<Config>) -> usize {
    let call = attempt.check().unwrap();
    let config = attempt.options.config_for(&call, &Gpu::H200).unwrap();
    attention::kernels::check_features(&call.problem, &call.features, &config).unwrap();
    let key = Key::new(0, &call, &attempt.options, &config);
    let kernel = loaded.get(&key).unwrap_or_else(|| loaded.keep(key, Arc::new(config)));
    let grid = call.grid(&kernel, Gpu::H200.processors);
    attempt.block(&call, &kernel).bytes().len() + grid[0] as usize
}

/// The batch that others disturbed least: `cargo test --release --lib cost -- --nocapture`.
fn time(attempt: &Attempt, loaded: &Loaded<Config>) -> Duration {
    let batch = |_| {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call(black_box(attempt), loaded));
        }
        start.elapsed() / CALLS
    };
    (0..BATCHES).map(batch).min().unwrap_or_default()
}

#[test]
fn a_call_costs_the_host_little() {
    let numbers = [0.5; 8];
    let plain = Attempt::new([2, 8, 512, 64], Layout::Bhsd, Options::new().causal());
    let rich = Options::new().causal().alibi(&numbers).sinks(&numbers);
    let rich = Attempt::new([2, 8, 512, 64], Layout::Bhsd, rich);
    let old = Attempt::new([2, 8, 512, 64], Layout::Bhsd, Options::new().causal().config(9));
    let loaded = Loaded::default();
    let [plain, rich, old] = [plain, rich, old].map(|attempt| time(&attempt, &loaded));
    println!("our own part of a call: {plain:?} causal, {old:?} of sm_80, {rich:?} with slopes and sinks");
    // A launch takes the driver four microseconds; tests may run in debug builds, side by side with others.
    assert!(plain.max(rich).max(old) < Duration::from_micros(if cfg!(debug_assertions) { 100 } else { 4 }));
}
