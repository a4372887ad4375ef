//! Machine code as nvdisasm prints it: enough of it to find loops and to count what is in them.
//!
//! ```text
//! .L_x_2:
//!         /*0ec0*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;
//!         /*2040*/                   BRA `(.L_x_2) ;
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What machine code holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Census {
    pub instructions: usize,
    /// Branches back to an earlier instruction.
    pub loops: usize,
    /// Tensor-core products: all of them, and those inside the loop that has most.
    pub tensor: usize,
    pub tensor_in_loop: usize,
    /// Copies from global to shared memory that do not wait.
    pub async_copies: usize,
    pub async_copies_in_loop: usize,
    /// Loads and stores of local memory: spilled registers, or arrays that did not fit.
    pub local: usize,
}

struct Instruction<'a> {
    opcode: &'a str,
    /// The label that a branch names.
    target: Option<&'a str>,
}

/// Counts all functions of a disassembly together; the error says which line was not understood.
pub fn census(text: &str) -> Result<Census, String> {
    let mut code: Vec<Instruction> = Vec::new();
    let mut labels: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label, code.len());
        } else if line.starts_with("/*") {
            code.push(instruction(line).ok_or_else(|| format!("line {}: `{line}` is no instruction", number + 1))?);
        }
    }
    if code.is_empty() {
        return Err("there is no instruction in it".into());
    }
    Ok(count(&code, &loops(&code, &labels)))
}

/// `/*0de0*/ @!P0 BRA P1, `(.L_x_1) ;`
fn instruction(line: &str) -> Option<Instruction<'_>> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    if address.is_empty() || !address.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.split_once(';')?.0.trim();
    let unguarded = match rest.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ')?.1.trim_start(),
        None => rest,
    };
    let opcode = unguarded.split([' ', ';']).next().filter(|opcode| !opcode.is_empty())?;
    let target = opcode.starts_with("BRA").then(|| label(unguarded)).flatten();
    Some(Instruction { opcode, target })
}

fn label(operands: &str) -> Option<&str> {
    Some(operands.split_once("`(")?.1.split_once(')')?.0)
}

/// From the target of each branch back to the branch; the endless branch to itself after the last exit is none.
fn loops(code: &[Instruction], labels: &BTreeMap<&str, usize>) -> Vec<(usize, usize)> {
    let back = |(at, instruction): (usize, &Instruction)| {
        let start = *labels.get(instruction.target?)?;
        (start < at).then_some((start, at))
    };
    code.iter().enumerate().filter_map(back).collect()
}

fn count(code: &[Instruction], loops: &[(usize, usize)]) -> Census {
    let of = |code: &[Instruction], opcodes: &[&str]| {
        let is = |one: &&Instruction| opcodes.iter().any(|opcode| one.opcode.split('.').next() == Some(opcode));
        code.iter().filter(is).count()
    };
    let most = |opcodes: &[&str]| loops.iter().map(|&(start, end)| of(&code[start..=end], opcodes)).max().unwrap_or(0);
    let (tensor, copies) = (["HMMA", "HGMMA", "IMMA", "QGMMA"], ["LDGSTS", "UTMALDG"]);
    Census {
        instructions: code.len(),
        loops: loops.len(),
        tensor: of(code, &tensor),
        tensor_in_loop: most(&tensor),
        async_copies: of(code, &copies),
        async_copies_in_loop: most(&copies),
        local: of(code, &["LDL", "STL"]),
    }
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
    fn loops_lie_between_a_branch_back_and_its_target() {
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
