//! Takes one point on a GPU.

use std::time::{Duration, Instant};

use attention::Problem;
use cuda::{Cuda, Monitor, Neighbour};
use launch::Memory;
use rayon::prelude::*;

use super::data;
use super::point::{CANDIDATES, Contender, Missing, Point};
use crate::case::Case;
use crate::figures::Figure;
use crate::gpu::{self, Candidate, Contract, Peer, PeerError, Plan, Refusal, WARM_UP, Workers};
use crate::harness::{self, Poison};
use crate::measure::{self, Condition, Limits, Reading, Rounds, Stopwatch};

/// How long one point may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub limits: Limits,
    pub time: Duration,
    /// Before each sample.
    pub warm_up: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { limits: Limits::default(), time: Duration::from_secs(10), warm_up: WARM_UP }
    }
}

/// A GPU, and the peers that are alive on it.
pub struct Bencher {
    pub(super) cuda: Cuda,
    pub(super) peers: Vec<Peer>,
    /// Peers that did not start.
    pub(super) missing: Vec<Missing>,
    pub patience: Patience,
    pub seed: u64,
    monitor: Option<Monitor>,
    /// Launches are to cost everybody the same. Where there is none, what they cost says whether they do.
    pub(super) neighbour: Option<Neighbour>,
}

impl Bencher {
    /// Starts the peers; those that do not start are said to be missing, at every point.
    pub fn new(cuda: Cuda, workers: &Workers, names: &[String]) -> Bencher {
        // They start side by side: most of it is waiting for Python.
        let started: Vec<Result<Peer, Missing>> = std::thread::scope(|scope| {
            let start = |name: &String| workers.start(name).map_err(|error| missing(name, error));
            let handles: Vec<_> = names.iter().map(|name| scope.spawn(move || start(name))).collect();
            let gone = |name: &String| Err(missing(name, PeerError("its thread ended".into())));
            handles.into_iter().zip(names).map(|(handle, name)| handle.join().unwrap_or_else(|_| gone(name))).collect()
        });
        let (mut peers, mut missing) = (vec![], vec![]);
        for result in started {
            match result {
                Ok(peer) => peers.push(peer),
                Err(error) => missing.push(error),
            }
        }
        let monitor = Monitor::open(&cuda.device().uuid);
        let neighbour = Neighbour::new(cuda.context()).ok();
        Bencher { cuda, peers, missing, patience: Patience::default(), seed: 0, monitor, neighbour }
    }

    pub(super) fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    pub fn device(&self) -> &cuda::Device {
        self.cuda.device()
    }

    /// Name and versions of those that have started, and why others have not.
    pub fn roll_call(&self) -> Vec<String> {
        let present = self.peers.iter().map(|peer| format!("{}: {}", peer.name, peer.describes));
        let absent = self.missing.iter().map(|missing| format!("{}: not measured: {}", missing.name, missing.why));
        present.chain(absent).collect()
    }

    /// An error is the candidate's: it does not run, or is wrong.
    pub fn point(&mut self, case: &Case, contract: Contract, cold: bool) -> Result<Point, Refusal> {
        data::check(case)?;
        let plan = Plan::of(&case.problem, self.cuda.device(), contract, cold, self.patience.warm_up);
        let (candidates, mut ready, mut absent) = self.open(&case.problem, plan, |cuda, seed| {
            let memories = drawn(case, seed, plan.sets)?;
            let candidate = || Candidate::new(cuda, case, plan, &memories);
            Ok::<_, Refusal>([candidate()?, candidate()?])
        });
        let mut candidates = candidates?;
        let before = self.launches();
        let rounds = loop {
            let mut watch = Watch {
                candidates: &mut candidates,
                peers: &mut self.peers,
                ready: ready.iter().map(|(number, _)| *number).collect(),
                contract,
                until: Instant::now() + self.patience.time,
                died: None,
                monitor: self.monitor.as_ref(),
                neighbour: self.neighbour.as_ref(),
            };
            let contenders = CANDIDATES + ready.len();
            let timed = measure::contest(&mut watch, contenders, self.patience.limits, self.seed);
            let (which, why) = match timed {
                Err(why) => (watch.died.ok_or_else(|| why.clone())?, why),
                // The candidate's clocks are judged with the point.
                Ok(rounds) => {
                    match rounds.disagreement(contract).map(|(which, why)| (which.checked_sub(CANDIDATES), why)) {
                        Some((Some(which), why)) => (which, why),
                        _ => break rounds,
                    }
                }
            };
            // Without the one that died or whose time cannot be told, from the beginning: rounds are of the same contenders.
            let (number, _) = ready.remove(which);
            absent.push(Missing { name: self.peers[number].name.clone(), why });
        };
        for candidate in &mut candidates {
            candidate.judge_again(case, |set| drawn_set(case, self.seed, set))?;
        }
        let launches = Launches { before, after: self.launches() };
        let contenders = self.contenders(&candidates, &ready, &launches);
        Ok(self.finish(case, plan, contenders, absent, rounds))
    }

    /// Makes peers ready, each with its number and its error, and `own` beside them; also those that are missing. Some peers compile for
    /// seconds: all of it goes on side by side, and nothing is timed meanwhile.
    pub(super) fn open<T>(
        &mut self,
        problem: &Problem,
        plan: Plan,
        own: impl FnOnce(&Cuda, u64) -> T,
    ) -> (T, Vec<(usize, Figure)>, Vec<Missing>) {
        let (made, opened) = std::thread::scope(|scope| {
            let open = |peer: &'_ mut Peer| peer.open(problem, plan);
            let handles: Vec<_> = self.peers.iter_mut().map(|peer| scope.spawn(move || open(peer))).collect();
            let made = own(&self.cuda, self.seed);
            let gone = || Err(PeerError("its thread ended".into()));
            let opened: Vec<_> = handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| gone())).collect();
            (made, opened)
        });
        let (mut ready, mut absent) = (vec![], self.missing.clone());
        for (number, (peer, opened)) in self.peers.iter().zip(opened).enumerate() {
            match opened {
                Ok(error) => ready.push((number, error)),
                Err(error) => absent.push(missing(&peer.name, error)),
            }
        }
        (made, ready, absent)
    }

    /// What a launch costs this process, and each peer's, one after the other: nothing else runs meanwhile.
    pub(super) fn launches(&mut self) -> LaunchCycles {
        stir(self.neighbour.as_ref());
        let own = gpu::launch_cycles(self.cuda.context()).ok().flatten();
        let of_peer = |peer: &mut Peer| {
            stir(self.neighbour.as_ref());
            peer.launch_cycles().ok().flatten()
        };
        LaunchCycles { own, peers: self.peers.iter_mut().map(of_peer).collect() }
    }

    /// Looks at what the last sample left.
    fn contenders(
        &mut self,
        candidates: &[Candidate],
        ready: &[(usize, Figure)],
        launches: &Launches,
    ) -> Vec<Contender> {
        let own = candidates.iter().zip(["candidate", "candidate again"]).map(|(candidate, name)| Contender {
            name: name.into(),
            identity: candidate.cubin.clone().unwrap_or_default(),
            error: candidate.error,
            offence: candidate.offence.clone(),
            launches: Some(launches.own()),
        });
        let mut all: Vec<Contender> = own.collect();
        for (number, error) in ready {
            let peer = &mut self.peers[*number];
            let offence = match peer.verify() {
                Ok(after) if after.value() <= error.value().max(1.0) => None,
                Ok(after) => Some(format!("what it left when it was timed is wrong: {after} times what is allowed")),
                Err(PeerError(why)) => Some(why),
            };
            all.push(Contender {
                name: peer.name.clone(),
                identity: peer.describes.clone(),
                error: *error,
                offence,
                launches: Some(launches.of_peer(*number)),
            });
        }
        all
    }

    pub(super) fn finish(
        &self,
        case: &Case,
        plan: Plan,
        contenders: Vec<Contender>,
        missing: Vec<Missing>,
        rounds: Rounds,
    ) -> Point {
        let device = self.cuda.device();
        Point {
            subject: case.subject(),
            problem: case.problem.to_string(),
            plan,
            peaks: gpu::peaks(device),
            floor: gpu::floor(&case.problem, plan.is_cold()),
            contenders,
            missing,
            rounds,
        }
    }
}

/// Cycles of a launch that does nothing, where they could be had.
pub(super) struct LaunchCycles {
    own: Option<Figure>,
    peers: Vec<Option<Figure>>,
}

/// The same before the first sample of a point, and after the last.
pub(super) struct Launches {
    pub before: LaunchCycles,
    pub after: LaunchCycles,
}

impl Launches {
    pub fn own(&self) -> [Option<Figure>; 2] {
        [self.before.own, self.after.own]
    }

    pub fn of_peer(&self, number: usize) -> [Option<Figure>; 2] {
        [self.before.peers[number], self.after.peers[number]]
    }
}

/// Sets of buffers, each with inputs of its own.
pub(super) fn drawn(case: &Case, seed: u64, sets: usize) -> Result<Vec<Memory>, String> {
    (0..sets).into_par_iter().map(|set| drawn_set(case, seed, set)).collect()
}

/// One of them.
pub(super) fn drawn_set(case: &Case, seed: u64, set: usize) -> Result<Memory, String> {
    harness::memory(case, seed + set as u64, Poison::Signalling).map_err(|error| error.to_string())
}

fn missing(name: &str, PeerError(why): PeerError) -> Missing {
    Missing { name: name.into(), why }
}

/// Those who are timed at one point.
struct Watch<'a> {
    candidates: &'a mut [Candidate; CANDIDATES],
    peers: &'a mut [Peer],
    ready: Vec<usize>,
    contract: Contract,
    until: Instant,
    /// Which of the ready peers ended the contest.
    died: Option<usize>,
    monitor: Option<&'a Monitor>,
    neighbour: Option<&'a Neighbour>,
}

/// Right before a sample, whoever's it is.
pub(super) fn stir(neighbour: Option<&Neighbour>) {
    // One that fails leaves its trace in what launches cost.
    let _ = neighbour.map(Neighbour::work);
}

impl Stopwatch for Watch<'_> {
    fn sample(&mut self, contender: usize) -> Result<Reading, String> {
        stir(self.neighbour);
        let Some(which) = contender.checked_sub(CANDIDATES) else { return self.candidates[contender].sample() };
        self.peers[self.ready[which]].sample().map_err(|PeerError(why)| {
            self.died = Some(which);
            why
        })
    }

    fn is_sound(&mut self, reading: &Reading) -> bool {
        reading.disagreement(self.contract).is_none()
    }

    fn condition(&mut self) -> Option<Condition> {
        let said = self.monitor?.condition();
        let held_back = said.held_back.iter().map(ToString::to_string).collect();
        Some(Condition { watts: said.watts.map(Figure::new), celsius: said.celsius, held_back })
    }

    fn has_time(&mut self) -> bool {
        Instant::now() < self.until
    }
}
