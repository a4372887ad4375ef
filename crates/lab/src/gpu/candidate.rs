//! A kernel of the user's or of ours, ready to be timed.

use std::time::{Duration, Instant};

use cuda::{Cuda, Event, Graph, Loaded, Stream};
use launch::{Contents, Memory, hash};

use super::clocks::Clocks;
use super::plan::{Contract, Plan};
use super::rows;
use super::stamp::Stamps;
use crate::case::Case;
use crate::figures::Figure;
use crate::measure::Reading;

/// Bytes of NaN in every type, and of plausible numbers: what outputs hold before a sample, in turns.
const POISON: [u8; 2] = [0xff, 0xa5];

/// Decides which rows of large problems are checked.
const ROWS_SEED: u64 = 1;

/// Before it is known how long a launch takes.
const FIRST_HOLD: Duration = Duration::from_millis(2);

/// A case on a GPU, with as many sets of buffers as the plan says.
pub struct Candidate {
    sets: Vec<Set>,
    outputs: Vec<usize>,
    inputs: Vec<usize>,
    plan: Plan,
    stream: Stream,
    stamps: Stamps,
    graph: Option<Graph>,
    samples: usize,
    /// How long the host took to put a sample into the stream; the GPU is held meanwhile.
    issued: Duration,
    /// The largest error of the first set, in units of what is allowed.
    pub error: Figure,
    /// SHA-256 of the machine code that runs.
    pub cubin: Option<String>,
}

struct Set {
    loaded: Loaded,
    /// Hashes of inputs and of outputs, as the first run, which nobody timed, left them.
    before: Vec<String>,
    after: Vec<String>,
}

impl Candidate {
    /// Loads, runs every set once, and judges the first: what is wrong is not timed.
    pub fn new(cuda: &Cuda, case: &Case, plan: Plan, memories: &[Memory]) -> Result<Candidate, String> {
        let words = |error: cuda::Error| error.to_string();
        let number = |name: &&str| case.resolved.buffers.iter().position(|buffer| buffer.name == **name);
        let outputs: Vec<usize> = case.outputs().iter().filter_map(number).collect();
        let inputs: Vec<usize> = case.inputs().iter().filter_map(number).collect();
        let stream = Stream::new(cuda.context()).map_err(words)?;
        let mut sets: Vec<Set> = Vec::new();
        for memory in memories {
            let mut loaded = match sets.first() {
                None => launch::backend::Backend::load(cuda, &case.kernel).map_err(words)?,
                Some(first) => cuda.load_again(&case.kernel, &first.loaded).map_err(words)?,
            };
            loaded.fill(memory).map_err(words)?;
            sets.push(Set { loaded, before: vec![], after: vec![] });
        }
        let stamps = Stamps::new(cuda.context()).map_err(words)?;
        let cubin = sets[0].loaded.module().hash();
        let error = Figure::new(f64::INFINITY);
        let mut candidate = Candidate {
            sets,
            outputs,
            inputs,
            plan,
            stream,
            stamps,
            graph: None,
            samples: 0,
            issued: FIRST_HOLD,
            error,
            cubin,
        };
        candidate.error = candidate.first_run(case, &memories[0])?;
        if plan.contract == Contract::Graph {
            candidate.graph = Some(candidate.capture().map_err(words)?);
        }
        Ok(candidate)
    }

    /// Runs every set and remembers what it left.
    fn first_run(&mut self, case: &Case, memory: &Memory) -> Result<Figure, String> {
        let words = |error: cuda::Error| error.to_string();
        for set in &mut self.sets {
            set.before = hashes(&set.loaded, &self.stream, &self.inputs).map_err(words)?;
            set.loaded.enqueue(&self.stream).map_err(words)?;
        }
        self.stream.synchronise().map_err(words)?;
        let mut after = memory.clone();
        for set in &mut self.sets {
            set.after = hashes(&set.loaded, &self.stream, &self.outputs).map_err(words)?;
        }
        for &output in &self.outputs {
            let bytes = self.sets[0].loaded.contents(&self.stream, output).map_err(words)?;
            after.buffers[output].contents = Contents::from(bytes);
        }
        let error = rows::error(case, &after, ROWS_SEED)?;
        if error.value() > 1.0 {
            return Err(format!("wrong: its error is {error} times what is allowed"));
        }
        Ok(error)
    }

    fn capture(&mut self) -> Result<Graph, cuda::Error> {
        let Candidate { sets, stream, stamps, plan, .. } = self;
        Graph::capture(stream, || {
            stamps.begin(stream)?;
            (0..plan.calls).try_for_each(|call| sets[call % plan.sets].loaded.enqueue(stream))?;
            stamps.end(stream)
        })
    }

    /// Warms up, poisons all outputs, and times the plan's calls, with nothing between that would let the GPU rest: its clock
    /// follows what it has just done.
    pub fn sample(&mut self) -> Result<Reading, String> {
        self.timed().map_err(|error| error.to_string())?
    }

    fn poison(&mut self) -> Result<(), cuda::Error> {
        let byte = POISON[self.samples % POISON.len()];
        self.samples += 1;
        for set in &mut self.sets {
            for &output in &self.outputs {
                set.loaded.poison(&self.stream, output, byte)?;
            }
        }
        Ok(())
    }

    fn timed(&mut self) -> Result<Result<Reading, String>, cuda::Error> {
        let calls = self.plan.calls as f64;
        let held = Instant::now();
        if self.graph.is_some() {
            self.stamps.hold(&self.stream, self.issued)?;
        }
        self.enqueue()?;
        self.poison()?;
        if self.graph.is_none() {
            self.stream.synchronise()?;
        }
        let begun = Instant::now();
        let start = Event::record(&self.stream)?;
        self.enqueue()?;
        let issued = begun.elapsed().as_secs_f64();
        let end = Event::record(&self.stream)?;
        self.issued = held.elapsed();
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
            self.sets[call % self.plan.sets].loaded.enqueue(&self.stream)?;
        }
        self.stamps.end(&self.stream)
    }

    /// The last sample left in every set what the first run did, and no input was changed.
    pub fn verify(&self) -> Result<(), String> {
        for (number, set) in self.sets.iter().enumerate() {
            let read =
                |buffers: &[usize]| hashes(&set.loaded, &self.stream, buffers).map_err(|error| error.to_string());
            if read(&self.outputs)? != set.after {
                return Err(format!(
                    "what the timed call {number} computed differs from the same call outside of the timing: it did not do the work, \
                     or does it differently from call to call"
                ));
            }
            if read(&self.inputs)? != set.before {
                return Err(format!("the timed call {number} changed its inputs"));
            }
        }
        Ok(())
    }
}

fn hashes(loaded: &Loaded, stream: &Stream, buffers: &[usize]) -> Result<Vec<String>, cuda::Error> {
    buffers.iter().map(|&buffer| Ok(hash::hex(&loaded.contents(stream, buffer)?))).collect()
}
