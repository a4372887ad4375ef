//! Which lanes have a value in the registers that are watched.

use super::definite::Watched;
use super::lanes;
use crate::exec::At;
use ptx::RegisterId;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Definedness {
    /// Lanes with a value.
    defined: BTreeMap<RegisterId, u32>,
    /// The register without a value that a register was computed from, and where.
    origins: BTreeMap<RegisterId, (RegisterId, u32)>,
}

impl Definedness {
    pub fn lanes(&self, register: RegisterId) -> u32 {
        self.defined.get(&register).copied().unwrap_or(0)
    }

    pub fn origin(&self, register: RegisterId) -> Option<(RegisterId, u32)> {
        self.origins.get(&register).copied()
    }

    /// What a step writes has a value where all that it is computed from has one. `origins`: the lane that each lane reads.
    pub fn pass_on(&mut self, at: At, watched: &Watched, origins: Option<&[usize; 32]>) {
        let seen = |defined: u32| match origins {
            // Who is not here may still write it.
            Some(from) => lanes(at.mask).fold(0, |seen, lane| {
                let has = (defined | !at.mask) >> from[lane] & 1;
                seen | has << lane
            }),
            None => defined,
        };
        let known = watched.passes.iter().fold(u32::MAX, |known, register| known & seen(self.lanes(*register)));
        let missing = watched.passes.iter().find(|register| at.mask & !seen(self.lanes(**register)) != 0);
        let origin = missing.map(|register| self.origin(*register).unwrap_or((*register, at.statement)));
        for register in &watched.writes {
            let defined = self.defined.entry(*register).or_default();
            *defined = *defined & !at.mask | known & at.mask;
            if let Some(origin) = origin {
                self.origins.insert(*register, origin);
            }
        }
    }
}
