//! Kernel configurations: one row each. Tests of parity, emulation and text go through the table.

/// How a kernel cuts its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub id: u32,
    /// Queries of a block, and keys of one tile.
    pub rows: u32,
    pub keys: u32,
    pub warps: u32,
    /// Tiles of keys, and of values, in shared memory.
    pub stages: u32,
}

#[rustfmt::skip] // One row per line.
pub const CONFIGS: [Config; 4] = [
    Config { id: 1, rows: 32, keys: 64, warps: 4, stages: 2 },
    Config { id: 2, rows: 32, keys: 32, warps: 4, stages: 2 },
    Config { id: 4, rows: 32, keys: 64, warps: 4, stages: 1 },
    Config { id: 5, rows: 16, keys: 64, warps: 4, stages: 2 },
];

/// Head dimensions that each configuration is built for.
pub const HEAD_DIMS: [u32; 15] = [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128];

/// Products take columns in sixteens.
pub const fn product_columns(head_dim: u32) -> u32 {
    head_dim.next_multiple_of(16)
}

/// What a block may take on an L4 (sm_89). CUDA C++ Programming Guide, "Compute Capabilities".
const MAX_SHARED_BYTES: u32 = 99 * 1024;

impl Config {
    pub fn by_id(id: u32) -> Option<&'static Config> {
        CONFIGS.iter().find(|config| config.id == id)
    }

    pub const fn threads(&self) -> u32 {
        self.warps * 32
    }

    /// Groups of 16 queries; each has as many warps as there are key groups.
    pub const fn row_groups(&self) -> u32 {
        self.rows / 16
    }

    /// Warps that share 16 queries and split the keys of each tile.
    pub const fn key_groups(&self) -> u32 {
        self.warps / self.row_groups()
    }

    /// Queries, rings of keys and values in 16-bit elements, and what warps hand over at the end in f32: an output of
    /// 16 rows, and maximum and sum of two rows per lane.
    pub const fn shared_bytes(&self, head_dim: u32) -> u32 {
        // Tiles have columns in 64s.
        let tiles = (self.rows + 2 * self.stages * self.keys) * head_dim.next_multiple_of(64) * 2;
        let handed_over = (self.key_groups() - 1) * self.row_groups() * (16 * product_columns(head_dim) + 32 * 4) * 4;
        tiles + handed_over
    }

    /// How many blocks are to fit on a processor of an L4: as many as have room for their shared memory, up to four. Beyond
    /// that the assembler would save registers and spill.
    pub const fn blocks_per_processor(&self, head_dim: u32) -> u32 {
        let blocks = MAX_SHARED_BYTES / self.shared_bytes(head_dim);
        if blocks < 4 { blocks } else { 4 }
    }

    const fn fits(&self, head_dim: u32) -> bool {
        self.rows.is_multiple_of(16)
            && self.warps.is_multiple_of(self.row_groups())
            && self.keys.is_multiple_of(self.key_groups() * 16)
            && self.shared_bytes(head_dim) <= MAX_SHARED_BYTES
    }
}

/// A row that asks for more than a block may have does not compile.
const _: () = {
    let mut row = 0;
    while row < CONFIGS.len() {
        let mut dim = 0;
        while dim < HEAD_DIMS.len() {
            assert!(CONFIGS[row].fits(HEAD_DIMS[dim]), "a configuration does not fit");
            dim += 1;
        }
        row += 1;
    }
};
