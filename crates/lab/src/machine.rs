//! Where and when a pack was made. This and its cost are what differs between two runs.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, thread};

use launch::hash;

use serde::{Deserialize, Serialize};

use cuda::{Device, Monitor};

use crate::{Hardware, Tool, Toolbox};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub system: String,
    pub architecture: String,
    pub processor: String,
    pub threads: usize,
    pub ptxas: Option<String>,
    pub nvdisasm: Option<String>,
    /// Nothing where none was used.
    pub gpu: Option<Gpu>,
    /// SHA-256 of the program that made the pack, where it can be read: a version says less.
    pub program: Option<String>,
}

/// A GPU as a pack names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub name: String,
    pub uuid: String,
    /// The newest CUDA that its driver supports.
    pub cuda: String,
    pub compute_capability: String,
    pub most_megahertz: u32,
    /// In watts, where it says so.
    pub power_limit: Option<u32>,
    pub compute_sanitizer: Option<String>,
    pub ncu: Option<String>,
}

impl Gpu {
    fn of(hardware: &Hardware) -> Gpu {
        let Device { name, uuid, capability, cuda_version, kilohertz, .. } = hardware.cuda.device().clone();
        let dotted = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        let version = |tool: &Option<Tool>| tool.as_ref().map(|tool| tool.version.clone());
        let limit = Monitor::open(&uuid).and_then(|monitor| monitor.power_limit());
        Gpu {
            name,
            cuda: dotted(cuda_version),
            compute_capability: dotted(capability),
            most_megahertz: kilohertz / 1_000,
            power_limit: limit.map(|watts| watts.round() as u32),
            compute_sanitizer: version(&hardware.compute_sanitizer),
            ncu: version(&hardware.ncu),
            uuid,
        }
    }
}

impl Machine {
    pub fn here(tools: &Toolbox, hardware: Option<&Hardware>) -> Machine {
        Machine {
            system: env::consts::OS.into(),
            architecture: env::consts::ARCH.into(),
            processor: processor().unwrap_or_else(|| "unknown".into()),
            threads: thread::available_parallelism().map_or(1, |count| count.get()),
            ptxas: tools.ptxas.as_ref().map(|tool| tool.version.clone()),
            nvdisasm: tools.nvdisasm.as_ref().map(|tool| tool.version.clone()),
            gpu: hardware.map(Gpu::of),
            program: program(),
        }
    }

    /// The same machine, as far as is known.
    pub fn is(&self, other: &Machine) -> bool {
        let known = |machine: &Machine| {
            let Machine { system, architecture, processor, gpu, .. } = machine.clone();
            (system, architecture, processor, gpu.map(|gpu| gpu.uuid))
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
