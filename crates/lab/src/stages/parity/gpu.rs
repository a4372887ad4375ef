//! The same kernels on a GPU: witnesses, whose bits are compared with the emulator's, and every problem that is measured.

use cuda::Cuda;
use launch::backend::{Backend, Options};
use serde::{Deserialize, Serialize};

use super::super::half::GpuLog;
use super::super::{Stage, counted};
use super::Report as Emulated;
use crate::case::Case;
use crate::figures::{Figure, Seen, Subject};
use crate::gpu::rows;
use crate::guard::{Guard, Objection};
use crate::harness::{self, Poison};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    pub problem: String,
    pub data_seed: u64,
    /// SHA-256 of the machine code that the driver loaded.
    pub cubin: String,
    pub seen: Seen,
    /// The largest error in units of what is allowed.
    pub error: Figure,
    /// How many rows were computed in float64, and how many there are.
    pub rows: [usize; 2],
    /// Of witnesses: whether the emulator left the same bits.
    pub as_emulated: Option<bool>,
}

/// One case on the GPU.
pub(crate) fn run(cuda: &Cuda, case: &Case, data_seed: u64, emulated: Option<&Emulated>) -> Result<Entry, String> {
    let in_case = |error: String| format!("{}: {error}", case.name);
    let before = harness::memory(case, data_seed, Poison::Signalling).map_err(|error| in_case(error.to_string()))?;
    let mut loaded = cuda.load(&case.kernel).map_err(|error| in_case(error.to_string()))?;
    let cubin = loaded.module().hash().unwrap_or_default();
    let asked = harness::asked(&case.kernel, &case.resolved.launches);
    let run = harness::run_loaded(cuda, case, (&mut loaded, asked), &before, &Options::default());
    let run = run.map_err(|error| in_case(error.to_string()))?;
    let error = rows::error(case, &run.memory, data_seed).map_err(in_case)?;
    let subject = case.subject();
    let same = |entry: &super::Entry| entry.seen.results() == run.seen.results();
    let emulated = emulated.and_then(|log| log.kernels.iter().find(|entry| entry.subject == subject));
    Ok(Entry {
        as_emulated: emulated.map(same),
        problem: case.problem.to_string(),
        data_seed,
        cubin,
        error,
        rows: rows::count(&case.problem),
        seen: run.seen,
        subject,
    })
}

impl Entry {
    fn objections(&self) -> Vec<Objection> {
        let place = format!("{}, on the GPU", self.subject.kernel);
        let unseen = self.seen.missing().map(|what| Objection::not_run(Guard::Witness, format!("{place}: {what}")));
        let offences = self.seen.offences().into_iter();
        let offences = offences.map(|(guard, what)| Objection::fail(guard, format!("{place}: {what}")));
        let wrong = (self.error.value() > 1.0).then(|| {
            let why = format!("{place}: the error is {} times what is allowed ({})", self.error, self.problem);
            Objection::fail(self.error.guard(), why)
        });
        unseen.into_iter().chain(offences).chain(wrong).collect()
    }
}

impl GpuLog for Report {
    const STAGE: Stage = Stage::Parity;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Vec<Vec<Objection>> {
        self.kernels.iter().map(Entry::objections).collect()
    }

    fn figures(&self) -> String {
        let worst = self.kernels.iter().map(|entry| entry.error.value()).fold(0.0, f64::max);
        let compared: Vec<bool> = self.kernels.iter().filter_map(|entry| entry.as_emulated).collect();
        let same = compared.iter().filter(|same| **same).count();
        format!(
            "{}, largest error {}; {same} of {} bit-equal to the emulator",
            counted(self.kernels.len(), "problem"),
            Figure::new(worst),
            compared.len(),
        )
    }
}
