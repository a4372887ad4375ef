//! Configurations for sm_90a: what warpgroups take.

use super::{Config, Math, TENSOR};
use crate::Problem;
use crate::problem::Dims;
use crate::visibility::MaskKind;

/// What rows for sm_90a have in common. The first four warps copy.
const WARPGROUP: Config = Config { copy_warps: 4, query_stages: 2, turns: true, math: Math::Warpgroup, ..TENSOR };

/// For wide heads, which leave room for one tile of queries.
const WIDE: Config = Config { query_stages: 1, ..WARPGROUP };

#[rustfmt::skip] // One row per line.
pub const HOPPER: [Config; 14] = [
    Config { id: 10, rows: 128, keys: 128, warps: 12, stages: 2, ..WARPGROUP },
    Config { id: 11, rows: 256, keys: 64, warps: 20, stages: 5, stores_softmax_early: true, ..WARPGROUP },
    // For few queries: many blocks.
    Config { id: 12, rows: 64, keys: 128, warps: 8, stages: 4, ..WARPGROUP },
    Config { id: 13, rows: 192, keys: 80, warps: 16, stages: 3, ..WARPGROUP },
    // For causal masks: of the tiles at the diagonal, the first warpgroups see few.
    Config { id: 14, rows: 256, keys: 64, warps: 20, stages: 5, turns: false, stores_softmax_early: true, ..WARPGROUP },
    Config { id: 15, rows: 128, keys: 64, warps: 12, stages: 4, turns: false, ..WARPGROUP },
    // For heads of 256 columns; the second has registers for documents and packed sequences.
    Config { id: 16, rows: 128, keys: 80, warps: 12, stages: 2, ..WIDE },
    Config { id: 17, rows: 128, keys: 48, warps: 12, stages: 3, ..WIDE },
    // For heads of 192 with values of 128, and for heads of 192.
    Config { id: 18, rows: 128, keys: 128, warps: 12, stages: 2, ..WIDE },
    Config { id: 19, rows: 128, keys: 80, warps: 12, stages: 2, ..WARPGROUP },
    // Two blocks that read keys and values of a head once: like 10, 11, 13 and 16.
    Config { id: 24, rows: 128, keys: 128, warps: 12, stages: 2, cluster: 2, ..WARPGROUP },
    Config { id: 25, rows: 256, keys: 64, warps: 20, stages: 5, cluster: 2, stores_softmax_early: true, ..WARPGROUP },
    Config { id: 26, rows: 192, keys: 80, warps: 16, stages: 3, cluster: 2, ..WARPGROUP },
    Config { id: 27, rows: 128, keys: 80, warps: 12, stages: 2, cluster: 2, ..WIDE },
];

/// Queries of a warpgroup.
pub const ROWS: u32 = 64;

/// What a block may take on sm_90. CUDA C++ Programming Guide, "Compute Capabilities".
pub(super) const MAX_SHARED_BYTES_90: u32 = 227 * 1024;

/// What a thread of a warpgroup takes beside output, scores and weights: statistics, places, addresses. With 28 registers left, config 13 (with
/// queries) spills 16 bytes at D96; with 32, config 11 spills none at D64.
const OTHER_REGISTERS_90: u32 = 32;

/// What windows take besides: with nothing left, config 11 spills 20 bytes at D64; with 4, config 13 spills none at D128.
const WINDOW_REGISTERS_90: u32 = 4;

/// What queries take besides, where warps keep them in registers: with nothing left, 128 × 128 without turns spills 36 bytes at D192/128.
/// Without turns, by which ptxas orders what it does, more: with 4 left, 128 × 80 spills up to 104 bytes at D192.
const QUERY_REGISTERS_90: [u32; 2] = [12, 4];

/// What a thread takes beside fragments where a kernel is crowded: with 52 left, config 16 spills 16 bytes at D240.
const CROWDED_REGISTERS_90: u32 = 56;

impl Config {
    /// Warpgroups that multiply.
    pub const fn warpgroups(&self) -> u32 {
        self.computing_warps() / 4
    }

    /// Rows of keys and values that a copy brings: the blocks of a cluster share out those of a tile.
    pub const fn key_rows_of_copy(&self) -> u32 {
        self.keys / self.cluster
    }

    /// Whether each warpgroup leaves out the key tiles that its own queries do not see. It skips keys while it still holds the values of its last
    /// tile, so that the ring must have room for all of these.
    pub const fn skips(&self) -> bool {
        !self.turns && self.warpgroups() > 1 && (self.rows - ROWS).div_ceil(self.keys) + 2 <= self.stages
    }

    /// Registers of a thread that copies, and of one that multiplies: together what a block of so many threads is launched with.
    pub const fn role_registers(&self, crowded: bool) -> [u32; 2] {
        match (self.warpgroups(), crowded) {
            (1, false) => [40, 240],
            (1, true) => [56, 240],
            // With 24, who brings keys first and for two blocks spills 16 bytes.
            (2, false) if self.cluster > 1 && self.queries_leave_early() => [40, 232],
            (2, false) => [24, 240],
            (2, true) => [40, 232],
            (3, false) => [32, 160],
            (3, true) => [56, 152],
            (_, false) => [24, 112],
            (_, true) => [64, 104],
        }
    }

    /// Whether queries make room for the next ones before their output is complete.
    pub const fn queries_leave_early(&self) -> bool {
        self.query_stages == 1
    }

    /// Stages of the ring of queries, and rows of each.
    pub const fn query_tiles(&self) -> (u32, u32) {
        if self.queries_leave_early() { (self.warpgroups(), ROWS) } else { (self.query_stages, self.rows) }
    }

    /// The ring of queries with their notes, rings of keys and values, and two barriers for each stage.
    pub(super) const fn shared_bytes_of_rings(&self, dims: Dims) -> u32 {
        let (head, value) = (dims.head.next_multiple_of(64), dims.value.next_multiple_of(64));
        let (queries, rows) = self.query_tiles();
        let tiles = (queries * rows * head + self.stages * self.keys * (head + value)) * 2;
        tiles + 16 * (queries + 2 * self.stages) + 16 * queries
    }

    pub(super) const fn max_fragment_registers_90(&self, crowded: bool) -> u32 {
        self.role_registers(crowded)[1] - if crowded { CROWDED_REGISTERS_90 } else { OTHER_REGISTERS_90 }
    }

    /// Whether a warpgroup has registers for both ends of what a query sees.
    pub fn has_room_for_mask(&self, problem: &Problem) -> bool {
        let has_two_ends = matches!(problem.mask(), MaskKind::Window { .. });
        let taken = self.fragment_registers(problem.dims()) + OTHER_REGISTERS_90 + WINDOW_REGISTERS_90;
        self.math != Math::Warpgroup || !has_two_ends || taken <= self.role_registers(false)[1]
    }

    /// Whether warps keep their queries in registers, as [`Config::holds_queries`] has it of others.
    pub const fn warpgroups_hold_queries(&self, dims: Dims, crowded: bool) -> bool {
        let taken =
            self.fragment_registers(dims) + self.query_registers(dims) + QUERY_REGISTERS_90[self.turns as usize];
        taken <= self.max_fragment_registers_90(crowded)
    }
}
