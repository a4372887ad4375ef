//! The stages of a proof, one file each.
//!
//! A stage runs and leaves a [`Log`]: figures, hashes, findings. What it means is said by [`Log::objections`] alone, which
//! sees nothing but the log; so the verdict in a pack can be derived again by anybody who reads it.

pub mod assemble;
pub mod bench;
pub mod code;
pub mod half;
pub mod parity;
pub mod profile;
pub mod resources;
pub mod sanitize;
pub mod stress;

use std::fmt;

use half::{GpuLog, Half};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::SCHEMA;
use crate::case::Case;
use crate::figures::{Figure, Subject};
use crate::guard::Objections;
use crate::outcome::Outcome;

/// In the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Assemble,
    Parity,
    Sanitize,
    Stress,
    Resources,
    Code,
    Bench,
    Profile,
}

impl Stage {
    pub const ALL: [Stage; 8] = [
        Stage::Assemble,
        Stage::Parity,
        Stage::Sanitize,
        Stage::Stress,
        Stage::Resources,
        Stage::Code,
        Stage::Bench,
        Stage::Profile,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Stage::Assemble => "assemble",
            Stage::Parity => "parity",
            Stage::Sanitize => "sanitize",
            Stage::Stress => "stress",
            Stage::Resources => "resources",
            Stage::Code => "code",
            Stage::Bench => "bench",
            Stage::Profile => "profile",
        }
    }

    /// What a pass of this stage means.
    pub fn proves(self) -> &'static str {
        match self {
            Stage::Assemble => "the PTX is well formed and typed for its target, and ptxas, where found, assembles it",
            Stage::Parity => {
                "output and log-sum-exp equal float64 attention within the rule, and wrong results are noticed"
            }
            Stage::Sanitize => "no race, missing wait, stray access or other finding, whatever the order of execution",
            Stage::Stress => "repeated and concurrent launches give the same bits, and injected faults are noticed",
            Stage::Resources => {
                "no register is spilled and no stack is used; occupancy follows from registers and shared memory"
            }
            Stage::Code => {
                "tensor-core instructions and asynchronous copies are in the machine code, and no local memory"
            }
            Stage::Bench => "how fast the kernel is against its peers, with an interval",
            Stage::Profile => "how busy the processor and its tensor cores are",
        }
    }

    /// Its log in a pack.
    pub fn log(self) -> String {
        format!("logs/{}.json", self.name())
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The figures of a stage that ran.
pub trait Log: Clone + PartialEq + Serialize + DeserializeOwned {
    const STAGE: Stage;

    /// The kernels that it speaks of.
    fn subjects(&self) -> Vec<Subject>;

    /// What speaks against the kernels, by the figures; the verdict follows.
    fn objections(&self) -> Objections;

    /// The figures in one sentence.
    fn figures(&self) -> String;

    /// Figures that a gate may ask something of, by name.
    fn measures(&self) -> Vec<(&'static str, Figure)> {
        vec![]
    }

    /// Raw samples, which nobody reads line by line.
    const COMPACT: bool = false;
}

/// A log, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record<L> {
    Ran(L),
    NotRun { why: String },
}

/// How a record begins that lacks a GPU.
const NEEDS_GPU: &str = "needs a GPU and ";

impl<L> Record<L> {
    /// The stage was not run because there is no GPU.
    pub(crate) fn without_gpu(what: &str, why: &str) -> Record<L> {
        Record::NotRun { why: format!("{NEEDS_GPU}{what}; {why}") }
    }

    /// Does it say that, and nothing else?
    pub(crate) fn lacks_gpu(&self) -> bool {
        matches!(self, Record::NotRun { why } if why.starts_with(NEEDS_GPU))
    }

    /// A stage that died did not run.
    pub(crate) fn from(result: Result<L, String>) -> Record<L> {
        result.map_or_else(|why| Record::NotRun { why }, Record::Ran)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogFile<L> {
    schema: u32,
    stage: Stage,
    record: Record<L>,
}

/// The file of a record: one text for one record.
pub(crate) fn write<L: Log>(record: &Record<L>) -> String {
    let file = LogFile { schema: SCHEMA, stage: L::STAGE, record: record.clone() };
    if L::COMPACT { serde_json::to_string(&file).unwrap_or_default() + "\n" } else { json(&file) }
}

/// Reads what [`write`] wrote, and nothing else: not a space may differ.
pub(crate) fn read<L: Log>(text: &str) -> Result<Record<L>, String> {
    let file: LogFile<L> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA || file.stage != L::STAGE {
        return Err(format!("expected schema {SCHEMA}, stage {}: found {}, {}", L::STAGE, file.schema, file.stage));
    }
    if write(&file.record) != text {
        return Err("the text is not in the form that is written".into());
    }
    Ok(file.record)
}

pub(crate) fn json(value: &impl Serialize) -> String {
    // The types of this crate have string keys and finite numbers: they cannot fail to serialise.
    serde_json::to_string_pretty(value).map(|text| text + "\n").unwrap_or_default()
}

/// The kernels that stages must speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subjects {
    /// Small problems that make kernels do all they can: the emulator's.
    pub emulated: Vec<Subject>,
    /// Problems whose speed matters: a GPU's.
    pub measured: Vec<Subject>,
    /// Those that are launched again and again.
    pub launched: Vec<Subject>,
    pub profiled: Vec<Subject>,
}

/// Of those that are measured, the problems that are launched a thousand times: the first of a list are the small ones.
const LAUNCHED: usize = 2;

/// The cases that are launched again and again: all that are emulated, and the smallest of those that are measured.
pub(crate) fn launched<'a>(cases: &'a [Case], measured: &'a [Case]) -> Vec<&'a Case> {
    let own = measured.iter().filter(|case| !cases.iter().any(|other| other.subject() == case.subject()));
    cases.iter().chain(own.take(LAUNCHED)).collect()
}

impl Subjects {
    pub fn of(cases: &[Case], measured: &[Case]) -> Subjects {
        let all = |cases: &[Case]| cases.iter().map(Case::subject).collect::<Vec<_>>();
        Subjects {
            emulated: all(cases),
            measured: all(measured),
            launched: launched(cases, measured).into_iter().map(Case::subject).collect(),
            profiled: profile::chosen(measured).into_iter().map(|(case, _)| case.subject()).collect(),
        }
    }
}

/// The records of all stages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evidence {
    pub assemble: Record<assemble::Report>,
    pub parity: Record<parity::Report>,
    pub parity_gpu: Half<parity::gpu::Report>,
    pub sanitize: Record<sanitize::Report>,
    pub sanitize_gpu: Half<sanitize::gpu::Report>,
    pub stress: Record<stress::Report>,
    pub stress_gpu: Half<stress::gpu::Report>,
    pub resources: Record<resources::Report>,
    pub resources_gpu: Half<resources::gpu::Report>,
    pub code: Record<code::Report>,
    pub code_gpu: Half<code::gpu::Report>,
    pub bench: Record<bench::Report>,
    pub profile: Record<profile::Report>,
}

impl Evidence {
    /// The outcomes, in the order of [`Stage::ALL`].
    pub fn outcomes(&self, subjects: &Subjects) -> Vec<Outcome> {
        let Subjects { emulated, measured, launched, profiled } = subjects;
        let both: Vec<Subject> = emulated.iter().chain(measured).cloned().collect();
        vec![
            Outcome::of(&self.assemble, emulated),
            Outcome::of_both(&self.parity, emulated, &self.parity_gpu, &both),
            Outcome::of_both(&self.sanitize, emulated, &self.sanitize_gpu, emulated),
            Outcome::of_both(&self.stress, emulated, &self.stress_gpu, launched),
            Outcome::of_both(&self.resources, emulated, &self.resources_gpu, &both),
            Outcome::of_both(&self.code, emulated, &self.code_gpu, &both),
            Outcome::of(&self.bench, measured),
            Outcome::of(&self.profile, profiled),
        ]
    }

    /// The log of a stage's half on a GPU, where it has one and there was a GPU.
    pub fn gpu_log(&self, stage: Stage) -> Option<String> {
        match stage {
            Stage::Parity => (self.parity_gpu != Half::NoGpu).then(half::path::<parity::gpu::Report>),
            Stage::Sanitize => (self.sanitize_gpu != Half::NoGpu).then(half::path::<sanitize::gpu::Report>),
            Stage::Stress => (self.stress_gpu != Half::NoGpu).then(half::path::<stress::gpu::Report>),
            Stage::Resources => self.has_driver_log().then(half::path::<resources::gpu::Report>),
            Stage::Code => self.has_driver_log().then(half::path::<code::gpu::Report>),
            Stage::Assemble | Stage::Bench | Stage::Profile => None,
        }
    }

    fn has_driver_log(&self) -> bool {
        !matches!(self.code_gpu, Half::NoGpu | Half::NotAsked)
    }

    /// Path and text of every log.
    pub fn files(&self) -> Vec<(String, String)> {
        fn file<L: Log>(record: &Record<L>) -> (String, String) {
            (L::STAGE.log(), write(record))
        }
        fn half<L: GpuLog>(half: &Half<L>) -> (String, String) {
            (half::path::<L>(), half::write(half))
        }
        let mut files = vec![
            file(&self.assemble),
            file(&self.parity),
            half(&self.parity_gpu),
            file(&self.sanitize),
            half(&self.sanitize_gpu),
            file(&self.stress),
            half(&self.stress_gpu),
            file(&self.resources),
            file(&self.code),
            file(&self.bench),
            file(&self.profile),
        ];
        files.extend((self.resources_gpu != Half::NotAsked).then(|| half(&self.resources_gpu)));
        files.extend((self.code_gpu != Half::NotAsked).then(|| half(&self.code_gpu)));
        files
    }

    /// Reads every log with the texts that `text` finds by path.
    pub fn read<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Result<Evidence, String> {
        fn open<'a, L: Log>(text: impl Fn(&str) -> Option<&'a str>) -> Result<Record<L>, String> {
            let path = L::STAGE.log();
            let content = text(&path).ok_or_else(|| format!("{path} is missing or not text"))?;
            read(content).map_err(|error| format!("{path}: {error}"))
        }
        fn half<'a, L: GpuLog>(text: impl Fn(&str) -> Option<&'a str>) -> Result<Half<L>, String> {
            let path = half::path::<L>();
            let content = text(&path).ok_or_else(|| format!("{path} is missing or not text"))?;
            half::read(content).map_err(|error| format!("{path}: {error}"))
        }
        // Packs that were made before the driver's code was judged have neither log.
        let is_older = [half::path::<resources::gpu::Report>(), half::path::<code::gpu::Report>()]
            .iter()
            .all(|path| text(path).is_none());
        Ok(Evidence {
            assemble: open(&text)?,
            parity: open(&text)?,
            parity_gpu: half(&text)?,
            sanitize: open(&text)?,
            sanitize_gpu: half(&text)?,
            stress: open(&text)?,
            stress_gpu: half(&text)?,
            resources: open(&text)?,
            resources_gpu: if is_older { Half::NotAsked } else { half(&text)? },
            code: open(&text)?,
            code_gpu: if is_older { Half::NotAsked } else { half(&text)? },
            bench: open(&text)?,
            profile: open(&text)?,
        })
    }
}

/// `1 kernel`, `4 kernels`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
