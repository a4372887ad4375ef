//! How many streams call the kernel at once. The emulator runs one launch after the other; so this is for GPUs.

use super::super::bench::{Bench, has_variables};
use super::super::setup::{Between, Setup};
use super::{Axis, Variation};

/// As many as the stage `stress` has.
const STREAMS: u32 = 8;

pub fn more(given: &Setup, bench: &dyn Bench) -> Vec<Variation> {
    if bench.is_emulator() || given.streams > 1 {
        return vec![];
    }
    let what = format!("{STREAMS} streams at once, each with buffers of its own, instead of 1");
    vec![Variation::new(Axis::Streams, what, Setup { streams: STREAMS, ..given.clone() })]
}

/// Where several streams fail: one alone, and each with what they share.
pub fn fewer(failing: &Setup) -> Vec<Variation> {
    if failing.streams < 2 {
        return vec![];
    }
    let alone = Setup { streams: 1, ..failing.clone() };
    let mut all = vec![Variation::new(Axis::Streams, format!("1 stream instead of {}", failing.streams), alone)];
    if has_variables(&failing.kernel) {
        let what = "each stream has a module of its own, with variables of its own";
        all.push(Variation::new(Axis::State, what, Setup { between: Between::Module, ..failing.clone() }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::{OnEmulator, OnHardware};
    use launch::Kernel;

    const EXAMPLE: &str = include_str!("../../../../../examples/bisect/two_streams.ptx");

    #[test]
    fn streams_are_varied_on_a_gpu_alone() {
        let setup = Setup::new(Kernel::parse("two_streams.ptx", EXAMPLE).unwrap(), 1);
        let hardware = OnHardware::new("/bin/true".into(), std::path::Path::new("."));
        let varied = more(&setup, &hardware);
        assert_eq!((varied.len(), varied[0].setup.streams), (1, STREAMS));
        assert!(more(&setup, &OnEmulator).is_empty() && more(&varied[0].setup, &hardware).is_empty());
        assert!(fewer(&setup).is_empty());
        let tried: Vec<Axis> = fewer(&varied[0].setup).iter().map(|one| one.axis).collect();
        assert_eq!(tried, [Axis::Streams, Axis::State]);
    }
}
