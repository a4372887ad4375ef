//! Exchange between the lanes of a warp. Lanes that a mask names wait for each other.

use super::{At, Next};
use crate::checks;
use crate::machine::{Cluster, Decoder, Source, Values, Why, lanes};
use crate::simd::Permutation;
use happens_before::{Lanes, Site};
use ptx::forms::Warp;
use ptx::{Instruction, Operand, RegisterId, Type};

pub struct Exchange {
    kind: Kind,
    destination: Option<RegisterId>,
    /// The predicate of `shfl`: was the source lane in range?
    in_range: Option<RegisterId>,
    sources: Vec<Source>,
    members: Option<Source>,
}

#[derive(Clone, Copy)]
enum Kind {
    Shuffle(Shuffle),
    Vote(Vote),
    Ballot,
    ActiveMask,
    Synchronise,
    MatchAny,
    MatchAll,
    Reduce(Reduction),
    Elect,
}

#[derive(Clone, Copy)]
enum Reduction {
    Add,
    Minimum,
    Maximum,
    MinimumSigned,
    MaximumSigned,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy)]
enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy)]
enum Vote {
    All,
    Any,
    Uniform,
}

pub fn decode(op: Warp, instruction: &Instruction, decoder: &Decoder) -> Result<Exchange, Why> {
    let kind = match op {
        Warp::Shuffle => Kind::Shuffle(match instruction.choice(&["up", "down", "bfly"]) {
            Some("up") => Shuffle::Up,
            Some("down") => Shuffle::Down,
            Some(_) => Shuffle::Butterfly,
            None => Shuffle::Index,
        }),
        Warp::Vote => Kind::Vote(match instruction.choice(&["all", "any"]) {
            Some("all") => Vote::All,
            Some(_) => Vote::Any,
            None => Vote::Uniform,
        }),
        Warp::Ballot => Kind::Ballot,
        Warp::ActiveMask => Kind::ActiveMask,
        Warp::Synchronise => Kind::Synchronise,
        Warp::MatchAny => Kind::MatchAny,
        Warp::MatchAll => Kind::MatchAll,
        Warp::Reduce | Warp::ReduceBits => Kind::Reduce(Reduction::of(instruction)),
        Warp::Elect => Kind::Elect,
    };
    let mut operands = instruction.operands.iter();
    let result = if matches!(kind, Kind::Synchronise) { None } else { operands.next() };
    let (destination, in_range) = match result {
        Some(Operand::Pair(first, second)) => (decoder.destination(first)?, decoder.destination(second)?),
        Some(single) => (decoder.destination(single)?, None),
        None => (None, None),
    };
    // As wide as the widest: `match` compares 64 bits.
    let mut sources: Vec<Source> = operands.map(|one| decoder.source(one, Type::B64)).collect::<Result<_, _>>()?;
    Ok(Exchange { kind, destination, in_range, members: sources.pop(), sources })
}

pub fn execute(cluster: &mut Cluster, at: At, exchange: &Exchange) -> Next {
    let Some(members) = exchange.members else {
        cluster.warps[at.warp].write(exchange.destination, at.mask, &[u64::from(at.mask); 32]);
        return Next::Following;
    };
    if at.mask == 0 {
        return Next::Following;
    }
    let members = cluster.read(at.warp, members);
    if !checks::warp_convergence::agrees(cluster, at, &members) {
        exchange.perform(cluster, at, at.mask);
        return Next::Following;
    }
    if let Some(groups) = groups_of_one_instruction(&members, at.mask, cluster.warps[at.warp].live) {
        groups.into_iter().for_each(|mask| exchange.perform(cluster, at, mask));
        return Next::Following;
    }
    let members = members[at.mask.trailing_zeros() as usize] as u32;
    let Some(mask) = cluster.gather(at, members) else { return Next::Done };
    exchange.perform(cluster, at, mask);
    cluster.warps[at.warp].disperse(at.statement, members);
    Next::Done
}

/// Lanes may name different members, as the tiles of a warp do. The groups, where there are several and all of their
/// lanes are here.
fn groups_of_one_instruction(members: &Values, here: u32, live: u32) -> Option<Vec<u32>> {
    let group = |lane: usize| members[lane] as u32 & live;
    let whole = |mask: u32| mask & !here == 0 && lanes(mask).all(|lane| group(lane) == mask);
    let mut groups: Vec<u32> = lanes(here).map(group).collect();
    groups.sort_unstable();
    groups.dedup();
    (groups.len() > 1 && groups.iter().all(|mask| whole(*mask))).then_some(groups)
}

impl Exchange {
    /// Destination and predicate, source and permutation of a shuffle by a constant among all lanes.
    pub fn permutation(&self) -> Option<([Option<RegisterId>; 2], Source, Permutation)> {
        let Kind::Shuffle(mode) = self.kind else { return None };
        let [source, Source::Constant(amount), Source::Constant(clamp)] = self.sources[..] else { return None };
        let all = matches!(self.members, Some(Source::Constant(members)) if members as u32 == u32::MAX);
        let from: [(usize, bool); 32] = std::array::from_fn(|lane| mode.source(lane, amount as u32, clamp as u32));
        let inside = lanes(u32::MAX).filter(|lane| from[*lane].1).fold(0, |inside, lane| inside | 1 << lane);
        let permutation = Permutation { from: from.map(|(lane, _)| lane as u32), inside };
        all.then_some(([self.destination, self.in_range], source, permutation))
    }

    /// The lane that each lane reads, of a shuffle.
    pub fn origins(&self, cluster: &Cluster, at: At) -> Option<[usize; 32]> {
        let Kind::Shuffle(mode) = self.kind else { return None };
        let [amount, clamp] = [1, 2].map(|operand| cluster.read(at.warp, self.sources[operand]));
        Some(std::array::from_fn(|lane| mode.source(lane, amount[lane] as u32, clamp[lane] as u32).0))
    }

    /// All lanes of `mask` are here.
    fn perform(&self, cluster: &mut Cluster, at: At, mask: u32) {
        let operands: Vec<Values> = self.sources.iter().map(|source| cluster.read(at.warp, *source)).collect();
        let ballot = || lanes(mask).filter(|lane| operands[0][*lane] & 1 == 1).fold(0u32, |m, lane| m | 1 << lane);
        let warp = &mut cluster.warps[at.warp];
        match self.kind {
            Kind::Shuffle(mode) => {
                let from: [(usize, bool); 32] =
                    std::array::from_fn(|lane| mode.source(lane, operands[1][lane] as u32, operands[2][lane] as u32));
                let values = std::array::from_fn(|lane| operands[0][from[lane].0]);
                checks::warp_convergence::watch_sources(cluster, at, mask, &from);
                let warp = &mut cluster.warps[at.warp];
                warp.write(self.destination, mask, &values);
                warp.write(self.in_range, mask, &from.map(|(_, inside)| u64::from(inside)));
            }
            Kind::Vote(vote) => {
                let votes = ballot();
                let result = match vote {
                    Vote::All => votes == mask,
                    Vote::Any => votes != 0,
                    Vote::Uniform => votes == mask || votes == 0,
                };
                warp.write(self.destination, mask, &[u64::from(result); 32]);
            }
            Kind::Ballot => warp.write(self.destination, mask, &[u64::from(ballot()); 32]),
            Kind::MatchAny => {
                let alike = |lane: usize| u64::from(equal_lanes(&operands[0], mask, operands[0][lane]));
                warp.write(self.destination, mask, &std::array::from_fn(alike));
            }
            Kind::MatchAll => {
                let all = equal_lanes(&operands[0], mask, operands[0][mask.trailing_zeros() as usize & 31]) == mask;
                warp.write(self.destination, mask, &[if all { mask.into() } else { 0 }; 32]);
                warp.write(self.in_range, mask, &[u64::from(all); 32]);
            }
            Kind::Reduce(reduction) => {
                let values = lanes(mask).map(|lane| operands[0][lane] as u32);
                let result = values.reduce(|a, b| reduction.combine(a, b)).unwrap_or_default();
                warp.write(self.destination, mask, &[result.into(); 32]);
            }
            Kind::Elect => {
                // The manual leaves the choice open; the hardware takes the lowest lane.
                let leader = mask.trailing_zeros() as usize;
                warp.write(self.destination, mask, &[leader as u64; 32]);
                warp.write(self.in_range, mask, &std::array::from_fn(|lane| u64::from(lane == leader)));
            }
            Kind::ActiveMask => {}
            Kind::Synchronise => {
                if cluster.orders(at) {
                    cluster.detector.warp_sync(Lanes { warp: at.warp as u32, mask }, Site(at.statement));
                }
            }
        }
    }
}

/// The lanes of `mask` that hold `value`.
fn equal_lanes(values: &Values, mask: u32, value: u64) -> u32 {
    lanes(mask).filter(|lane| values[*lane] == value).fold(0, |alike, lane| alike | 1 << lane)
}

impl Reduction {
    fn of(instruction: &Instruction) -> Reduction {
        let signed = instruction.ty() == Some(Type::S32);
        match instruction.choice(&["add", "min", "max", "and", "or"]) {
            Some("add") => Reduction::Add,
            Some("min") if signed => Reduction::MinimumSigned,
            Some("min") => Reduction::Minimum,
            Some("max") if signed => Reduction::MaximumSigned,
            Some("max") => Reduction::Maximum,
            Some("and") => Reduction::And,
            Some(_) => Reduction::Or,
            None => Reduction::Xor,
        }
    }

    fn combine(self, a: u32, b: u32) -> u32 {
        match self {
            Reduction::Add => a.wrapping_add(b),
            Reduction::Minimum => a.min(b),
            Reduction::Maximum => a.max(b),
            Reduction::MinimumSigned => (a as i32).min(b as i32) as u32,
            Reduction::MaximumSigned => (a as i32).max(b as i32) as u32,
            Reduction::And => a & b,
            Reduction::Or => a | b,
            Reduction::Xor => a ^ b,
        }
    }
}

impl Shuffle {
    /// The lane that `lane` reads, and whether it is in range. PTX ISA, "shfl.sync", with its names in the comments.
    fn source(self, lane: usize, b: u32, c: u32) -> (usize, bool) {
        let lane = lane as u32;
        let (amount, clamp, segment) = (b & 0x1f, c & 0x1f, c >> 8 & 0x1f); // bval, cval, mask
        let first = lane & segment; // minLane
        let last = first | (clamp & !segment); // maxLane
        let (source, inside) = match self {
            Shuffle::Up => (lane.wrapping_sub(amount), lane as i32 - amount as i32 >= last as i32),
            Shuffle::Down => (lane + amount, lane + amount <= last),
            Shuffle::Butterfly => (lane ^ amount, (lane ^ amount) <= last),
            Shuffle::Index => (first | (amount & !segment), (first | (amount & !segment)) <= last),
        };
        (if inside { source as usize & 31 } else { lane as usize }, inside)
    }
}
