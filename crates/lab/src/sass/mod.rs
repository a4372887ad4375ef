//! Machine code as nvdisasm prints it: enough of it to find loops and to count what is in them.
//!
//! ```text
//! .L_x_2:
//!         /*0ec0*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;
//!         /*2040*/                   BRA `(.L_x_2) ;
//! ```

mod class;
mod listing;
mod loops;
mod normal;

use serde::{Deserialize, Serialize};

pub use class::{Class, Counts};
pub use listing::{Function, Instruction, Listing};
pub use loops::{Loop, loops, main_loop};
pub use normal::normal;

/// What machine code holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Census {
    pub instructions: usize,
    /// As [`loops`] finds them.
    pub loops: usize,
    /// Tensor-core products: all of them, and those inside the loop that has most.
    pub tensor: usize,
    pub tensor_in_loop: usize,
    /// Copies from global to shared memory that do not wait.
    pub async_copies: usize,
    pub async_copies_in_loop: usize,
    /// Loads and stores of local memory: spilled registers, or arrays that did not fit.
    pub local: usize,
    /// Tensor-core products of less than 16 bits, or that add in less than f32.
    pub narrow: usize,
}

/// Counts all functions of a disassembly together; the error says which line was not understood.
pub fn census(text: &str) -> Result<Census, String> {
    let listing = Listing::read(text)?;
    let code = || listing.functions.iter().flat_map(|function| &function.instructions);
    let counts: Counts = code().map(|one| one.class).collect();
    let loops: Vec<Loop> = listing.functions.iter().flat_map(loops).collect();
    let most = |class: Class| loops.iter().map(|one| one.counts.of(class)).max().unwrap_or(0);
    Ok(Census {
        instructions: code().count(),
        loops: loops.len(),
        tensor: counts.of(Class::Tensor),
        tensor_in_loop: most(Class::Tensor),
        async_copies: counts.of(Class::CopyIn),
        async_copies_in_loop: most(Class::CopyIn),
        local: counts.of(Class::Local),
        narrow: code().filter(|one| one.class == Class::Tensor && is_narrow(&one.opcode)).count(),
    })
}

/// `HMMA.16816.F16` adds in f16, `QMMA` multiplies in fp8; `HMMA.16816.F32` is neither. Where a descriptor has the types, as for
/// `UTCHMMA`, the name does not tell.
fn is_narrow(opcode: &str) -> bool {
    match stem(opcode) {
        "HMMA" | "HGMMA" => !opcode.split('.').any(|part| part == "F32"),
        "DMMA" | "UTCHMMA" => false,
        _ => true,
    }
}

/// `HMMA` of `HMMA.16816.F32`.
fn stem(opcode: &str) -> &str {
    opcode.split('.').next().unwrap_or(opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\t.target\tsm_80
.text.kernel:
        /*0000*/                   LDGSTS.E.BYPASS.128 [R23], [R12.64], !P0 ;
        /*0010*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;
        /*0020*/              @!P0 BRA `(.L_x_1) ;
.L_x_0:
        /*0030*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;
        /*0040*/              @!P0 BRA P1, `(.L_x_0) ;
.L_x_1:
        /*0050*/                   EXIT ;
.L_x_2:
        /*0060*/                   BRA `(.L_x_2);
";

    #[test]
    fn what_is_in_a_loop_is_counted_apart() {
        let census = census(CODE).unwrap();
        assert_eq!((census.instructions, census.loops), (7, 1));
        assert_eq!((census.tensor, census.tensor_in_loop), (2, 1));
        assert_eq!((census.async_copies, census.async_copies_in_loop, census.local), (1, 0, 0));
    }

    #[test]
    fn spills_are_seen_behind_a_guard() {
        let spilled = CODE.replace("EXIT ;", "@P0 STL [R1], R5 ;");
        assert_eq!(census(&spilled).unwrap().local, 1);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(census("").is_err());
        assert!(census("        /*0000*/    EXIT").unwrap_err().contains("line 1"));
    }
}
