//! Where and when a pack was made. This and its cost are what differs between two runs.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, thread};

use launch::hash;

use serde::{Deserialize, Serialize};

use crate::Toolbox;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub system: String,
    pub architecture: String,
    pub processor: String,
    pub threads: usize,
    pub ptxas: Option<String>,
    pub nvdisasm: Option<String>,
    /// SHA-256 of the program that made the pack, where it can be read: a version says less.
    pub program: Option<String>,
}

impl Machine {
    pub fn here(tools: &Toolbox) -> Machine {
        Machine {
            system: env::consts::OS.into(),
            architecture: env::consts::ARCH.into(),
            processor: processor().unwrap_or_else(|| "unknown".into()),
            threads: thread::available_parallelism().map_or(1, |count| count.get()),
            ptxas: tools.ptxas.as_ref().map(|tool| tool.version.clone()),
            nvdisasm: tools.nvdisasm.as_ref().map(|tool| tool.version.clone()),
            program: program(),
        }
    }

    /// The same machine, as far as is known: a pack does not name its GPU.
    pub fn is(&self, other: &Machine) -> bool {
        let known = |machine: &Machine| {
            let Machine { system, architecture, processor, .. } = machine.clone();
            (system, architecture, processor)
        };
        known(self) == known(other)
    }
}

/// SHA-256 of the program that runs, computed once.
pub fn program() -> Option<String> {
    static PROGRAM: LazyLock<Option<String>> =
        LazyLock::new(|| Some(hash::hex(&fs::read(env::current_exe().ok()?).ok()?)));
    PROGRAM.clone()
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
