//! What holds for a modifier wherever it stands: which others it demands beside it, and what it needs itself.
//! Rows stay short: `setp(<compare>)` need not list which relations go with which types.

use crate::types::{Target, Version};

/// A modifier that is only allowed beside one of others, or, after `!`, beside none of them.
struct Companions {
    /// The first words of the mnemonics this is about.
    heads: &'static str,
    modifiers: &'static str,
    needs: &'static str,
}

const fn companions(heads: &'static str, modifiers: &'static str, needs: &'static str) -> Companions {
    Companions { heads, modifiers, needs }
}

const EVICT: &str =
    "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate L2::cache_hint";
const PREFETCH: &str = "L2::64B L2::128B L2::256B";
const NOT_GLOBAL: &str = "! const local param param::entry param::func shared shared::cta shared::cluster";

/// PTX ISA, "Comparison operators", "ld", "st", "Vectors" (at most 16 bytes), "mbarrier", "atom".
const COMPANIONS: &[Companions] = &[
    companions("setp", "lo ls hi hs", "u16 u32 u64"),
    companions("setp", "lt le gt ge", "u16 u32 u64 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64"),
    companions("setp", "equ neu ltu leu gtu geu num nan", "f16 f16x2 bf16 bf16x2 f32 f64"),
    companions("setp", "ftz", "f16 f16x2 f32"),
    companions("ld", "nc", "global"),
    companions("ld", "nc", "! weak lu cv"),
    companions("ld", "weak", "! param::entry param::func"),
    companions("ld st", EVICT, NOT_GLOBAL),
    companions("ld", PREFETCH, NOT_GLOBAL),
    companions("ld ldu st", "v4", "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32"),
    companions("mbarrier", "acquire release relaxed", "cta cluster"),
    companions("mbarrier", "cta cluster", "acquire release relaxed"),
    companions("min max", "xorsign", "abs"),
    companions("min max", "abs", "xorsign"),
    companions("mad", "sat", "s32 f32"),
    companions("atom red", "L2::cache_hint", "! shared shared::cta shared::cluster"),
    companions("atom red", "v8", "f16 bf16"),
];

/// What a modifier, or several with `+`, needs beyond its row: heads (empty for all), modifiers, PTX version, target.
/// PTX ISA, "Release notes" and the "PTX ISA notes" of the instructions.
const NEEDS: &[(&str, &str, Version, Target)] = &[
    ("", "shared::cta", version(7, 8), Target::SM_30),
    ("", "shared::cluster", version(7, 8), Target::SM_90),
    ("", "param::entry param::func", version(8, 3), Target::SM_30),
    ("cvta isspacep", "param", version(7, 7), Target::SM_70),
    ("", "cluster", version(7, 8), Target::SM_90),
    ("bar barrier", "cta", version(7, 8), Target::SM_30),
    ("cp", PREFETCH, version(7, 4), Target::SM_80),
    ("cp ld st atom red", "L2::cache_hint", version(7, 4), Target::SM_80),
    ("ld", "L2::64B L2::128B", version(7, 4), Target::SM_75),
    ("ld", "L2::256B", version(7, 4), Target::SM_80),
    ("ld st", EVICT, version(7, 4), Target::SM_70),
    ("ld st", "weak", version(6, 0), Target::SM_70),
    ("mbarrier", "acquire release", version(8, 0), Target::SM_80),
    ("mbarrier", "arrive+relaxed arrive_drop+relaxed test_wait+relaxed try_wait+relaxed", version(8, 6), Target::SM_90),
    ("min max", "NaN", version(7, 0), Target::SM_80),
    ("min max", "xorsign", version(7, 2), Target::SM_86),
    ("mma", "m16n8k16 m16n8k32 m16n8k64 m16n8k128 m16n8k256", version(7, 0), Target::SM_80),
    ("mma wmma", "and", version(7, 1), Target::SM_80),
    ("barrier", "acquire release relaxed", version(8, 0), Target::SM_90),
    ("wgmma", "s8+u8", version(8, 4), Target::SM_90),
    ("set", "u16+f16 s16+f16 u32+f16 s32+f16 u32+f16x2 s32+f16x2", version(6, 5), Target::SM_53),
    ("cvt", "tf32+satfinite", version(8, 1), Target::SM_80),
];

const fn version(major: u32, minor: u32) -> Version {
    Version { major, minor }
}

/// A modifier without any of the ones it needs beside it, and those; or, after `!`, with one that excludes it.
pub fn lonely(head: &str, chosen: &[Option<&'static str>]) -> Option<(&'static str, &'static str)> {
    let present = |list: &str| list.split(' ').any(|one| chosen.contains(&Some(one)));
    COMPANIONS.iter().filter(|rule| rule.heads.split(' ').any(|one| one == head)).find_map(|rule| {
        let modifier = rule.modifiers.split(' ').find(|one| chosen.contains(&Some(*one)))?;
        let wrong = rule.needs.strip_prefix("! ").map_or_else(|| !present(rule.needs), present);
        wrong.then_some((modifier, rule.needs))
    })
}

/// The PTX versions and targets that single modifiers ask for.
pub fn needs(head: &str, chosen: &[Option<&'static str>]) -> impl Iterator<Item = (Version, Target)> {
    let concerns = move |rule: &&(&str, &str, Version, Target)| {
        let about = rule.0.is_empty() || rule.0.split(' ').any(|one| one == head);
        let all = |modifiers: &str| modifiers.split('+').all(|one| chosen.contains(&Some(one)));
        about && rule.1.split(' ').any(all)
    };
    NEEDS.iter().filter(concerns).map(|rule| (rule.2, rule.3))
}
