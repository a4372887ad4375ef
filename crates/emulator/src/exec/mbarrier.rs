//! Barriers in shared memory with phases. Threads arrive and wait one by one; copies add the bytes that came.

use super::access::{Access, Accessed, watched_shared};
use super::{Action, At, Next};
use crate::async_engines::{Effect, Mbarrier, Operation, Spot};
use crate::checks;
use crate::machine::{AddressSource, Cluster, Decoder, Source, State, Values, Why, lanes};
use happens_before::{Kind, Scope, Semantics, Site};
use ptx::forms::Mbarrier as Op;
use ptx::{Instruction, RegisterId, Space, Type};

/// Bytes of a barrier object.
pub const BYTES: u32 = 8;

pub struct Meeting {
    /// None: generic addresses.
    space: Option<Space>,
    address: AddressSource,
    step: Step,
}

enum Step {
    Init {
        count: Source,
    },
    Invalidate,
    Expect {
        bytes: Source,
    },
    Complete {
        bytes: Source,
    },
    Arrive(Arrival),
    /// `cp.async.mbarrier.arrive`: when the thread's copies have landed. `counted`: in the expected arrivals.
    CopyArrive {
        counted: bool,
    },
    Wait(Wait),
}

struct Arrival {
    destination: Option<RegisterId>,
    count: Source,
    /// Bytes announced before the arrival.
    bytes: Option<Source>,
    drops: bool,
    semantics: Semantics,
}

struct Wait {
    destination: Option<RegisterId>,
    until: Source,
    /// `until` is a parity, not a state.
    parity: bool,
    semantics: Semantics,
    /// Somebody looks at the result. Else the wait orders nothing: it may give up, and nobody would know.
    looked_at: bool,
}

pub fn decode(op: Op, at: usize, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    let operands = &instruction.operands;
    let number = |index: usize| decoder.source(&operands[index], Type::U32);
    let one = Source::Constant(1);
    let semantics = semantics(instruction);
    if op == Op::PendingCount {
        let destination = decoder.destination(&operands[0])?;
        return Ok(Action::PendingCount { destination, state: decoder.source(&operands[1], Type::U64)? });
    }
    let arrival = |count: Source, bytes: Option<Source>, drops: bool| -> Result<Step, Why> {
        Ok(Step::Arrive(Arrival { destination: decoder.destination(&operands[0])?, count, bytes, drops, semantics }))
    };
    let wait = |parity: bool| -> Result<Step, Why> {
        let ty = if parity { Type::U32 } else { Type::U64 };
        let until = decoder.source(&operands[2], ty)?;
        let (destination, looked_at) = (decoder.destination(&operands[0])?, decoder.is_looked_at(at, &operands[0]));
        Ok(Step::Wait(Wait { destination, until, parity, semantics, looked_at }))
    };
    let (place, step) = match op {
        Op::Init => (0, Step::Init { count: number(1)? }),
        Op::Invalidate => (0, Step::Invalidate),
        Op::ExpectBytes => (0, Step::Expect { bytes: number(1)? }),
        Op::CompleteBytes => (0, Step::Complete { bytes: number(1)? }),
        Op::CopyArrive => (0, Step::CopyArrive { counted: instruction.has("noinc") }),
        Op::Arrive => (1, arrival(one, None, false)?),
        Op::ArriveCount | Op::ArriveNoComplete => (1, arrival(number(2)?, None, false)?),
        Op::ArriveRemote => (1, arrival(if operands.len() > 2 { number(2)? } else { one }, None, false)?),
        Op::ArriveExpect | Op::ArriveExpectRemote => (1, arrival(one, Some(number(2)?), false)?),
        Op::ArriveDrop => (1, arrival(one, None, true)?),
        Op::ArriveDropCount | Op::ArriveDropNoComplete => (1, arrival(number(2)?, None, true)?),
        Op::ArriveDropRemote => (1, arrival(if operands.len() > 2 { number(2)? } else { one }, None, true)?),
        Op::ArriveDropExpect => (1, arrival(one, Some(number(2)?), true)?),
        Op::TestWait | Op::TryWait => (1, wait(false)?),
        Op::TestWaitParity | Op::TryWaitParity => (1, wait(true)?),
        Op::PendingCount => return Err("a state that is not there".into()),
    };
    Ok(Action::Phase(Box::new(Meeting {
        space: instruction.space(),
        address: decoder.address(&operands[place])?,
        step,
    })))
}

/// Arrivals release and waits acquire, both in the block, unless the text says otherwise.
fn semantics(instruction: &Instruction) -> Semantics {
    let orders = !instruction.has("relaxed");
    let scope = if instruction.has("cluster") { Scope::Cluster } else { Scope::Cta };
    Semantics { release: orders, acquire: orders, ..Semantics::relaxed(scope) }
}

pub fn count_pending(cluster: &mut Cluster, at: At, destination: Option<RegisterId>, state: Source) -> Next {
    let values = cluster.read(at.warp, state).map(|state| Mbarrier::pending_of(state).into());
    cluster.warps[at.warp].write(destination, at.mask, &values);
    Next::Following
}

pub fn execute(cluster: &mut Cluster, at: At, meeting: &Meeting) -> Next {
    if at.mask == 0 {
        return Next::Following;
    }
    let addresses = cluster.addresses(at.warp, &meeting.address);
    let access = Access { space: meeting.space, kind: Kind::Atomic, bytes: BYTES };
    let mut spots = [None; 32];
    for lane in lanes(at.mask) {
        spots[lane] = match cluster.locate((at.warp, lane), &access, addresses[lane]) {
            Accessed::Shared { block, offset } => Some((block, offset)),
            _ => {
                checks::wrong_space::report_outside(cluster, at, &access, &addresses, 1 << lane);
                None
            }
        };
    }
    checks::misaligned::watch(cluster, at, &access, &addresses);
    if !matches!(meeting.step, Step::Init { .. }) {
        checks::mbarrier::watch_use(cluster, at, &spots);
    }
    match &meeting.step {
        Step::Wait(wait) => wait.execute(cluster, at, &spots),
        step => {
            step.execute(cluster, at, &spots);
            Next::Following
        }
    }
}

impl Step {
    /// Lane by lane, in the order of their numbers.
    fn execute(&self, cluster: &mut Cluster, at: At, spots: &[Option<Spot>; 32]) {
        let values = |cluster: &Cluster, source: &Source| cluster.read(at.warp, *source);
        match self {
            Step::Init { count } => {
                let counts = values(cluster, count);
                each(at, spots, |lane, spot| cluster.start_phases((at, lane), spot, counts[lane] as u32));
            }
            Step::Invalidate => each(at, spots, |lane, spot| cluster.end_phases((at, lane), spot)),
            Step::Expect { bytes } => {
                let bytes = values(cluster, bytes);
                each(at, spots, |lane, spot| {
                    cluster.phase_step((at, lane), spot, |barrier| {
                        barrier.expect(bytes[lane] as u32);
                        Effect::Open
                    });
                });
            }
            Step::Complete { bytes } => {
                let bytes = values(cluster, bytes);
                each(at, spots, |lane, spot| {
                    cluster.phase_step((at, lane), spot, |barrier| barrier.complete(bytes[lane] as u32));
                });
            }
            Step::Arrive(arrival) => arrival.execute(cluster, at, spots),
            Step::CopyArrive { counted } => each(at, spots, |lane, spot| {
                if !counted {
                    cluster.phase_step((at, lane), spot, |barrier| {
                        barrier.raise();
                        Effect::Open
                    });
                }
                if cluster.orders(at) {
                    cluster.detector.copy_arrive(at.lane(lane).lanes(), watched_shared(spot.0, spot.1));
                }
                cluster.depart(at, Operation::Signal { warp: at.warp, lane, spot });
            }),
            Step::Wait(_) => {}
        }
    }
}

fn each(at: At, spots: &[Option<Spot>; 32], mut step: impl FnMut(usize, Spot)) {
    lanes(at.mask).for_each(|lane| spots[lane].into_iter().for_each(|spot| step(lane, spot)));
}

impl Arrival {
    fn execute(&self, cluster: &mut Cluster, at: At, spots: &[Option<Spot>; 32]) {
        let counts = cluster.read(at.warp, self.count);
        let bytes = self.bytes.map(|source| cluster.read(at.warp, source));
        let mut states: Values = [0; 32];
        each(at, spots, |lane, spot| {
            let place = watched_shared(spot.0, spot.1);
            if cluster.orders(at) {
                cluster.detector.mbarrier_arrive(at.lane(lane).lanes(), Site(at.statement), place, self.semantics);
            }
            states[lane] = cluster.mbarriers.get(&spot).map_or(0, Mbarrier::state);
            cluster.phase_step((at, lane), spot, |barrier| {
                bytes.iter().for_each(|bytes| barrier.expect(bytes[lane] as u32));
                let count = counts[lane] as u32;
                if self.drops { barrier.drop_out(count) } else { barrier.arrive(count) }
            });
        });
        cluster.warps[at.warp].write(self.destination, at.mask, &states);
    }
}

impl Cluster<'_, '_> {
    /// Does a wait that is not over give up now?
    fn gives_up(&mut self, at: At) -> bool {
        let given_up = &mut self.warps[at.warp].given_up;
        let gives_up = self.adversary.gives_up(given_up.contains(&at.statement));
        if gives_up {
            given_up.insert(at.statement);
        }
        gives_up
    }
}

impl Wait {
    /// Lanes whose phase is open wait, unless the adversary lets the instruction give up.
    fn execute(&self, cluster: &mut Cluster, at: At, spots: &[Option<Spot>; 32]) -> Next {
        let until = cluster.read(at.warp, self.until);
        each(at, spots, |lane, spot| {
            if !cluster.mbarriers.contains_key(&spot) {
                checks::mbarrier::report_no_barrier(cluster, (at, lane), spot);
            }
        });
        let passed = |lane: &usize| {
            let barrier = spots[*lane].and_then(|spot| cluster.mbarriers.get(&spot));
            spots[*lane].filter(|_| barrier.is_some()).into_iter().for_each(|spot| cluster.note_barrier(spot));
            barrier.is_none_or(|barrier| match self.parity {
                true => barrier.has_passed_parity(until[*lane]),
                false => barrier.has_passed(until[*lane]),
            })
        };
        let through = lanes(at.mask).filter(passed).fold(0, |mask, lane| mask | 1 << lane);
        let late = (at.mask & !through).trailing_zeros() as usize;
        let expired = std::mem::take(&mut cluster.warps[at.warp].fragments[at.fragment].expired);
        let waits = through != at.mask && !expired && !cluster.gives_up(at);
        if let Some(spot) = spots.get(late).copied().flatten().filter(|_| waits) {
            cluster.warps[at.warp].fragments[at.fragment].state = State::Phase(spot);
            return Next::Done;
        }
        if through == at.mask {
            cluster.warps[at.warp].given_up.remove(&at.statement);
        }
        if self.looked_at {
            self.learn(cluster, At { mask: through, ..at }, spots);
        } else {
            each(at, spots, |_, spot| {
                cluster.unheard.insert(spot, at.statement);
            });
        }
        let values = std::array::from_fn(|lane| u64::from(through >> lane & 1));
        cluster.warps[at.warp].write(self.destination, at.mask, &values);
        if through == at.mask { Next::Following } else { Next::Pause }
    }

    /// Lanes that have seen the end of a phase know what came before it, lanes of one barrier together.
    fn learn(&self, cluster: &mut Cluster, at: At, spots: &[Option<Spot>; 32]) {
        let mut rest = at.mask;
        while rest != 0 {
            let spot = spots[rest.trailing_zeros() as usize];
            let mask = lanes(rest).filter(|lane| spots[*lane] == spot).fold(0, |mask, lane| mask | 1 << lane);
            if let Some((rank, offset)) = spot.filter(|_| cluster.orders(at)) {
                cluster.detector.mbarrier_wait(At { mask, ..at }.lanes(), watched_shared(rank, offset), self.semantics);
            }
            rest &= !mask;
        }
    }
}
