//! Scalar types, state spaces, targets and versions, spelled as PTX spells them.

use std::fmt;
use std::str::FromStr;

macro_rules! spelled {
    ($(#[$about:meta])* $name:ident { $($variant:ident $text:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($variant),* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// As PTX writes it, without the dot.
            pub const fn text(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }

        impl FromStr for $name {
            type Err = ();
            fn from_str(text: &str) -> Result<$name, ()> {
                match text { $($text => Ok($name::$variant),)* _ => Err(()) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, ".{}", self.text())
            }
        }
    };
}

spelled! {
    /// A scalar type of an instruction, a register or a variable.
    Type {
        Pred "pred", B1 "b1", U4 "u4", S4 "s4", B8 "b8", B16 "b16", B32 "b32", B64 "b64", B128 "b128",
        U8 "u8", U16 "u16", U32 "u32", U64 "u64", S8 "s8", S16 "s16", S32 "s32", S64 "s64",
        U16x2 "u16x2", S16x2 "s16x2", E4m3x2 "e4m3x2", E5m2x2 "e5m2x2", E4m3x4 "e4m3x4",
        F16 "f16", F16x2 "f16x2", Bf16 "bf16", Bf16x2 "bf16x2", Tf32 "tf32",
        E4m3 "e4m3", E5m2 "e5m2", F32 "f32", F64 "f64",
    }
}

spelled! {
    /// A state space.
    Space { Register "reg", Global "global", Shared "shared", Local "local", Parameter "param", Constant "const" }
}

impl Type {
    pub const fn bits(self) -> u32 {
        match self {
            Type::Pred | Type::B1 => 1,
            Type::U4 | Type::S4 => 4,
            Type::B8 | Type::U8 | Type::S8 | Type::E4m3 | Type::E5m2 => 8,
            Type::E4m3x2 | Type::E5m2x2 => 16,
            Type::U16x2 | Type::S16x2 | Type::E4m3x4 => 32,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 => 16,
            Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::Bf16x2 | Type::Tf32 | Type::F32 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 64,
            Type::B128 => 128,
        }
    }

    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub const fn is_untyped(self) -> bool {
        matches!(self, Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128)
    }

    pub const fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    pub const fn is_integer(self) -> bool {
        self.is_signed() || matches!(self, Type::U8 | Type::U16 | Type::U32 | Type::U64)
    }

    pub const fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::Tf32 | Type::F32 | Type::F64)
    }

    /// Several values in one register; only untyped registers hold them.
    pub const fn is_packed(self) -> bool {
        matches!(
            self,
            Type::F16x2
                | Type::Bf16x2
                | Type::U16x2
                | Type::S16x2
                | Type::E4m3x2
                | Type::E5m2x2
                | Type::E4m3x4
                | Type::Tf32
        )
    }

    /// The type of the registers that hold elements of a matrix: narrow ones share a register.
    pub const fn packed(self) -> Type {
        match self {
            Type::F16 => Type::F16x2,
            Type::Bf16 => Type::Bf16x2,
            Type::B1 | Type::U4 | Type::S4 | Type::U8 | Type::S8 | Type::E4m3 | Type::E5m2 => Type::U32,
            other => other,
        }
    }

    /// The type twice as wide, as `mul.wide` returns it.
    pub const fn widened(self) -> Type {
        match self {
            Type::U16 => Type::U32,
            Type::S16 => Type::S32,
            Type::U32 => Type::U64,
            Type::S32 => Type::S64,
            other => other,
        }
    }
}

/// A PTX version, `7.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// The newest that is read here.
    pub const NEWEST: Version = Version { major: 9, minor: 4 };
}

impl FromStr for Version {
    type Err = ();
    fn from_str(text: &str) -> Result<Version, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        Ok(Version { major: major.parse().map_err(drop)?, minor: minor.parse().map_err(drop)? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// An architecture, `sm_80` or `sm_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub sm: u32,
    /// `a`: features of this architecture alone.
    pub specific: bool,
}

impl Target {
    pub const SM_30: Target = Target { sm: 30, specific: false };
    pub const SM_53: Target = Target { sm: 53, specific: false };
    pub const SM_70: Target = Target { sm: 70, specific: false };
    pub const SM_75: Target = Target { sm: 75, specific: false };
    pub const SM_80: Target = Target { sm: 80, specific: false };
    pub const SM_86: Target = Target { sm: 86, specific: false };
    pub const SM_90: Target = Target { sm: 90, specific: false };
    pub const SM_90A: Target = Target { sm: 90, specific: true };

    /// Does code for this target have what needs `other`? Features of `sm_90a` exist on `sm_90a` alone.
    pub fn provides(self, other: Target) -> bool {
        if other.specific { self == other } else { self.sm >= other.sm }
    }
}

/// PTX ISA, ".target".
const KNOWN_TARGETS: [u32; 30] = [
    10, 11, 12, 13, 20, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110,
    120, 121,
];

impl FromStr for Target {
    type Err = ();
    fn from_str(text: &str) -> Result<Target, ()> {
        let number = text.strip_prefix("sm_").ok_or(())?;
        let plain = number.strip_suffix('a').unwrap_or(number);
        let sm = plain.parse().map_err(drop)?;
        let target = Target { sm, specific: plain.len() < number.len() };
        if KNOWN_TARGETS.contains(&sm) { Ok(target) } else { Err(()) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "sm_{}{}", self.sm, if self.specific { "a" } else { "" })
    }
}
