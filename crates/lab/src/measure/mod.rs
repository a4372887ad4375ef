//! How times become a verdict.
//!
//! Contenders are timed in rounds: each once per round, in a random order, so that what the clock and the power limit do in a
//! round they do to all. The statistic is the paired log-ratio of a round; rounds are the unit of the interval. One contender is
//! always timed twice under two names: what differs between these two is noise, and a run in which it shows decides nothing.
//!
//! Nothing here knows of GPUs: a [`Stopwatch`] takes the samples, on a GPU or in a model of one.

mod clocks;
mod contest;
mod floor;
mod interval;
mod rounds;
mod student;
mod verdict;

pub use clocks::Clocks;
pub use contest::{ATTEMPTS, Limits, Stopwatch, contest};
pub use floor::{Floor, Peaks};
pub use interval::{Interval, Ratio};
pub use rounds::{Condition, Reading, Refused, Round, Rounds, percentile};
pub use verdict::{MARGIN, Verdict, Versus, differs_from_itself};
