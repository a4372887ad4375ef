//! The kernel that fails, and what is known of how it was made.

use attention::Problem;
use attention::configs::Config;
use launch::Kernel;

use super::setup::Setup;
use crate::Error;

/// Makes the kernel of another configuration.
type Build = Box<dyn Fn(&Config) -> Result<Kernel, Error> + Send + Sync>;

/// A kernel of ours: it can be made anew with one thing changed.
pub struct Design {
    pub problem: Problem,
    pub config: Config,
    pub build: Build,
}

impl Design {
    pub fn new(problem: Problem, config: Config) -> Design {
        let of = problem.clone();
        let build = move |config: &Config| Ok(attention::kernels::kernel(&of, config)?);
        Design { problem, config, build: Box::new(build) }
    }
}

/// What is bisected.
pub struct Subject {
    pub setup: Setup,
    /// Of kernels of ours.
    pub design: Option<Design>,
}

impl Subject {
    /// A kernel that is what it is.
    pub fn of(setup: Setup) -> Subject {
        Subject { setup, design: None }
    }

    /// A kernel of ours; the setup has the kernel of that design.
    pub fn designed(setup: Setup, design: Design) -> Subject {
        Subject { setup, design: Some(design) }
    }
}
