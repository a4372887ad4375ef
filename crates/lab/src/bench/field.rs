//! Takes one point of many kernels on a GPU: a whole field of contenders in the same rounds.

use std::time::Instant;

use cuda::{Cuda, Neighbour};
use launch::Memory;

use super::data;
use super::point::{Contender, Missing, Point};
use super::run::{Bencher, Launches, drawn, drawn_set, stir};
use crate::case::Case;
use crate::figures::Figure;
use crate::gpu::{Candidate, Contract, Peer, PeerError, Plan};
use crate::measure::{self, Reading, Stopwatch};

/// What the control is called behind its name.
const AGAIN: &str = " again";

/// A field, measured, and who fell out of it on the GPU.
pub struct Field {
    /// The first kernel, the first again, the others, and the peers.
    pub point: Point,
    pub fallen: Vec<Missing>,
}

impl Bencher {
    /// Times all kernels, which solve the same problem, and the peers. Who does not run or is wrong falls out; an error means that
    /// nobody is left, or that the GPU is lost.
    pub fn field(&mut self, cases: &[(String, Case)], contract: Contract, cold: bool) -> Result<Field, String> {
        let (_, first) = cases.first().ok_or("there is no kernel to time")?;
        cases.iter().try_for_each(|(_, case)| data::check(case))?;
        let plan = Plan::of(&first.problem, self.device(), contract, cold, self.patience.warm_up);
        let (candidates, ready, mut absent) =
            self.open(&first.problem, plan, |cuda, seed| candidates(cuda, cases, plan, seed));
        let (mut runners, mut fallen) = candidates?;
        runners.extend(ready.into_iter().map(|(number, error)| Runner::of_peer(number, &self.peers[number], error)));
        let before = self.launches();
        let rounds = loop {
            let until = Instant::now() + self.patience.time;
            let neighbour = self.neighbour.as_ref();
            let mut watch =
                Watch { runners: &mut runners, peers: &mut self.peers, contract, until, died: None, neighbour };
            let contenders = watch.runners.len();
            let timed = measure::contest(&mut watch, contenders, self.patience.limits, self.seed);
            let (which, why) = match timed {
                Err(why) => (watch.died, why),
                Ok(rounds) => match rounds.disagreement(contract) {
                    Some((which, why)) => (Some(which), why),
                    None => break rounds,
                },
            };
            // Without the one that died or whose time cannot be told, from the beginning: rounds are of the same contenders.
            let which = which.filter(|which| *which > 1).ok_or_else(|| why.clone())?;
            let Runner { name, machine, .. } = runners.remove(which);
            let list = if matches!(machine, Machine::Kernel(_)) { &mut fallen } else { &mut absent };
            list.push(Missing { name, why });
        };
        for runner in &mut runners {
            let of_runner = |(name, _): &&(String, Case)| runner.name.trim_end_matches(AGAIN) == name;
            if let (Machine::Kernel(candidate), Some((_, case))) = (&mut runner.machine, cases.iter().find(of_runner)) {
                candidate.judge_again(case, |set| drawn_set(case, self.seed, set))?;
                runner.error = candidate.error;
            }
        }
        let launches = Launches { before, after: self.launches() };
        let contenders = runners.iter_mut().map(|runner| runner.finish(&mut self.peers, &launches)).collect();
        let leads = |(name, _): &&(String, Case)| runners.first().is_some_and(|runner| runner.name == *name);
        let leader = cases.iter().find(leads).map_or(first, |(_, case)| case);
        Ok(Field { point: self.finish(leader, plan, contenders, absent, rounds), fallen })
    }
}

/// Every kernel that runs and is right, the first of them twice.
fn candidates(
    cuda: &Cuda,
    cases: &[(String, Case)],
    plan: Plan,
    seed: u64,
) -> Result<(Vec<Runner>, Vec<Missing>), String> {
    let (mut runners, mut fallen): (Vec<Runner>, Vec<Missing>) = (vec![], vec![]);
    let mut inputs: Option<(&Case, Vec<Memory>)> = None;
    for (name, case) in cases {
        // Kernels that read the same buffers are given the same numbers, drawn once.
        if inputs.as_ref().is_none_or(|(of, _)| of.kernel.recipe.buffers != case.kernel.recipe.buffers) {
            inputs = Some((case, drawn(case, seed, plan.sets)?));
        }
        let memories = inputs.as_ref().map_or(&[][..], |(_, memories)| memories);
        let load = || Candidate::new(cuda, case, plan, memories);
        let again = runners.is_empty().then(load).transpose();
        match again.and_then(|again| Ok((load()?, again))) {
            Err(why) => fallen.push(Missing { name: name.clone(), why: why.to_string() }),
            Ok((candidate, again)) => {
                runners.push(Runner::of_kernel(name.clone(), candidate));
                runners.extend(again.map(|again| Runner::of_kernel(format!("{name}{AGAIN}"), again)));
            }
        }
    }
    match (runners.is_empty(), fallen.first()) {
        (true, Some(Missing { name, why })) => Err(format!("nobody is left: {name}: {why}")),
        _ => Ok((runners, fallen)),
    }
}

/// One who is timed.
struct Runner {
    name: String,
    identity: String,
    error: Figure,
    machine: Machine,
}

enum Machine {
    Kernel(Box<Candidate>),
    /// By its number among those that have started.
    Peer(usize),
}

impl Runner {
    fn of_kernel(name: String, candidate: Candidate) -> Runner {
        let (identity, error) = (candidate.cubin.clone().unwrap_or_default(), candidate.error);
        Runner { name, identity, error, machine: Machine::Kernel(Box::new(candidate)) }
    }

    fn of_peer(number: usize, peer: &Peer, error: Figure) -> Runner {
        Runner { name: peer.name.clone(), identity: peer.describes.clone(), error, machine: Machine::Peer(number) }
    }

    /// Looks at what the last sample left.
    fn finish(&mut self, peers: &mut [Peer], launches: &Launches) -> Contender {
        let allowed = self.error.value().max(1.0);
        let offence = match &self.machine {
            Machine::Kernel(candidate) => {
                let wrong = (self.error.value() > 1.0)
                    .then(|| format!("what it left when it was timed is wrong: {} times what is allowed", self.error));
                candidate.offence.clone().or(wrong)
            }
            Machine::Peer(number) => match peers[*number].verify() {
                Ok(after) if after.value() <= allowed => None,
                Ok(after) => Some(format!("what it left when it was timed is wrong: {after} times what is allowed")),
                Err(PeerError(why)) => Some(why),
            },
        };
        let launches = Some(match self.machine {
            Machine::Kernel(_) => launches.own(),
            Machine::Peer(number) => launches.of_peer(number),
        });
        Contender { name: self.name.clone(), identity: self.identity.clone(), error: self.error, offence, launches }
    }
}

struct Watch<'a> {
    runners: &'a mut [Runner],
    peers: &'a mut [Peer],
    contract: Contract,
    until: Instant,
    /// Who ended the contest.
    died: Option<usize>,
    neighbour: Option<&'a Neighbour>,
}

impl Stopwatch for Watch<'_> {
    fn sample(&mut self, contender: usize) -> Result<Reading, String> {
        stir(self.neighbour);
        let reading = match &mut self.runners[contender].machine {
            Machine::Kernel(candidate) => candidate.sample(),
            Machine::Peer(number) => self.peers[*number].sample().map_err(|PeerError(why)| why),
        };
        reading.inspect_err(|_| self.died = Some(contender))
    }

    fn is_sound(&mut self, reading: &Reading) -> bool {
        reading.disagreement(self.contract).is_none()
    }

    fn has_time(&mut self) -> bool {
        Instant::now() < self.until
    }
}
