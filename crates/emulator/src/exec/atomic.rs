//! Reading and writing in one step. The lanes of an instruction take their turns in the order of their numbers.

use super::access::{Access, Accessed};
use super::{At, Next, algebra, fence};
use crate::machine::{AddressSource, Cluster, Decoder, Source, Values, Why, lanes, truncate};
use crate::numerics::arithmetic::{self, Mode};
use crate::numerics::half;
use crate::numerics::update::Operation;
use happens_before::{Kind, Semantics};
use ptx::forms::Atomic;
use ptx::{Instruction, Operand, RegisterId, Type};

pub struct Update {
    access: Access,
    semantics: Semantics,
    address: AddressSource,
    /// What was there before; none for `red`.
    destinations: Vec<Option<RegisterId>>,
    operands: Vec<Source>,
    /// What `cas` stores.
    replacements: Vec<Source>,
    change: Change,
    ty: Type,
    /// Floats are exact numbers.
    algebra: bool,
}

/// How the old value and the operand become the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Operation(Operation),
    Exchange,
    CompareSwap,
}

pub fn decode(op: Atomic, instruction: &Instruction, decoder: &Decoder) -> Result<Update, Why> {
    let mnemonic = instruction.mnemonic();
    let change = mnemonic.split('.').find_map(Change::named).ok_or("an operation of this kind")?;
    let ty = instruction.ty().unwrap_or(Type::B32);
    let access = Access { space: instruction.space(), kind: Kind::Atomic, bytes: ty.bytes() * instruction.count() };
    let (destinations, rest) = match &instruction.operands[..] {
        [first, rest @ ..] if !reduces(op) => (decoder.destinations(first)?, rest),
        rest => (vec![], rest),
    };
    let sources = |operand: &Operand| decoder.sources(operand, ty);
    let replacements = if change == Change::CompareSwap { sources(&rest[2])? } else { vec![] };
    let (address, operands) = (decoder.address(&rest[0])?, sources(&rest[1])?);
    let semantics = Semantics { blind: reduces(op), ..fence::semantics(instruction) };
    Ok(Update {
        access,
        semantics,
        address,
        destinations,
        operands,
        replacements,
        change,
        ty,
        algebra: decoder.algebra,
    })
}

/// `red` has no destination.
fn reduces(op: Atomic) -> bool {
    matches!(
        op,
        Atomic::ReduceAdd
            | Atomic::ReduceAddHalf
            | Atomic::ReduceAddBrain16
            | Atomic::ReduceAddVector
            | Atomic::ReduceHalfVector
            | Atomic::ReduceHalvesVector
            | Atomic::ReduceMinimumMaximum
            | Atomic::ReduceCount
            | Atomic::ReduceBits
    )
}

pub fn execute(cluster: &mut Cluster, at: At, update: &Update) -> Next {
    let addresses = cluster.addresses(at.warp, &update.address);
    let accessed = cluster.ordered_access(at, &update.access, update.semantics, &addresses);
    let bytes = update.ty.bytes() as usize;
    for (index, operand) in update.operands.iter().enumerate() {
        let operands = cluster.read(at.warp, *operand);
        let replacements = update.replacements.get(index).map_or([0; 32], |source| cluster.read(at.warp, *source));
        let mut before: Values = [0; 32];
        for lane in lanes(at.mask) {
            let old = cluster.fetch(accessed[lane], index * bytes, bytes);
            let flush = matches!(accessed[lane], Accessed::Global { .. });
            let new = match update.change {
                Change::Operation(operation) if update.algebra && update.ty.is_float() => {
                    algebra::update(operation, update.ty, old, operands[lane])
                }
                change => change.apply(update.ty, [old, operands[lane], replacements[lane]], flush),
            };
            cluster.put(accessed[lane], index * bytes, bytes, new);
            before[lane] = old;
        }
        cluster.warps[at.warp].write(update.destinations.get(index).copied().flatten(), at.mask, &before);
    }
    Next::Following
}

impl Change {
    /// By its modifier, without the dot.
    fn named(word: &str) -> Option<Change> {
        match word {
            "exch" => Some(Change::Exchange),
            "cas" => Some(Change::CompareSwap),
            _ => Operation::named(word).map(Change::Operation),
        }
    }

    /// The new value. `flush`: global memory adds f32 with flushing, shared memory without.
    fn apply(self, ty: Type, [old, operand, replacement]: [u64; 3], flush: bool) -> u64 {
        let operand = truncate(operand, ty.bits());
        match self {
            Change::Exchange => operand,
            Change::CompareSwap if old == operand => truncate(replacement, ty.bits()),
            Change::CompareSwap => old,
            Change::Operation(operation) if ty.is_float() => on_floats(operation, ty, old, operand, flush),
            Change::Operation(operation) => operation.on_integers(ty, old, operand),
        }
    }
}

fn on_floats(operation: Operation, ty: Type, a: u64, b: u64, flush: bool) -> u64 {
    let one = |mode| operation.on_halves(mode, a as u16, b as u16).into();
    let two = |mode| half::on_halves([a as u32, b as u32], |[a, b]| operation.on_halves(mode, a, b)).into();
    match ty {
        Type::F64 => {
            let sum = f64::from_bits(a) + f64::from_bits(b);
            if sum.is_nan() { NAN_64 } else { sum.to_bits() }
        }
        Type::F16 => one(half::Mode::F16),
        Type::Bf16 => one(half::Mode::BF16),
        Type::F16x2 => two(half::Mode::F16),
        Type::Bf16x2 => two(half::Mode::BF16),
        _ => {
            let mode = if flush { Mode::NEAREST_FLUSH } else { Mode::NEAREST };
            arithmetic::add(a as u32, b as u32, mode).into()
        }
    }
}

/// The one NaN of f64 results.
const NAN_64: u64 = 0x7fff_ffff_ffff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: Change = Change::Operation(Operation::Add);

    #[test]
    fn only_global_memory_flushes() {
        let add = |flush| ADD.apply(Type::F32, [1, 2, 0], flush);
        assert_eq!([add(true), add(false)], [0, 3]);
    }

    #[test]
    fn halves_add_each_for_itself() {
        // 1 + 2 and -1 + 1 in f16; 1 + 2^-8 is a tie that goes to the even 1 in bf16.
        assert_eq!(ADD.apply(Type::F16x2, [0xbc00_3c00, 0x3c00_4000, 0], true), 0x0000_4200);
        assert_eq!(ADD.apply(Type::Bf16, [0x3f80, 0x3b80, 0], true), 0x3f80);
    }
}
