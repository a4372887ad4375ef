//! A kernel of the user's or of ours, ready to be timed.

use std::time::{Duration, Instant};

use cuda::{Cuda, Event, Graph, Loaded, Stream};
use launch::{Contents, Memory};

use super::buffers::{BufferKernels, Buffers, Fingerprint};
use super::clocks::Clocks;
use super::delay::Delay;
use super::plan::{Contract, Plan};
use super::rows;
use super::signs::Signs;
use super::stamp::Stamps;
use crate::case::Case;
use crate::figures::Figure;
use crate::measure::Reading;

/// Bytes of NaN in every type, and of plausible numbers: what outputs hold before a sample, in turns.
const POISON: [u8; 2] = [0xff, 0xa5];

/// Clocks may disagree because the host was busy with something else; who leaves work outside of what is timed does it every time.
const ATTEMPTS: usize = 3;

/// Decides which rows of large problems are checked.
const ROWS_SEED: u64 = 1;

/// A case on a GPU, with as many sets of buffers as the plan says.
pub struct Candidate {
    sets: Vec<Loaded>,
    /// All outputs and all inputs of all sets.
    outputs: Buffers,
    inputs: Buffers,
    /// Of these, V and O, whose signs change from sample to sample.
    values: Buffers,
    results: Buffers,
    signs: Signs,
    kernels: BufferKernels,
    plan: Plan,
    stream: Stream,
    stamps: Stamps,
    graph: Option<Graph>,
    /// At the end of every sample.
    delay: Option<Delay>,
    samples: usize,
    /// What inputs held before anything ran, and outputs after the first run, which nobody timed.
    before: Vec<Fingerprint>,
    after: Vec<Fingerprint>,
    /// The largest error of the first set, in units of what is allowed.
    pub error: Figure,
    /// SHA-256 of the machine code that runs.
    pub cubin: Option<String>,
    /// What was wrong with what a sample left: the first time.
    pub offence: Option<String>,
}

impl Candidate {
    /// Loads, runs every set once, and judges the first: what is wrong is not timed.
    pub fn new(cuda: &Cuda, case: &Case, plan: Plan, memories: &[Memory]) -> Result<Candidate, String> {
        let (mut candidate, outputs) =
            Candidate::place(cuda, case, plan, memories).map_err(|error| error.to_string())?;
        candidate.error = candidate.first_run(case, &memories[0], &outputs)?;
        if plan.contract == Contract::Graph {
            candidate.graph = Some(candidate.capture().map_err(|error| error.to_string())?);
        }
        Ok(candidate)
    }

    /// Also the numbers of the outputs among a set's buffers.
    fn place(
        cuda: &Cuda,
        case: &Case,
        plan: Plan,
        memories: &[Memory],
    ) -> Result<(Candidate, Vec<usize>), cuda::Error> {
        let stream = Stream::new(cuda.context())?;
        let sets = sets(cuda, case, memories)?;
        let kernels = BufferKernels::new(cuda.context())?;
        let [inputs, outputs] = [case.inputs(), case.outputs()].map(|names| numbers(case, &names));
        let list = |numbers: &[usize]| {
            let of_set = |set: &Loaded| numbers.iter().map(|number| set.address(*number)).collect::<Vec<_>>();
            kernels.list(&stream, &sets.iter().flat_map(of_set).collect::<Vec<_>>())
        };
        let [values, results] = [&case.contract.v, &case.contract.o].map(|name| numbers(case, &[name.as_str()]));
        let candidate = Candidate {
            values: list(&values)?,
            results: list(&results)?,
            signs: Signs::new(&kernels, &stream, case.problem.value_dim() as usize)?,
            inputs: list(&inputs)?,
            outputs: list(&outputs)?,
            cubin: sets[0].module().hash(),
            sets,
            kernels,
            plan,
            stamps: Stamps::new(cuda.context())?,
            stream,
            graph: None,
            delay: None,
            samples: 0,
            before: vec![],
            after: vec![],
            error: Figure::new(f64::INFINITY),
            offence: None,
        };
        Ok((candidate, outputs))
    }

    /// Runs every set and remembers what it left.
    fn first_run(&mut self, case: &Case, memory: &Memory, outputs: &[usize]) -> Result<Figure, String> {
        let words = |error: cuda::Error| error.to_string();
        self.before = self.kernels.fingerprints(&self.stream, &self.inputs).map_err(words)?;
        for set in &mut self.sets {
            set.enqueue(&self.stream).map_err(words)?;
        }
        self.signs.flip(&self.kernels, &self.stream, &self.results, (0, true)).map_err(words)?;
        self.after = self.kernels.fingerprints(&self.stream, &self.outputs).map_err(words)?;
        let mut left = memory.clone();
        for &output in outputs {
            let bytes = self.sets[0].contents(&self.stream, output).map_err(words)?;
            left.buffers[output].contents = Contents::from(bytes);
        }
        let error = rows::error(case, &left, ROWS_SEED)?;
        if error.value() > 1.0 {
            return Err(format!("wrong: its error is {error} times what is allowed"));
        }
        Ok(error)
    }

    fn capture(&mut self) -> Result<Graph, cuda::Error> {
        let Candidate { sets, stream, stamps, plan, delay, .. } = self;
        Graph::capture(stream, || {
            stamps.begin(stream)?;
            (0..plan.calls).try_for_each(|call| sets[call % plan.sets].enqueue(stream))?;
            delay.iter().try_for_each(|delay| delay.enqueue(stream))?;
            stamps.end(stream)
        })
    }

    /// From now on each call takes so many seconds longer: what a sample's calls lose is lost at its end.
    pub fn slow_down(&mut self, seconds: f64) -> Result<(), String> {
        let time = Duration::from_secs_f64(seconds * self.plan.calls as f64);
        let slowed = Delay::new(self.stream.context(), time).and_then(|delay| {
            self.delay = Some(delay);
            self.capture()
        });
        self.graph = Some(slowed.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Warms up, poisons all outputs, changes signs of V, times the plan's calls, and looks at what they left. Nothing between
    /// warming up and the sample lets the GPU rest: its clock follows what it has just done.
    pub fn sample(&mut self) -> Result<Reading, String> {
        let mut reading = self.timed().map_err(|error| error.to_string())?;
        for _ in 1..ATTEMPTS {
            if reading.is_err() {
                reading = self.timed().map_err(|error| error.to_string())?;
            }
        }
        let reading = reading?;
        let offence = self.look().map_err(|error| error.to_string())?;
        self.offence = self.offence.take().or(offence);
        Ok(reading)
    }

    fn timed(&mut self) -> Result<Result<Reading, String>, cuda::Error> {
        let calls = self.plan.calls as f64;
        for _ in 0..self.plan.warm_ups {
            self.enqueue()?;
        }
        let byte = POISON[self.samples % POISON.len()];
        self.samples += 1;
        self.kernels.overwrite(&self.stream, &self.outputs, byte)?;
        self.signs.flip(&self.kernels, &self.stream, &self.values, (self.samples, false))?;
        if self.graph.is_none() {
            self.stream.synchronise()?;
        }
        let begun = Instant::now();
        let start = Event::record(&self.stream)?;
        self.enqueue()?;
        let issued = begun.elapsed().as_secs_f64();
        let end = Event::record(&self.stream)?;
        // All of the GPU: what a kernel left on another stream counts, too.
        self.stream.synchronise()?;
        let ended = begun.elapsed().as_secs_f64();
        self.stream.context().synchronise()?;
        let waited = begun.elapsed().as_secs_f64();
        let (events, passed) = (end.since(&start)?.as_secs_f64(), self.stamps.passed(&self.stream)?);
        let seconds = match self.plan.contract {
            Contract::Graph | Contract::Stream => events,
            Contract::Latency => waited,
            Contract::Host => issued,
        };
        let clocks = Clocks { events, timer: passed.seconds, host: waited, after: waited - ended };
        if let Some(why) = clocks.disagreement(self.plan.contract) {
            return Ok(Err(why));
        }
        let megahertz = passed.megahertz.map(Figure::new);
        Ok(Ok(Reading { seconds: Figure::new(seconds / calls), megahertz }))
    }

    fn enqueue(&mut self) -> Result<(), cuda::Error> {
        if let Some(graph) = &self.graph {
            return graph.launch(&self.stream);
        }
        self.stamps.begin(&self.stream)?;
        for call in 0..self.plan.calls {
            self.sets[call % self.plan.sets].enqueue(&self.stream)?;
        }
        self.stamps.end(&self.stream)
    }

    /// But for the signs, the sample left in every set what the first run did, and no input was changed.
    fn look(&self) -> Result<Option<String>, cuda::Error> {
        let sample = self.samples;
        self.signs.flip(&self.kernels, &self.stream, &self.values, (sample, false))?;
        self.signs.flip(&self.kernels, &self.stream, &self.results, (sample, true))?;
        if self.kernels.fingerprints(&self.stream, &self.outputs)? != self.after {
            return Ok(Some(format!(
                "what sample {sample} computed differs from the same calls outside of the timing: it did not do the work, or \
                 does it differently from call to call"
            )));
        }
        let touched = self.kernels.fingerprints(&self.stream, &self.inputs)? != self.before;
        Ok(touched.then(|| format!("sample {sample} changed its inputs")))
    }
}

/// The kernel with buffers of its own for each memory; its code is compiled once.
pub(crate) fn sets(cuda: &Cuda, case: &Case, memories: &[Memory]) -> Result<Vec<Loaded>, cuda::Error> {
    let mut sets: Vec<Loaded> = Vec::new();
    for memory in memories {
        let mut loaded = match sets.first() {
            None => launch::backend::Backend::load(cuda, &case.kernel)?,
            Some(first) => cuda.load_again(&case.kernel, first)?,
        };
        loaded.fill(memory)?;
        sets.push(loaded);
    }
    Ok(sets)
}

/// Of buffers, in the recipe.
pub(crate) fn numbers(case: &Case, names: &[&str]) -> Vec<usize> {
    let number = |name: &&str| case.resolved.buffers.iter().position(|buffer| buffer.name == *name);
    names.iter().filter_map(number).collect()
}
