//! Kernel configurations: one row each. Tests of parity, emulation and text go through the table.

mod warpgroups;

pub use warpgroups::{HOPPER, ROWS};

use crate::Error;
use crate::Problem;
use crate::features::Features;
use crate::problem::{Dims, HEAD_DIMS};
use crate::visibility::MaskKind;

/// How a kernel cuts its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    pub id: u32,
    /// Queries of a block, of one head or several, and keys of one tile.
    pub rows: u32,
    pub keys: u32,
    pub warps: u32,
    /// Of these, the last ones that only copy; none: every warp copies and computes.
    pub copy_warps: u32,
    /// Queries of one warp.
    pub warp_rows: u32,
    /// Whose queries these are.
    pub heads: Heads,
    /// Tiles of keys, and of values, in shared memory.
    pub stages: u32,
    /// Tiles of queries in shared memory. Of a single one, every warpgroup has its rows to itself: they make room for the next as soon as it has
    /// scored their last keys, and the output goes to memory row by row.
    pub query_stages: u32,
    /// Whether warps hand over where the values were. It takes a barrier more, and no memory.
    pub merges_in_values: bool,
    /// Whether warpgroups take turns at the tensor cores. Otherwise each leaves key tiles out that its own queries do not see.
    pub turns: bool,
    /// Blocks that take neighbouring queries of a head at the same time, and bring its keys for each other: for problems without a mask.
    pub cluster: u32,
    /// Whether maximum and sum of a row go out while its output is still being summed: two registers less, and slower where they are not missed.
    /// Measured on an H200: 11 gains 1.8 % at D64 causal, S16384, where it would spill; 10, 13, 15 and 16 would lose 0.2 to 1.9.
    pub stores_softmax_early: bool,
    pub math: Math,
    /// Whether the kernel asserts that its own steps are sound: slower, and a failed assertion ends the launch.
    pub debug: bool,
    /// Blocks among which the keys of one block of queries are split. Above one, a second kernel joins what they find.
    pub splits: u32,
}

/// How heads that share keys divide their queries among blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heads {
    /// Each has blocks of its own, which read the keys for it alone.
    Apart,
    /// A block has queries of all of them, and reads the keys once.
    Together,
}

impl Heads {
    /// What blocks divide for so many queries: rows of one head, or of all those that share keys.
    pub fn rows(self, queries: u32, problem: &Problem) -> u32 {
        match self {
            Heads::Apart => queries,
            Heads::Together => queries.saturating_mul(problem.heads() / problem.kv_heads()),
        }
    }

    /// For how many heads they do so.
    pub fn count(self, problem: &Problem) -> u32 {
        match self {
            Heads::Apart => problem.heads(),
            Heads::Together => problem.kv_heads(),
        }
    }
}

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Math {
    /// Tensor cores.
    Tensor,
    /// Tensor cores of sm_90a, four warps at a time (wgmma), with copies of whole tiles (TMA).
    Warpgroup,
    /// Plain cores, one multiplication and addition at a time: what everything else is compared with.
    Scalar,
}

impl Math {
    pub const BY_NAME: [(&'static str, Math); 2] = [("tensor", Math::Tensor), ("scalar", Math::Scalar)];

    /// The one that has a name: which tensor cores they are, the configuration says.
    pub const fn named(self) -> Math {
        match self {
            Math::Tensor | Math::Warpgroup => Math::Tensor,
            Math::Scalar => Math::Scalar,
        }
    }

    pub fn by_name(name: &str) -> Option<Math> {
        Math::BY_NAME.iter().find(|(known, _)| *known == name).map(|(_, math)| *math)
    }
}

/// The one whose scalar variant is meant where nobody names one.
pub const BASELINE: u32 = 1;

/// The widest heads that every historic configuration serves.
const HISTORIC_DIMS: Dims = Dims { head: 128, value: 128 };

/// Ids up to this are those of an earlier project; the others are tuned.
pub const HISTORIC: u32 = 5;

/// What most rows have in common.
const TENSOR: Config = Config {
    id: 0,
    rows: 0,
    keys: 0,
    warps: 4,
    copy_warps: 0,
    warp_rows: 16,
    heads: Heads::Apart,
    stages: 2,
    query_stages: 1,
    merges_in_values: false,
    turns: false,
    cluster: 1,
    stores_softmax_early: false,
    math: Math::Tensor,
    debug: false,
    splits: 1,
};

/// What rows for few queries of heads that share keys have in common.
const TOGETHER: Config = Config { heads: Heads::Together, ..TENSOR };

#[rustfmt::skip] // One row per line.
pub const CONFIGS: [Config; 13] = [
    Config { id: 1, rows: 32, keys: 64, ..TENSOR },
    Config { id: 2, rows: 32, keys: 32, ..TENSOR },
    // Three row groups of two warps compute, and two warps copy.
    Config { id: 3, rows: 48, keys: 64, warps: 8, copy_warps: 2, merges_in_values: true, ..TENSOR },
    Config { id: 4, rows: 32, keys: 64, stages: 1, ..TENSOR },
    Config { id: 5, rows: 16, keys: 64, ..TENSOR },
    // For heads of any width: warps share no queries, so that none hands a wide output over.
    Config { id: 6, rows: 64, keys: 32, ..TENSOR },
    Config { id: 7, rows: 64, keys: 64, ..TENSOR },
    // For many queries: warps of 32 read keys and values half as often.
    Config { id: 8, rows: 128, keys: 64, warp_rows: 32, ..TENSOR },
    // For few queries: many blocks, and few passes.
    Config { id: 9, rows: 32, keys: 128, ..TENSOR },
    // For few queries of heads that share keys.
    Config { id: 20, rows: 16, keys: 64, merges_in_values: true, ..TOGETHER },
    Config { id: 21, rows: 16, keys: 64, merges_in_values: true, stages: 3, ..TOGETHER },
    Config { id: 22, rows: 16, keys: 128, merges_in_values: true, ..TOGETHER },
    Config { id: 23, rows: 64, keys: 64, ..TOGETHER },
];

/// Products take columns in sixteens.
pub const fn product_columns(columns: u32) -> u32 {
    columns.next_multiple_of(16)
}

/// What a block may take on an L4 (sm_89). CUDA C++ Programming Guide, "Compute Capabilities".
pub const MAX_SHARED_BYTES: u32 = 99 * 1024;

/// The same on sm_80, of whose instructions kernels are made.
const MAX_SHARED_BYTES_80: u32 = 163 * 1024;

/// What output, scores and weights may take of a thread's 255 registers, so that the rest (addresses, statistics, what is
/// loaded ahead) needs no stack. Measured with ptxas 13.0.
pub const MAX_FRAGMENT_REGISTERS: u32 = 224;

/// The same where a kernel keeps more in mind: where its sequence begins and ends, or who is in which document. At 208, config 8
/// spills up to 16 bytes (4 of them at D112).
const MAX_WHEN_CROWDED: u32 = 192;

/// The same with queries, if they are held all the time: the first to spill are those that would take 208.
const MAX_WITH_QUERIES: u32 = 192;

/// 32-bit registers of a processor, from sm_80 to sm_90. CUDA C++ Programming Guide, "Compute Capabilities".
const PROCESSOR_REGISTERS: u32 = 65536;

/// What a thread takes beside fragments, as ptxas 13.0 has it: 40 to 50.
const OTHER_REGISTERS: u32 = 50;

impl Config {
    pub fn by_id(id: u32) -> Option<Config> {
        Config::rows().find(|config| config.id == id)
    }

    /// Every row of the tables.
    pub fn rows() -> impl Iterator<Item = Config> {
        CONFIGS.into_iter().chain(HOPPER)
    }

    /// Every row of the tables, and the scalar variant of those that have one.
    pub fn all() -> impl Iterator<Item = Config> {
        Config::rows().chain(CONFIGS.into_iter().filter_map(|config| config.scalar()))
    }

    /// `1, 2, 3`: every number that there is, for those who gave another.
    pub fn ids() -> String {
        let mut ids: Vec<u32> = Config::rows().map(|config| config.id).collect();
        ids.sort_unstable();
        ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Whether a GPU of that compute capability runs it. Code for sm_90a runs on 9.0 and nowhere else, newer ones included (PTX ISA,
    /// ".target").
    pub const fn runs_on(&self, (major, minor): (u32, u32)) -> bool {
        match self.math {
            Math::Warpgroup => major == 9 && minor == 0,
            Math::Tensor | Math::Scalar => major >= 8,
        }
    }

    /// The same tiles with other math.
    pub fn with_math(self, math: Math) -> Result<Config, Error> {
        let variant = match math {
            _ if math == self.math => Some(self),
            // Those of sm_90a are of tensor cores, too.
            Math::Tensor => Config::by_id(self.id),
            Math::Warpgroup => None,
            Math::Scalar => self.scalar(),
        };
        variant.ok_or(Error::Math { id: self.id, last: HISTORIC })
    }

    /// The variant on plain cores, of the historic configurations: warps share no queries, and have as many each.
    pub const fn scalar(self) -> Option<Config> {
        if self.id > HISTORIC {
            return None;
        }
        let warp_rows = self.rows / self.computing_warps();
        Some(Config { warp_rows, merges_in_values: false, math: Math::Scalar, ..self })
    }

    /// The same with assertions.
    pub const fn debug(self) -> Config {
        Config { debug: true, ..self }
    }

    pub const fn threads(&self) -> u32 {
        self.warps * 32
    }

    /// Warps that multiply.
    pub const fn computing_warps(&self) -> u32 {
        self.warps - self.copy_warps
    }

    /// Groups of queries; each has as many computing warps as there are key groups.
    pub const fn row_groups(&self) -> u32 {
        self.rows / self.warp_rows
    }

    /// Warps that share their queries and split the keys of each tile.
    pub const fn key_groups(&self) -> u32 {
        self.computing_warps() / self.row_groups()
    }

    /// Keys of a tile that one warp multiplies with.
    pub const fn warp_keys(&self) -> u32 {
        self.keys / self.key_groups()
    }

    /// Queries, rings of keys and values in 16-bit elements, and, if it has memory of its own, what is handed over.
    pub const fn shared_bytes(&self, dims: Dims) -> u32 {
        if let Math::Warpgroup = self.math {
            return self.shared_bytes_of_rings(dims);
        }
        // Tiles have columns in 64s.
        let (head, value) = (dims.head.next_multiple_of(64), dims.value.next_multiple_of(64));
        let tiles = (self.rows * head + self.stages * self.keys * (head + value)) * 2;
        if self.merges_in_values { tiles } else { tiles + self.handed_over_bytes(dims) }
    }

    /// In f32: by warps that share queries an output of their rows, and of every 16 rows maximum and sum of two per
    /// lane; by lanes on plain cores the weights of their rows.
    const fn handed_over_bytes(&self, dims: Dims) -> u32 {
        match self.math {
            Math::Tensor => {
                (self.key_groups() - 1) * self.row_groups() * self.warp_rows * (product_columns(dims.value) + 8) * 4
            }
            Math::Scalar => self.rows * self.keys * 4,
            Math::Warpgroup => 0,
        }
    }

    /// What a block may take of shared memory. What few queries wait for is memory, and the more is under way the better: they take more where a
    /// GPU has it, and the planner knows how much that is.
    pub const fn max_shared_bytes(&self) -> u32 {
        match (self.math, self.heads) {
            (Math::Warpgroup, _) => warpgroups::MAX_SHARED_BYTES_90,
            (_, Heads::Together) => MAX_SHARED_BYTES_80,
            (_, Heads::Apart) => MAX_SHARED_BYTES,
        }
    }

    /// What a thread may take for output, scores and weights.
    pub const fn max_fragment_registers(&self, crowded: bool) -> u32 {
        match (self.math, crowded) {
            (Math::Warpgroup, _) => self.max_fragment_registers_90(crowded),
            (_, true) => MAX_WHEN_CROWDED,
            (_, false) => MAX_FRAGMENT_REGISTERS,
        }
    }

    /// Whether a block has room for heads of these columns.
    pub const fn fits(&self, dims: Dims) -> bool {
        self.shared_bytes(dims) <= self.max_shared_bytes()
            && self.fragment_registers(dims) <= self.max_fragment_registers(false)
    }

    /// Whether it computes what the problem asks for, and has the room that it takes.
    pub fn serves(&self, problem: &Problem) -> bool {
        let features = Features::of(problem);
        let has_room = self.has_room(problem.dims(), features.is_crowded()) && self.has_room_for_mask(problem);
        has_room && self.has_even_keys(problem, &features)
    }

    /// Whether blocks of a cluster would read the same keys.
    pub fn has_even_keys(&self, problem: &Problem, features: &Features) -> bool {
        self.cluster == 1 || (problem.mask() == MaskKind::None && !features.packed)
    }

    /// Whether its copies reach the tensors.
    pub const fn reaches(&self, features: &Features) -> bool {
        match self.math {
            Math::Warpgroup => !features.unmapped,
            Math::Tensor | Math::Scalar => true,
        }
    }

    /// Whether there is room for heads of these columns, and for what a crowded kernel keeps in mind besides.
    pub const fn has_room(&self, dims: Dims, crowded: bool) -> bool {
        self.fits(dims) && self.fragment_registers(dims) <= self.max_fragment_registers(crowded)
    }

    /// How many blocks are to fit on a processor of an L4: as many as have room for their shared memory and registers, up to
    /// four. Beyond that the assembler would save registers and spill.
    pub const fn blocks_per_processor(&self, dims: Dims) -> u32 {
        if let Math::Warpgroup = self.math {
            return 1;
        }
        let shared = MAX_SHARED_BYTES / self.shared_bytes(dims);
        let registers = PROCESSOR_REGISTERS / (self.threads() * self.registers(dims));
        let blocks = if shared < registers { shared } else { registers };
        if blocks < 1 {
            1
        } else if blocks < 4 {
            blocks
        } else {
            4
        }
    }

    /// What a thread takes, roughly.
    const fn registers(&self, dims: Dims) -> u32 {
        let queries =
            if matches!(self.math, Math::Tensor) && self.holds_queries(dims) { self.query_registers(dims) } else { 0 };
        let all = (self.fragment_registers(dims) + queries + OTHER_REGISTERS).next_multiple_of(8);
        if all < 255 { all } else { 255 }
    }

    /// Whether a warp keeps its queries in registers. Otherwise it reads them from shared memory for every tile of keys:
    /// their tile stays where it is in any case.
    pub const fn holds_queries(&self, dims: Dims) -> bool {
        self.fragment_registers(dims) + self.query_registers(dims) <= MAX_WITH_QUERIES
    }

    /// Of output, scores and weights. A thread has one in 32 of every 16 rows: half a register per column in f32, a quarter
    /// in 16 bits. On plain cores it has one in 32 of every row, and eight columns of its keys.
    pub const fn fragment_registers(&self, dims: Dims) -> u32 {
        if let Math::Scalar = self.math {
            return self.warp_rows * (dims.value.next_multiple_of(64) + self.keys) / 32 + 8 * self.keys / 32;
        }
        let scores_and_weights = self.warp_keys() / 2 + self.warp_keys() / 4;
        self.warp_rows / 16 * (product_columns(dims.value) / 2 + scores_and_weights)
    }

    const fn query_registers(&self, dims: Dims) -> u32 {
        self.warp_rows / 16 * product_columns(dims.head) / 4
    }

    /// Whether there is memory to hand over, its own or that of the values. It is tightest for narrow heads: maximum and sum
    /// are the same for all.
    const fn has_room_to_merge(&self, dims: Dims) -> bool {
        let values = self.stages * self.keys * dims.value.next_multiple_of(64) * 2;
        !self.merges_in_values || self.handed_over_bytes(dims) <= values
    }

    /// Warps divide rows and keys in sixteens, and every historic configuration serves heads of up to 128
    /// columns, the others of 64 at least.
    const fn is_sound(&self) -> bool {
        self.divides()
            && self.has_room_to_merge(Dims { head: 64, value: 64 })
            && self.fits(Dims { head: 64, value: 64 })
            && match self.scalar() {
                Some(scalar) => {
                    self.fits(HISTORIC_DIMS) && scalar.fits(HISTORIC_DIMS) && scalar.is_sound_on_plain_cores()
                }
                None => true,
            }
    }

    /// Whether its warps share out rows and keys without a rest: products take sixteen of each.
    pub const fn divides(&self) -> bool {
        if let Math::Scalar = self.math {
            return self.is_sound_on_plain_cores();
        }
        self.warps > self.copy_warps
            && self.stages > 0
            && self.warp_rows > 0
            && self.warp_rows.is_multiple_of(16)
            && self.rows >= self.warp_rows
            && self.rows.is_multiple_of(self.warp_rows)
            && self.computing_warps().is_multiple_of(self.row_groups())
            && self.keys > 0
            && self.keys.is_multiple_of(self.key_groups() * 16)
    }

    /// Warps divide rows, lanes keys, and a lane has numbers for at most eight rows.
    const fn is_sound_on_plain_cores(&self) -> bool {
        self.warps > self.copy_warps
            && self.stages > 0
            && self.rows == self.warp_rows * self.computing_warps()
            && self.keys > 0
            && self.keys.is_multiple_of(32)
            && self.warp_rows <= 8
    }
}

/// A row that asks for more than a block may have does not compile, nor a table that leaves a head without a row.
const _: () = {
    let widest = Dims { head: *HEAD_DIMS.end(), value: *HEAD_DIMS.end() };
    let (mut row, mut widest_fits) = (0, false);
    while row < CONFIGS.len() {
        assert!(CONFIGS[row].is_sound(), "a configuration does not fit");
        widest_fits |= CONFIGS[row].fits(widest);
        row += 1;
    }
    assert!(widest_fits, "no configuration fits the widest heads");
    row = 0;
    while row < HOPPER.len() {
        assert!(HOPPER[row].is_sound(), "a configuration for sm_90a does not fit");
        row += 1;
    }
};
