//! Three clocks that must agree on a sample.

use super::plan::Contract;

/// By how much the GPU's own timer may differ from the driver's events: both have steps of up to a microsecond, and events stand
/// outside of the stamps.
const DIFFER: f64 = 0.05;
const STEPS: f64 = 2e-5;
/// How long a host may take to notice that a GPU which has nothing to do is idle.
const NOTICE: f64 = 2e-4;

/// What each says of one sample, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Between the driver's events, in the stream of the kernel.
    pub events: f64,
    /// Between stamps of the GPU's own timer, beside the events.
    pub timer: f64,
    /// From the first event until all of the GPU was idle.
    pub host: f64,
    /// Of that, the part after the stream had ended, without what it takes to ask.
    pub after: f64,
}

impl Clocks {
    /// Work was left outside of what was timed.
    pub fn disagreement(&self, contract: Contract) -> Option<String> {
        let Clocks { events, timer, host, after } = *self;
        let apart = match contract {
            Contract::Graph => (events - timer).abs(),
            // The host's launches are part of what is timed, and lie between the stamps or before them.
            Contract::Stream | Contract::Latency | Contract::Host => timer - events,
        };
        let tolerance = DIFFER * events;
        let agree = apart <= tolerance + STEPS && events <= host + STEPS && after <= tolerance + NOTICE;
        let [events, timer, host, after] = [events, timer, host, after].map(|seconds| seconds * 1e6);
        (!agree).then(|| {
            format!(
                "clocks disagree: {events:.1} µs by events, {timer:.1} by the GPU's timer, {host:.1} by the host, {after:.1} of them \
                 after the stream had ended: work was left outside of what was timed"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clock_can_object() {
        let honest = Clocks { events: 2e-3, timer: 2.05e-3, host: 3e-3, after: 1e-5 };
        assert_eq!(honest.disagreement(Contract::Graph), None);
        for lie in [
            Clocks { timer: 2.5e-3, ..honest },
            Clocks { timer: 1.5e-3, ..honest },
            Clocks { host: 1e-3, ..honest },
            Clocks { after: 1e-3, ..honest },
        ] {
            assert!(lie.disagreement(Contract::Graph).unwrap().starts_with("clocks disagree"), "{lie:?}");
        }
        assert_eq!(
            Clocks { timer: 1e-3, ..honest }.disagreement(Contract::Stream),
            None,
            "launches lie before the stamps"
        );
    }
}
