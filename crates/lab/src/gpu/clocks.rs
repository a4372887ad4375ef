//! Three clocks that must agree on a sample.

use super::plan::Contract;

/// By how much the GPU's own timer may differ from the driver's events: both have steps of up to a microsecond, and events stand
/// outside of the stamps.
const DIFFER: f64 = 0.05;
const STEPS: f64 = 2e-5;
/// How long a host may take to notice that the GPU has passed an event.
const NOTICE: f64 = 1e-4;

/// What each says of one sample, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Between the driver's events, in the stream of the kernel.
    pub events: f64,
    /// Between stamps of the GPU's own timer, beside the events.
    pub timer: f64,
    /// By the host's clock, between the same events.
    pub host: f64,
}

impl Clocks {
    /// One of them is wrong, or work was left outside of what was timed.
    pub fn disagreement(&self, contract: Contract) -> Option<String> {
        let Clocks { events, timer, host } = *self;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_can_object() {
        let honest = Clocks { events: 2e-3, timer: 2.05e-3, host: 2.02e-3 };
        assert_eq!(honest.disagreement(Contract::Graph), None);
        for lie in [
            Clocks { timer: 2.5e-3, ..honest },
            Clocks { timer: 1.5e-3, ..honest },
            Clocks { host: 1e-3, ..honest },
            Clocks { host: 3e-3, ..honest },
        ] {
            assert!(lie.disagreement(Contract::Graph).unwrap().starts_with("clocks disagree"), "{lie:?}");
        }
        let busy = Clocks { timer: 5e-3, ..honest };
        assert_eq!(busy.disagreement(Contract::Stream), None, "the host is part of it, and the stamps are not");
        assert!(Clocks { timer: 1e-3, ..honest }.disagreement(Contract::Stream).is_some());
    }
}
