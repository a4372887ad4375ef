//! How often a kernel is called on the same buffers, and what a call leaves behind for the next.

use super::super::bench::{Bench, has_variables};
use super::super::setup::{Between, Setup};
use super::{Axis, Variation};

/// Calls beyond which nothing new is expected: a third sees what a second left.
const MOST: u32 = 3;

pub fn more(given: &Setup) -> Vec<Variation> {
    let calls = (given.calls + 1..=MOST).map(|calls| {
        let what = format!("{calls} calls on the same buffers instead of {}", given.calls);
        Variation::new(Axis::Calls, what, Setup { calls, ..given.clone() })
    });
    calls.collect()
}

/// Where several calls fail: what of the first is in the way of the next?
pub fn renewed(failing: &Setup, bench: &dyn Bench) -> Vec<Variation> {
    if failing.calls < 2 || !bench.is_emulator() {
        return vec![];
    }
    if !has_variables(&failing.kernel) {
        return buffers(failing);
    }
    let names = || {
        let variables = failing.kernel.module().variables.iter();
        variables.filter(|variable| variable.space == ptx::Space::Global).map(|variable| format!("`{}`", variable.name))
    };
    let what =
        format!("before each call the module's variables ({}) are as at first", names().collect::<Vec<_>>().join(", "));
    vec![Variation::new(Axis::State, what, Setup { between: Between::Module, ..failing.clone() })]
}

/// Each buffer in turn.
pub fn buffers(failing: &Setup) -> Vec<Variation> {
    let one = |buffer: &launch::recipe::Buffer| {
        let what = format!("before each call buffer `{}` is as at first", buffer.name);
        let between = Between::Buffer(buffer.name.clone());
        Variation::new(Axis::State, what, Setup { between, ..failing.clone() })
    };
    failing.kernel.recipe.buffers.iter().map(one).collect()
}
