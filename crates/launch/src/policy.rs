//! How an adversary schedules what no rule orders.

use std::fmt;
use std::str::FromStr;

/// What an emulator's adversary is after: each kind of bug needs its own. A seed decides the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Warps one after the other; bytes land as late as they may.
    Lazy,
    /// The same, the last first.
    LazyReversed,
    /// Warps one after the other; bytes land at once.
    Eager,
    /// The same, the last first.
    EagerReversed,
    /// Any warp, for a few instructions; bytes land at any time.
    Random,
    /// The bytes of one operation land range by range.
    Ranges,
    /// Warps that start asynchronous operations run far ahead of the others.
    ProducersAhead,
    /// Warps that start none run first; copies come late.
    ConsumersAhead,
    /// One warp runs only when nobody else can.
    OneLast,
    /// Most waits for a phase give up before it is over.
    Spurious,
    /// Lanes that a branch parted meet again as late as they may.
    Parted,
}

impl Policy {
    /// In the order of the seeds that stand for them.
    pub const ALL: [Policy; 11] = [
        Policy::Lazy,
        Policy::LazyReversed,
        Policy::Eager,
        Policy::EagerReversed,
        Policy::Random,
        Policy::Ranges,
        Policy::ProducersAhead,
        Policy::ConsumersAhead,
        Policy::OneLast,
        Policy::Spurious,
        Policy::Parted,
    ];

    /// The policy of a seed, where nobody asks for another: all take their turns.
    pub fn of_seed(seed: u64) -> Policy {
        Policy::ALL[(seed % Policy::ALL.len() as u64) as usize]
    }

    /// The word for `--policy`.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Lazy => "lazy",
            Policy::LazyReversed => "lazy-reversed",
            Policy::Eager => "eager",
            Policy::EagerReversed => "eager-reversed",
            Policy::Random => "random",
            Policy::Ranges => "ranges",
            Policy::ProducersAhead => "producers-ahead",
            Policy::ConsumersAhead => "consumers-ahead",
            Policy::OneLast => "one-last",
            Policy::Spurious => "spurious",
            Policy::Parted => "parted",
        }
    }

    /// What it does, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Policy::Lazy => "warps one after the other; bytes land as late as they may",
            Policy::LazyReversed => "warps one after the other, the last first; bytes land as late as they may",
            Policy::Eager => "warps one after the other; bytes land at once",
            Policy::EagerReversed => "warps one after the other, the last first; bytes land at once",
            Policy::Random => "any warp, for a few instructions; bytes land at any time",
            Policy::Ranges => "the bytes of one operation land range by range",
            Policy::ProducersAhead => "warps that start asynchronous operations run far ahead of the others",
            Policy::ConsumersAhead => "warps that start none run first; copies come late",
            Policy::OneLast => "one warp runs only when nobody else can",
            Policy::Spurious => "most waits for a phase give up before it is over",
            Policy::Parted => "lanes that a branch parted meet again as late as they may",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Policy, String> {
        let names = || Policy::ALL.map(Policy::name).join(", ");
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| format!("no policy is called `{name}`: expected one of {}", names()))
    }
}
