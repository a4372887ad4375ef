//! A kernel of the user's or of ours, ready to be timed.

use std::fmt;
use std::time::{Duration, Instant};

use cuda::{Cuda, Event, Graph, Loaded, Stream};
use launch::{Contents, Memory};

use super::buffers::{BufferKernels, Buffers, Fingerprint, Prints};
use super::calls::{Calls, For, numbers};
use super::delay::Delay;
use super::keepsakes::Keepsakes;
use super::plan::{Contract, Plan, REST};
use super::rows;
use super::signs::Signs;
use crate::case::Case;
use crate::figures::Figure;
use crate::measure::{Clocks, Reading};

/// Bytes of NaN in every type, and of plausible numbers: what outputs hold before a sample, in turns.
const POISON: [u8; 2] = [0xff, 0xa5];

/// Why a kernel is not timed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The error of its first run, in units of what is allowed.
    Wrong(Figure),
    /// It does not run, or what was needed for it could not be had.
    Died(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Refusal::Wrong(error) => write!(f, "wrong: its error is {error} times what is allowed"),
            Refusal::Died(why) => f.write_str(why),
        }
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal::Died(why)
    }
}

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
    keepsakes: Keepsakes,
    kernels: BufferKernels,
    /// Of the outputs, where the last sample left them.
    prints: Prints,
    plan: Plan,
    stream: Stream,
    graphs: Option<Graphs>,
    samples: usize,
    /// Of the case's outputs, in the recipe.
    written: Vec<usize>,
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

/// Seconds of all calls, what each clock says of them, and the megahertz of the GPU's own.
type Taken = (f64, Clocks, Option<f64>);

impl Candidate {
    /// Loads, runs every set once, and judges the first: what is wrong is not timed.
    pub fn new(cuda: &Cuda, case: &Case, plan: Plan, memories: &[Memory]) -> Result<Candidate, Refusal> {
        let mut candidate = Candidate::place(cuda, case, plan, memories).map_err(|error| error.to_string())?;
        candidate.error = candidate.first_run(case, &memories[0])?;
        if plan.contract == Contract::Graph {
            candidate.graphs = Some(candidate.capture().map_err(|error| error.to_string())?);
        }
        Ok(candidate)
    }

    fn place(cuda: &Cuda, case: &Case, plan: Plan, memories: &[Memory]) -> Result<Candidate, cuda::Error> {
        let stream = Stream::new(cuda.context())?;
        let calls = Calls::new(cuda, case, plan, memories)?;
        let kernels = BufferKernels::new(cuda.context())?;
        let [inputs, written] = [case.inputs(), case.outputs()].map(|names| numbers(case, &names));
        let list = |sets: &[Loaded], numbers: &[usize]| {
            let of_set = |set: &Loaded| numbers.iter().map(|number| set.address(*number)).collect::<Vec<_>>();
            kernels.list(&stream, &sets.iter().flat_map(of_set).collect::<Vec<_>>())
        };
        let [values, results] = [&case.contract.v, &case.contract.o].map(|name| numbers(case, &[name.as_str()]));
        let outputs = list(&calls.sets, &written)?;
        Ok(Candidate {
            values: list(calls.of_samples(), &values)?,
            results: list(calls.of_samples(), &results)?,
            signs: Signs::new(&kernels, &stream, case.problem.value_dim() as usize)?,
            inputs: list(&calls.sets, &inputs)?,
            keepsakes: Keepsakes::of(case, &calls.sets, &kernels, &stream)?,
            prints: kernels.prints(&stream, calls.sets.len() * written.len())?,
            outputs,
            cubin: calls.sets[0].module().hash(),
            calls,
            kernels,
            plan,
            stream,
            graphs: None,
            samples: 0,
            written,
            before: vec![],
            after: vec![],
            error: Figure::new(f64::INFINITY),
            offence: None,
        })
    }

    /// Runs every set and remembers what it left.
    fn first_run(&mut self, case: &Case, memory: &Memory) -> Result<Figure, Refusal> {
        let words = |error: cuda::Error| error.to_string();
        self.before = self.kernels.fingerprints(&self.stream, &self.inputs).map_err(words)?;
        for set in &mut self.calls.sets {
            set.enqueue(&self.stream).map_err(words)?;
        }
        self.signs.flip(&self.kernels, &self.stream, &self.results, (0, true)).map_err(words)?;
        self.after = self.kernels.fingerprints(&self.stream, &self.outputs).map_err(words)?;
        let error = self.judge(case, 0, memory)?;
        if error.value() > 1.0 { Err(Refusal::Wrong(error)) } else { Ok(error) }
    }

    /// The error of what a set holds now, by the oracle; `memory` is what the set was given. Which rows of a large problem are computed, no
    /// kernel can know.
    fn judge(&self, case: &Case, set: usize, memory: &Memory) -> Result<Figure, String> {
        let mut left = memory.clone();
        for &output in &self.written {
            let bytes = self.calls.sets[set].contents(&self.stream, output).map_err(|error| error.to_string())?;
            left.buffers[output].contents = Contents::from(bytes);
        }
        rows::error(case, &left, fastrand::u64(..))
    }

    /// The same of what the last sample left in a set that is drawn now; `memory` draws what a set was given.
    pub fn judge_again(&mut self, case: &Case, memory: impl Fn(usize) -> Result<Memory, String>) -> Result<(), String> {
        let set = fastrand::usize(..self.plan.sets);
        let error = self.judge(case, set, &memory(set)?)?;
        if error.value() > self.error.value() {
            self.error = error;
        }
        Ok(())
    }

    fn capture(&mut self) -> Result<Graphs, cuda::Error> {
        let Candidate { calls, stream, .. } = self;
        let warm_up = Graph::capture(stream, || calls.enqueue(stream, For::WarmUp))?;
        // Stamps stand inside: a graph's launch takes time, too.
        let sample = Graph::capture(stream, || {
            calls.stamps.begin(stream)?;
            calls.enqueue(stream, For::Sample)?;
            calls.stamps.end(stream)
        })?;
        Ok(Graphs { sample, warm_up })
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
    /// between warming up and the sample: its clock and the cache are what the same work made of them. And nobody waits between the
    /// sample and the look: what is not done when the calls have ended is not done.
    pub fn sample(&mut self) -> Result<Reading, String> {
        self.attempt().map_err(|error| error.to_string())
    }

    fn attempt(&mut self) -> Result<Reading, cuda::Error> {
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
        self.keepsakes.restore(&self.kernels, &self.stream)?;
        self.prints.clear(&self.stream)?;
        self.calls.stamps.clear(&self.stream)?;
        self.stream.synchronise()?;
        std::thread::sleep(REST);
        Ok(())
    }

    fn timed(&mut self) -> Result<Reading, cuda::Error> {
        for _ in 0..self.plan.warm_ups {
            match &self.graphs {
                Some(graphs) => graphs.warm_up.launch(&self.stream)?,
                None => self.calls.enqueue(&self.stream, For::WarmUp)?,
            }
        }
        let (seconds, clocks, megahertz) = match self.plan.contract {
            Contract::Graph => self.in_a_graph()?,
            contract => self.call_by_call(contract)?,
        };
        // What a kernel did wrong is told here.
        self.stream.context().synchronise()?;
        Ok(Reading {
            seconds: Figure::new(seconds / self.plan.calls as f64),
            megahertz: megahertz.map(Figure::new),
            clocks: Some(clocks),
        })
    }

    /// Behind warm-ups that are still under way: the host puts all of it into the stream before it waits.
    fn in_a_graph(&mut self) -> Result<Taken, cuda::Error> {
        let start = Event::record(&self.stream)?;
        self.graphs.iter().try_for_each(|graphs| graphs.sample.launch(&self.stream))?;
        let end = Event::record(&self.stream)?;
        self.take_prints()?;
        start.synchronise()?;
        let begun = Instant::now();
        end.synchronise()?;
        let host = begun.elapsed().as_secs_f64();
        let (events, passed) = (end.since(&start)?.as_secs_f64(), self.calls.stamps.passed(&self.stream)?);
        Ok((passed.seconds, Clocks::new(events, passed.seconds, host), passed.megahertz))
    }

    /// What the host does is part of what is timed, and stamps are not.
    fn call_by_call(&mut self, contract: Contract) -> Result<Taken, cuda::Error> {
        self.calls.stamps.begin(&self.stream)?;
        self.stream.synchronise()?;
        let begun = Instant::now();
        let start = Event::record(&self.stream)?;
        let waited = match contract {
            Contract::Latency => self.calls.one_by_one(&self.stream, For::Sample)?,
            _ => self.calls.enqueue(&self.stream, For::Sample).map(|()| 0.0)?,
        };
        let issued = begun.elapsed().as_secs_f64();
        let end = Event::record(&self.stream)?;
        self.calls.stamps.end(&self.stream)?;
        self.take_prints()?;
        end.synchronise()?;
        let host = begun.elapsed().as_secs_f64();
        let (events, passed) = (end.since(&start)?.as_secs_f64(), self.calls.stamps.passed(&self.stream)?);
        let seconds = match contract {
            Contract::Host => issued,
            Contract::Latency => waited,
            _ => events,
        };
        Ok((seconds, Clocks::new(events, passed.seconds, host), passed.megahertz))
    }

    /// Right behind the sample, in its stream: signs go back, and every output is reduced to a fingerprint.
    fn take_prints(&mut self) -> Result<(), cuda::Error> {
        self.signs.flip(&self.kernels, &self.stream, &self.results, (self.samples, true))?;
        self.kernels.take(&self.stream, &self.outputs, &self.prints, 0)
    }

    /// But for the signs, the sample and its warm-up left in every set what the first run did, and no input was changed.
    fn look(&self) -> Result<Option<String>, cuda::Error> {
        let sample = self.samples;
        self.signs.flip(&self.kernels, &self.stream, &self.values, (sample, false))?;
        if self.prints.read(&self.stream)? != self.after {
            return Ok(Some(format!(
                "what sample {sample} or its warm-up computed differs from the same calls outside of the timing: it did not do the \
                 work, or does it differently from call to call"
            )));
        }
        let touched = self.kernels.fingerprints(&self.stream, &self.inputs)? != self.before;
        Ok(touched.then(|| format!("sample {sample} changed its inputs")))
    }
}
