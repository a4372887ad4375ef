//! What each instruction does: a file per family, with the names of the form table's files.
//!
//! Decoding is exhaustive over the table: a new row does not compile until its family says what it does.

mod access;
mod algebra;
mod async_copy;
mod atomic;
mod barrier;
mod bits;
mod bulk_copy;
mod call;
mod compare;
mod control;
mod convert;
mod extended;
mod fence;
mod float;
mod half;
mod integer;
mod launch;
mod layout;
mod lower;
mod matrix;
mod mbarrier;
mod movement;
mod packed;
mod product;
mod remote_store;
mod support;
mod tensor_map;
mod warp;
mod wgmma;
mod wmma;

pub use access::{Access, Accessed, shared_byte, watched_shared};
pub use barrier::{Ballot, announce};
pub use launch::Resize;
pub use lower::lower;
pub use support::{Difference, NOT_BIT_EQUAL, executes, knows_special};
pub use wgmma::{Issued, Multiply, Reads, Request, Role};

use crate::checks;
use crate::machine::{Cluster, Decoder, Source, Values, Why};
use happens_before::{Lanes, Semantics};
use ptx::{Instruction, Op, RegisterId};

/// An instruction that computes each lane's result from that lane's operands alone: the one definition of its form.
#[derive(Clone, Copy, Debug)]
pub enum Lanewise {
    Integer(integer::Lane),
    Float(float::Lane),
    Half(half::Lane),
    Compare(compare::Lane),
    Convert(convert::Lane),
    /// One of them, on exact numbers.
    Algebra(algebra::Lane),
    /// The result is the operand.
    Copy,
}

impl Lanewise {
    pub fn evaluate(self, operands: [u64; 3]) -> u64 {
        match self {
            Lanewise::Integer(lane) => lane.evaluate(operands),
            Lanewise::Float(lane) => lane.evaluate(operands),
            Lanewise::Half(lane) => lane.evaluate(operands),
            Lanewise::Compare(lane) => lane.evaluate(operands),
            Lanewise::Convert(lane) => lane.evaluate(operands),
            Lanewise::Algebra(lane) => lane.evaluate(operands),
            Lanewise::Copy => operands[0],
        }
    }

    /// What goes to the second destination, which only comparisons have.
    fn complement(self, operands: [u64; 3]) -> u64 {
        match self {
            Lanewise::Compare(lane) => lane.complement(operands),
            other => other.evaluate(operands),
        }
    }
}

/// A lanewise instruction with its operands.
pub struct Compute {
    pub function: Lanewise,
    pub destination: Option<RegisterId>,
    /// `setp` may also return the complement.
    pub complement: Option<RegisterId>,
    pub sources: [Source; 3],
}

impl Compute {
    fn execute(&self, cluster: &mut Cluster, at: At) {
        let [a, b, c] = self.sources.map(|source| cluster.read(at.warp, source));
        let values: Values = std::array::from_fn(|lane| self.function.evaluate([a[lane], b[lane], c[lane]]));
        let second = |lane: usize| self.function.complement([a[lane], b[lane], c[lane]]);
        let warp = &mut cluster.warps[at.warp];
        warp.write(self.destination, at.mask, &values);
        if self.complement.is_some() {
            warp.write(self.complement, at.mask, &std::array::from_fn(second));
        }
    }
}

/// A decoded instruction.
pub enum Action {
    /// Labels and directives.
    Nothing,
    /// `griddepcontrol.wait`.
    WaitForGrids,
    Compute(Compute),
    Extended(extended::Extended),
    Movement(movement::Transfer),
    Atomic(atomic::Update),
    Fence(Semantics),
    ProxyFence(fence::Between),
    Warp(warp::Exchange),
    Matrix(matrix::Tiles),
    Product(Box<product::Product>),
    Fragment(Box<wmma::Transfer>),
    Copy(async_copy::Copying),
    Barrier(barrier::Meeting),
    ClusterBarrier(barrier::ClusterMeeting),
    Phase(Box<mbarrier::Meeting>),
    Bulk(bulk_copy::Bulk),
    RemoteStore(Box<remote_store::RemoteStore>),
    Wgmma(wgmma::Request),
    Resize(launch::Resize),
    TensorMap(tensor_map::Rewrite),
    PendingCount {
        destination: Option<RegisterId>,
        state: Source,
    },
    Control(control::Jump),
}

impl Action {
    /// Does it something to memory that others can see, or hear of what they did?
    pub fn touches_memory(&self) -> bool {
        match self {
            Action::Movement(transfer) => transfer.is_shared_access(),
            Action::Matrix(tiles) => !matches!(tiles, matrix::Tiles::Transpose { .. }),
            Action::Atomic(_)
            | Action::ProxyFence(_)
            | Action::Fragment(_)
            | Action::Copy(_)
            | Action::ClusterBarrier(_)
            | Action::Phase(_)
            | Action::Bulk(_)
            | Action::RemoteStore(_)
            | Action::Wgmma(_)
            | Action::TensorMap(_) => true,
            Action::Nothing
            | Action::WaitForGrids
            | Action::Compute(_)
            | Action::Extended(_)
            | Action::Fence(_)
            | Action::Warp(_)
            | Action::Product(_)
            | Action::Barrier(_)
            | Action::Resize(_)
            | Action::PendingCount { .. }
            | Action::Control(_) => false,
        }
    }
}

/// Where execution stands: lanes of one fragment of one warp, at one statement.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub warp: usize,
    pub fragment: usize,
    /// Lanes whose guard holds.
    pub mask: u32,
    pub statement: u32,
}

impl At {
    pub fn lanes(self) -> Lanes {
        Lanes { warp: self.warp as u32, mask: self.mask }
    }

    /// Those of the lanes that `mask` names.
    pub fn among(self, mask: u32) -> At {
        At { mask: self.mask & mask, ..self }
    }

    /// One of the lanes.
    pub fn lane(self, lane: usize) -> At {
        At { mask: 1 << lane, ..self }
    }
}

/// What becomes of the fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The following statement.
    Following,
    /// The following statement, but others come first.
    Pause,
    /// The statement that a jump of all lanes has set.
    Elsewhere,
    /// The action has set fragments and states itself.
    Done,
}

pub fn decode(decoder: &Decoder, at: usize, instruction: &Instruction) -> Result<Action, Why> {
    if !executes(instruction.op()) {
        return Err(String::new());
    }
    if decoder.algebra
        && let Some(compute) = algebra::decode(instruction, decoder)?
    {
        return Ok(Action::Compute(compute));
    }
    match instruction.op() {
        Op::Integer(op) if extended::covers(op) => extended::decode(op, instruction, decoder).map(Action::Extended),
        Op::Integer(op) => integer::decode(op, instruction, decoder).map(Action::Compute),
        Op::Float(op) => float::decode(op, instruction, decoder).map(Action::Compute),
        Op::Half(op) => half::decode(op, instruction, decoder).map(Action::Compute),
        Op::Compare(op) => compare::decode(op, instruction, decoder).map(Action::Compute),
        Op::Convert(op) => convert::decode(op, instruction, decoder).map(Action::Compute),
        Op::Movement(op) => movement::decode(op, instruction, decoder),
        Op::Atomic(op) => atomic::decode(op, instruction, decoder).map(Action::Atomic),
        Op::Fence(op) => fence::decode(op, instruction, decoder),
        Op::Warp(op) => warp::decode(op, instruction, decoder).map(Action::Warp),
        Op::Matrix(op) => matrix::decode(op, instruction, decoder),
        Op::Wmma(op) => wmma::decode(op, instruction, decoder),
        Op::AsyncCopy(op) => async_copy::decode(op, instruction, decoder).map(Action::Copy),
        Op::Barrier(op) => barrier::decode(op, instruction, decoder),
        Op::Control(op) => control::decode(op, at, instruction, decoder).map(Action::Control),
        Op::Launch(op) => launch::decode(op, instruction, at, decoder),
        Op::Mbarrier(op) => mbarrier::decode(op, at, instruction, decoder),
        Op::BulkCopy(op) => bulk_copy::decode(op, instruction, decoder),
        Op::TensorMap(op) => tensor_map::decode(op, instruction, decoder),
        Op::Wgmma(op) => wgmma::decode(op, instruction, decoder).map(Action::Wgmma),
    }
}

/// What follows the last statement of every function.
pub fn end() -> Action {
    Action::Control(control::Jump::Return)
}

pub fn execute(cluster: &mut Cluster, at: At, action: &Action) -> Next {
    match action {
        Action::Nothing => Next::Following,
        Action::WaitForGrids => launch::wait_for_grids(cluster, at),
        Action::Compute(compute) => {
            compute.execute(cluster, at);
            Next::Following
        }
        Action::Extended(extended) => extended::execute(cluster, at, extended),
        Action::Movement(transfer) => movement::execute(cluster, at, transfer),
        Action::Atomic(update) => atomic::execute(cluster, at, update),
        Action::ProxyFence(between) => fence::execute_between(cluster, at, between),
        Action::Fence(semantics) => fence::execute(cluster, at, *semantics),
        Action::Warp(exchange) => warp::execute(cluster, at, exchange),
        Action::Matrix(tiles) => matrix::execute(cluster, at, tiles),
        Action::Product(product) => product.execute(cluster, at),
        Action::Fragment(transfer) => transfer.execute(cluster, at),
        Action::Copy(copying) => async_copy::execute(cluster, at, copying),
        Action::Barrier(meeting) => barrier::execute(cluster, at, meeting),
        Action::ClusterBarrier(meeting) => barrier::execute_in_cluster(cluster, at, *meeting),
        Action::Phase(meeting) => mbarrier::execute(cluster, at, meeting),
        Action::PendingCount { destination, state } => mbarrier::count_pending(cluster, at, *destination, *state),
        Action::Resize(resize) => launch::execute(cluster, at, *resize),
        Action::Wgmma(request) => wgmma::execute(cluster, at, request),
        Action::Bulk(bulk) => bulk_copy::execute(cluster, at, bulk),
        Action::RemoteStore(store) => remote_store::execute(cluster, at, store),
        Action::TensorMap(rewrite) => tensor_map::execute(cluster, at, rewrite),
        Action::Control(jump) => control::execute(cluster, at, jump),
    }
}

/// Does what the whole warp does at once.
fn together(cluster: &mut Cluster, at: At, effect: impl FnOnce(&mut Cluster, At)) -> Next {
    if at.mask == 0 {
        return Next::Following;
    }
    // Where lanes are missing, those that are here go on alone.
    checks::warp_convergence::watch_whole(cluster, at);
    effect(cluster, at);
    Next::Following
}
