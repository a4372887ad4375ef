//! A model of how a driver times: contenders that tell the stopwatch what they please, and leave in buffers what they please.
//!
//! Each call of a cold sample has buffers of its own, with contents that have one right answer. Outputs are poisoned before each sample
//! and looked at after it, and clocks are compared, as on a GPU.

use attention::Problem;
use cuda::Device;

use super::workshop;
use crate::bench::{Contender, Missing, Point};
use crate::figures::Figure;
use crate::gpu::{self, Contract, Plan, WARM_UP};
use crate::guard::{Guard, Objections};
use crate::measure::{self, Clocks, Limits, Reading, Rounds, Stopwatch};

/// What a contender did in one sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Of one call.
    pub seconds: f64,
    /// Of all calls, in units of what events say: by the GPU's timer, and by the host's clock.
    pub timer: f64,
    pub host: f64,
    pub megahertz: f64,
    /// By call: whether it had written its answer when the sample ended.
    pub wrote: fn(sample: usize, call: usize) -> bool,
    /// Whether it left its inputs alone.
    pub kept_inputs: bool,
    /// Whether it answers what it once computed for the same buffers: contents are new in every sample.
    pub from_memory: bool,
}

impl Sample {
    /// Does the work, and says how long it took.
    pub fn honest(microseconds: f64) -> Sample {
        let wrote = |_, _| true;
        Sample {
            seconds: microseconds * 1e-6,
            timer: 1.0,
            host: 1.0,
            megahertz: 1980.0,
            wrote,
            kept_inputs: true,
            from_memory: false,
        }
    }
}

/// One who is timed.
pub struct Actor {
    pub name: &'static str,
    pub identity: &'static str,
    /// Cycles of a launch that does nothing.
    pub launch: f64,
    /// An error where it dies or does not answer.
    pub sample: Result<Sample, &'static str>,
}

impl Actor {
    pub fn new(name: &'static str, sample: Sample) -> Actor {
        Actor { name, identity: "cubin", launch: 993.0, sample: Ok(sample) }
    }
}

/// A contest on the model.
pub struct Contest {
    pub problem: &'static str,
    /// Whether each call has buffers of its own.
    pub cold: bool,
    /// The candidate, the candidate again, and peers.
    pub actors: Vec<Actor>,
    /// A forger's hand on the rounds.
    pub edit: fn(&mut Rounds),
}

impl Contest {
    /// A candidate with a lie in it, against a peer that is a fifth slower.
    pub fn against_peer(candidate: Sample) -> Contest {
        let actors = vec![
            Actor::new("candidate", candidate.clone()),
            Actor::new("candidate again", candidate),
            Actor::new("peer", Sample::honest(12.0)),
        ];
        Contest { problem: "f16 B2 H8 S512 D64", cold: true, actors, edit: |_| () }
    }

    /// What is objected.
    pub fn judge(mut self, off: &[Guard]) -> Result<Objections, String> {
        let problem: Problem = self.problem.parse().map_err(|error: attention::Error| error.to_string())?;
        let device = device();
        let plan = Plan::of(&problem, &device, Contract::Graph, self.cold, WARM_UP);
        let mut missing = vec![];
        let (mut rounds, offences) = loop {
            let mut watch = Watch::new(&self.actors, plan, !off.contains(&Guard::Clocks));
            match measure::contest(&mut watch, self.actors.len(), Limits::default(), 0) {
                Ok(rounds) => break (rounds, watch.offences),
                Err(why) => match watch.died {
                    // Without the one that died, from the beginning.
                    Some(which) => missing.push(Missing { name: self.actors.remove(which).name.into(), why }),
                    None => return Err(why),
                },
            }
        };
        (self.edit)(&mut rounds);
        let contender = |(actor, offence): (&Actor, Option<String>)| Contender {
            name: actor.name.into(),
            identity: actor.identity.into(),
            error: Figure::new(0.5),
            offence,
            launches: Some([Some(Figure::new(actor.launch)); 2]),
        };
        let point = Point {
            subject: workshop::case(&workshop::honest()?)?.subject(),
            problem: problem.to_string(),
            plan,
            peaks: gpu::peaks(&device),
            floor: gpu::floor(&problem, plan.is_cold()),
            contenders: self.actors.iter().zip(offences).map(contender).collect(),
            missing,
            rounds,
        };
        Ok(point.objections())
    }
}

/// An H200, as its driver describes it.
fn device() -> Device {
    Device {
        name: "a model".into(),
        capability: (9, 0),
        cuda_version: (13, 0),
        uuid: String::new(),
        processors: 132,
        max_shared_bytes: 227 << 10,
        kilohertz: 1_980_000,
        memory_bandwidth: 4_800_000_000_000,
        cache_bytes: 60 << 20,
    }
}

/// Times the actors.
struct Watch<'a> {
    actors: &'a [Actor],
    plan: Plan,
    compares_clocks: bool,
    /// By contender: samples taken, and the first thing that was wrong with what one left.
    samples: Vec<usize>,
    offences: Vec<Option<String>>,
    died: Option<usize>,
}

impl<'a> Watch<'a> {
    fn new(actors: &'a [Actor], plan: Plan, compares_clocks: bool) -> Watch<'a> {
        let (samples, offences) = (vec![0; actors.len()], vec![None; actors.len()]);
        Watch { actors, plan, compares_clocks, samples, offences, died: None }
    }

    /// Outputs that still hold poison, or inputs that changed.
    fn look(&self, sample: &Sample, number: usize) -> Option<String> {
        let Plan { calls, sets, .. } = self.plan;
        let wrote = |set: usize| (set..calls).step_by(sets).any(|call| (sample.wrote)(number, call));
        let idle = (0..sets).find(|set| !wrote(*set));
        let idle = idle.map(|set| format!("no call of sample {number} on set {set} did the work"));
        // V has other signs than in the sample before: what was right then is wrong now.
        let stale = sample.from_memory && number > 0;
        let stale = stale.then(|| format!("sample {number} answers what an earlier one was asked"));
        idle.or(stale).or((!sample.kept_inputs).then(|| format!("sample {number} changed its inputs")))
    }
}

impl Stopwatch for Watch<'_> {
    fn sample(&mut self, contender: usize) -> Result<Reading, String> {
        let sample = self.actors[contender].sample.clone().map_err(|why| {
            self.died = Some(contender);
            why.to_string()
        })?;
        let events = sample.seconds * self.plan.calls as f64;
        let offence = self.look(&sample, self.samples[contender]);
        self.offences[contender] = self.offences[contender].take().or(offence);
        self.samples[contender] += 1;
        Ok(Reading {
            seconds: Figure::new(sample.seconds),
            megahertz: Some(Figure::new(sample.megahertz)),
            clocks: Some(Clocks::new(events, events * sample.timer, events * sample.host)),
        })
    }

    fn is_sound(&mut self, reading: &Reading) -> bool {
        !self.compares_clocks || reading.disagreement(self.plan.contract).is_none()
    }
}
