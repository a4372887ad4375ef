//! How much a kernel feeds to each form: distinct operand sets, and special numbers among them.
//!
//! One set is all that one lane reads in one instruction: its registers and constants, where its addresses lead to
//! (relative to their allocation), and the bytes that are read there. A product of a warpgroup reads the lane's rows of A
//! and columns of B. Sets are told apart by a hash, and counted up to [`ENOUGH`].

mod census;
mod inputs;
mod needs;
mod special;

pub use census::Census;
pub use inputs::{Inputs, element};
pub use needs::{needed_sets, special_types};
pub use special::Special;

use ptx::{Op, Type};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Sets of a form beyond so many are not counted: nobody asks for more.
pub const ENOUGH: usize = 64;

/// What forms were fed.
#[derive(Clone, Debug, Default)]
pub struct OperandSets {
    forms: HashMap<Op, Fed>,
}

/// What one form was fed.
#[derive(Clone, Debug, Default)]
struct Fed {
    /// Hashes.
    sets: HashSet<u64>,
    /// By the type of the operand that was one.
    specials: BTreeMap<Type, Vec<Special>>,
}

impl OperandSets {
    /// Distinct sets that were fed to a form, up to [`ENOUGH`].
    pub fn count(&self, op: Op) -> usize {
        self.forms.get(&op).map_or(0, |fed| fed.sets.len())
    }

    /// Special numbers of a type that a form was never fed.
    pub fn missing(&self, op: Op, ty: Type) -> Vec<Special> {
        let seen = self.forms.get(&op).and_then(|fed| fed.specials.get(&ty)).map_or(&[][..], Vec::as_slice);
        Special::of_type(ty).filter(|special| !seen.contains(special)).collect()
    }

    fn add(&mut self, op: Op, set: u64) {
        let sets = &mut self.forms.entry(op).or_default().sets;
        if sets.len() < ENOUGH {
            sets.insert(set);
        }
    }

    fn add_special(&mut self, op: Op, ty: Type, special: Special) {
        let seen = self.forms.entry(op).or_default().specials.entry(ty).or_default();
        if !seen.contains(&special) {
            seen.push(special);
        }
    }
}

#[cfg(test)]
mod tests;
