//! What holds for a modifier wherever it stands: which others it demands beside it, and what it needs itself.
//! Rows stay short: `setp(<compare>)` need not list which relations go with which types.

use crate::types::{Target, Version};

/// A modifier that is only allowed beside one of others.
struct Companions {
    /// The first word of the mnemonics this is about; empty for all.
    head: &'static str,
    modifiers: &'static str,
    needs: &'static str,
}

const fn companions(head: &'static str, modifiers: &'static str, needs: &'static str) -> Companions {
    Companions { head, modifiers, needs }
}

/// PTX ISA, "Comparison operators", "ld", "Vectors" (at most 16 bytes), "mbarrier.try_wait".
const COMPANIONS: &[Companions] = &[
    companions("setp", "lo ls hi hs", "u16 u32 u64"),
    companions("setp", "lt le gt ge", "u16 u32 u64 s16 s32 s64 f32"),
    companions("setp", "equ neu ltu leu gtu geu num nan", "f32"),
    companions("setp", "ftz", "f32"),
    companions("ld", "nc", "global"),
    companions("ld", "v4", "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32"),
    companions("st", "v4", "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32"),
    companions("mbarrier", "acquire", "cta cluster"),
    companions("mbarrier", "cta cluster", "acquire"),
];

/// What a modifier needs beyond its row: head (empty for all), modifier, PTX version, target.
/// PTX ISA, "Release notes" and the "PTX ISA notes" of the instructions.
const NEEDS: &[(&str, &str, Version, Target)] = &[
    ("", "shared::cta", Version { major: 7, minor: 8 }, Target::SM_30),
    ("bar", "cta", Version { major: 7, minor: 8 }, Target::SM_30),
    ("barrier", "cta", Version { major: 7, minor: 8 }, Target::SM_30),
    ("cp", "L2::64B", Version { major: 7, minor: 4 }, Target::SM_80),
    ("cp", "L2::128B", Version { major: 7, minor: 4 }, Target::SM_80),
    ("cp", "L2::256B", Version { major: 7, minor: 4 }, Target::SM_80),
    ("mbarrier", "acquire", Version { major: 8, minor: 0 }, Target::SM_90),
];

/// A modifier without any of the ones it needs beside it, and those.
pub fn lonely(head: &str, chosen: &[Option<&'static str>]) -> Option<(&'static str, &'static str)> {
    let present = |list: &str| list.split(' ').any(|one| chosen.contains(&Some(one)));
    COMPANIONS.iter().filter(|rule| rule.head == head).find_map(|rule| {
        let modifier = rule.modifiers.split(' ').find(|one| chosen.contains(&Some(*one)))?;
        (!present(rule.needs)).then_some((modifier, rule.needs))
    })
}

/// The PTX versions and targets that single modifiers ask for.
pub fn needs(head: &str, chosen: &[Option<&'static str>]) -> impl Iterator<Item = (Version, Target)> {
    let concerns = move |rule: &&(&str, &str, Version, Target)| {
        (rule.0.is_empty() || rule.0 == head) && chosen.iter().flatten().any(|one| *one == rule.1)
    };
    NEEDS.iter().filter(concerns).map(|rule| (rule.2, rule.3))
}
