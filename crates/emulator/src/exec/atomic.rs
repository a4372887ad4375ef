//! Reading and writing in one step. The lanes of an instruction take their turns in the order of their numbers.

use super::access::{Access, Accessed};
use super::{At, Next, fence};
use crate::happens_before::{Kind, Semantics};
use crate::machine::{AddressSource, Cluster, Decoder, Source, Values, Why, lanes, truncate};
use crate::numerics::arithmetic::{self, Mode, NanOperand};
use crate::numerics::format::{Format, Rounding};
use crate::numerics::{NAN_16, convert};
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
}

/// How the old value and the operand become the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Add,
    Minimum,
    Maximum,
    Increment,
    Decrement,
    And,
    Or,
    Xor,
    Exchange,
    CompareSwap,
}

const CHANGES: [(&str, Change); 10] = [
    ("add", Change::Add),
    ("min", Change::Minimum),
    ("max", Change::Maximum),
    ("inc", Change::Increment),
    ("dec", Change::Decrement),
    ("and", Change::And),
    ("or", Change::Or),
    ("xor", Change::Xor),
    ("exch", Change::Exchange),
    ("cas", Change::CompareSwap),
];

pub fn decode(op: Atomic, instruction: &Instruction, decoder: &Decoder) -> Result<Update, Why> {
    let mnemonic = instruction.mnemonic();
    let named = |word: &str| mnemonic.split('.').any(|part| part == word);
    let (_, change) = CHANGES.iter().find(|(word, _)| named(word)).ok_or("an operation of this kind")?;
    let ty = instruction.ty().unwrap_or(Type::B32);
    let access = Access { space: instruction.space(), kind: Kind::Atomic, bytes: ty.bytes() * instruction.count() };
    let (destinations, rest) = match &instruction.operands[..] {
        [first, rest @ ..] if !reduces(op) => (decoder.destinations(first)?, rest),
        rest => (vec![], rest),
    };
    let sources = |operand: &Operand| decoder.sources(operand, ty);
    let replacements = if *change == Change::CompareSwap { sources(&rest[2])? } else { vec![] };
    let (address, operands) = (decoder.address(&rest[0])?, sources(&rest[1])?);
    let semantics = Semantics { blind: reduces(op), ..fence::semantics(instruction) };
    Ok(Update { access, semantics, address, destinations, operands, replacements, change: *change, ty })
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
            let new = update.change.apply(update.ty, [old, operands[lane], replacements[lane]], flush);
            cluster.put(accessed[lane], index * bytes, bytes, new);
            before[lane] = old;
        }
        cluster.warps[at.warp].write(update.destinations.get(index).copied().flatten(), at.mask, &before);
    }
    Next::Following
}

impl Change {
    /// The new value. `flush`: global memory adds f32 with flushing, shared memory without.
    fn apply(self, ty: Type, [old, operand, replacement]: [u64; 3], flush: bool) -> u64 {
        let operand = truncate(operand, ty.bits());
        match self {
            _ if ty.is_float() && self != Change::Exchange => self.apply_float(ty, old, operand, flush),
            Change::Add => truncate(old.wrapping_add(operand), ty.bits()),
            Change::Minimum if signed(ty, old) <= signed(ty, operand) => old,
            Change::Maximum if signed(ty, old) >= signed(ty, operand) => old,
            Change::Increment => {
                if old >= operand {
                    0
                } else {
                    old + 1
                }
            }
            Change::Decrement => {
                if old == 0 || old > operand {
                    operand
                } else {
                    old - 1
                }
            }
            Change::And => old & operand,
            Change::Or => old | operand,
            Change::Xor => old ^ operand,
            Change::Minimum | Change::Maximum | Change::Exchange => operand,
            Change::CompareSwap => {
                if old == operand {
                    truncate(replacement, ty.bits())
                } else {
                    old
                }
            }
        }
    }

    fn apply_float(self, ty: Type, a: u64, b: u64, flush: bool) -> u64 {
        let on_halves = |function: &dyn Fn(u16, u16) -> u16| {
            u64::from(crate::numerics::half::on_halves([a as u32, b as u32], |[a, b]| function(a, b)))
        };
        let half = |a, b| self.on_half(Format::F16, a, b);
        let brain = |a, b| self.on_half(Format::BF16, a, b);
        match ty {
            Type::F64 => {
                let sum = f64::from_bits(a) + f64::from_bits(b);
                if sum.is_nan() { NAN_64 } else { sum.to_bits() }
            }
            Type::F16 => half(a as u16, b as u16).into(),
            Type::Bf16 => brain(a as u16, b as u16).into(),
            Type::F16x2 => on_halves(&half),
            Type::Bf16x2 => on_halves(&brain),
            _ => {
                let mode = if flush { Mode::NEAREST_FLUSH } else { Mode::NEAREST };
                arithmetic::add(a as u32, b as u32, mode).into()
            }
        }
    }

    /// 53 bits are more than twice the 11 of these formats: rounding the sum of two in f64 first does no harm.
    fn on_half(self, format: Format, a: u16, b: u16) -> u16 {
        let widen = |bits| if format == Format::F16 { convert::f16_to_f32(bits) } else { convert::bf16_to_f32(bits) };
        let (a, b) = (widen(a), widen(b));
        let value = match self {
            Change::Minimum => f32::from_bits(arithmetic::minimum(a, b, NanOperand::Ignored)).into(),
            Change::Maximum => f32::from_bits(arithmetic::maximum(a, b, NanOperand::Ignored)).into(),
            _ => f64::from(f32::from_bits(a)) + f64::from(f32::from_bits(b)),
        };
        if value.is_nan() { NAN_16 } else { format.round(value, Rounding::Nearest) as u16 }
    }
}

/// The one NaN of f64 results.
const NAN_64: u64 = 0x7fff_ffff_ffff_ffff;

fn signed(ty: Type, value: u64) -> i128 {
    match ty {
        Type::S32 => i128::from(value as u32 as i32),
        Type::S64 => i128::from(value as i64),
        _ => i128::from(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_wraps_at_the_operand() {
        let count = |change: Change, old| change.apply(Type::U32, [old, 5, 0], false);
        assert_eq!([4, 5, 9].map(|old| count(Change::Increment, old)), [5, 0, 0]);
        assert_eq!([0, 5, 6, 3].map(|old| count(Change::Decrement, old)), [5, 4, 5, 2]);
    }

    #[test]
    fn only_global_memory_flushes() {
        let add = |flush| Change::Add.apply(Type::F32, [1, 2, 0], flush);
        assert_eq!([add(true), add(false)], [0, 3]);
    }

    #[test]
    fn the_sign_counts_for_signed_types_alone() {
        let least = |ty| Change::Minimum.apply(ty, [0xffff_ffff, 1, 0], false);
        assert_eq!([least(Type::S32), least(Type::U32)], [0xffff_ffff, 1]);
    }

    #[test]
    fn halves_add_each_for_itself() {
        // 1 + 2 and -1 + 1 in f16; 1 + 2^-8 is a tie that goes to the even 1 in bf16.
        assert_eq!(Change::Add.apply(Type::F16x2, [0xbc00_3c00, 0x3c00_4000, 0], true), 0x0000_4200);
        assert_eq!(Change::Add.apply(Type::Bf16, [0x3f80, 0x3b80, 0], true), 0x3f80);
    }
}
