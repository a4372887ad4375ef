//! How payloads lie in registers and memory.
//!
//! 16 bits hold a number and nothing else, whatever a kernel packs, shuffles and copies. 32 and 64 bits hold the number
//! and, above it, how many of its bits are unknown; infinities and NaN are those of f32, which kernels also write as
//! integers. All other words are floats that no instruction has computed with yet, such as constants and parameters.

use super::payload::{BITS, Payload};
use crate::numerics::NAN;
use launch::{Contents, Element, Memory};
use ptx::Type;

/// Words below stand for numbers.
const NUMBERS: u64 = (BITS as u64 + 1) << BITS;

/// What a value of this type stands for; of a packed type, its lower half.
pub fn decode(ty: Type, bits: u64) -> Payload {
    match ty {
        Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => Payload::integer((bits as i16).into()),
        Type::E4m3 | Type::E5m2 => Payload::integer((bits as i8).into()),
        Type::F64 if bits >= NUMBERS => Payload::of(f64::from_bits(bits)),
        Type::F32 | Type::Tf32 if u64::from(bits as u32) >= NUMBERS => Payload::of(f32::from_bits(bits as u32).into()),
        Type::F32 | Type::Tf32 | Type::F64 => {
            let unknown = (bits as u32) >> BITS;
            Payload::Number { residue: bits as u16, bits: BITS - unknown }
        }
        _ => {
            let unused = 64 - ty.bits();
            let value = (bits << unused) as i64 >> unused;
            Payload::integer(if ty.is_signed() { value } else { (bits << unused >> unused) as i64 })
        }
    }
}

/// The bits of a value of this type; of a packed type, its lower half.
pub fn encode(ty: Type, payload: Payload) -> u64 {
    match ty {
        Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => narrow(payload, BITS),
        Type::E4m3 | Type::E5m2 => narrow(payload, 8),
        Type::F32 | Type::Tf32 => word(payload).into(),
        Type::F64 => match payload {
            Payload::Number { .. } => word(payload).into(),
            _ => f64::from(f32::from_bits(word(payload))).to_bits(),
        },
        _ => integer(ty, payload),
    }
}

fn word(payload: Payload) -> u32 {
    match payload {
        Payload::Number { residue, bits } => (BITS - bits) << BITS | u32::from(residue),
        Payload::Infinite { negative } => if negative { f32::NEG_INFINITY } else { f32::INFINITY }.to_bits(),
        Payload::NotANumber => NAN,
    }
}

/// There is no room for infinities and NaN: they become the ends of the order.
fn narrow(payload: Payload, bits: u32) -> u64 {
    let half = 1 << (bits - 1);
    match payload {
        Payload::Number { residue, .. } => u64::from(residue) & (2 * half - 1),
        Payload::Infinite { negative: false } => half - 1,
        Payload::Infinite { negative: true } => half + 1,
        Payload::NotANumber => half,
    }
}

/// Signed ones fill all 64 bits with their sign. Infinities saturate, as those of floats do.
fn integer(ty: Type, payload: Payload) -> u64 {
    let all = u64::MAX >> (64 - ty.bits());
    let most = if ty.is_signed() { all >> 1 } else { all };
    match payload {
        Payload::Infinite { negative: false } => most,
        Payload::Infinite { negative: true } if ty.is_signed() => !most,
        Payload::Infinite { negative: true } | Payload::NotANumber => 0,
        number if ty.is_signed() => number.to_integer().unwrap_or_default() as u64,
        number => number.to_integer().unwrap_or_default() as u64 & all,
    }
}

/// The type of a buffer's elements, if they are floats.
fn float(element: Element) -> Option<Type> {
    Some(match element {
        Element::F16 => Type::F16,
        Element::Bf16 => Type::Bf16,
        Element::F32 => Type::F32,
        Element::F64 => Type::F64,
        Element::E4m3 => Type::E4m3,
        Element::E5m2 => Type::E5m2,
        _ => return None,
    })
}

/// Puts payloads where the buffers of a recipe hold floats. What nobody wrote stays as it is.
pub fn convert_buffers(memory: &mut Memory) {
    each_element(memory, |element, ty, bits| encode(ty, Payload::of(element.decode(bits))));
}

/// Floats that a kernel has only copied become payloads, too.
pub fn settle_buffers(memory: &mut Memory) {
    each_element(memory, |_, ty, bits| encode(ty, decode(ty, bits)));
}

fn each_element(memory: &mut Memory, convert: impl Fn(Element, Type, u64) -> u64) {
    for buffer in memory.buffers.iter_mut().filter(|buffer| buffer.initialised) {
        let Some(ty) = float(buffer.element) else { continue };
        let mut bytes = buffer.contents.to_vec();
        for one in bytes.chunks_exact_mut(buffer.element.bytes()) {
            let mut wide = [0; 8];
            wide[..one.len()].copy_from_slice(one);
            let converted = convert(buffer.element, ty, u64::from_le_bytes(wide)).to_le_bytes();
            one.copy_from_slice(&converted[..one.len()]);
        }
        buffer.contents = Contents::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [Type; 4] = [Type::F16, Type::Bf16, Type::F32, Type::F64];

    #[test]
    fn numbers_survive_every_type() {
        for value in [0, 1, -1, 0x7fff, -0x8000] {
            let number = Payload::integer(value);
            assert_eq!(FLOATS.map(|ty| decode(ty, encode(ty, number))), [number; 4]);
        }
    }

    #[test]
    fn wide_types_keep_what_is_no_number_or_not_known() {
        let partial = Payload::integer(12).logarithm();
        for payload in [partial, Payload::MINUS_INFINITY, Payload::MINUS_INFINITY.negated(), Payload::NotANumber] {
            assert_eq!([Type::F32, Type::F64].map(|ty| decode(ty, encode(ty, payload))), [payload; 2]);
        }
    }

    #[test]
    fn constants_are_what_their_values_stand_for() {
        assert_eq!(decode(Type::F32, 0x3f80_0000), Payload::integer(1));
        assert_eq!(decode(Type::F32, 0xff80_0000), Payload::MINUS_INFINITY);
        assert_eq!(decode(Type::F64, (-3f64).to_bits()), Payload::integer(-3));
        assert_eq!(decode(Type::F32, 0x8000_0000), Payload::integer(0));
    }

    #[test]
    fn integers_become_numbers_and_numbers_integers() {
        assert_eq!(decode(Type::S32, 0xffff_ffff), Payload::integer(-1));
        assert_eq!(decode(Type::U8, 0xff), Payload::integer(255));
        assert_eq!(encode(Type::S32, Payload::integer(-2)) as i64, -2);
        assert_eq!(encode(Type::U32, Payload::integer(-2)), 0xffff_fffe);
        assert_eq!(encode(Type::S8, Payload::MINUS_INFINITY) as i64, -0x80);
        assert_eq!(encode(Type::U32, Payload::MINUS_INFINITY.negated()), 0xffff_ffff);
    }
}
