//! In which order the emulator runs what no rule orders, and whether it looks.

use launch::Policy;

use super::super::bench::Bench;
use super::super::setup::{Schedule, Setup};
use super::super::symptom::Symptom;
use super::{Axis, Variation};

/// Every policy on its own; where a failure is looked for, those of the given seeds were seen.
pub fn others(setup: &Setup, bench: &dyn Bench) -> Vec<Variation> {
    if !bench.is_emulator() {
        return vec![];
    }
    let seed = setup.schedules.first().map_or(0, |schedule| schedule.seed);
    let one = |policy: Policy| {
        let schedule = Schedule { seed, policy };
        Variation::new(Axis::Schedule, schedule.to_string(), Setup { schedules: vec![schedule], ..setup.clone() })
    };
    Policy::ALL.into_iter().map(one).collect()
}

/// Would anybody see it who does not check?
pub fn unchecked(failing: &Setup, symptom: &Symptom, bench: &dyn Bench) -> Vec<Variation> {
    if !bench.is_emulator() || symptom.finding().is_none() {
        return vec![];
    }
    let what = "no checks: only what it does and leaves";
    vec![Variation::new(Axis::Checks, what, Setup { checks: false, ..failing.clone() })]
}
