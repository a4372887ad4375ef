//! How many blocks of a kernel share a multiprocessor.

use ptx::Target;

/// What a multiprocessor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    warps: u32,
    blocks: u32,
    /// Shared memory for all blocks, and the most that one may take.
    shared_bytes: u32,
    block_shared_bytes: u32,
}

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
const REGISTERS: u32 = 65536;
const WARP: u32 = 32;
/// Registers are given to a warp in units of so many. CUDA occupancy calculator, sm_80 to sm_90.
const REGISTER_UNIT: u32 = 256;
/// Shared memory is given to a block in units of so many bytes.
const SHARED_UNIT: u32 = 128;
/// What the system takes of each block's shared memory, from sm_80 on.
const RESERVED_SHARED_BYTES: u32 = 1024;
/// A multiprocessor has so many schedulers; registers are split among them.
const SCHEDULERS: u32 = 4;

fn limits(target: Target) -> Option<Limits> {
    let of = |warps, blocks, kib: u32| {
        Some(Limits { warps, blocks, shared_bytes: kib * 1024, block_shared_bytes: (kib - 1) * 1024 })
    };
    match target.sm {
        80 => of(64, 32, 164),
        86 => of(48, 16, 100),
        87 => of(48, 16, 164),
        89 => of(48, 24, 100),
        90 => of(64, 32, 228),
        _ => None,
    }
}

/// What a block needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub threads: u32,
    /// Per thread.
    pub registers: u32,
    pub shared_bytes: u32,
}

/// What of a multiprocessor the blocks fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Per multiprocessor; none of them runs if one does not fit.
    pub blocks: u32,
    pub warps: u32,
    pub most_warps: u32,
    /// The share of its warps, rounded down.
    pub percent: u32,
    /// What keeps another block out: `registers`, `shared memory`, `warps` or `blocks`, and more than one where they tie.
    pub limited_by: Vec<&'static str>,
}

/// Nothing for an unknown target.
pub fn of(target: Target, block: Block) -> Option<Occupancy> {
    let limits = limits(target)?;
    let warps = block.threads.div_ceil(WARP);
    let registers_per_warp = (block.registers * WARP).next_multiple_of(REGISTER_UNIT).max(REGISTER_UNIT);
    let warps_by_registers = REGISTERS / SCHEDULERS / registers_per_warp * SCHEDULERS;
    let shared = (block.shared_bytes + RESERVED_SHARED_BYTES).next_multiple_of(SHARED_UNIT);
    let fits = block.shared_bytes <= limits.block_shared_bytes;
    let most = [
        ("registers", warps_by_registers.checked_div(warps.next_multiple_of(SCHEDULERS)).unwrap_or(0)),
        ("shared memory", if fits { limits.shared_bytes / shared } else { 0 }),
        ("warps", limits.warps.checked_div(warps).unwrap_or(0)),
        ("blocks", limits.blocks),
    ];
    let blocks = most.iter().map(|(_, blocks)| *blocks).min().unwrap_or(0);
    let limited_by = most.iter().filter(|(_, most)| *most == blocks).map(|(name, _)| *name).collect();
    let percent = blocks * warps * 100 / limits.warps;
    Some(Occupancy { blocks, warps: blocks * warps, most_warps: limits.warps, percent, limited_by })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(sm: u32, threads: u32, registers: u32, shared_bytes: u32) -> Option<(u32, u32)> {
        let occupancy = of(Target { sm, specific: false }, Block { threads, registers, shared_bytes })?;
        Some((occupancy.blocks, occupancy.percent))
    }

    #[test]
    fn what_keeps_another_block_out_is_named() {
        let limit = |threads, registers, shared_bytes| {
            let occupancy = of(Target::SM_90, Block { threads, registers, shared_bytes });
            occupancy.map(|occupancy| occupancy.limited_by).unwrap_or_default()
        };
        assert_eq!(limit(128, 96, 0), ["registers"]);
        assert_eq!(limit(128, 96, 46080), ["shared memory"]);
        assert_eq!(limit(1024, 32, 0), ["registers", "warps"]);
        assert_eq!(limit(32, 8, 0), ["blocks"]);
        assert_eq!(limit(1024, 255, 0), ["registers"]);
    }

    #[test]
    fn the_scarcest_resource_decides() {
        assert_eq!(on(80, 128, 32, 0), Some((16, 100))); // warps
        assert_eq!(on(80, 128, 96, 0), Some((5, 31))); // registers: 5 blocks of 12288
        assert_eq!(on(80, 128, 96, 46080), Some((3, 18))); // shared memory: 3 of 46 KiB in 164
        assert_eq!(on(89, 128, 96, 46080), Some((2, 16)));
        assert_eq!(on(90, 128, 96, 46080), Some((4, 25)));
        assert_eq!(on(80, 32, 16, 0), Some((32, 50))); // blocks
    }

    #[test]
    fn a_block_that_does_not_fit_does_not_run() {
        assert_eq!(on(89, 128, 32, 100 * 1024), Some((0, 0)));
        assert_eq!(on(90, 1024, 255, 0), Some((0, 0)));
    }

    #[test]
    fn an_unknown_target_is_not_guessed() {
        assert_eq!(on(100, 128, 32, 0), None);
    }
}
