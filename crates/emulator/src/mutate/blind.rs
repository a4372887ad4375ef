//! What the checks do not watch. A mutant of a synchronisation that may order such things proves nothing by its silence.

use crate::checks::Check;
use ptx::forms::{Fence, Launch};
use ptx::{Instruction, Op};

/// What decides about a launch whether something in it escapes the checks.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Several clusters that can tell each other something.
    pub communicating: bool,
    /// Clusters of several blocks.
    pub clustered: bool,
}

/// Something that is not watched: where, what it is, and the check that will make the row say nothing.
struct Row {
    until: Option<&'static str>,
    concerns: fn(&Instruction, Surroundings) -> bool,
    what: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        until: None,
        concerns: |_, around| around.communicating,
        what: "accesses of clusters that talk to each other are not compared",
    },
    Row {
        until: Some("cluster-lifetime"),
        concerns: |_, around| around.clustered,
        what: "blocks of a cluster that end early are not watched",
    },
    Row {
        until: None,
        concerns: |instruction, _| instruction.op() == Op::Launch(Launch::WaitForGrids),
        what: "what earlier grids do meanwhile is not watched",
    },
    Row {
        until: None,
        concerns: |instruction, _| instruction.op() == Op::Fence(Fence::Alias),
        what: "aliases of one address are not watched",
    },
];

/// What this instruction may order and no check watches.
pub fn spot(instruction: &Instruction, around: Surroundings) -> Option<&'static str> {
    let waits = |row: &Row| row.until.and_then(Check::find).is_none();
    let unwatched = |row: &&Row| waits(row) && (row.concerns)(instruction, around);
    ROWS.iter().find(unwatched).map(|row| row.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_of_blocks_that_know_nothing_of_each_other_is_watched() {
        let barrier =
            Instruction::new("bar.warp.sync", vec![ptx::Operand::Immediate(ptx::Immediate::Integer(-1))]).unwrap();
        let alone = Surroundings { communicating: false, clustered: false };
        assert_eq!(spot(&barrier, alone), None);
        assert!(spot(&barrier, Surroundings { communicating: true, ..alone }).is_some());
        let wait = Instruction::new("griddepcontrol.wait", vec![]).unwrap();
        assert!(spot(&wait, alone).is_some());
    }
}
