//! Named checks, and how a verdict follows from what they object to.
//!
//! A verdict is a conjunction: it passes if no check objects. Each objection names its check, so that the red team can ask of every
//! attack who caught it, and whether it would have passed without. Nobody who makes a pack can switch a check off.

use std::fmt;

use crate::outcome::State;

/// One row per check: how it is called, and what it demands.
macro_rules! guards {
    ($($guard:ident $name:literal $demands:literal;)*) => {
        /// A named check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Guard {
            $(#[doc = $demands] $guard,)*
        }

        impl Guard {
            pub const ALL: &[Guard] = &[$(Guard::$guard,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Guard::$guard => $name,)*
                }
            }

            /// What it demands, in one sentence.
            pub fn demands(self) -> &'static str {
                match self {
                    $(Guard::$guard => $demands,)*
                }
            }
        }
    };
}

#[rustfmt::skip] // One row per line.
guards! {
    // name                            what it demands
    WellFormed    "well-formed"        "the PTX is well formed, and ptxas takes it";
    Witness       "witness"            "whoever says that nothing was found has seen the launches and watched inputs and outputs";
    Executed      "executed-kernel"    "the launches that were seen are those that the recipe asks for: entry, grid, block, count";
    Observed      "operands-observed"  "the checks looked at every byte that instructions moved";
    Stale         "stale"              "a log speaks of these very kernels, and of no others";
    Inputs        "inputs-untouched"   "inputs hash to the same before and after a run";
    Poison        "poison"             "outputs hold poison before a run, and none of it afterwards";
    NotANumber    "nan-never-equal"    "a result that is no number equals nothing";
    ErrorRule     "error-rule"         "results equal float64 attention within the rule";
    Shapes        "other-shapes"       "results are right on shapes drawn at random, too";
    Controls      "negative-controls"  "the rule refuses results that are wrong on purpose, in the same run";
    Findings      "findings"           "the emulator finds no race, missing wait or stray access";
    ComputeSanitizer "compute-sanitizer" "NVIDIA's four tools report nothing on a GPU";
    PlantedFault  "planted-fault"      "each of these tools reports a fault that was planted for it";
    BitEqual      "bit-equal"          "calls under all seeds, policies and poisons leave the same bits";
    LaterCalls    "later-calls"        "calls on what earlier calls left behind end as the first one did";
    Schedules     "schedules"          "every policy is run with every seed, in both turns";
    Mutation      "mutation"           "faults that are injected are caught";
    Spills        "no-spills"          "no register is spilled, and no stack is used";
    Release       "release-build"      "no assertion and no trap of a debug build is left in the PTX";
    Fits          "fits"               "a block fits on a multiprocessor";
    TensorCores   "tensor-cores"       "tensor-core instructions stand in a loop of the machine code";
    AsyncCopies   "async-copies"       "copies to shared memory are asynchronous in the machine code";
    LocalMemory   "no-local-memory"    "the machine code touches no local memory";
    Accumulators  "opcode-types"       "tensor cores multiply in 16 bits at least and add in f32, as the contract's types demand";
    Clocks        "clocks-agree"       "events, the GPU's timer and the host agree on how long a sample took";
    Status        "launch-status"      "every launch ends without an error, asked after it";
    Data          "random-data"        "what is timed is fed with random normal numbers";
    LoadedCode    "loaded-code"        "both loads of the candidate run the same machine code, by the driver's hash";
    AfterTiming   "results-after-timing" "what the timed calls had left when they ended is right, on every buffer";
    Floors        "floors"             "no time is below what the GPU's peaks allow";
    Pinned        "pinned-peers"       "peers are those of peers/lock.toml, all of them, in these versions";
    Peers         "missing-peer"       "every peer that was asked for was measured, and there is one";
    PeerResults   "peer-results"       "what peers left when they were timed is right";
    SameItself    "same-against-itself" "the candidate, timed twice, does not differ from itself";
    Launches      "launch-cost"        "a launch that does nothing costs every contender's process the same";
    Cycles        "cycles"             "the verdict holds in time and in cycles";
    TensorPipe    "tensor-pipe"        "the profiler counts work of the tensor cores";
    Decided       "decided"            "the interval lies on one side of the margin";
    Conjunction   "gate-conjunction"   "a gate holds only if every stage that it asks for has passed";
    Hashes        "hashes"             "every file of a pack hashes to what its lists say";
    Derived       "verdicts-derived"   "the verdicts in a pack follow from its logs";
    OneHash       "one-hash-per-cubin" "figures of machine code follow from the very cubins in the pack";
    Rerun         "emulator-again"     "another run of the emulator gives the same figures";
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a check has against a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    pub guard: Guard,
    /// Never a pass.
    pub state: State,
}

impl Objection {
    pub(crate) fn fail(guard: Guard, why: impl Into<String>) -> Objection {
        Objection { guard, state: State::fail(why) }
    }

    pub(crate) fn not_run(guard: Guard, why: impl Into<String>) -> Objection {
        Objection { guard, state: State::not_run(why) }
    }

    pub(crate) fn ambiguous(guard: Guard, why: impl Into<String>) -> Objection {
        Objection { guard, state: State::Ambiguous { why: why.into() } }
    }
}

/// What all checks have against a log, part by part: a kernel, a run. Of one part the first objection is told: what follows it may
/// well be its consequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objections(Vec<Vec<Objection>>);

impl Objections {
    /// A log that is judged as a whole.
    pub fn of(part: impl IntoIterator<Item = Objection>) -> Objections {
        Objections(vec![part.into_iter().collect()])
    }

    /// A log without parts shows nothing.
    pub fn of_parts(parts: impl IntoIterator<Item = Vec<Objection>>) -> Objections {
        Objections(parts.into_iter().collect())
    }

    /// With those of other parts.
    pub(crate) fn and(mut self, parts: Vec<Vec<Objection>>) -> Objections {
        self.0.extend(parts);
        self
    }

    /// All of them as one part of something larger.
    pub(crate) fn flattened(self) -> Vec<Objection> {
        self.0.into_iter().flatten().collect()
    }

    /// The verdict.
    pub fn judge(&self) -> State {
        self.judge_without(&[])
    }

    /// The verdict that would be if these checks did not exist.
    pub(crate) fn judge_without(&self, off: &[Guard]) -> State {
        let first = |part: &Vec<Objection>| {
            let objection = part.iter().find(|objection| !off.contains(&objection.guard));
            objection.map_or(State::Pass, |objection| objection.state.clone())
        };
        worst(self.0.iter().map(first))
    }

    /// The others.
    pub(crate) fn without(self, off: &[Guard]) -> Objections {
        let keep = |objection: &Objection| !off.contains(&objection.guard);
        Objections(self.0.into_iter().map(|part| part.into_iter().filter(keep).collect()).collect())
    }

    /// The objection that the verdict comes from.
    pub fn told(&self) -> Option<&Objection> {
        let verdict = self.judge();
        self.0.iter().filter_map(|part| part.first()).find(|objection| objection.state == verdict)
    }

    /// Every check that objects, once each.
    pub fn guards(&self) -> Vec<Guard> {
        let mut guards: Vec<Guard> = self.0.iter().flatten().map(|objection| objection.guard).collect();
        guards.sort_unstable();
        guards.dedup();
        guards
    }
}

/// A failure before anything undecided before a pass.
fn worst(states: impl Iterator<Item = State>) -> State {
    let rank = |state: &State| match state {
        State::Fail { .. } => 0,
        State::NotRun { .. } => 1,
        State::Ambiguous { .. } | State::Stale { .. } => 2,
        State::Pass => 3,
    };
    states.min_by_key(rank).unwrap_or(State::not_run("nothing was run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_part_the_first_and_of_parts_the_gravest_is_told() {
        let (undecided, wrong) = (Objection::not_run(Guard::Witness, "unseen"), Objection::fail(Guard::Poison, "left"));
        let one = Objections::of([undecided.clone(), wrong.clone()]);
        assert_eq!(one.judge(), State::not_run("unseen"));
        assert_eq!(one.judge_without(&[Guard::Witness]), State::fail("left"));
        assert_eq!(one.judge_without(&[Guard::Witness, Guard::Poison]), State::Pass);
        let apart = Objections::of_parts([vec![undecided], vec![], vec![wrong]]);
        assert_eq!(apart.judge(), State::fail("left"));
        assert_eq!(apart.guards(), [Guard::Witness, Guard::Poison]);
    }

    #[test]
    fn silence_about_something_is_a_pass_and_about_nothing_is_none() {
        assert_eq!(Objections::of([]).judge(), State::Pass);
        assert_eq!(Objections::of_parts([]).judge(), State::not_run("nothing was run"));
    }

    #[test]
    fn every_check_has_its_own_name() {
        let names: std::collections::BTreeSet<&str> = Guard::ALL.iter().map(|guard| guard.name()).collect();
        assert_eq!(names.len(), Guard::ALL.len());
    }
}
