//! What an instruction is there for, by the name of its opcode.

use serde::{Deserialize, Serialize};

/// In the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Products of matrices on tensor cores.
    Tensor,
    /// Copies into shared memory that do not wait.
    CopyIn,
    /// Copies and reductions out of shared memory that do not wait.
    CopyOut,
    /// Matrices between shared memory and registers.
    Matrix,
    Shared,
    /// Global memory, or memory whose kind only the address tells.
    Global,
    /// Spilled registers, or arrays that did not fit.
    Local,
    /// Until copies, products or barriers are complete.
    Wait,
    /// Arrivals, and barriers that wait.
    Barrier,
    /// Fences, and ends of groups of copies.
    Fence,
    /// Ends the launch with an error.
    Trap,
    /// Exponentials, reciprocals and the like.
    Special,
    Branch,
    Other,
}

/// Opcodes, or how they begin; the first row that fits counts. CUDA Binary Utilities, "Instruction Set Reference".
#[rustfmt::skip]
const ROWS: [(Class, &[&str]); 13] = [
    (Class::Tensor,  &["HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA",
                       "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"]),
    (Class::CopyOut, &["UTMASTG", "UTMAREDG", "UBLKRED", "UBLKCP.G"]),
    (Class::CopyIn,  &["LDGSTS", "UTMALDG", "UBLKCP"]),
    (Class::Matrix,  &["LDSM", "STSM", "MOVM"]),
    (Class::Wait,    &["DEPBAR", "SYNCS.PHASECHK", "WARPGROUP.DEPBAR", "UCGABAR_WAIT", "NANOSLEEP"]),
    (Class::Barrier, &["BAR", "SYNCS", "ARRIVES", "ATOMS.ARRIVE", "UCGABAR_ARV", "WARPSYNC"]),
    (Class::Fence,   &["MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR", "LDGDEPBAR", "UTMACMDFLUSH", "WARPGROUP"]),
    (Class::Shared,  &["LDS", "STS", "ATOMS"]),
    (Class::Local,   &["LDL", "STL"]),
    (Class::Global,  &["LDG", "STG", "LD", "ST", "ATOM", "ATOMG", "RED", "REDG"]),
    (Class::Trap,    &["BPT"]),
    (Class::Special, &["MUFU"]),
    (Class::Branch,  &["BRA", "BRX", "JMP", "JMX", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BREAK"]),
];

impl Class {
    pub const ALL: [Class; 14] = [
        Class::Tensor,
        Class::CopyIn,
        Class::CopyOut,
        Class::Matrix,
        Class::Shared,
        Class::Global,
        Class::Local,
        Class::Wait,
        Class::Barrier,
        Class::Fence,
        Class::Trap,
        Class::Special,
        Class::Branch,
        Class::Other,
    ];

    pub fn of(opcode: &str) -> Class {
        let begins =
            |row: &&str| opcode.strip_prefix(*row).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        ROWS.iter().find(|(_, rows)| rows.iter().any(begins)).map_or(Class::Other, |(class, _)| *class)
    }

    /// The head of its column.
    pub fn name(self) -> &'static str {
        match self {
            Class::Tensor => "tensor",
            Class::CopyIn => "copy in",
            Class::CopyOut => "copy out",
            Class::Matrix => "matrix",
            Class::Shared => "shared",
            Class::Global => "global",
            Class::Local => "local",
            Class::Wait => "wait",
            Class::Barrier => "barrier",
            Class::Fence => "fence",
            Class::Trap => "trap",
            Class::Special => "special",
            Class::Branch => "branch",
            Class::Other => "other",
        }
    }

    /// Its mark in a listing; none for what fills the space between.
    pub fn letter(self) -> Option<char> {
        match self {
            Class::Tensor => Some('T'),
            Class::CopyIn => Some('C'),
            Class::CopyOut => Some('O'),
            Class::Matrix => Some('M'),
            Class::Shared => Some('S'),
            Class::Global => Some('G'),
            Class::Local => Some('L'),
            Class::Wait => Some('W'),
            Class::Barrier => Some('B'),
            Class::Fence => Some('F'),
            Class::Trap => Some('X'),
            Class::Special => Some('E'),
            Class::Branch | Class::Other => None,
        }
    }
}

/// How many instructions there are of each class, in the order of [`Class::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; Class::ALL.len()]);

impl Counts {
    pub fn of(self, class: Class) -> usize {
        self.0[class as usize]
    }

    pub fn all(self) -> usize {
        self.0.iter().sum()
    }
}

impl FromIterator<Class> for Counts {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Counts {
        let mut counts = Counts::default();
        classes.into_iter().for_each(|class| counts.0[class as usize] += 1);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_class_and_not_how_it_begins() {
        for (opcode, class) in [
            ("HGMMA.64x128x16.F32.BF16", Class::Tensor),
            ("HFMA2.MMA", Class::Other),
            ("LDGSTS.E.BYPASS.128", Class::CopyIn),
            ("LDG.E.128", Class::Global),
            ("LDGDEPBAR", Class::Fence),
            ("UBLKCP.S.G", Class::CopyIn),
            ("UBLKCP.G.S", Class::CopyOut),
            ("LDSM.16.M88.4", Class::Matrix),
            ("LDS.128", Class::Shared),
            ("LDL.LU", Class::Local),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT", Class::Wait),
            ("SYNCS.ARRIVE.TRANS64", Class::Barrier),
            ("WARPGROUP.DEPBAR.LE", Class::Wait),
            ("WARPGROUP.ARRIVE", Class::Fence),
            ("BPT.TRAP", Class::Trap),
            ("REDUX.SUM", Class::Other),
        ] {
            assert_eq!(Class::of(opcode), class, "{opcode}");
        }
    }

    #[test]
    fn every_class_has_its_own_place_and_letter() {
        let letters: Vec<char> = Class::ALL.iter().filter_map(|class| class.letter()).collect();
        assert!(letters.iter().all(|letter| letters.iter().filter(|other| *other == letter).count() == 1));
        assert!(Class::ALL.iter().enumerate().all(|(place, class)| *class as usize == place));
        let counts: Counts = [Class::Tensor, Class::Other, Class::Tensor].into_iter().collect();
        assert_eq!((counts.of(Class::Tensor), counts.of(Class::Wait), counts.all()), (2, 0, 3));
    }
}
