//! The half of a stage that needs a GPU. Without one the stage is what the emulator shows; with one, both halves must hold.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Stage, json};
use crate::SCHEMA;
use crate::figures::Subject;
use crate::guard::{Guard, Objection};
use crate::outcome::State;

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Half<L> {
    /// The machine has no GPU, or none was asked for: the emulator's half stands for itself.
    NoGpu,
    /// There was one, and nobody asked it: the pack is older than the question, and has no log of it.
    NotAsked,
    Ran(L),
    /// There is a GPU, and nothing was shown on it.
    Died {
        why: String,
    },
}

/// What a GPU showed.
pub trait GpuLog: Clone + PartialEq + Serialize + DeserializeOwned {
    const STAGE: Stage;

    /// The kernels that it speaks of.
    fn subjects(&self) -> Vec<Subject>;

    /// What speaks against them, part by part.
    fn objections(&self) -> Vec<Vec<Objection>>;

    /// The figures in one sentence.
    fn figures(&self) -> String;
}

impl<L: GpuLog> Half<L> {
    pub(crate) fn from(result: Result<L, String>) -> Half<L> {
        result.map_or_else(|why| Half::Died { why }, Half::Ran)
    }

    /// What speaks against kernels that it should be about.
    pub(crate) fn objections(&self, subjects: &[Subject]) -> Vec<Vec<Objection>> {
        match self {
            Half::NoGpu | Half::NotAsked => vec![],
            Half::Died { why } => vec![vec![Objection::fail(Guard::Witness, format!("on the GPU: {why}"))]],
            Half::Ran(log) if log.subjects() != subjects => {
                let why = "the log of the GPU does not speak of these kernels".into();
                vec![vec![Objection { guard: Guard::Stale, state: State::Stale { why } }]]
            }
            Half::Ran(log) => log.objections(),
        }
    }

    /// To be put behind what the emulator showed.
    pub(crate) fn figures(&self) -> String {
        match self {
            Half::NoGpu | Half::NotAsked | Half::Died { .. } => String::new(),
            Half::Ran(log) => format!("; on the GPU: {}", log.figures()),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HalfFile<L> {
    schema: u32,
    stage: Stage,
    gpu: Half<L>,
}

/// Its log in a pack.
pub(crate) fn path<L: GpuLog>() -> String {
    format!("logs/{}.gpu.json", L::STAGE)
}

pub(crate) fn write<L: GpuLog>(half: &Half<L>) -> String {
    json(&HalfFile { schema: SCHEMA, stage: L::STAGE, gpu: half.clone() })
}

/// Reads what [`write`] wrote, and nothing else.
pub(crate) fn read<L: GpuLog>(text: &str) -> Result<Half<L>, String> {
    let file: HalfFile<L> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA || file.stage != L::STAGE || write(&file.gpu) != text {
        return Err(format!("expected schema {SCHEMA}, stage {}, in the form that is written", L::STAGE));
    }
    Ok(file.gpu)
}
