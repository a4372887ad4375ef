//! Comparing and selecting.

use super::lower::Chosen;
use super::{Compute, Lanewise};
use crate::algebra::{Payload, decode as payload};
use crate::machine::{Decoder, Why, truncate};
use crate::numerics::{arithmetic, half};
use crate::simd::{Kernel, combine};
use ptx::forms::Compare;
use ptx::{Instruction, Type};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug)]
pub struct Lane {
    op: Compare,
    relation: &'static str,
    combine: Option<&'static str>,
    /// The type of the result of `set`, which has two.
    to: Type,
    /// The type that is compared.
    ty: Type,
    flush: bool,
    /// Floats are exact numbers.
    algebra: bool,
}

pub fn decode(op: Compare, instruction: &Instruction, decoder: &Decoder) -> Result<Compute, Why> {
    // The relation is the first slot of `setp`; `selp` has none.
    let relation = instruction.modifiers.first().copied().flatten().unwrap_or_default();
    let combine = instruction.choice(&["and", "or", "xor"]);
    let to = instruction.ty().unwrap_or(Type::B32);
    let ty = instruction.types().last().unwrap_or(to);
    let lane = Lane { op, relation, combine, to, ty, flush: instruction.has("ftz"), algebra: decoder.algebra };
    decoder.compute(instruction, Lanewise::Compare(lane))
}

impl Lane {
    pub fn evaluate(self, [a, b, c]: [u64; 3]) -> u64 {
        match self.op {
            Compare::Select => {
                if c & 1 == 1 {
                    a
                } else {
                    b
                }
            }
            Compare::SelectBySign => {
                if c as i32 >= 0 {
                    a
                } else {
                    b
                }
            }
            Compare::SelectByFloatSign => {
                if self.is_positive(c) {
                    a
                } else {
                    b
                }
            }
            Compare::SetPredicate
            | Compare::SetCombined
            | Compare::SetHalf
            | Compare::SetHalfCombined
            | Compare::SetHalves
            | Compare::SetBrain16
            | Compare::SetBrain16Combined
            | Compare::SetBrain16s => self.combined(self.holds(a, b), c),
            Compare::MaskFloats
            | Compare::MaskDoubles
            | Compare::MaskSigned
            | Compare::MaskUnsigned
            | Compare::MaskBits
            | Compare::MaskHalf
            | Compare::MaskBrain16 => self.mask(self.holds(a, b), self.to),
            Compare::MaskHalves => self.mask_halves(a, b, Type::F16),
            Compare::MaskBrain16s => self.mask_halves(a, b, Type::Bf16),
        }
    }

    /// The whole-warp kernel that computes the same; `wide`: the result is.
    pub fn kernel(self, wide: bool) -> Option<Chosen> {
        match self.op {
            Compare::Select if wide => return Some(Chosen::new(Kernel::WideSelect)),
            Compare::Select => return Some(Chosen::new(Kernel::Select)),
            Compare::SetPredicate | Compare::SetCombined => {}
            _ => return None,
        }
        let operation = match self.combine {
            _ if self.algebra && self.ty.is_float() => return None,
            Some("and") => combine::AND,
            Some("or") => combine::OR,
            Some(_) => combine::XOR,
            None => 0,
        };
        let chosen = if self.ty == Type::F32 { self.kernel_of_floats()? } else { self.kernel_of_integers()? };
        Some(Chosen { extra: chosen.extra | operation, ..chosen })
    }

    fn kernel_of_integers(self) -> Option<Chosen> {
        let [equal, less, less_or_equal] = match (self.ty.bits(), self.ty.is_signed()) {
            (32, true) => [Kernel::Equal, Kernel::LessSigned, Kernel::LessOrEqualSigned],
            (32, false) => [Kernel::Equal, Kernel::LessUnsigned, Kernel::LessOrEqualUnsigned],
            (64, true) => [Kernel::WideEqual, Kernel::WideLessSigned, Kernel::WideLessOrEqualSigned],
            (64, false) if self.ty != Type::F64 => {
                [Kernel::WideEqual, Kernel::WideLessUnsigned, Kernel::WideLessOrEqualUnsigned]
            }
            _ => return None,
        };
        let (kernel, extra, swapped) = match self.relation {
            _ if self.ty.is_float() || self.ty.is_packed() => return None,
            "eq" => (equal, 0, false),
            "ne" => (equal, combine::NEGATE, false),
            "lt" | "lo" => (less, 0, false),
            "le" | "ls" => (less_or_equal, 0, false),
            "gt" | "hi" => (less, 0, true),
            "ge" | "hs" => (less_or_equal, 0, true),
            _ => return None,
        };
        Some(Chosen { kernel, extra, swapped })
    }

    /// A relation that holds of NaN, too, is the opposite one negated.
    fn kernel_of_floats(self) -> Option<Chosen> {
        let [equal, less, less_or_equal] = match self.flush {
            false => [Kernel::FloatEqual, Kernel::FloatLess, Kernel::FloatLessOrEqual],
            true => [Kernel::FloatEqualFlush, Kernel::FloatLessFlush, Kernel::FloatLessOrEqualFlush],
        };
        let (kernel, extra, swapped) = match self.relation {
            "eq" => (equal, 0, false),
            "neu" => (equal, combine::NEGATE, false),
            "lt" => (less, 0, false),
            "le" => (less_or_equal, 0, false),
            "gt" => (less, 0, true),
            "ge" => (less_or_equal, 0, true),
            "ltu" => (less_or_equal, combine::NEGATE, true),
            "leu" => (less, combine::NEGATE, true),
            "gtu" => (less_or_equal, combine::NEGATE, false),
            "geu" => (less, combine::NEGATE, false),
            _ => return None,
        };
        Some(Chosen { kernel, extra, swapped })
    }

    /// What `set` gives where the relation holds: one of a float, all ones of an integer.
    fn mask(self, holds: bool, to: Type) -> u64 {
        match to {
            _ if !holds => 0,
            Type::F16 | Type::Bf16 if self.algebra => 1,
            Type::F32 => 0x3f80_0000,
            Type::F16 => 0x3c00,
            Type::Bf16 => 0x3f80,
            _ => truncate(u64::MAX, to.bits()),
        }
    }

    fn mask_halves(self, a: u64, b: u64, float: Type) -> u64 {
        let to = if self.to.is_float() { float } else { Type::U16 };
        let one = |shift: u32| self.mask(self.holds(a >> shift, b >> shift), to) << shift;
        one(0) | one(16)
    }

    /// The second result of `setp`: the comparison is negated before it is combined, not after. Of halves, it is the
    /// comparison of the high ones.
    pub fn complement(self, [a, b, c]: [u64; 3]) -> u64 {
        if matches!(self.op, Compare::SetHalves | Compare::SetBrain16s) {
            return u64::from(self.holds(a >> 16, b >> 16));
        }
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
        if self.algebra && self.ty.is_float() {
            return payload(self.ty, a).order(payload(self.ty, b));
        }
        if let Some([x, y]) = self.floats(a, b) {
            return x.partial_cmp(&y);
        }
        let [x, y] = [a, b].map(|value| truncate(value, self.ty.bits()));
        if self.ty.is_signed() {
            let sign = 1 << (self.ty.bits() - 1);
            return Some((x ^ sign).cmp(&(y ^ sign)));
        }
        Some(x.cmp(&y))
    }

    /// The operands, if they are floats.
    fn floats(self, a: u64, b: u64) -> Option<[f64; 2]> {
        let format = if matches!(self.ty, Type::Bf16 | Type::Bf16x2) { half::Mode::BF16 } else { half::Mode::F16 };
        let mode = half::Mode { flush: self.flush, ..format };
        let float = |bits: u64| match self.ty {
            Type::F64 => Some(f64::from_bits(bits)),
            Type::F32 => Some(f64::from(self.single(bits))),
            Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 => Some(mode.operand(bits as u16)),
            _ => None,
        };
        Some([float(a)?, float(b)?])
    }

    /// An f32 that is not below zero.
    fn is_positive(self, bits: u64) -> bool {
        match self.algebra {
            true => payload(Type::F32, bits).order(Payload::default()).is_some_and(Ordering::is_ge),
            false => self.single(bits) >= 0.0,
        }
    }

    fn single(self, bits: u64) -> f32 {
        f32::from_bits(if self.flush { arithmetic::flush(bits as u32) } else { bits as u32 })
    }
}
