//! Several integers in one register: halves, bytes, and sums over their products.

use ptx::Type;
use ptx::forms::Integer;

/// Types and modifier of an operation on bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    pub result_signed: bool,
    pub signed: [bool; 2],
    pub after: After,
}

/// What becomes of the four results of a `v…4` instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Cut,
    Saturate,
    /// Their sum is added to the third operand.
    Add,
}

/// A function of 16-bit integers, on both halves.
pub fn on_halves(a: u32, b: u32, signed: bool, function: impl Fn(i64, i64) -> i64) -> u32 {
    let one = |shift: u32| {
        let operand = |bits: u32| part(bits, shift, 16, signed);
        ((function(operand(a), operand(b)) as u32) & 0xffff) << shift
    };
    one(0) | one(16)
}

/// Part of a register, extended.
fn part(bits: u32, shift: u32, width: u32, signed: bool) -> i64 {
    let value = i64::from(bits >> shift & ((1 << width) - 1));
    if signed && value >> (width - 1) == 1 { value - (1 << width) } else { value }
}

/// `dp4a` and `dp2a`: a sum of products and the third operand, cut to 32 bits. The elements of `a` have `width` bits,
/// those of `b` are bytes from `first` on.
pub fn dot(a: u32, b: u32, c: u32, signed: [bool; 2], width: u32, first: u32) -> u32 {
    let product = |index: u32| part(a, index * width, width, signed[0]) * part(b, (first + index) * 8, 8, signed[1]);
    (0..32 / width).map(product).sum::<i64>().wrapping_add(i64::from(c)) as u32
}

/// `vadd4` and its kin.
pub fn on_bytes(op: Integer, a: u32, b: u32, c: u32, bytes: Bytes) -> u32 {
    let result = |index: u32| {
        let x = part(a, index * 8, 8, bytes.signed[0]);
        let y = part(b, index * 8, 8, bytes.signed[1]);
        match op {
            Integer::AddFour => x + y,
            Integer::SubtractFour => x - y,
            Integer::AverageFour => (x + y + i64::from(x + y >= 0)) >> 1,
            Integer::AbsoluteDifferenceFour => (x - y).abs(),
            Integer::MinimumFour => x.min(y),
            _ => x.max(y),
        }
    };
    let (least, most) = if bytes.result_signed { (-128, 127) } else { (0, 255) };
    match bytes.after {
        After::Add => (0..4).map(result).sum::<i64>().wrapping_add(i64::from(c)) as u32,
        After::Saturate => join(|index| result(index).clamp(least, most)),
        After::Cut => join(result),
    }
}

fn join(byte: impl Fn(u32) -> i64) -> u32 {
    (0..4).map(|index| (byte(index) as u32 & 0xff) << (index * 8)).sum()
}

/// Whether each of the types is signed.
pub fn signs(types: &[Type]) -> [bool; 2] {
    let signed = |index: usize| types.get(index).is_some_and(|ty| ty.is_signed());
    [signed(0), signed(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_take_the_signs_of_their_types() {
        assert_eq!(dot(0xff, 0xff, 10, [true, true], 8, 0), 11);
        assert_eq!(dot(0xff, 0xff, 10, [false, true], 8, 0), 10u32.wrapping_sub(255));
        assert_eq!(dot(0x0002_ffff, 0x0403_0201, 0, [true, false], 16, 2), 8 - 3);
    }

    #[test]
    fn bytes_saturate_into_the_results_type() {
        let bytes = |after| Bytes { result_signed: false, signed: [true, true], after };
        assert_eq!(on_bytes(Integer::SubtractFour, 1, 2, 0, bytes(After::Saturate)), 0);
        assert_eq!(on_bytes(Integer::SubtractFour, 1, 2, 0, bytes(After::Cut)), 0xff);
        assert_eq!(on_bytes(Integer::SubtractFour, 1, 2, 5, bytes(After::Add)), 4);
    }
}
