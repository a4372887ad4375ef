//! Comparing and selecting.

use super::{Compute, Lanewise};
use crate::machine::{Decoder, Why, truncate};
use crate::numerics::arithmetic;
use ptx::forms::Compare;
use ptx::{Instruction, Type};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Compare,
    relation: &'static str,
    combine: Option<&'static str>,
    ty: Type,
    flush: bool,
}

pub fn decode(op: Compare, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    // The relation is the first slot of `setp`; `selp` has none.
    let relation = instruction.modifiers.first().copied().flatten().unwrap_or_default();
    let combine = instruction.choice(&["and", "or", "xor"]);
    let ty = instruction.ty().unwrap_or(Type::B32);
    let lane = Lane { op, relation, combine, ty, flush: instruction.has("ftz") };
    decoder.compute(instruction, Lanewise::Compare(lane))
}

impl Lane {
    pub fn evaluate(self, [a, b, c]: [u64; 3]) -> u64 {
        match self.op {
            Compare::Select => return if c & 1 == 1 { a } else { b },
            Compare::SetPredicate | Compare::SetCombined => {}
            // Refused by `decode`.
            Compare::MaskFloats
            | Compare::MaskDoubles
            | Compare::MaskSigned
            | Compare::MaskUnsigned
            | Compare::MaskBits
            | Compare::MaskHalf
            | Compare::MaskHalves
            | Compare::MaskBrain16
            | Compare::MaskBrain16s
            | Compare::SetHalf
            | Compare::SetHalfCombined
            | Compare::SetHalves
            | Compare::SetBrain16
            | Compare::SetBrain16Combined
            | Compare::SetBrain16s
            | Compare::SelectBySign
            | Compare::SelectByFloatSign => return 0,
        }
        self.combined(self.holds(a, b), c)
    }

    /// The second result of `setp`: the comparison is negated before it is combined, not after.
    pub fn complement(self, [a, b, c]: [u64; 3]) -> u64 {
        self.combined(!self.holds(a, b), c)
    }

    fn combined(self, holds: bool, c: u64) -> u64 {
        u64::from(match self.combine {
            Some("and") => holds & (c & 1 == 1),
            Some("or") => holds | (c & 1 == 1),
            Some(_) => holds ^ (c & 1 == 1),
            None => holds,
        })
    }

    /// PTX ISA, "Comparisons": `lt` is false and `ltu` true when an operand is NaN.
    fn holds(self, a: u64, b: u64) -> bool {
        let order = self.order(a, b);
        let (name, unordered) = match self.relation {
            "num" => return order.is_some(),
            "nan" => return order.is_none(),
            "lo" => ("lt", false),
            "ls" => ("le", false),
            "hi" => ("gt", false),
            "hs" => ("ge", false),
            name => (name.trim_end_matches('u'), name.len() == 3),
        };
        let Some(order) = order else { return unordered };
        match name {
            "eq" => order == Ordering::Equal,
            "ne" => order != Ordering::Equal,
            "lt" => order == Ordering::Less,
            "le" => order != Ordering::Greater,
            "gt" => order == Ordering::Greater,
            _ => order != Ordering::Less,
        }
    }

    /// None when an operand is NaN.
    fn order(self, a: u64, b: u64) -> Option<Ordering> {
        let [x, y] = [a, b].map(|value| truncate(value, self.ty.bits()));
        if self.ty == Type::F32 {
            let float =
                |bits: u64| f32::from_bits(if self.flush { arithmetic::flush(bits as u32) } else { bits as u32 });
            return float(x).partial_cmp(&float(y));
        }
        if self.ty.is_signed() {
            let sign = 1 << (self.ty.bits() - 1);
            return Some((x ^ sign).cmp(&(y ^ sign)));
        }
        Some(x.cmp(&y))
    }
}
