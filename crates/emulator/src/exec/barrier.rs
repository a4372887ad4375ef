//! Barriers of a block. PTX ISA, "bar, barrier": a warp counts once all its live lanes have come.

use super::{Action, At, Next};
use crate::checks;
use crate::machine::{Cluster, Decoder, Source, Why, lanes};
use happens_before::{Lanes, Semantics};
use ptx::forms::Barrier;
use ptx::{Instruction, Operand, RegisterId, Type};

/// What a thread does at the barrier of its cluster.
#[derive(Clone, Copy, Debug)]
pub enum ClusterMeeting {
    Arrive(Semantics),
    Wait,
}

pub struct Meeting {
    id: Source,
    threads: Option<Source>,
    waits: bool,
    /// All lanes of a warp must execute it together.
    aligned: bool,
    vote: Option<Vote>,
}

/// What `bar.red` asks every thread, and what becomes of the answers.
#[derive(Clone, Copy)]
struct Vote {
    outcome: Outcome,
    destination: Option<RegisterId>,
    predicate: Source,
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// How many said yes.
    Count,
    All,
    Any,
}

/// The answers of some lanes that wait at a barrier.
#[derive(Clone, Debug)]
pub struct Ballot {
    who: Lanes,
    yes: u32,
    outcome: Outcome,
    destination: Option<RegisterId>,
}

pub fn decode(op: Barrier, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    match op {
        Barrier::ClusterArrive => {
            let semantics = Semantics { release: !instruction.has("relaxed"), ..Semantics::default() };
            Ok(Action::ClusterBarrier(ClusterMeeting::Arrive(semantics)))
        }
        Barrier::ClusterWait => Ok(Action::ClusterBarrier(ClusterMeeting::Wait)),
        _ => decode_meeting(op, instruction, decoder).map(Action::Barrier),
    }
}

fn decode_meeting(op: Barrier, instruction: &Instruction, decoder: &Decoder) -> Result<Meeting, Why> {
    let aligned = instruction.has("aligned");
    let (waits, aligned, votes) = match op {
        Barrier::Synchronise => (true, true, false),
        Barrier::SynchroniseAligned => (true, aligned, false),
        Barrier::Arrive => (false, true, false),
        Barrier::ArriveAligned => (false, aligned, false),
        Barrier::Count | Barrier::Reduce => (true, true, true),
        Barrier::CountAligned | Barrier::ReduceAligned => (true, aligned, true),
        Barrier::ClusterArrive | Barrier::ClusterWait => return Err("a block barrier".into()),
    };
    let mut operands = &instruction.operands[..];
    let mut vote = None;
    if votes && let [destination, rest @ .., predicate] = operands {
        vote = Some(decode_vote(instruction, decoder, destination, predicate)?);
        operands = rest;
    }
    let threads = operands.get(1).map(|one| decoder.source(one, Type::U32)).transpose()?;
    Ok(Meeting { id: decoder.source(&operands[0], Type::U32)?, threads, waits, aligned, vote })
}

fn decode_vote(
    instruction: &Instruction,
    decoder: &Decoder,
    destination: &Operand,
    predicate: &Operand,
) -> Result<Vote, Why> {
    let outcome = match instruction.choice(&["and", "or"]) {
        Some("and") => Outcome::All,
        Some(_) => Outcome::Any,
        None => Outcome::Count,
    };
    let destination = decoder.destination(destination)?;
    Ok(Vote { outcome, destination, predicate: decoder.source(predicate, Type::Pred)? })
}

pub fn execute(cluster: &mut Cluster, at: At, meeting: &Meeting) -> Next {
    if at.mask == 0 {
        return Next::Following;
    }
    let lane = at.mask.trailing_zeros() as usize;
    let value = |cluster: &Cluster, source| match source {
        Source::Constant(value) => value as u32,
        other => cluster.read(at.warp, other)[lane] as u32,
    };
    let id = value(cluster, meeting.id);
    let threads = meeting.threads.map(|source| value(cluster, source));
    checks::barrier::watch(cluster, at, id, threads, meeting.aligned);
    if id >= checks::barrier::BARRIERS {
        return Next::Following;
    }
    if let Some(Vote { outcome, destination, predicate }) = meeting.vote {
        let answers = cluster.read(at.warp, predicate);
        let yes = lanes(at.mask).filter(|lane| answers[*lane] & 1 == 1).fold(0, |yes, lane| yes | 1 << lane);
        let who = Lanes { warp: at.warp as u32, mask: at.mask };
        let rank = cluster.rank(at.warp);
        cluster.blocks[rank].barriers[id as usize].ballots.push(Ballot { who, yes, outcome, destination });
    }
    cluster.meet(at, id, threads, meeting.waits)
}

pub fn execute_in_cluster(cluster: &mut Cluster, at: At, meeting: ClusterMeeting) -> Next {
    match meeting {
        _ if at.mask == 0 => Next::Following,
        ClusterMeeting::Arrive(semantics) => {
            cluster.arrive_in_cluster(at, semantics);
            Next::Following
        }
        ClusterMeeting::Wait => cluster.wait_in_cluster(at),
    }
}

/// The barrier is full: everybody who voted learns the outcome.
pub fn announce(cluster: &mut Cluster, ballots: &[Ballot]) {
    let yes: u32 = ballots.iter().map(|ballot| ballot.yes.count_ones()).sum();
    let voters: u32 = ballots.iter().map(|ballot| ballot.who.mask.count_ones()).sum();
    for Ballot { who, outcome, destination, .. } in ballots {
        let result = match outcome {
            Outcome::Count => yes,
            Outcome::All => u32::from(yes == voters),
            Outcome::Any => u32::from(yes > 0),
        };
        cluster.warps[who.warp as usize].write(*destination, who.mask, &[result.into(); 32]);
    }
}
