//! Lanewise instructions that need more than three sources and a destination: fields to insert, `lop3` with a
//! predicate, and sums that pass a carry from one instruction to the next.

use super::bits;
use super::{At, Next};
use crate::machine::{Cluster, Decoder, Source, Values, Why, lanes, truncate};
use ptx::forms::{Field, Integer};
use ptx::{Instruction, Operand, RegisterId, Type};

pub struct Extended {
    kind: Kind,
    ty: Type,
    destination: Option<RegisterId>,
    /// The predicate of `lop3`.
    predicate: Option<RegisterId>,
    sources: Vec<Source>,
}

#[derive(Clone, Copy)]
enum Kind {
    Insert,
    /// `lop3.and` and `lop3.or`.
    Logic {
        and: bool,
    },
    Chain {
        term: Term,
        takes_carry: bool,
        sets_carry: bool,
    },
}

/// What the carry is added to, or taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    Sum,
    Difference,
    ProductLow,
    ProductHigh,
}

pub fn covers(op: Integer) -> bool {
    matches!(
        op,
        Integer::BitFieldInsert
            | Integer::LogicOfThreePredicate
            | Integer::AddCarryOut
            | Integer::AddCarry
            | Integer::SubtractCarryOut
            | Integer::SubtractCarry
            | Integer::MultiplyAddCarryOut
            | Integer::MultiplyAddCarry
    )
}

pub fn decode(op: Integer, instruction: &Instruction, decoder: &Decoder) -> Result<Extended, Why> {
    let kind = match op {
        Integer::BitFieldInsert => Kind::Insert,
        Integer::LogicOfThreePredicate => Kind::Logic { and: instruction.has("and") },
        _ => chain(op, instruction),
    };
    let (destination, predicate) = match &instruction.operands[0] {
        Operand::Pair(first, second) => (decoder.destination(first)?, decoder.destination(second)?),
        single => (decoder.destination(single)?, None),
    };
    let source = |(spec, operand): (&ptx::forms::OperandSpec, &Operand)| {
        let ty = match spec.field {
            Field::Value(ty, _) => ty.of(instruction),
            _ => None,
        };
        decoder.source(operand, ty.unwrap_or(Type::B32))
    };
    let sources = instruction.specified().filter(|(spec, _)| !spec.defines).map(source).collect::<Result<_, _>>()?;
    Ok(Extended { kind, ty: instruction.ty().unwrap_or(Type::B32), destination, predicate, sources })
}

fn chain(op: Integer, instruction: &Instruction) -> Kind {
    let takes_carry = matches!(op, Integer::AddCarry | Integer::SubtractCarry | Integer::MultiplyAddCarry);
    let term = match op {
        Integer::AddCarryOut | Integer::AddCarry => Term::Sum,
        Integer::SubtractCarryOut | Integer::SubtractCarry => Term::Difference,
        _ if instruction.has("lo") => Term::ProductLow,
        _ => Term::ProductHigh,
    };
    // `.cc` is no choice in the rows of `add.cc`, `sub.cc` and `mad.cc`.
    Kind::Chain { term, takes_carry, sets_carry: !takes_carry || instruction.has("cc") }
}

pub fn execute(cluster: &mut Cluster, at: At, extended: &Extended) -> Next {
    let sources: Vec<Values> = extended.sources.iter().map(|source| cluster.read(at.warp, *source)).collect();
    let mut values = [0; 32];
    let mut second = [0; 32];
    for lane in lanes(at.mask) {
        let operands: [u64; 5] = std::array::from_fn(|index| sources.get(index).map_or(0, |values| values[lane]));
        let warp = &mut cluster.warps[at.warp];
        let carried = u64::from(warp.carry >> lane & 1);
        let (value, beside) = extended.evaluate(operands, carried);
        (values[lane], second[lane]) = (value, beside);
        if matches!(extended.kind, Kind::Chain { sets_carry: true, .. }) {
            warp.carry = warp.carry & !(1 << lane) | (beside as u32) << lane;
        }
    }
    let warp = &mut cluster.warps[at.warp];
    warp.write(extended.destination, at.mask, &values);
    warp.write(extended.predicate, at.mask, &second);
    Next::Following
}

impl Extended {
    /// The result, and the predicate or the carry beside it.
    fn evaluate(&self, [a, b, c, d, e]: [u64; 5], carried: u64) -> (u64, u64) {
        match self.kind {
            Kind::Insert => (bits::insert(a, b, c, d, self.ty.bits()), 0),
            Kind::Logic { and } => {
                let value = bits::logic_of_three(a as u32, b as u32, c as u32, d as u8);
                let any = u64::from(value != 0);
                (u64::from(value), if and { any & e & 1 } else { any | e & 1 })
            }
            Kind::Chain { term, takes_carry, .. } => self.sum(term, [a, b, c], if takes_carry { carried } else { 0 }),
        }
    }

    fn sum(&self, term: Term, operands: [u64; 3], carried: u64) -> (u64, u64) {
        let width = self.ty.bits();
        let [a, b, c] = operands.map(|value| truncate(value, width));
        let carried = i128::from(carried);
        let (x, y) = match term {
            Term::Sum => (i128::from(a), i128::from(b)),
            Term::Difference => (i128::from(a), -i128::from(b)),
            Term::ProductLow => (i128::from(truncate(a.wrapping_mul(b), width)), i128::from(c)),
            Term::ProductHigh => {
                let [x, y] = [a, b].map(|value| super::integer::extend(value, self.ty));
                (i128::from(truncate((x.wrapping_mul(y) >> width) as u64, width)), i128::from(c))
            }
        };
        // Of a difference, the flag is what was borrowed.
        let total = if term == Term::Difference { x + y - carried } else { x + y + carried };
        (truncate(total as u64, width), u64::from(total >> width & 1 == 1))
    }
}
