//! A mnemonic's spelling: fixed parts, optional and required choices.
//!
//! Real PTX varies the order of modifiers, even between slots, so they are matched as a set: each modifier goes to
//! the first free slot that offers it. Types stay in order: `cvt.u8.s8` is not `cvt.s8.u8`.

use super::modifiers;
use crate::types::{Target, Type, Version};

/// Lists that many rows share.
const CLASSES: &[(&str, &str)] = &[
    ("<int>", ".s16|.u16|.s32|.u32|.s64|.u64"),
    ("<bits>", ".b16|.b32|.b64"),
    ("<memory>", ".b8|.u8|.s8|.b16|.u16|.s16|.b32|.u32|.s32|.f32|.b64|.u64|.s64|.f64"),
    ("<scope>", ".cta|.cluster|.gpu|.sys"),
    ("<space>", ".global|.shared|.shared::cta|.shared::cluster"),
    ("<cache>", ".ca|.cg|.cs|.lu|.cv"),
    ("<evict>", ".L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate"),
    ("<prefetch>", ".L2::64B|.L2::128B|.L2::256B"),
    ("<dimensions>", ".1d|.2d|.3d|.4d|.5d"),
    ("<order>", ".eq|.ne|.lt|.le|.gt|.ge"),
    ("<float_order>", ".eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan"),
    ("<compare>", ".eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan|.lo|.ls|.hi|.hs"),
];

/// The widths a wgmma may have: `n` of m64nNk16 is a multiple of eight; with integers (`m64nIk32`) above 32, of 16.
/// PTX ISA, "Asynchronous warpgroup level matrix shape".
fn wgmma_widths(kind: char) -> impl Iterator<Item = u32> {
    (1..=32).map(|eighths| eighths * 8).filter(move |n| kind == 'N' || *n <= 32 || n % 16 == 0)
}

#[derive(Debug)]
pub struct Spelling {
    text: &'static str,
    head: &'static str,
    slots: Vec<Slot>,
}

#[derive(Debug)]
pub struct Slot {
    pub choices: Vec<&'static str>,
    pub required: bool,
    /// Its choices are types, such as `.f32`.
    pub is_type: bool,
}

impl Slot {
    fn new(text: &'static str, required: bool) -> Slot {
        let choices = expand(text);
        let is_type = choices.iter().all(|choice| choice.parse::<Type>().is_ok());
        Slot { choices, required, is_type }
    }

    /// How many ways there are to fill the slot.
    fn ways(&self) -> usize {
        self.choices.len() + !self.required as usize
    }
}

impl Spelling {
    pub(super) fn compile(text: &'static str) -> Spelling {
        let end = text.find(['.', '{', '(']).unwrap_or(text.len());
        let (head, mut rest) = text.split_at(end);
        let mut slots = vec![];
        while let Some(first) = rest.chars().next() {
            let close = match first {
                '{' => '}',
                '(' => ')',
                _ => {
                    let end = rest[1..].find(['.', '{', '(']).map_or(rest.len(), |end| end + 1);
                    slots.push(Slot::new(&rest[..end], true));
                    rest = &rest[end..];
                    continue;
                }
            };
            let end = rest.find(close).expect("a row's bracket closes");
            slots.push(Slot::new(&rest[1..end], first == '('));
            rest = &rest[end + 1..];
        }
        Spelling { text, head, slots }
    }

    pub fn head(&self) -> &'static str {
        self.head
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The modifier chosen in each slot, or `None` when these modifiers are not this form.
    pub fn matches(&self, modifiers: &[&str]) -> Option<Vec<Option<&'static str>>> {
        let mut chosen: Vec<Option<&'static str>> = vec![None; self.slots.len()];
        let mut last_type = 0;
        for modifier in modifiers {
            let offers = |slot: &Slot| slot.choices.iter().copied().find(|choice| choice == modifier);
            let free = self.slots.iter().enumerate().filter(|(index, _)| chosen[*index].is_none());
            let in_order = free.filter(|(index, slot)| !slot.is_type || *index >= last_type);
            let (index, choice) = { in_order }.find_map(|(index, slot)| Some((index, offers(slot)?)))?;
            last_type = if self.slots[index].is_type { index } else { last_type };
            chosen[index] = Some(choice);
        }
        let complete = self.slots.iter().zip(&chosen).all(|(slot, chosen)| chosen.is_some() || !slot.required);
        complete.then_some(chosen)
    }

    pub fn print(&self, chosen: &[Option<&'static str>]) -> String {
        chosen.iter().flatten().fold(self.head.to_string(), |text, modifier| text + "." + modifier)
    }

    /// The number that a modifier carries: V of `.v4`, X of `.x2`, D of `.3d` (I: less the two that im2col does not
    /// shift), M, N and K of `.m64n128k16`.
    pub fn variable(&self, name: char, chosen: &[Option<&'static str>]) -> Option<u32> {
        chosen.iter().flatten().find_map(|text| match name {
            'V' => text.strip_prefix('v')?.parse().ok(),
            'X' => text.strip_prefix('x')?.parse().ok(),
            'D' => text.strip_suffix('d')?.parse().ok(),
            'I' => text.strip_suffix('d')?.parse::<u32>().ok()?.checked_sub(2),
            'M' => sides(text).map(|[m, _, _]| m),
            'N' => sides(text).map(|[_, n, _]| n),
            'K' => sides(text).map(|[_, _, k]| k),
            _ => None,
        })
    }

    /// The types among the chosen modifiers, in order.
    pub fn types(&self, chosen: &[Option<&'static str>]) -> impl Iterator<Item = Type> {
        let slots = self.slots.iter().zip(chosen).filter(|(slot, _)| slot.is_type);
        slots.filter_map(|(_, chosen)| chosen.and_then(|text| text.parse().ok()))
    }

    /// A modifier that lacks the company it needs: `.lo` in `setp.lo.s32`, and what could stand beside it.
    pub fn lonely(&self, chosen: &[Option<&'static str>]) -> Option<(&'static str, &'static str)> {
        modifiers::lonely(self.head, chosen)
    }

    /// What the chosen modifiers need beyond their row.
    pub fn needs(&self, chosen: &[Option<&'static str>]) -> impl Iterator<Item = (Version, Target)> {
        modifiers::needs(self.head, chosen)
    }

    /// Every mnemonic that this spelling allows, or, where there are thousands, a sample that is always the same.
    pub fn examples(&self) -> Vec<String> {
        let total = self.slots.iter().map(|slot| slot.ways() as u64).product::<u64>();
        let step = (total / MAX_EXAMPLES).max(1) | 1; // Odd, so that it meets every choice of slots with two.
        let every = (0..total).step_by(step as usize).map(|number| self.numbered(number));
        every.filter(|chosen| self.lonely(chosen).is_none()).map(|chosen| self.print(&chosen)).collect()
    }

    /// One of all ways to choose, the last slot counting fastest.
    fn numbered(&self, mut number: u64) -> Vec<Option<&'static str>> {
        let mut chosen = vec![None; self.slots.len()];
        for (choice, slot) in chosen.iter_mut().zip(&self.slots).rev() {
            *choice = slot.choices.get((number % slot.ways() as u64) as usize).copied();
            number /= slot.ways() as u64;
        }
        chosen
    }
}

/// Examples of one row are at most about this many.
const MAX_EXAMPLES: u64 = 256;

/// The three numbers of `m16n8k32`.
fn sides(text: &str) -> Option<[u32; 3]> {
    let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// As the row writes it.
impl std::fmt::Display for Spelling {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.pad(self.text)
    }
}

/// The choices of one slot, without dots.
fn expand(text: &'static str) -> Vec<&'static str> {
    let parts = text.split('|').flat_map(|part| match CLASSES.iter().find(|(name, _)| *name == part) {
        Some((_, list)) => list.split('|').collect(),
        None => vec![part],
    });
    parts.map(|part| part.strip_prefix('.').expect("a row's modifier starts with a dot")).flat_map(widths).collect()
}

/// `m64nNk16` stands for 32 shapes. The table lives as long as the program, and so do its names.
fn widths(part: &'static str) -> Vec<&'static str> {
    let shape = part.strip_prefix("m64n").and_then(|rest| Some((rest.chars().next()?, rest.get(1..)?)));
    match shape {
        Some((kind @ ('N' | 'I'), depth)) => {
            wgmma_widths(kind).map(|n| &*Box::leak(format!("m64n{n}{depth}").into_boxed_str())).collect()
        }
        _ => vec![part],
    }
}
