//! Functions of bits: shifts across registers, fields, masks, permutations, searches. PTX ISA, "Logic and Shift
//! Instructions" and "Integer Arithmetic Instructions", has each of them in this form.

use crate::machine::truncate;

/// How an amount beyond the register counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    Clamp,
    Wrap,
}

/// `shf`: the middle of `high:low`, shifted by up to 32 bits.
pub fn funnel(low: u32, high: u32, amount: u32, left: bool, excess: Excess) -> u32 {
    let amount = if excess == Excess::Wrap { amount & 31 } else { amount.min(32) };
    let both = u64::from(high) << 32 | u64::from(low);
    if left { (both << amount >> 32) as u32 } else { (both >> amount) as u32 }
}

/// `bfi`: the low `length` bits of `field` at `position` of `base`.
pub fn insert(field: u64, base: u64, position: u64, length: u64, bits: u32) -> u64 {
    let (position, length) = ((position & 0xff) as u32, (length & 0xff) as u32);
    if position >= bits {
        return base;
    }
    let mask = truncate(u64::MAX, length) << position;
    truncate(base & !mask | field << position & mask, bits)
}

/// `bmsk`: `length` ones from `position` on.
pub fn mask(position: u32, length: u32, excess: Excess) -> u32 {
    let beyond = excess == Excess::Clamp && position >= 32;
    let endless = excess == Excess::Clamp && length >= 32;
    let start = position & 31;
    let end = if endless { 32 } else { (start + (length & 31)).min(32) };
    if beyond { 0 } else { (((1u64 << end) - 1) as u32) & (u32::MAX << start) }
}

/// `szext`: the low `length` bits, extended with their sign or with zeros.
pub fn extend_field(value: u32, length: u32, signed: bool, excess: Excess) -> u32 {
    if excess == Excess::Clamp && length >= 32 {
        return value;
    }
    let length = length & 31;
    let low = value & ((1u32 << length) - 1);
    let negative = signed && length > 0 && low >> (length - 1) & 1 == 1;
    if negative { low | u32::MAX << length } else { low }
}

/// `bfind`: the highest bit that differs from the sign; all ones when there is none.
pub fn find_leading(value: u64, bits: u32, signed: bool, as_shift: bool) -> u32 {
    let negative = signed && value >> (bits - 1) & 1 == 1;
    let value = truncate(if negative { !value } else { value }, bits);
    match value.checked_ilog2() {
        Some(place) if as_shift => bits - 1 - place,
        Some(place) => place,
        None => u32::MAX,
    }
}

/// `fns`: the place of the `offset`-th one from `base` on, upward or downward; all ones when there is none.
pub fn find_nth(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    let is_one = |place: &u32| mask >> place & 1 == 1;
    let nth = offset.unsigned_abs().saturating_sub(1) as usize;
    let found = match offset {
        0 => Some(base).filter(is_one),
        1.. => (base..32).filter(is_one).nth(nth),
        _ => (0..=base).rev().filter(is_one).nth(nth),
    };
    found.unwrap_or(u32::MAX)
}

/// How `prmt` reads its control operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// A nibble per byte of the result: which byte, and whether its sign is spread over it.
    General,
    /// One of four selections, by the control's low two bits.
    Fixed([u32; 4]),
}

impl Selection {
    /// The manual's modes as nibbles, as the general form has them.
    pub fn of_mode(mode: Option<&str>) -> Selection {
        match mode {
            Some("f4e") => Selection::Fixed([0x3210, 0x4321, 0x5432, 0x6543]),
            Some("b4e") => Selection::Fixed([0x5670, 0x6701, 0x7012, 0x0123]),
            Some("rc8") => Selection::Fixed([0x0000, 0x1111, 0x2222, 0x3333]),
            Some("ecl") => Selection::Fixed([0x3210, 0x3211, 0x3222, 0x3333]),
            Some("ecr") => Selection::Fixed([0x0000, 0x1110, 0x2210, 0x3210]),
            Some(_) => Selection::Fixed([0x1010, 0x3232, 0x1010, 0x3232]),
            None => Selection::General,
        }
    }
}

/// `prmt`: four bytes of `high:low`.
pub fn permute(low: u32, high: u32, control: u32, selection: Selection) -> u32 {
    let control = match selection {
        Selection::General => control,
        Selection::Fixed(choices) => choices[(control & 3) as usize],
    };
    let bytes = (u64::from(high) << 32 | u64::from(low)).to_le_bytes();
    let pick = |index: usize| {
        let nibble = control >> (4 * index) & 15;
        let byte = bytes[(nibble & 7) as usize];
        if nibble & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    };
    u32::from_le_bytes(std::array::from_fn(pick))
}

/// `lop3`: bit `4a + 2b + c` of the table, for every bit.
pub fn logic_of_three(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let row = |index: u32| {
        let choose = |bits: u32, bit: u32| if index >> bit & 1 == 1 { bits } else { !bits };
        if table >> index & 1 == 1 { choose(a, 2) & choose(b, 1) & choose(c, 0) } else { 0 }
    };
    (0..8).map(row).fold(0, |all, one| all | one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_beyond_the_register() {
        assert_eq!(funnel(0x1111_1111, 0x2222_2222, 40, true, Excess::Clamp), 0x1111_1111);
        assert_eq!(funnel(0x1111_1111, 0x2222_2222, 40, true, Excess::Wrap), 0x2222_2211);
        assert_eq!(mask(4, 40, Excess::Clamp), 0xffff_fff0);
        assert_eq!(mask(4, 40, Excess::Wrap), 0x0000_0ff0);
        assert_eq!(insert(0xff, 0, 28, 8, 32), 0xf000_0000);
        assert_eq!(insert(0xff, 7, 32, 8, 32), 7);
    }

    #[test]
    fn the_manuals_example_of_logic_of_three() {
        let (a, b, c) = (0xf0, 0xcc, 0xaa);
        assert_eq!(logic_of_three(a, b, c, ((0xf0 & 0xcc) | 0xaa) as u8), (a & b) | c);
    }

    #[test]
    fn searches_go_both_ways() {
        assert_eq!(find_nth(0b1011_0000, 4, 2), 5);
        assert_eq!(find_nth(0b1011_0000, 6, -1), 5);
        assert_eq!(find_nth(0b1011_0000, 0, 4), u32::MAX);
        assert_eq!(find_leading(0xffff_fff0, 32, true, false), 3);
        assert_eq!(find_leading(0x10, 32, false, true), 27);
    }
}
