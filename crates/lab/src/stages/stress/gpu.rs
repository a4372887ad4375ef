//! Launches back to back on a GPU, on one stream and on eight, over rotating buffers whose outputs are poisoned before each
//! launch; and the kernel with delays in it.

use cuda::{Cuda, Loaded, Stream};
use launch::Memory;
use launch::backend::Backend;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::super::half::GpuLog;
use super::super::{Stage, counted};
use super::delays::delayed;
use crate::Settings;
use crate::case::Case;
use crate::figures::{Figure, Subject};
use crate::gpu::{BufferKernels, Code, Fingerprint, numbers, rows, sets};
use crate::guard::{Guard, Objection};
use crate::harness::{self, Poison};

/// Sets of buffers that launches rotate over, and streams of the second run: one for each set.
const SETS: usize = 8;
/// Kernels with delays.
const DELAYED: u64 = 6;
/// Bytes that outputs hold before a launch, in turns.
const POISON: [u8; 2] = [0xff, 0xa5];

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
    pub cubin: String,
    /// Of the first launch, in units of what is allowed.
    pub error: Figure,
    pub runs: Vec<Launches>,
    pub delays: Delays,
}

/// Launches that nobody waited for in between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launches {
    pub streams: usize,
    pub launches: usize,
    /// Launches that left other bits than the first on the same inputs.
    pub different: usize,
    /// Buffers whose inputs were changed.
    pub touched: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    pub kernels: u64,
    /// Instructions with a delay before them, in each.
    pub sites: usize,
    pub different: usize,
}

/// One case on the GPU.
pub(crate) fn run(cuda: &Cuda, case: &Case, settings: &Settings) -> Result<Entry, String> {
    let words = |error: cuda::Error| format!("{}: {error}", case.name);
    let drawn = |set: usize| harness::memory(case, settings.data_seed + set as u64, Poison::Signalling);
    let memories: Result<Vec<Memory>, _> = (0..SETS).into_par_iter().map(drawn).collect();
    let memories = memories.map_err(|error| format!("{}: {error}", case.name))?;
    let mut track = Track::new(cuda, case, &memories).map_err(words)?;
    let mut left = memories[0].clone();
    track.read_outputs(&mut left).map_err(words)?;
    let error = rows::error(case, &left, settings.data_seed)?;
    let mut runs = Vec::new();
    for streams in [1, SETS] {
        runs.push(track.launches(settings.launches, streams).map_err(words)?);
    }
    let delays = delays(cuda, case, &memories[0], track.first[0].as_slice())?;
    let cubin = track.sets[0].module().hash().unwrap_or_default();
    Ok(Entry { subject: case.subject(), problem: case.problem.to_string(), cubin, error, runs, delays })
}

/// Sets of buffers, and what the first launch on each left.
struct Track {
    sets: Vec<Loaded>,
    streams: Vec<Stream>,
    kernels: BufferKernels,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    before: Vec<Vec<Fingerprint>>,
    first: Vec<Vec<Fingerprint>>,
}

impl Track {
    fn new(cuda: &Cuda, case: &Case, memories: &[Memory]) -> Result<Track, cuda::Error> {
        let streams = (0..SETS).map(|_| Stream::new(cuda.context())).collect::<Result<_, _>>()?;
        let mut track = Track {
            sets: sets(cuda, case, memories, Code::Apart)?,
            streams,
            kernels: BufferKernels::new(cuda.context())?,
            inputs: numbers(case, &case.inputs()),
            outputs: numbers(case, &case.outputs()),
            before: vec![],
            first: vec![],
        };
        track.before = track.prints(&track.inputs)?;
        for (set, stream) in track.sets.iter_mut().zip(&track.streams) {
            set.enqueue(stream)?;
        }
        track.first = track.prints(&track.outputs)?;
        Ok(track)
    }

    /// Of some buffers, set by set, after what each one's stream holds.
    fn prints(&self, buffers: &[usize]) -> Result<Vec<Vec<Fingerprint>>, cuda::Error> {
        let of_set = |(set, stream): (&Loaded, &Stream)| {
            let places: Vec<_> = buffers.iter().map(|buffer| set.address(*buffer)).collect();
            self.kernels.fingerprints(stream, &self.kernels.list(stream, &places)?)
        };
        self.sets.iter().zip(&self.streams).map(of_set).collect()
    }

    fn read_outputs(&self, memory: &mut Memory) -> Result<(), cuda::Error> {
        for &output in &self.outputs {
            memory.buffers[output].contents = self.sets[0].contents(&self.streams[0], output)?.into();
        }
        Ok(())
    }

    /// Poison, launch and fingerprint again and again, everything queued before anything is waited for.
    fn launches(&mut self, launches: usize, streams: usize) -> Result<Launches, cuda::Error> {
        let Track { sets, kernels, outputs, streams: all, .. } = &mut *self;
        let queues = &all[..streams];
        let places = |set: &Loaded| outputs.iter().map(|output| set.address(*output)).collect::<Vec<_>>();
        let lists = sets.iter().map(|set| kernels.list(&queues[0], &places(set))).collect::<Result<Vec<_>, _>>()?;
        let prints = kernels.prints(&queues[0], launches * outputs.len())?;
        queues[0].synchronise()?;
        for launch in 0..launches {
            let (set, stream) = (launch % SETS, &queues[launch % streams]);
            kernels.overwrite(stream, &lists[set], POISON[launch / SETS % POISON.len()])?;
            sets[set].enqueue(stream)?;
            kernels.take(stream, &lists[set], &prints, launch * outputs.len())?;
        }
        for queue in queues {
            queue.synchronise()?;
        }
        let taken = prints.read(&queues[0])?;
        let differs = |(launch, prints): &(usize, &[Fingerprint])| *prints != self.first[launch % SETS].as_slice();
        let different = taken.chunks(self.outputs.len().max(1)).enumerate().filter(differs).count();
        let touched = self.prints(&self.inputs)?.iter().zip(&self.before).filter(|(now, before)| now != before).count();
        Ok(Launches { streams, launches, different, touched })
    }
}

/// The kernel with delays, once for each seed, on the first set's inputs.
fn delays(cuda: &Cuda, case: &Case, memory: &Memory, expected: &[Fingerprint]) -> Result<Delays, String> {
    let mut delays = Delays { kernels: DELAYED, sites: 0, different: 0 };
    for seed in 0..DELAYED {
        let (kernel, sites) = delayed(&case.kernel, seed)?;
        let words = |error: cuda::Error| format!("{}, with delays: {error}", case.name);
        let mut loaded = cuda.load(&kernel).map_err(words)?;
        delays.sites = sites;
        delays.different += usize::from(left_by(cuda, case, &mut loaded, memory).map_err(words)? != expected);
    }
    Ok(delays)
}

fn left_by(cuda: &Cuda, case: &Case, loaded: &mut Loaded, memory: &Memory) -> Result<Vec<Fingerprint>, cuda::Error> {
    let (stream, kernels) = (Stream::new(cuda.context())?, BufferKernels::new(cuda.context())?);
    loaded.fill(memory)?;
    loaded.enqueue(&stream)?;
    let places: Vec<_> = numbers(case, &case.outputs()).iter().map(|output| loaded.address(*output)).collect();
    kernels.fingerprints(&stream, &kernels.list(&stream, &places)?)
}

impl Entry {
    fn objections(&self) -> Vec<Objection> {
        let place = format!("{}, on the GPU", self.subject.kernel);
        let idle = self.runs.len() != 2 || self.runs.iter().any(|run| run.launches == 0) || self.delays.kernels == 0;
        let idle = idle.then(|| Objection::not_run(Guard::Witness, format!("{place}: nothing was launched again")));
        let placeless = (self.delays.sites == 0).then(|| {
            let why = format!("{place}: no delay has a place, since nothing in the kernel orders anything");
            Objection::not_run(Guard::Witness, why)
        });
        let wrong = (self.error.value() > 1.0)
            .then(|| Objection::fail(self.error.guard(), format!("{place}: the result is wrong")));
        let runs = self.runs.iter().flat_map(|run| run.objections(&place));
        let late = (self.delays.different > 0).then(|| {
            let (different, of) = (self.delays.different, self.delays.kernels);
            Objection::fail(
                Guard::BitEqual,
                format!("{place}: delays change the result in {different} of {of} kernels"),
            )
        });
        idle.into_iter().chain(placeless).chain(wrong).chain(runs).chain(late).collect()
    }
}

impl Launches {
    fn objections(&self, place: &str) -> Vec<Objection> {
        let Launches { streams, launches, different, touched } = self;
        let differ = (*different > 0).then(|| {
            let why = format!(
                "{place}: {different} of {launches} launches on {streams} streams left other bits than the first"
            );
            Objection::fail(Guard::BitEqual, why)
        });
        let changed = (*touched > 0).then(|| {
            Objection::fail(Guard::Inputs, format!("{place}: inputs were changed by launches on {streams} streams"))
        });
        differ.into_iter().chain(changed).collect()
    }
}

impl GpuLog for Report {
    const STAGE: Stage = Stage::Stress;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Vec<Vec<Objection>> {
        self.kernels.iter().map(Entry::objections).collect()
    }

    fn figures(&self) -> String {
        let launches: usize = self.kernels.iter().flat_map(|entry| &entry.runs).map(|run| run.launches).sum();
        let different: usize = self.kernels.iter().flat_map(|entry| &entry.runs).map(|run| run.different).sum();
        let delayed: u64 = self.kernels.iter().map(|entry| entry.delays.kernels).sum();
        let late: usize = self.kernels.iter().map(|entry| entry.delays.different).sum();
        format!(
            "{} launches of {} on one stream and on {SETS}, {different} with other bits; {delayed} with injected delays, {late} \
             with other bits",
            launches,
            counted(self.kernels.len(), "kernel"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guards(delays: Delays) -> Vec<Guard> {
        let subject = Subject { kernel: "k".into(), module: "m".into(), recipe: "r".into() };
        let run = |streams| Launches { streams, launches: 1000, different: 0, touched: 0 };
        let (problem, cubin, error) = ("B1 H1 S64 D64".into(), "c".into(), Figure::new(0.5));
        let entry = Entry { subject, problem, cubin, error, runs: vec![run(1), run(SETS)], delays };
        entry.objections().iter().map(|objection| objection.guard).collect()
    }

    #[test]
    fn delays_without_a_place_show_nothing() {
        assert!(guards(Delays { kernels: 6, sites: 4, different: 0 }).is_empty());
        assert_eq!(guards(Delays { kernels: 6, sites: 0, different: 0 }), [Guard::Witness]);
        assert_eq!(guards(Delays { kernels: 6, sites: 4, different: 1 }), [Guard::BitEqual]);
    }
}
