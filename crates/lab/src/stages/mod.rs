//! The stages of a proof, one file each.
//!
//! A stage runs and leaves a [`Log`]: figures, hashes, findings. What it means is said by [`Log::objections`] alone, which
//! sees nothing but the log; so the verdict in a pack can be derived again by anybody who reads it.

/// A stage that this version cannot run. Its log has no value, so that nobody can write one that passes.
macro_rules! not_yet {
    ($stage:expr, $why:literal) => {
        use crate::figures::Subject;
        use crate::guard::Objections;
        use crate::stages::{Log, Never, Record, Stage};

        /// There is none in this version.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct Report(Never);

        impl Log for Report {
            const STAGE: Stage = $stage;

            fn subjects(&self) -> Vec<Subject> {
                match self.0 {}
            }

            fn objections(&self) -> Objections {
                match self.0 {}
            }

            fn figures(&self) -> String {
                match self.0 {}
            }
        }

        pub(crate) fn run() -> Record<Report> {
            Record::NotRun { why: $why.into() }
        }
    };
}
pub(crate) use not_yet;

pub mod assemble;
pub mod bench;
pub mod code;
pub mod parity;
pub mod profile;
pub mod resources;
pub mod sanitize;
pub mod stress;

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::SCHEMA;
use crate::figures::Subject;
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
}

/// A log, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record<L> {
    Ran(L),
    NotRun { why: String },
}

impl<L> Record<L> {
    /// A stage that died did not run.
    pub(crate) fn from(result: Result<L, String>) -> Record<L> {
        result.map_or_else(|why| Record::NotRun { why }, Record::Ran)
    }
}

/// A log of a stage that this version cannot run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Never {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogFile<L> {
    schema: u32,
    stage: Stage,
    record: Record<L>,
}

/// The file of a record: one text for one record.
pub(crate) fn write<L: Log>(record: &Record<L>) -> String {
    json(&LogFile { schema: SCHEMA, stage: L::STAGE, record: record.clone() })
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

/// The records of all stages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evidence {
    pub assemble: Record<assemble::Report>,
    pub parity: Record<parity::Report>,
    pub sanitize: Record<sanitize::Report>,
    pub stress: Record<stress::Report>,
    pub resources: Record<resources::Report>,
    pub code: Record<code::Report>,
    pub bench: Record<bench::Report>,
    pub profile: Record<profile::Report>,
}

impl Evidence {
    /// The outcomes, in the order of [`Stage::ALL`].
    pub fn outcomes(&self, subjects: &[Subject]) -> Vec<Outcome> {
        vec![
            Outcome::of(&self.assemble, subjects),
            Outcome::of(&self.parity, subjects),
            Outcome::of(&self.sanitize, subjects),
            Outcome::of(&self.stress, subjects),
            Outcome::of(&self.resources, subjects),
            Outcome::of(&self.code, subjects),
            Outcome::of(&self.bench, subjects),
            Outcome::of(&self.profile, subjects),
        ]
    }

    /// Path and text of every log.
    pub fn files(&self) -> Vec<(String, String)> {
        fn file<L: Log>(record: &Record<L>) -> (String, String) {
            (L::STAGE.log(), write(record))
        }
        vec![
            file(&self.assemble),
            file(&self.parity),
            file(&self.sanitize),
            file(&self.stress),
            file(&self.resources),
            file(&self.code),
            file(&self.bench),
            file(&self.profile),
        ]
    }

    /// Reads every log with the texts that `text` finds by path.
    pub fn read<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Result<Evidence, String> {
        fn open<'a, L: Log>(text: impl Fn(&str) -> Option<&'a str>) -> Result<Record<L>, String> {
            let path = L::STAGE.log();
            let content = text(&path).ok_or_else(|| format!("{path} is missing or not text"))?;
            read(content).map_err(|error| format!("{path}: {error}"))
        }
        Ok(Evidence {
            assemble: open(&text)?,
            parity: open(&text)?,
            sanitize: open(&text)?,
            stress: open(&text)?,
            resources: open(&text)?,
            code: open(&text)?,
            bench: open(&text)?,
            profile: open(&text)?,
        })
    }
}

/// `1 kernel`, `4 kernels`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
