//! What the checks do not watch. A mutant of a synchronisation that may order such things proves nothing by its silence.
//!
//! A row goes away with the check that it waits for.

use crate::checks::Check;
use ptx::forms::{BulkCopy, Fence, Launch};
use ptx::{Instruction, Op};

/// What decides about a launch whether something in it escapes the checks.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Several clusters that can tell each other something.
    pub communicating: bool,
    /// Clusters of several blocks.
    pub clustered: bool,
}

/// Something that is not watched: until this check exists, where, and what it is.
struct Row {
    check: &'static str,
    concerns: fn(&Instruction, Surroundings) -> bool,
    what: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        check: "wgmma-registers",
        concerns: |instruction, _| matches!(instruction.op(), Op::Wgmma(_)),
        what: "registers of products in flight are not watched",
    },
    Row {
        check: "race-global",
        concerns: |_, around| around.communicating,
        what: "accesses of different clusters are not compared",
    },
    Row {
        check: "cluster-lifetime",
        concerns: |_, around| around.clustered,
        what: "blocks of a cluster that end early are not watched",
    },
    Row {
        check: "bulk-leak",
        concerns: |instruction, _| matches!(instruction.op(), Op::BulkCopy(BulkCopy::WaitGroup | BulkCopy::Commit)),
        what: "bulk copies in flight at the exit are not watched",
    },
    Row {
        check: "grid-dependency",
        concerns: |instruction, _| instruction.op() == Op::Launch(Launch::WaitForGrids),
        what: "what earlier grids do meanwhile is not watched",
    },
    Row {
        check: "proxy-alias",
        concerns: |instruction, _| instruction.op() == Op::Fence(Fence::Alias),
        what: "aliases of one address are not watched",
    },
];

/// What this instruction may order and no check watches.
pub fn spot(instruction: &Instruction, around: Surroundings) -> Option<&'static str> {
    let unwatched = |row: &&Row| Check::find(row.check).is_none() && (row.concerns)(instruction, around);
    ROWS.iter().find(unwatched).map(|row| row.what)
}
