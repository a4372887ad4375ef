//! One way to run a kernel: everything that is varied.

use std::fmt;

use launch::backend::Options;
use launch::{Kernel, Policy};

/// An order of everything that no rule orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub seed: u64,
    pub policy: Policy,
}

impl Schedule {
    /// What a seed stands for.
    pub fn of_seed(seed: u64) -> Schedule {
        Schedule { seed, policy: Policy::of_seed(seed) }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "seed {}, policy {}", self.seed, self.policy)
    }
}

/// What is made new between two calls; everything else stays as the call before left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Between {
    Nothing,
    /// The module is loaded again, and its variables with it; of several streams, each has a module of its own.
    Module,
    /// The module, and one buffer is as before the first call.
    Buffer(String),
}

/// A kernel, its data, and how it is called.
#[derive(Clone, Debug)]
pub struct Setup {
    pub kernel: Kernel,
    /// Each is a run of its own; the setup fails if one of them does.
    pub schedules: Vec<Schedule>,
    pub data_seed: u64,
    /// Calls on the same buffers.
    pub calls: u32,
    /// Streams that make these calls at once, each on buffers of its own. Only a GPU has them.
    pub streams: u32,
    pub between: Between,
    /// Of each launch only the first cluster.
    pub first_cluster: bool,
    /// Races and bytes that nobody wrote are looked for.
    pub checks: bool,
    /// Warnings are failures, too.
    pub warnings: bool,
    /// Results are compared with what is expected of them.
    pub judged: bool,
    pub instruction_budget: u64,
}

impl Setup {
    /// A kernel as its recipe says, under so many seeds.
    pub fn new(kernel: Kernel, seeds: u64) -> Setup {
        Setup {
            kernel,
            schedules: (0..seeds).map(Schedule::of_seed).collect(),
            data_seed: 0,
            calls: 1,
            streams: 1,
            between: Between::Nothing,
            first_cluster: false,
            checks: true,
            warnings: false,
            judged: true,
            instruction_budget: Options::default().instruction_budget,
        }
    }

    /// The same with another kernel.
    pub fn with(&self, kernel: Kernel) -> Setup {
        Setup { kernel, ..self.clone() }
    }

    pub(crate) fn options(&self, schedule: Schedule) -> Options {
        Options {
            seed: schedule.seed,
            policy: Some(schedule.policy),
            instruction_budget: self.instruction_budget,
            checks: self.checks,
            clusters: if self.first_cluster { 1 } else { u64::MAX },
            ..Options::default()
        }
    }
}

/// The launches of the recipe so many times in a row, on one device.
pub(crate) fn in_a_row(kernel: &Kernel, calls: u32) -> Kernel {
    let mut kernel = kernel.clone();
    let launches = kernel.recipe.launches.clone();
    (1..calls).for_each(|_| kernel.recipe.launches.extend(launches.iter().cloned()));
    kernel
}
