//! What is to be proved, and how thoroughly.

use std::collections::BTreeMap;
use std::path::PathBuf;

use attention::Problem;
use attention::configs::{Config, Heads};
use attention::planner::{self, Gpu};
use launch::backend::Options;
use ptx::Target;
use serde::{Deserialize, Serialize};

use crate::{Case, Error, Hardware, Rate, Toolbox};

/// Everything that [`prove`](crate::prove) needs.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the emulator runs: small problems that make a kernel do all it can.
    pub cases: Vec<Case>,
    /// What a GPU runs besides, and what is timed there.
    pub measured: Vec<Case>,
    /// The GPU, or why there is none.
    pub hardware: Result<Hardware, String>,
    /// The folder of the pack; a pack that is there is replaced.
    pub folder: PathBuf,
    pub settings: Settings,
    pub tools: Toolbox,
    /// What repeats it, as the report says.
    pub command: String,
    /// Run every stage again, also those that a pack in the folder could spare.
    pub fresh: bool,
    /// What an hour costs; the pack says what it came to.
    pub rate: Option<Rate>,
}

/// How thoroughly; a pack carries it, so that it can be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Architectures that ptxas assembles for, where the kernel's own target allows it: `sm_80`.
    pub targets: Vec<String>,
    /// Decides the inputs.
    pub data_seed: u64,
    /// Orders in which the emulator runs what no rule orders.
    pub seeds: Vec<u64>,
    /// Seeds under which the stage `stress` runs each policy of the emulator's adversary.
    pub rounds: u64,
    /// Launches back to back on a GPU, on one stream and again on eight.
    pub launches: usize,
    /// Instructions that injected faults may cost: of a kernel that runs longer, fewer are tried.
    pub mutation_budget: u64,
    /// An emulated launch ends with a finding after so many instructions.
    pub instruction_budget: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            targets: ["sm_80", "sm_89", "sm_90", "sm_90a"].map(String::from).to_vec(),
            data_seed: 0,
            seeds: (0..6).collect(),
            rounds: 2,
            launches: 1_000,
            // All mutants of the built-in witnesses, and under a minute for a kernel of any length.
            mutation_budget: 5_000_000,
            instruction_budget: Options::default().instruction_budget,
        }
    }
}

impl Settings {
    /// The targets that are ones.
    pub(crate) fn targets(&self) -> Vec<Target> {
        self.targets.iter().filter_map(|target| target.parse().ok()).collect()
    }
}

/// The standard witness problems: three key tiles, ragged tails, more keys than queries, stage wrap-around; and a
/// problem without any raggedness.
pub const STANDARD: [&str; 4] = [
    "f16 B2 H2 Sq97 Sk161 D64 full",
    "f16 B2 H2 S128 D64 full",
    "f16 B2 H2 Sq97 Sk161 D64 causal",
    "f16 B2 H2 S128 D64 causal",
];

/// The problem whose kernels the planner is asked for, and the GPU. Kernels for sm_90a are proved by name (`--config 12`): a witness of
/// theirs has several tiles for each of 132 processors, and takes the emulator minutes.
const PLANNED: &str = "f16 B2 H8 S512 D64";
const GPU: Gpu = Gpu::A100;
const MASKS: [&str; 2] = ["full", "causal"];

/// The smallest problems that make a kernel of this configuration do all it can: two blocks of queries and one tile of
/// keys more than there are stages, the last of each ragged, with and without a mask.
pub fn witnesses(config: &Config) -> Result<Vec<Problem>, Error> {
    MASKS.iter().map(|mask| witness(config, mask)).collect()
}

fn witness(config: &Config, mask: &str) -> Result<Problem, Error> {
    let keys = config.keys * config.stages + config.keys / 2 + 1;
    let (heads, queries) = match config.heads {
        Heads::Apart => ("2", config.rows + 1),
        Heads::Together => ("6/2", config.rows / 3 + 1),
    };
    Ok(format!("f16 B1 H{heads} Sq{queries} Sk{keys} D64 {mask}").parse()?)
}

impl Request {
    /// The built-in kernels: config 1 on the standard problems, and what the planner chooses on their witnesses.
    pub fn standard(folder: impl Into<PathBuf>) -> Result<Request, Error> {
        let standard = STANDARD.iter().map(|text| built_in(text));
        Ok(Request::new(standard.chain(planned()?.into_iter().map(Ok)).collect::<Result<_, _>>()?, folder))
    }

    /// What is measured: nothing without a GPU.
    pub(crate) fn measured(&self) -> &[Case] {
        if self.hardware.is_ok() { &self.measured } else { &[] }
    }

    /// Of these, the ones that are not emulated, too.
    pub(crate) fn measured_only(&self) -> impl Iterator<Item = &Case> {
        let emulated = |case: &&Case| self.cases.iter().any(|other| other.name == case.name);
        self.measured().iter().filter(move |case| !emulated(case))
    }

    /// These cases, with the standard seeds, targets and tools.
    pub fn new(cases: Vec<Case>, folder: impl Into<PathBuf>) -> Request {
        let cases = with_own_names(cases);
        Request {
            measured: cases.clone(),
            cases,
            hardware: Err("no GPU was asked for".into()),
            folder: folder.into(),
            settings: Settings::default(),
            tools: Toolbox::find(),
            command: "veriflash prove".into(),
            fresh: false,
            rate: None,
        }
    }
}

fn built_in(text: &str) -> Result<Case, Error> {
    let problem: Problem = text.parse()?;
    let kernel = attention::kernels::kernel(&problem, &attention::configs::CONFIGS[0])?;
    Ok(Case::new(kernel)?.named(text))
}

/// What the planner chooses for each mask, equal ones once.
fn planned() -> Result<Vec<Case>, Error> {
    let mut chosen: Vec<(Config, Problem)> = Vec::new();
    for mask in MASKS {
        let config = planner::plan(&format!("{PLANNED} {mask}").parse()?, &GPU)?;
        let one = (config, witness(&config, mask)?);
        if !chosen.contains(&one) {
            chosen.push(one);
        }
    }
    let case = |(config, problem): &(Config, Problem)| Case::new(attention::kernels::kernel(problem, config)?);
    chosen.iter().map(case).collect()
}

/// Folders in a pack have different names: equal ones are numbered.
fn with_own_names(mut cases: Vec<Case>) -> Vec<Case> {
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    for case in &mut cases {
        let name = case.name.clone();
        while taken.contains_key(&case.name) {
            let number = taken.entry(name.clone()).or_insert(1);
            *number += 1;
            case.name = format!("{name}-{number}");
        }
        taken.insert(case.name.clone(), 1);
    }
    cases
}
