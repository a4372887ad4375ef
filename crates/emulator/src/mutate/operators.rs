//! What can be taken away from one instruction: the operators, and the changes that each makes of it.

use ptx::forms::{AsyncCopy, Barrier, BulkCopy, Fence, Launch, Mbarrier, Movement, Warp, Wgmma};
use ptx::{Immediate, Instruction, Op, Operand, Space};

/// What a mutant does to a synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    DeleteBarrier,
    DeleteWarpSync,
    DeleteWait,
    DeleteArrive,
    DeleteExpect,
    DeleteCommit,
    DeleteFence,
    DeleteProxyFence,
    DeleteProductFence,
    DeleteGridWait,
    FewerWaits,
    MoreWaits,
    ReadsOnly,
    ExpectMore,
    ExpectLess,
    CountMore,
    CountLess,
    RelaxAcquire,
    RelaxRelease,
    NarrowScope,
    FlipParity,
}

impl Operator {
    /// The row of the table.
    pub fn name(self) -> &'static str {
        match self {
            Operator::DeleteBarrier => "barrier deleted",
            Operator::DeleteWarpSync => "bar.warp.sync deleted",
            Operator::DeleteWait => "wait deleted",
            Operator::DeleteArrive => "arrive deleted",
            Operator::DeleteExpect => "expect_tx deleted",
            Operator::DeleteCommit => "commit deleted",
            Operator::DeleteFence => "fence deleted",
            Operator::DeleteProxyFence => "proxy fence deleted",
            Operator::DeleteProductFence => "wgmma.fence deleted",
            Operator::DeleteGridWait => "griddepcontrol.wait deleted",
            Operator::FewerWaits => "wait count + 1",
            Operator::MoreWaits => "wait count - 1",
            Operator::ReadsOnly => ".read added",
            Operator::ExpectMore => "expect_tx + 16",
            Operator::ExpectLess => "expect_tx - 16",
            Operator::CountMore => "arrive count up",
            Operator::CountLess => "arrive count down",
            Operator::RelaxAcquire => "acquire relaxed",
            Operator::RelaxRelease => "release relaxed",
            Operator::NarrowScope => "scope narrowed",
            Operator::FlipParity => "parity flipped",
        }
    }

    /// The synchronisation is gone, not weakened.
    pub fn deletes(self) -> bool {
        use Operator::*;
        matches!(
            self,
            DeleteBarrier
                | DeleteWarpSync
                | DeleteWait
                | DeleteArrive
                | DeleteCommit
                | DeleteFence
                | DeleteProxyFence
                | DeleteProductFence
                | DeleteGridWait
        )
    }

    /// Its instruction tells somebody something, so that it can be silenced.
    pub fn silences(self) -> bool {
        self.deletes() || matches!(self, Operator::RelaxAcquire | Operator::RelaxRelease)
    }

    /// Is one of them what the other waits for, or listens to? Where one half of an edge is silent, the other says nothing.
    pub fn is_other_half(self, other: Operator) -> bool {
        use Operator::*;
        let tells = |one| {
            matches!(
                one,
                DeleteArrive
                    | DeleteCommit
                    | DeleteExpect
                    | RelaxRelease
                    | ExpectMore
                    | ExpectLess
                    | CountMore
                    | CountLess
            )
        };
        let hears = |one| matches!(one, DeleteWait | FewerWaits | ReadsOnly | RelaxAcquire | FlipParity);
        tells(self) && hears(other) || hears(self) && tells(other)
    }

    /// It changes how many arrivals or bytes a phase of an mbarrier gets or needs.
    pub fn miscounts(self) -> bool {
        use Operator::*;
        matches!(self, DeleteArrive | DeleteExpect | ExpectMore | ExpectLess | CountMore | CountLess)
    }

    /// Whatever it does to the instruction, the same threads wait for each other.
    pub fn keeps_course(self) -> bool {
        use Operator::*;
        !matches!(self, CountMore | CountLess | ExpectMore | ExpectLess | DeleteExpect | FlipParity)
    }

    /// The mutant waits for everything that the original waits for, and for more.
    pub fn strengthens(self) -> bool {
        self == Operator::MoreWaits
    }
}

/// What becomes of the instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Delete,
    Replace(Instruction),
    /// One operand, changed by so much where it runs.
    Add(usize, i64),
    /// One operand, with its lowest bit flipped.
    Flip(usize),
}

/// Bytes that an expectation is wrong by: bulk copies move multiples of them.
const CHUNK: i64 = 16;

/// Threads that a barrier's count is wrong by: it counts whole warps.
const WARP: i64 = 32;

/// Every mutant of one instruction.
pub fn changes(instruction: &Instruction) -> Vec<(Operator, Change)> {
    let mut all: Vec<_> = deletion(instruction).into_iter().collect();
    all.extend(counts(instruction));
    all.extend(semantics(instruction));
    all.extend(narrowed(instruction).map(|narrowed| (Operator::NarrowScope, Change::Replace(narrowed))));
    all
}

/// The instruction gone, as far as its results allow: whoever asks a deleted wait hears that it is over.
fn deletion(instruction: &Instruction) -> Option<(Operator, Change)> {
    let operator = match instruction.op() {
        Op::Barrier(_) => Operator::DeleteBarrier,
        Op::Warp(Warp::Synchronise) => Operator::DeleteWarpSync,
        Op::AsyncCopy(AsyncCopy::WaitGroup | AsyncCopy::WaitAll)
        | Op::BulkCopy(BulkCopy::WaitGroup)
        | Op::Wgmma(Wgmma::WaitGroup) => Operator::DeleteWait,
        Op::AsyncCopy(AsyncCopy::Commit) | Op::BulkCopy(BulkCopy::Commit) | Op::Wgmma(Wgmma::Commit) => {
            Operator::DeleteCommit
        }
        Op::Wgmma(Wgmma::Fence) => Operator::DeleteProductFence,
        Op::Launch(Launch::WaitForGrids) => Operator::DeleteGridWait,
        Op::Fence(Fence::Barrier | Fence::Scope | Fence::OneWay | Fence::PhaseInit) => Operator::DeleteFence,
        Op::Fence(_) => Operator::DeleteProxyFence,
        Op::Mbarrier(Mbarrier::ExpectBytes) => Operator::DeleteExpect,
        Op::Mbarrier(op) if waits(op) => Operator::DeleteWait,
        Op::Mbarrier(op) if arrives(op) || op == Mbarrier::CopyArrive => Operator::DeleteArrive,
        _ => return None,
    };
    Some((operator, without(instruction)?))
}

fn waits(op: Mbarrier) -> bool {
    matches!(op, Mbarrier::TestWait | Mbarrier::TestWaitParity | Mbarrier::TryWait | Mbarrier::TryWaitParity)
}

fn arrives(op: Mbarrier) -> bool {
    expects(op)
        || matches!(
            op,
            Mbarrier::Arrive
                | Mbarrier::ArriveCount
                | Mbarrier::ArriveRemote
                | Mbarrier::ArriveNoComplete
                | Mbarrier::ArriveDrop
                | Mbarrier::ArriveDropCount
                | Mbarrier::ArriveDropRemote
                | Mbarrier::ArriveDropNoComplete
        )
}

fn expects(op: Mbarrier) -> bool {
    matches!(op, Mbarrier::ArriveExpect | Mbarrier::ArriveExpectRemote | Mbarrier::ArriveDropExpect)
}

/// The instruction deleted; where others read its result, a move of what it would have said stays.
fn without(instruction: &Instruction) -> Option<Change> {
    let result = instruction.specified().find(|(spec, _)| spec.defines).map(|(_, operand)| operand.clone());
    let Some(result) = result.filter(|result| *result != Operand::Sink) else { return Some(Change::Delete) };
    let constant = |value| Operand::Immediate(Immediate::Integer(value));
    let (mnemonic, value) = match instruction.op() {
        Op::Mbarrier(op) if waits(op) => ("mov.pred", constant(-1)),
        Op::Mbarrier(_) => ("mov.b64", constant(0)),
        // A reduction over this thread alone.
        Op::Barrier(Barrier::Reduce | Barrier::ReduceAligned) => ("mov.pred", instruction.operands.last()?.clone()),
        _ => ("mov.u32", constant(0)),
    };
    replaced(instruction, mnemonic, vec![result, value])
}

fn replaced(old: &Instruction, mnemonic: &str, operands: Vec<Operand>) -> Option<Change> {
    Some(Change::Replace(respelled(old, mnemonic, operands)?))
}

/// Another instruction under the same guard; none if the table has no such form.
fn respelled(old: &Instruction, mnemonic: &str, operands: Vec<Operand>) -> Option<Instruction> {
    let new = Instruction::new(mnemonic, operands).ok()?;
    Some(Instruction { guard: old.guard, ..new })
}

/// Counts that are off by one: of groups, of bytes, of arrivals.
fn counts(instruction: &Instruction) -> Vec<(Operator, Change)> {
    let last = instruction.operands.len().saturating_sub(1);
    let both = |up, down, index, by| vec![(up, Change::Add(index, by)), (down, Change::Add(index, -by))];
    let all =
        match instruction.op() {
            Op::AsyncCopy(AsyncCopy::WaitGroup) | Op::Wgmma(Wgmma::WaitGroup) => {
                both(Operator::FewerWaits, Operator::MoreWaits, 0, 1)
            }
            Op::BulkCopy(BulkCopy::WaitGroup) => {
                let mut all = both(Operator::FewerWaits, Operator::MoreWaits, 0, 1);
                all.extend(reads_only(instruction).map(|change| (Operator::ReadsOnly, change)));
                all
            }
            Op::Mbarrier(Mbarrier::ExpectBytes) => both(Operator::ExpectMore, Operator::ExpectLess, last, CHUNK),
            Op::Mbarrier(op) if expects(op) => {
                let mut all = both(Operator::ExpectMore, Operator::ExpectLess, last, CHUNK);
                all.extend(arrival_alone(instruction).map(|change| (Operator::DeleteExpect, change)));
                all
            }
            Op::Mbarrier(Mbarrier::Init | Mbarrier::ArriveCount | Mbarrier::ArriveDropCount) => {
                both(Operator::CountMore, Operator::CountLess, last, 1)
            }
            Op::Mbarrier(Mbarrier::TestWaitParity | Mbarrier::TryWaitParity) => {
                vec![(Operator::FlipParity, Change::Flip(2))]
            }
            Op::Barrier(
                Barrier::Arrive | Barrier::ArriveAligned | Barrier::Synchronise | Barrier::SynchroniseAligned,
            ) if instruction.operands.len() == 2 => both(Operator::CountMore, Operator::CountLess, 1, WARP),
            _ => vec![],
        };
    all.into_iter().filter(|(_, change)| is_possible(instruction, change)).collect()
}

/// No constant may fall below what its instruction allows, or to no arrival at all.
fn is_possible(instruction: &Instruction, change: &Change) -> bool {
    let Change::Add(index, by) = change else { return true };
    let Some(Operand::Immediate(Immediate::Integer(value))) = instruction.operands.get(*index) else { return true };
    let least = match instruction.op() {
        Op::Mbarrier(_) => 1,
        Op::Barrier(_) => i128::from(WARP),
        _ => 0,
    };
    let most = if instruction.op() == Op::Wgmma(Wgmma::WaitGroup) { 7 } else { i128::from(u32::MAX) };
    (least..=most).contains(&(value + i128::from(*by)))
}

fn reads_only(instruction: &Instruction) -> Option<Change> {
    let weaker = !instruction.has("read");
    weaker.then(|| replaced(instruction, "cp.async.bulk.wait_group.read", instruction.operands.clone())).flatten()
}

/// `mbarrier.arrive.expect_tx` that only arrives.
fn arrival_alone(instruction: &Instruction) -> Option<Change> {
    let mnemonic = instruction.mnemonic().replace(".expect_tx", "");
    let (_, operands) = instruction.operands.split_last()?;
    replaced(instruction, &mnemonic, operands.to_vec())
}

/// Acquires and releases that become relaxed. An access that does both loses one at a time.
fn semantics(instruction: &Instruction) -> Vec<(Operator, Change)> {
    let change = |operator, change: Option<Change>| change.map(|change| (operator, change));
    let word = |from, to| reworded(instruction, from, to).map(Change::Replace);
    let (acquire, release) = match instruction.op() {
        Op::Movement(Movement::LoadStrong) => (word("acquire", "relaxed"), None),
        Op::Movement(Movement::StoreStrong) => (None, word("release", "relaxed")),
        Op::Atomic(_) => (
            word("acquire", "relaxed").or_else(|| word("acq_rel", "release")),
            word("release", "relaxed").or_else(|| word("acq_rel", "acquire")),
        ),
        Op::Barrier(Barrier::ClusterArrive) => (None, relaxed(instruction, "release", ".relaxed")),
        Op::Mbarrier(op) if waits(op) => (relaxed(instruction, "acquire", ".relaxed.cta"), None),
        Op::Mbarrier(op) if arrives(op) => (None, relaxed(instruction, "release", ".relaxed.cta")),
        _ => (None, None),
    };
    change(Operator::RelaxAcquire, acquire).into_iter().chain(change(Operator::RelaxRelease, release)).collect()
}

/// Relaxed, where the default is not.
fn relaxed(instruction: &Instruction, default: &str, spelled: &str) -> Option<Change> {
    if instruction.has("relaxed") {
        return None;
    }
    let explicit = reworded(instruction, default, "relaxed");
    let mnemonic = format!("{}{spelled}", instruction.mnemonic());
    explicit.or_else(|| respelled(instruction, &mnemonic, instruction.operands.clone())).map(Change::Replace)
}

/// One modifier exchanged for another.
fn reworded(instruction: &Instruction, from: &str, to: &str) -> Option<Instruction> {
    if !instruction.has(from) {
        return None;
    }
    let mnemonic = instruction.mnemonic();
    let words = mnemonic.split('.').map(|word| if word == from { to } else { word });
    respelled(instruction, &words.collect::<Vec<_>>().join("."), instruction.operands.clone())
}

/// The same among the threads of one block only.
fn narrowed(instruction: &Instruction) -> Option<Instruction> {
    let narrow = || ["gpu", "cluster", "sys", "gl"].iter().find_map(|scope| reworded(instruction, scope, "cta"));
    match instruction.op() {
        // A scope that is not written is `.gpu`; for shared memory that says nothing more than `.cta`.
        Op::Atomic(_) if instruction.choice(&["cta", "cluster", "gpu", "sys"]).is_none() => {
            let elsewhere = instruction.space() != Some(Space::Shared);
            let mnemonic = format!("{}.cta", instruction.mnemonic());
            elsewhere.then(|| respelled(instruction, &mnemonic, instruction.operands.clone())).flatten()
        }
        Op::Atomic(_) | Op::Fence(_) | Op::Mbarrier(_) => narrow(),
        Op::Movement(Movement::LoadStrong | Movement::StoreStrong) => narrow(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of an instruction, as text.
    fn changed(mnemonic: &str, operands: Vec<Operand>) -> Vec<String> {
        let instruction = Instruction::new(mnemonic, operands).unwrap();
        let shown = |(operator, change): &(Operator, Change)| match change {
            Change::Replace(new) => format!("{}: {}", operator.name(), new.mnemonic()),
            other => format!("{}: {other:?}", operator.name()),
        };
        changes(&instruction).iter().map(shown).collect()
    }

    fn address() -> Operand {
        Operand::Address(ptx::Address { base: ptx::AddressBase::Absolute, offset: 0 })
    }

    fn number(value: i128) -> Operand {
        Operand::Immediate(Immediate::Integer(value))
    }

    #[test]
    fn waits_are_deleted_and_miscounted() {
        let shown = changed("cp.async.wait_group", vec![number(1)]);
        assert_eq!(shown, ["wait deleted: Delete", "wait count + 1: Add(0, 1)", "wait count - 1: Add(0, -1)"]);
        let shown = changed("cp.async.bulk.wait_group", vec![number(0)]);
        let expected =
            ["wait deleted: Delete", "wait count + 1: Add(0, 1)", ".read added: cp.async.bulk.wait_group.read"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_deleted_wait_on_an_mbarrier_says_that_it_is_over() {
        let register = Operand::Register(ptx::RegisterId(0));
        let shown = changed("mbarrier.try_wait.parity.shared.b64", vec![register, address(), number(0)]);
        let expected = [
            "wait deleted: mov.pred",
            "parity flipped: Flip(2)",
            "acquire relaxed: mbarrier.try_wait.parity.relaxed.cta.shared.b64",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_arrival_loses_its_expectation_its_release_and_itself() {
        let shown = changed(
            "mbarrier.arrive.expect_tx.release.cluster.shared::cta.b64",
            vec![Operand::Sink, address(), number(32)],
        );
        let expected = [
            "arrive deleted: Delete",
            "expect_tx + 16: Add(2, 16)",
            "expect_tx - 16: Add(2, -16)",
            "expect_tx deleted: mbarrier.arrive.release.cluster.shared::cta.b64",
            "release relaxed: mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64",
            "scope narrowed: mbarrier.arrive.expect_tx.release.cta.shared::cta.b64",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn scopes_and_semantics_are_weakened_one_at_a_time() {
        let register = Operand::Register(ptx::RegisterId(0));
        let shown = changed("atom.acq_rel.gpu.global.add.u32", vec![register, address(), number(1)]);
        let expected = [
            "acquire relaxed: atom.release.gpu.global.add.u32",
            "release relaxed: atom.acquire.gpu.global.add.u32",
            "scope narrowed: atom.acq_rel.cta.global.add.u32",
        ];
        assert_eq!(shown, expected);
        assert_eq!(changed("membar.gl", vec![]), ["fence deleted: Delete", "scope narrowed: membar.cta"]);
        let shown = changed("barrier.cluster.arrive.aligned", vec![]);
        assert_eq!(shown, ["barrier deleted: Delete", "release relaxed: barrier.cluster.arrive.relaxed.aligned"]);
    }
}
