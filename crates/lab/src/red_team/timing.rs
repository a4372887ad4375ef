//! Contenders that want to be faster than they are, and peers that want to be slower: tried on the model of a driver's timing.

use super::model::{Actor, Contest, Sample};
use super::workshop::{case, edited, honest};
use super::{Attack, Place, row};
use crate::bench::data;
use crate::guard::{Guard, Objection, Objections};
use crate::measure::{Refused, Rounds};

#[rustfmt::skip] // One row per line.
pub const ATTACKS: &[Attack] = &[
    row(HERE, "cached-by-warm-up",     "every call works: the warm-up did, and left its answers",    &[Guard::AfterTiming], cached_by_warm_up),
    row(HERE, "cached-by-pointer",     "fast calls: the answer for these addresses is known",        &[Guard::AfterTiming], cached),
    row(HERE, "cached-by-content",     "fast calls: the answer for these inputs is known",           &[Guard::AfterTiming], cached),
    row(HERE, "first-calls-only",      "right for the first three samples",                          &[Guard::AfterTiming], first_calls_only),
    row(HERE, "one-works-for-all",     "n calls, of which one does something",                       &[Guard::AfterTiming], one_works_for_all),
    row(HERE, "one-works-for-all-warm", "n calls in warm buffers, of which one does something",       &[Guard::AfterTiming], one_works_for_all_warm),
    row(HERE, "changed-while-timed",   "inputs made simpler between two calls",                      &[Guard::AfterTiming], changed_while_timed),
    row(HERE, "failed-launch",         "the time of launches that failed",                           &[Guard::AfterTiming], failed_launch),
    row(HERE, "other-stream",          "a short call: the work goes on elsewhere after it",          &[Guard::AfterTiming], other_stream),
    row(HERE, "lying-clock",           "half the time, by a clock of its own",                       &[Guard::Clocks],      lying_clock),
    row(HERE, "lying-gpu",             "half the time, by all clocks of the GPU",                    &[Guard::Clocks],      lying_gpu),
    row(HERE, "chosen-samples",        "the fastest of three samples: the others were taken again",  &[Guard::Clocks],      chosen_samples),
    row(HERE, "peer-with-a-clock",     "faster than a peer whose own clock says so",                 &[Guard::Clocks],      peer_with_a_clock),
    row(HERE, "warm-cache",            "bandwidth, of a cache",                                      &[Guard::Floors],      warm_cache),
    row(HERE, "below-physics",         "a record",                                                   &[Guard::Floors],      below_physics),
    row(HERE, "zero-in-a-mean",        "a geometric mean with a zero in it",                         &[Guard::Floors, Guard::Decided], zero_in_a_mean),
    row(HERE, "drift",                 "faster: it was timed before the clock fell",                 &[Guard::SameItself],  drift),
    row(HERE, "clock-change",          "faster, at a higher clock",                                  &[Guard::Cycles],      clock_change),
    row(HERE, "zeros-as-data",         "faster, on zeros that take no power",                        &[Guard::Data],        zeros_as_data),
    row(HERE, "straw-man",             "faster than all: the strong peer was left out",              &[Guard::Peers],       straw_man),
    row(HERE, "peer-that-dies",        "faster than a peer that died",                               &[Guard::Peers],       peer_that_dies),
    row(HERE, "peer-that-hangs",       "faster than a peer that never answered",                     &[Guard::Peers],       peer_that_hangs),
    row(HERE, "peer-that-lies",        "a peer's impossible time",                                   &[Guard::Floors],      peer_that_lies),
    row(HERE, "peer-that-is-wrong",    "faster than a peer that computes something else",            &[Guard::PeerResults], peer_that_is_wrong),
    row(HERE, "dear-launches",         "faster, since the peer's process pays more for a launch",    &[Guard::Launches],    dear_launches),
    row(HERE, "old-kernel-loaded",     "the new kernel's time: the old one was loaded",              &[Guard::LoadedCode],  old_kernel_loaded),
];

const HERE: Place = Place::Model;

/// What an honest call takes, in microseconds.
const HONEST: f64 = 10.0;

fn candidate(sample: Sample, off: &[Guard]) -> Result<Objections, String> {
    Contest::against_peer(sample).judge(off)
}

fn cached_by_warm_up(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { wrote: |sample, _| sample == 0, ..Sample::honest(2.0) }, off)
}

/// Whatever it knows them by, addresses or contents: no sample has the contents of another.
fn cached(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { from_memory: true, ..Sample::honest(2.0) }, off)
}

fn first_calls_only(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { wrote: |sample, _| sample < 3, ..Sample::honest(HONEST) }, off)
}

fn one_works_for_all(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { wrote: |_, call| call == 0, ..Sample::honest(2.0) }, off)
}

/// What all calls leave in one place, one of them can leave.
fn one_works_for_all_warm(off: &[Guard]) -> Result<Objections, String> {
    let sample = Sample { wrote: |_, call| call == 0, ..Sample::honest(2.0) };
    Contest { cold: false, ..Contest::against_peer(sample) }.judge(off)
}

fn changed_while_timed(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { kept_inputs: false, ..Sample::honest(5.0) }, off)
}

fn failed_launch(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { wrote: |_, _| false, ..Sample::honest(2.0) }, off)
}

fn other_stream(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { wrote: |_, call| call < 150, ..Sample::honest(5.0) }, off)
}

fn lying_clock(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { timer: 2.0, ..Sample::honest(5.0) }, off)
}

fn lying_gpu(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample { host: 2.0, ..Sample::honest(5.0) }, off)
}

/// Whoever takes samples again until he likes one has nothing against those that he throws away.
fn chosen_samples(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(HONEST));
    contest.edit = |rounds| {
        for round in &mut rounds.0 {
            let slower = |contender: usize| {
                let reading = round.readings[contender];
                Refused { contender, reading: reading.taking(reading.seconds.value() * 1.05) }
            };
            round.refused = Some([0, 0, 1, 1].map(slower).into());
        }
    };
    contest.judge(off)
}

fn peer_with_a_clock(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(HONEST));
    contest.actors[2] = Actor::new("peer", Sample { host: 0.5, ..Sample::honest(20.0) });
    contest.judge(off)
}

/// One query against many keys is bound by memory: 67 MB take 14 µs.
fn warm_cache(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(5.0));
    contest.problem = "f16 B1 H8 Sq1 Sk16384 D128";
    contest.actors[2] = Actor::new("peer", Sample::honest(20.0));
    contest.judge(off)
}

fn below_physics(off: &[Guard]) -> Result<Objections, String> {
    candidate(Sample::honest(0.5), off)
}

fn zero_in_a_mean(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(HONEST));
    contest.edit = |rounds| rounds.0[3].readings.iter_mut().take(2).for_each(|one| *one = one.taking(0.0));
    contest.judge(off)
}

/// First A, then A again, then B, in every round, while the GPU grows slower.
fn drift(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(HONEST));
    contest.edit = |rounds: &mut Rounds| {
        for round in &mut rounds.0 {
            round.order = vec![0, 1, 2];
            for (reading, slower) in round.readings.iter_mut().zip([1.0, 1.03, 1.06]) {
                *reading = reading.taking(HONEST * 1e-6 * slower);
            }
        }
    };
    contest.judge(off)
}

/// The same cycles at a clock that is 5 % higher.
fn clock_change(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample { megahertz: 1980.0 * 1.05, ..Sample::honest(HONEST) });
    contest.actors[2] = Actor::new("peer", Sample::honest(HONEST * 1.05));
    contest.judge(off)
}

fn zeros_as_data(_: &[Guard]) -> Result<Objections, String> {
    let text = edited(&honest()?, "//@ init = \"normal(1.0)\"", "//@ init = \"zeros\"")?;
    let refused = data::check(&case(&text)?).err();
    Ok(Objections::of(refused.map(|why| Objection::fail(Guard::Data, why))))
}

fn straw_man(off: &[Guard]) -> Result<Objections, String> {
    with_peer(Err("it was not installed"), off)
}

fn peer_that_dies(off: &[Guard]) -> Result<Objections, String> {
    with_peer(Err("its process ended"), off)
}

fn peer_that_hangs(off: &[Guard]) -> Result<Objections, String> {
    with_peer(Err("no answer within 20 s"), off)
}

fn peer_that_lies(off: &[Guard]) -> Result<Objections, String> {
    with_peer(Ok(Sample::honest(0.2)), off)
}

fn peer_that_is_wrong(off: &[Guard]) -> Result<Objections, String> {
    with_peer(Ok(Sample { wrote: |_, _| false, ..Sample::honest(14.0) }), off)
}

/// A second peer beside the honest one.
fn with_peer(sample: Result<Sample, &'static str>, off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(HONEST));
    contest.actors.push(Actor { identity: "peer 1.0", sample, ..Actor::new("another peer", Sample::honest(HONEST)) });
    contest.judge(off)
}

/// Of 10 µs of work the peer takes the same, and as much again for its launches as processes were seen to.
fn dear_launches(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(HONEST));
    contest.actors[2] = Actor { launch: 1348.0, ..Actor::new("peer", Sample::honest(HONEST * 1.04)) };
    contest.judge(off)
}

fn old_kernel_loaded(off: &[Guard]) -> Result<Objections, String> {
    let mut contest = Contest::against_peer(Sample::honest(HONEST));
    contest.actors[1].identity = "the old cubin";
    contest.judge(off)
}
