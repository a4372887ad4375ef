//! A kernel of the user's or of ours, ready to be timed.

use std::time::{Duration, Instant};

use cuda::{Cuda, Event, Graph, Loaded, Stream};
use launch::{Contents, Memory};

use super::buffers::{BufferKernels, Buffers, Fingerprint};
use super::calls::{Calls, For, numbers};
use super::clocks::Clocks;
use super::delay::Delay;
use super::plan::{Contract, Plan, REST};
use super::rows;
use super::signs::Signs;
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
    calls: Calls,
    /// All outputs and all inputs of all sets: a kernel that spares itself the warm-up, to be cooler when it counts, shows, too.
    outputs: Buffers,
    inputs: Buffers,
    /// V and O of samples, whose signs change from one to the next.
    values: Buffers,
    results: Buffers,
    signs: Signs,
    kernels: BufferKernels,
    plan: Plan,
    stream: Stream,
    graphs: Option<Graphs>,
    samples: usize,
    /// Seconds that it takes to ask whether all of the GPU is idle, when it is.
    asking: f64,
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

/// The plan's calls, recorded: on the sets of samples, and on those of warm-ups.
struct Graphs {
    sample: Graph,
    warm_up: Graph,
}

impl Candidate {
    /// Loads, runs every set once, and judges the first: what is wrong is not timed.
    pub fn new(cuda: &Cuda, case: &Case, plan: Plan, memories: &[Memory]) -> Result<Candidate, String> {
        let (mut candidate, outputs) =
            Candidate::place(cuda, case, plan, memories).map_err(|error| error.to_string())?;
        candidate.error = candidate.first_run(case, &memories[0], &outputs)?;
        if plan.contract == Contract::Graph {
            candidate.graphs = Some(candidate.capture().map_err(|error| error.to_string())?);
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
        let calls = Calls::new(cuda, case, plan, memories)?;
        let kernels = BufferKernels::new(cuda.context())?;
        let [inputs, outputs] = [case.inputs(), case.outputs()].map(|names| numbers(case, &names));
        let list = |sets: &[Loaded], numbers: &[usize]| {
            let of_set = |set: &Loaded| numbers.iter().map(|number| set.address(*number)).collect::<Vec<_>>();
            kernels.list(&stream, &sets.iter().flat_map(of_set).collect::<Vec<_>>())
        };
        let [values, results] = [&case.contract.v, &case.contract.o].map(|name| numbers(case, &[name.as_str()]));
        let candidate = Candidate {
            values: list(calls.of_samples(), &values)?,
            results: list(calls.of_samples(), &results)?,
            signs: Signs::new(&kernels, &stream, case.problem.value_dim() as usize)?,
            inputs: list(&calls.sets, &inputs)?,
            outputs: list(&calls.sets, &outputs)?,
            cubin: calls.sets[0].module().hash(),
            calls,
            kernels,
            plan,
            stream,
            graphs: None,
            samples: 0,
            asking: 0.0,
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
        for set in &mut self.calls.sets {
            set.enqueue(&self.stream).map_err(words)?;
        }
        self.signs.flip(&self.kernels, &self.stream, &self.results, (0, true)).map_err(words)?;
        self.after = self.kernels.fingerprints(&self.stream, &self.outputs).map_err(words)?;
        let mut left = memory.clone();
        for &output in outputs {
            let bytes = self.calls.sets[0].contents(&self.stream, output).map_err(words)?;
            left.buffers[output].contents = Contents::from(bytes);
        }
        let error = rows::error(case, &left, ROWS_SEED)?;
        if error.value() > 1.0 {
            return Err(format!("wrong: its error is {error} times what is allowed"));
        }
        Ok(error)
    }

    fn capture(&mut self) -> Result<Graphs, cuda::Error> {
        let Candidate { calls, stream, .. } = self;
        let mut record = |purpose| Graph::capture(stream, || calls.enqueue(stream, purpose));
        Ok(Graphs { sample: record(For::Sample)?, warm_up: record(For::WarmUp)? })
    }

    /// From now on each call takes so many seconds longer: what a sample's calls lose is lost at its end.
    pub fn slow_down(&mut self, seconds: f64) -> Result<(), String> {
        let time = Duration::from_secs_f64(seconds * self.plan.calls as f64);
        let slowed = Delay::new(self.stream.context(), time).and_then(|delay| {
            self.calls.delay = Some(delay);
            self.capture()
        });
        self.graphs = Some(slowed.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Poisons all outputs, changes signs of V, rests, warms up, times the plan's calls, and looks at what they left. Nothing stands
    /// between warming up and the sample: its clock and the cache are what the same work made of them.
    pub fn sample(&mut self) -> Result<Reading, String> {
        let mut reading = self.attempt().map_err(|error| error.to_string())?;
        for _ in 1..ATTEMPTS {
            if reading.is_err() {
                reading = self.attempt().map_err(|error| error.to_string())?;
            }
        }
        reading
    }

    /// An attempt whose clocks disagree is looked at, too: that also gives V its signs back.
    fn attempt(&mut self) -> Result<Result<Reading, String>, cuda::Error> {
        self.prepare()?;
        let reading = self.timed()?;
        let offence = self.look()?;
        self.offence = self.offence.take().or(offence);
        Ok(reading)
    }

    /// What must not be part of a sample, and must not stand before it without a warm-up between.
    fn prepare(&mut self) -> Result<(), cuda::Error> {
        let byte = POISON[self.samples % POISON.len()];
        self.samples += 1;
        self.kernels.overwrite(&self.stream, &self.outputs, byte)?;
        self.signs.flip(&self.kernels, &self.stream, &self.values, (self.samples, false))?;
        // To ask whether all of the GPU is idle takes time by itself, the more streams and modules there are.
        self.stream.synchronise()?;
        let asked = Instant::now();
        self.stream.context().synchronise()?;
        self.asking = asked.elapsed().as_secs_f64();
        std::thread::sleep(REST);
        Ok(())
    }

    fn timed(&mut self) -> Result<Result<Reading, String>, cuda::Error> {
        let calls = self.plan.calls as f64;
        for _ in 0..self.plan.warm_ups {
            self.enqueue(For::WarmUp)?;
        }
        if self.graphs.is_none() {
            self.stream.synchronise()?;
        }
        let begun = Instant::now();
        let start = Event::record(&self.stream)?;
        self.enqueue(For::Sample)?;
        let issued = begun.elapsed().as_secs_f64();
        let end = Event::record(&self.stream)?;
        // All of the GPU: what a kernel left on another stream counts, too.
        self.stream.synchronise()?;
        let ended = begun.elapsed().as_secs_f64();
        self.stream.context().synchronise()?;
        let waited = begun.elapsed().as_secs_f64();
        let (events, passed) = (end.since(&start)?.as_secs_f64(), self.calls.stamps.passed(&self.stream)?);
        let seconds = match self.plan.contract {
            // Events stand outside of the graph, and see how long its launch takes, too.
            Contract::Graph => passed.seconds,
            Contract::Stream => events,
            Contract::Latency => waited,
            Contract::Host => issued,
        };
        let clocks = Clocks { events, timer: passed.seconds, host: waited, after: waited - ended - self.asking };
        if let Some(why) = clocks.disagreement(self.plan.contract) {
            return Ok(Err(why));
        }
        let megahertz = passed.megahertz.map(Figure::new);
        Ok(Ok(Reading { seconds: Figure::new(seconds / calls), megahertz }))
    }

    fn enqueue(&mut self, purpose: For) -> Result<(), cuda::Error> {
        match (&self.graphs, purpose) {
            (None, purpose) => self.calls.enqueue(&self.stream, purpose),
            (Some(graphs), For::Sample) => graphs.sample.launch(&self.stream),
            (Some(graphs), For::WarmUp) => graphs.warm_up.launch(&self.stream),
        }
    }

    /// But for the signs, the sample and its warm-up left in every set what the first run did, and no input was changed.
    fn look(&self) -> Result<Option<String>, cuda::Error> {
        let sample = self.samples;
        self.signs.flip(&self.kernels, &self.stream, &self.values, (sample, false))?;
        self.signs.flip(&self.kernels, &self.stream, &self.results, (sample, true))?;
        if self.kernels.fingerprints(&self.stream, &self.outputs)? != self.after {
            return Ok(Some(format!(
                "what sample {sample} or its warm-up computed differs from the same calls outside of the timing: it did not do the \
                 work, or does it differently from call to call"
            )));
        }
        let touched = self.kernels.fingerprints(&self.stream, &self.inputs)? != self.before;
        Ok(touched.then(|| format!("sample {sample} changed its inputs")))
    }
}
