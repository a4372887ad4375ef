//! Three clocks that must agree on a sample.

use serde::{Deserialize, Serialize};

use crate::figures::Figure;
use crate::gpu::Contract;

/// By how much the GPU's own timer may differ from the driver's events: both have steps of up to a microsecond, and events stand
/// outside of the stamps.
const DIFFER: f64 = 0.05;
const STEPS: f64 = 2e-5;
/// How long a host may take to notice that the GPU has passed an event.
const NOTICE: f64 = 1e-4;

/// What each says of one sample, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// Between the driver's events, in the stream of the kernel.
    pub events: Figure,
    /// Between stamps of the GPU's own timer, beside the events.
    pub timer: Figure,
    /// By the host's clock, between the same events.
    pub host: Figure,
}

impl Clocks {
    /// From seconds.
    pub fn new(events: f64, timer: f64, host: f64) -> Clocks {
        let [events, timer, host] = [events, timer, host].map(Figure::new);
        Clocks { events, timer, host }
    }

    /// One of them is wrong, or work was left outside of what was timed.
    pub fn disagreement(&self, contract: Contract) -> Option<String> {
        let [events, timer, host] = [self.events, self.timer, self.host].map(Figure::value);
        let apart = match contract {
            Contract::Graph => (events - timer).abs(),
            // Stamps stand outside of the events, and the host has something to do between.
            Contract::Stream | Contract::Latency | Contract::Host => events - timer,
        };
        let tolerance = DIFFER * events;
        let agree = apart <= tolerance + STEPS && (events - host).abs() <= tolerance + NOTICE;
        let [events, timer, host] = [events, timer, host].map(|seconds| seconds * 1e6);
        (!agree).then(|| {
            format!("clocks disagree: {events:.1} µs by events, {timer:.1} by the GPU's timer, {host:.1} by the host")
        })
    }

    /// What a call took, by the clock that the contract goes by; nothing where that is the host's between other marks.
    pub fn seconds(&self, contract: Contract, calls: usize) -> Option<f64> {
        let all = match contract {
            Contract::Graph => self.timer,
            Contract::Stream => self.events,
            Contract::Latency | Contract::Host => return None,
        };
        Some(all.value() / calls as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_can_object() {
        let honest = Clocks::new(2e-3, 2.05e-3, 2.02e-3);
        assert_eq!(honest.disagreement(Contract::Graph), None);
        let with = |timer: f64, host: f64| Clocks::new(2e-3, timer, host);
        for lie in [with(2.5e-3, 2.02e-3), with(1.5e-3, 2.02e-3), with(2.05e-3, 1e-3), with(2.05e-3, 3e-3)] {
            assert!(lie.disagreement(Contract::Graph).unwrap().starts_with("clocks disagree"), "{lie:?}");
        }
        let busy = with(5e-3, 2.02e-3);
        assert_eq!(busy.disagreement(Contract::Stream), None, "the host is part of it, and the stamps are not");
        assert!(with(1e-3, 2.02e-3).disagreement(Contract::Stream).is_some());
    }

    #[test]
    fn what_is_no_number_agrees_with_nothing() {
        assert!(Clocks::new(2e-3, f64::NAN, 2e-3).disagreement(Contract::Graph).is_some());
        assert!(Clocks::new(f64::NAN, f64::NAN, f64::NAN).disagreement(Contract::Graph).is_some());
    }
}
