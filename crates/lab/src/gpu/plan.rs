//! What a sample is: how many calls, on how many sets of buffers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use attention::Problem;
use attention::visibility::{Lengths, MaskKind};
use cuda::Device;
use serde::{Deserialize, Serialize};

use crate::figures::Figure;
use crate::measure::{Floor, Peaks};

/// What is timed. Times of different contracts are never compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contract {
    /// Time on the GPU per call, inside of a CUDA graph of many.
    Graph,
    /// Time per call of many in a row in one stream.
    Stream,
    /// One call, waited for, by the host's clock.
    Latency,
    /// The host's time per call, which is not waited for.
    Host,
}

impl Contract {
    pub const ALL: [Contract; 4] = [Contract::Graph, Contract::Stream, Contract::Latency, Contract::Host];

    pub fn name(self) -> &'static str {
        match self {
            Contract::Graph => "graph",
            Contract::Stream => "stream",
            Contract::Latency => "latency",
            Contract::Host => "host",
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Contract {
    type Err = String;

    fn from_str(name: &str) -> Result<Contract, String> {
        let known = || Contract::ALL.map(Contract::name).join(", ");
        Contract::ALL
            .into_iter()
            .find(|contract| contract.name() == name)
            .ok_or_else(|| format!("expected one of {}", known()))
    }
}

/// The same for all who solve a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub contract: Contract,
    /// Calls of a sample.
    pub calls: usize,
    /// Sets of buffers: as many as there are calls, each on its own; or one, which stays in the cache.
    pub sets: usize,
    /// How often these calls are made, right before a sample, so that the GPU has the clock that they give it.
    pub warm_ups: usize,
    /// Sets of the candidate's that warm-ups have for themselves, so that no call has seen what a sample is given. Packs that
    /// were made before there were any have none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub warm_up_sets: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Before warming up the GPU rests for this long, whoever is next: what the one before did to the clock shall not show.
pub const REST: Duration = Duration::from_millis(2);

/// Before a sample the same work is done for about this long: clock and power follow within some milliseconds. With 20 ms and more, the
/// power limit of an H200 makes samples of long problems twice as noisy.
pub const WARM_UP: Duration = Duration::from_millis(10);

/// One sample lasts about this long, or longer.
const SAMPLE_SECONDS: f64 = 2e-3;
/// Sets reach over so many times the second-level cache.
const CACHES: f64 = 2.2;
/// Of all sets, unless two have more.
const MOST_BYTES: f64 = 4e9;
/// A kernel of ours reaches at least this share of the roofline, and a launch takes this long: guesses, to size a sample.
const GUESSED_SHARE: f64 = 0.4;
const GUESSED_LAUNCH: f64 = 4e-6;

impl Plan {
    pub fn of(problem: &Problem, device: &Device, contract: Contract, cold: bool, warm_up: Duration) -> Plan {
        let guess = floor(problem, cold).seconds(&peaks(device)) / GUESSED_SHARE + GUESSED_LAUNCH;
        let bytes = bytes(problem);
        let for_time = if contract == Contract::Latency { 1.0 } else { (SAMPLE_SECONDS / guess).ceil() };
        let for_cache = (CACHES * f64::from(device.cache_bytes) / bytes).ceil();
        let calls = if cold {
            for_time.max(for_cache).min(MOST_BYTES / bytes).max(2.0) as usize
        } else {
            for_time.max(1.0) as usize
        };
        // At least two: while the GPU is at them, the host puts the sample behind them.
        let warm_ups = (warm_up.as_secs_f64() / (guess * calls as f64)).ceil().max(2.0) as usize;
        let [sets, warm_up_sets] = if cold { [calls, calls.min(for_cache as usize).max(1)] } else { [1, 1] };
        Plan { contract, calls, sets, warm_ups, warm_up_sets }
    }

    pub fn is_cold(&self) -> bool {
        self.sets > 1
    }

    /// Whether what each call left can be seen. What calls leave in shared buffers the last one may have done for all.
    pub fn shows_every_call(&self) -> bool {
        self.sets >= self.calls
    }
}

/// The most that the GPU does; where the architecture is not known, no time is impossible.
pub fn peaks(device: &Device) -> Peaks {
    let per_cycle = Peaks::operations_per_cycle(device.capability).map_or(f64::INFINITY, f64::from);
    let operations = per_cycle * f64::from(device.processors) * f64::from(device.kilohertz) * 1e3;
    Peaks { operations: Figure::new(operations), bytes: Figure::new(device.memory_bandwidth as f64) }
}

/// What the problem takes at least.
pub fn floor(problem: &Problem, cold: bool) -> Floor {
    let operations = operations(problem);
    Floor { operations: Figure::new(operations), bytes: cold.then(|| Figure::new(bytes(problem))) }
}

/// The usual count: two operations for each number of K and of V that a query meets; of a causal square, half of it.
fn operations(problem: &Problem) -> f64 {
    let pairs = |of: Lengths| match problem.mask() {
        MaskKind::CausalBottomRight | MaskKind::CausalTopLeft if of.queries == of.keys => {
            f64::from(of.queries) * f64::from(of.keys) / 2.0
        }
        mask => (0..of.queries).map(|query| mask.interval(query, of).len() as f64).sum(),
    };
    let sequences = if problem.packed().is_some() { 1 } else { problem.batch() };
    let all: f64 = problem.sequence_lengths().map(pairs).sum::<f64>() * f64::from(sequences);
    2.0 * all * f64::from(problem.heads()) * f64::from(problem.head_dim() + problem.value_dim())
}

/// Q, K, V and O, once each.
fn bytes(problem: &Problem) -> f64 {
    let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape(), problem.o_shape()];
    let elements: usize = shapes.iter().map(|shape| shape.elements()).sum();
    elements as f64 * problem.dtype().bytes() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> Device {
        Device {
            name: "NVIDIA H200".into(),
            capability: (9, 0),
            cuda_version: (13, 0),
            uuid: String::new(),
            processors: 132,
            max_shared_bytes: 227 << 10,
            kilohertz: 1_980_000,
            memory_bandwidth: 4_800_000_000_000,
            cache_bytes: 60 << 20,
        }
    }

    fn plan(problem: &str, contract: Contract, cold: bool) -> Plan {
        Plan::of(&problem.parse().unwrap(), &h200(), contract, cold, WARM_UP)
    }

    #[test]
    fn cold_sets_reach_beyond_the_cache_and_each_call_has_its_own() {
        let small = plan("B2 H8 S512 D64", Contract::Graph, true);
        assert!(small.calls == small.sets && small.sets as f64 * 4.2e6 > 2.0 * 60e6 && small.calls > 100, "{small:?}");
        let large = plan("B1 H32 S16384 D64", Contract::Graph, true);
        assert!(large.calls == large.sets && (2..=4).contains(&large.sets), "{large:?}");
        assert!(small.warm_up_sets as f64 * 4.2e6 > 2.0 * 60e6 && small.warm_up_sets < 40, "{small:?}");
        assert_eq!(large.warm_up_sets, 1, "one of them is larger than the cache, twice");
        let warm = plan("B2 H8 S512 D64", Contract::Graph, false);
        assert_eq!([warm.sets, warm.warm_up_sets], [1, 1]);
        assert_eq!(plan("B2 H8 S512 D64", Contract::Latency, false).calls, 1);
        assert!(small.warm_ups >= 2 && plan("B2 H8 S512 D64", Contract::Latency, false).warm_ups > 100);
    }

    #[test]
    fn plans_of_old_packs_are_read_and_written_as_they_are() {
        let old = r#"{"contract":"graph","calls":308,"sets":308,"warm_ups":10}"#;
        let read: Plan = serde_json::from_str(old).unwrap();
        assert_eq!((read.warm_up_sets, serde_json::to_string(&read).unwrap().as_str()), (0, old));
        let new = plan("B2 H8 S512 D64", Contract::Graph, true);
        assert_eq!(serde_json::from_str::<Plan>(&serde_json::to_string(&new).unwrap()).unwrap(), new);
    }

    /// `peers/test_plan.py` has the same table: what `bench` and `side_by_side.py` do around a sample is the same.
    #[test]
    fn scripts_make_the_same_plans() {
        for (problem, calls, warm_ups) in [
            ("B2 H8 S512 D64 full", 308, 5),
            ("B2 H8 S512 D64 causal", 324, 5),
            ("B8 H32 S2048 D64 causal", 7, 5),
            ("B4 H16 S4096 D128 full", 2, 4),
            ("B4 H16 S4096 D128 causal", 4, 4),
            ("B1 H32 S16384 D64 full", 2, 2),
            ("B1 H32 Sq1 Sk8192 D128 full", 28, 5),
        ] {
            let plan = plan(problem, Contract::Graph, true);
            assert_eq!((plan.calls, plan.warm_ups), (calls, warm_ups), "{problem}");
        }
    }

    #[test]
    fn operations_are_the_usual_ones() {
        let of = |problem: &str| operations(&problem.parse().unwrap());
        assert_eq!(of("B2 H8 S512 D64"), 4.0 * 16.0 * 512.0 * 512.0 * 64.0);
        assert_eq!(of("B2 H8 S512 D64 causal"), of("B2 H8 S512 D64") / 2.0);
        assert_eq!(of("B1 H1 Sq1 Sk100 D64"), of("B1 H1 Sq1 Sk100 D64 causal"));
    }
}
