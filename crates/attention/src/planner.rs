//! Which configuration computes a problem: a pure function of the problem and the GPU's figures.
//!
//! Nothing is timed at run time: the same problem on the same kind of GPU always gets the same kernel, so that its results
//! are the same to the bit, today and tomorrow.
//!
//! ```
//! use attention::planner::{Gpu, plan};
//!
//! let long = "B2 H8 S8192 D128 causal".parse()?;
//! let short = "B1 H8 S512 D64 causal".parse()?;
//! assert_eq!(plan(&long, &Gpu::A100)?.id, 8);
//! assert_eq!(plan(&short, &Gpu::A100)?.id, 9);
//! // An H200 has instructions of its own, and kernels that are made of them.
//! assert_eq!(plan(&long, &Gpu::H200)?.id, 13);
//! // One block for each of 8 heads would leave 124 of 132 processors idle: the keys of each are split among many.
//! let decode = "B1 H8 Sq1 Sk8192 D128".parse()?;
//! assert_eq!(plan(&decode, &Gpu::H200)?.splits, 16);
//! # Ok::<(), attention::Error>(())
//! ```

mod splits;

use std::fmt;

use crate::configs::{Config, Heads};
use crate::features::Features;
use crate::kernels::check_kind;
use crate::visibility::MaskKind;
use crate::{Error, Problem};

/// What the planner knows of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gpu {
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub processors: u32,
    /// The most shared memory that a block can have.
    pub shared_bytes: u32,
}

/// Kernels are made of instructions that came with sm_80: `cp.async`, and products of bf16.
pub const OLDEST: (u32, u32) = (8, 0);

// Processors: NVIDIA's data sheets. Shared memory: CUDA C++ Programming Guide, "Compute Capabilities".
impl Gpu {
    pub const A100: Gpu = Gpu { capability: (8, 0), processors: 108, shared_bytes: 163 * 1024 };
    pub const A10: Gpu = Gpu { capability: (8, 6), processors: 72, shared_bytes: 99 * 1024 };
    pub const L4: Gpu = Gpu { capability: (8, 9), processors: 58, shared_bytes: 99 * 1024 };
    pub const H200: Gpu = Gpu { capability: (9, 0), processors: 132, shared_bytes: 227 * 1024 };

    pub const B200: Gpu = Gpu { capability: (10, 0), processors: 148, shared_bytes: 227 * 1024 };
    pub const RTX_5090: Gpu = Gpu { capability: (12, 0), processors: 170, shared_bytes: 99 * 1024 };

    /// The one on which the thresholds were measured.
    pub const MEASURED: Gpu = Gpu::H200;

    /// The one that stands for its architecture where no GPU is at hand.
    pub const BY_ARCH: [(&'static str, Gpu); 6] = [
        ("sm_80", Gpu::A100),
        ("sm_86", Gpu::A10),
        ("sm_89", Gpu::L4),
        ("sm_90", Gpu::H200),
        ("sm_100", Gpu::B200),
        ("sm_120", Gpu::RTX_5090),
    ];

    /// The GPU that stands for an architecture.
    pub fn by_arch(arch: &str) -> Option<Gpu> {
        Gpu::BY_ARCH.iter().find(|(name, _)| *name == arch).map(|(_, gpu)| *gpu)
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.capability;
        write!(formatter, "sm_{major}{minor} with {} processors", self.processors)
    }
}

/// When to take a configuration.
struct Row {
    config: u32,
    mask: Seen,
    /// Columns of the widest of Q, K, V and O, and of V and O.
    most_columns: u32,
    most_value_columns: u32,
    /// Of a head; of packed sequences, all their rows together: how long each is, a GPU may be the only one to know.
    queries: [u32; 2],
    /// Only for callers whose keys can be split, and if they are: of so many at least. Anybody's, if there is none.
    shared_keys: Option<u32>,
    /// The most queries of all heads that share keys, if they are to fill one tile.
    most_together: Option<u32>,
    /// Blocks for every hundred processors: below a hundred some are idle, above it some have several.
    blocks: [u32; 2],
}

/// Which masks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Any,
    /// All queries see equally many keys.
    Evenly,
    Unevenly,
}

const ANY: u32 = u32::MAX;

/// What most rows ask for.
const ANYTHING: Row = Row {
    config: 0,
    mask: Seen::Any,
    most_columns: 0,
    most_value_columns: ANY,
    queries: [0, ANY],
    shared_keys: None,
    most_together: None,
    blocks: [0, ANY],
};

/// Of a row that is for keys in shares. Measured: five.
const LEAST_SHARES: u32 = 2;

/// More than half of the processors have a block.
const HALF: u32 = 51;

/// For GPUs that run code for sm_90a: the first row that holds is taken, and where none does, [`ROWS`] are asked. Measured on an H200 with
/// batches that fill it (at D64 and S512, B32 H32), and B2 H8 S512 D64. A model, not measured: lengths in between,
/// other widths, and that a processor is better off with one small block than another with a large one and it with none.
#[rustfmt::skip] // One row per line.
const HOPPER_ROWS: [Row; 19] = [
    // Measured: 100 queries of 24 heads with 8,192 keys at D64, in five shares. A model: other lengths, and heads of up to 128 columns.
    Row { config: 10, most_columns: 128, queries: [65, ANY], shared_keys: Some(4096), blocks: [0, HALF - 1], ..ANYTHING },
    // A model: one block of 64 or 128 queries has all that there are.
    Row { config: 12, most_columns: 64, queries: [17, 64], blocks: [HALF, ANY], ..ANYTHING },
    Row { config: 15, most_columns: 128, queries: [17, 128], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: B2 H8 S512 D64, with 128 blocks for 132 processors.
    Row { config: 12, most_columns: 64, queries: [17, ANY], blocks: [HALF, 100], ..ANYTHING },
    // A model: the same with blocks of 128.
    Row { config: 10, mask: Seen::Evenly, most_columns: 128, queries: [17, ANY], blocks: [HALF, 100], ..ANYTHING },
    Row { config: 15, mask: Seen::Unevenly, most_columns: 128, queries: [17, ANY], blocks: [HALF, 100], ..ANYTHING },
    // Measured: without a mask from S512 to S16384.
    Row { config: 11, mask: Seen::Evenly, most_columns: 64, queries: [17, ANY], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: causal, from S512 to S2048.
    Row { config: 14, mask: Seen::Unevenly, most_columns: 64, queries: [17, 2048], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: causal, from S4096 to S16384.
    Row { config: 11, mask: Seen::Unevenly, most_columns: 64, queries: [2049, ANY], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: B1 H8 S4096 causal, and B4 H16 with 512 queries and 4,096 keys: two blocks of 128 for each processor, where those of 192 would
    // leave every second one idle half of the time.
    Row { config: 10, most_columns: 128, queries: [129, ANY], blocks: [HALF, 200], ..ANYTHING },
    // Measured: causal, S512.
    Row { config: 15, mask: Seen::Unevenly, most_columns: 128, queries: [17, 512], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: causal, S1024 and S2048.
    Row { config: 10, mask: Seen::Unevenly, most_columns: 128, queries: [513, 2048], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: without a mask, S1024 alone.
    Row { config: 10, mask: Seen::Evenly, most_columns: 128, queries: [513, 1024], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: without a mask S512 and S2048 to S16384, causal from S4096 on.
    Row { config: 13, most_columns: 128, queries: [17, ANY], blocks: [HALF, ANY], ..ANYTHING },
    // A model: too few blocks of 192.
    Row { config: 10, most_columns: 128, queries: [17, ANY], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: heads of 192 columns, and of 192 with values of 128, at S2048 and S8192, with and without a mask. Who has no registers for what
    // is asked takes the next.
    Row { config: 18, most_columns: 192, most_value_columns: 128, queries: [17, ANY], blocks: [HALF, ANY], ..ANYTHING },
    Row { config: 19, most_columns: 192, queries: [17, ANY], blocks: [HALF, ANY], ..ANYTHING },
    // Measured: heads of 256 columns, S2048 and S16384.
    Row { config: 16, most_columns: 256, queries: [17, ANY], blocks: [HALF, ANY], ..ANYTHING },
    // A model: what is left has registers for documents and packed sequences.
    Row { config: 17, most_columns: 256, queries: [17, ANY], blocks: [HALF, ANY], ..ANYTHING },
];

/// For all others. The first row that holds is taken. Measured on an H200; that the same order holds on the others is a model
/// (their own processors and shared memory, the same thresholds) and not measured.
#[rustfmt::skip] // One row per line.
const ROWS: [Row; 10] = [
    // Measured with one query of 512 heads and 4,096 keys, D64: four small blocks share a processor, where three of the next kind would come twice.
    Row { config: 21, most_columns: 64, queries: [0, 16], most_together: Some(16), blocks: [301, 400], ..ANYTHING },
    // A model: few queries wait for memory, and heads that share keys read them once; 128 of narrow heads at a time.
    Row { config: 22, most_columns: 64, queries: [0, 16], most_together: Some(16), ..ANYTHING },
    // Measured with one query, of 8 to 512 heads, D128: three stages, so that one block has as many bytes under way as its processor is to have.
    Row { config: 21, most_columns: 128, queries: [0, 16], most_together: Some(16), ..ANYTHING },
    // A model: the same where shared memory is short.
    Row { config: 20, most_columns: 256, queries: [0, 16], most_together: Some(16), ..ANYTHING },
    // A model: more heads or queries, in as few blocks as they need.
    Row { config: 23, most_columns: 128, queries: [0, 16], ..ANYTHING },
    // Measured with one query: rows without a query cost time, and 128 keys at a time less of it.
    Row { config: 9, most_columns: 64, queries: [0, 32], ..ANYTHING },
    // Measured: warps of 32 queries read keys and values half as often; the fastest as soon as two blocks share a processor.
    Row { config: 8, most_columns: 128, blocks: [200, ANY], ..ANYTHING },
    // Measured: few queries and narrow heads: many blocks, and few passes over the keys.
    Row { config: 9, most_columns: 64, ..ANYTHING },
    // Measured: the same for wide heads, where 128 keys at a time would leave a processor with a single block.
    Row { config: 7, most_columns: 128, ..ANYTHING },
    // Measured: the one that has room for heads of any width. Its tiles are the smallest, too (config 1 takes more than
    // config 7), so that it is what is left where shared memory is short; that is not measured.
    Row { config: 6, most_columns: 256, ..ANYTHING },
];

/// The configuration for a problem on a GPU.
pub fn plan(problem: &Problem, gpu: &Gpu) -> Result<Config, Error> {
    plan_features(problem, &Features::of(problem), gpu)
}

/// The same where more is asked for than the problem says.
pub fn plan_features(problem: &Problem, features: &Features, gpu: &Gpu) -> Result<Config, Error> {
    let config = choose(problem, features, gpu, &|config| splits::splits(config, problem, gpu))?;
    Ok(Config { splits: splits::splits(&config, problem, gpu), ..config })
}

/// The same for callers without memory for the parts of split keys.
pub fn plan_unsplit(problem: &Problem, features: &Features, gpu: &Gpu) -> Result<Config, Error> {
    choose(problem, features, gpu, &|_| 1)
}

/// `splits`: into how many shares a configuration's keys would be split.
fn choose(problem: &Problem, features: &Features, gpu: &Gpu, splits: &dyn Fn(&Config) -> u32) -> Result<Config, Error> {
    check_kind(problem.dtype(), problem.dims())?;
    let refused = || Error::Unplanned { problem: problem.to_string(), gpu: gpu.to_string() };
    let suits = |row: &&Row| row.is_of(problem);
    let has = |row: &Row| {
        let holds = |config: &Config| {
            let shares = |least| problem.keys() >= least && !features.packed && splits(config) >= LEAST_SHARES;
            row.holds(config, problem, features, gpu) && row.shared_keys.is_none_or(shares)
        };
        Config::by_id(row.config).filter(holds)
    };
    // Blocks that stay look at every tile that there may be, one after the other.
    let hopper = HOPPER_ROWS.iter().filter(|_| !features.sparse);
    hopper.chain(&ROWS).filter(suits).find_map(has).ok_or_else(refused)
}

impl Row {
    /// What the problem alone decides: a call has no time to look at every configuration.
    fn is_of(&self, problem: &Problem) -> bool {
        let (dims, [least, most]) = (problem.dims(), self.queries);
        dims.head.max(dims.value) <= self.most_columns
            && dims.value <= self.most_value_columns
            && (least..=most).contains(&problem.q_shape().rows)
            && self.mask.holds(problem.mask())
            && self.most_together.is_none_or(|most| Heads::Together.rows(problem.q_shape().rows, problem) <= most)
    }

    fn holds(&self, config: &Config, problem: &Problem, features: &Features, gpu: &Gpu) -> bool {
        let (dims, [least, most]) = (problem.dims(), self.blocks);
        let blocks = || blocks(config, problem).saturating_mul(100);
        let percent = |percent: u32| u64::from(percent) * u64::from(gpu.processors);
        config.runs_on(gpu.capability)
            && config.reaches(features)
            && (percent(least)..=percent(most)).contains(&blocks())
            && config.has_room(dims, features.is_crowded())
            && config.has_room_for_mask(problem)
            && config.has_even_keys(problem, features)
            && config.shared_bytes(dims) <= gpu.shared_bytes
    }
}

impl Seen {
    fn holds(self, mask: MaskKind) -> bool {
        match self {
            Seen::Any => true,
            Seen::Evenly => mask == MaskKind::None,
            Seen::Unevenly => mask != MaskKind::None,
        }
    }
}

/// Of packed sequences as many as all their rows fill, or one for each: how long each of them is, a GPU may be the only one to
/// know.
fn blocks(config: &Config, problem: &Problem) -> u64 {
    let q = problem.q_shape();
    let sequences = problem.packed().map_or(1, |_| problem.batch());
    let rows = config.heads.rows(q.rows, problem);
    [rows.div_ceil(config.rows).max(sequences), config.heads.count(problem), q.batch]
        .map(u64::from)
        .into_iter()
        .fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configs::Math;
    use crate::kernels::MAX_SPLITS;
    use crate::problem::HEAD_DIMS;

    fn planned(problem: &str, gpu: &Gpu) -> u32 {
        plan(&problem.parse().unwrap(), gpu).unwrap().id
    }

    /// An H200 as the kernels of sm_80 see it, whose rows were measured there.
    const PLAIN: Gpu = Gpu { capability: (8, 0), ..Gpu::H200 };

    #[test]
    fn many_queries_go_in_blocks_of_128() {
        // 264 blocks are two for each of 132 processors: 33 heads of 8 blocks.
        assert_eq!(planned("B1 H33 S1024 D128 causal", &PLAIN), 8);
        assert_eq!(planned("B1 H33 S897 D128 causal", &PLAIN), 8);
        assert_eq!(planned("B1 H33 S896 D128 causal", &PLAIN), 7);
        assert_eq!(planned("B1 H32 S1024 D128 causal", &PLAIN), 7);
    }

    #[test]
    fn the_number_of_processors_decides() {
        assert_eq!(planned("B1 H32 S1024 D64", &PLAIN), 9);
        assert_eq!(planned("B1 H32 S1024 D64", &Gpu::A100), 8);
        assert_eq!(planned("B1 H15 S1024 D64", &Gpu::L4), 8);
        assert_eq!(planned("B1 H15 S1024 D64", &Gpu::A10), 9);
    }

    /// What was measured on an H200, at every length of the grid.
    #[test]
    fn an_h200_gets_what_was_fastest_there() {
        let fastest = |mask: &str, columns: u32| {
            [512, 1024, 2048, 4096, 8192, 16384].map(|rows: u32| {
                planned(&format!("B{} H{} S{rows} D{columns} {mask}", 16384 / rows, 2048 / columns), &Gpu::H200)
            })
        };
        assert_eq!(fastest("full", 64), [11; 6]);
        assert_eq!(fastest("causal", 64), [14, 14, 14, 11, 11, 11]);
        assert_eq!(fastest("full", 128), [13, 10, 13, 13, 13, 13]);
        assert_eq!(fastest("causal", 128), [15, 10, 10, 13, 13, 13]);
        assert_eq!(planned("B2 H8 S512 D64", &Gpu::H200), 12);
        assert_eq!(planned("B2 H8 S512 D64 causal", &Gpu::H200), 12);
        assert_eq!(planned("B1 H8 S4096 D128 causal", &Gpu::H200), 10);
        assert_eq!(planned("B4 H16 Sq512 Sk4096 D128", &Gpu::H200), 10);
        assert_eq!(planned("B2 H5 S4097 D128 causal", &Gpu::H200), 13);
    }

    #[test]
    fn few_blocks_share_many_keys_on_an_h200() {
        let of = |text: &str| {
            let Config { id, splits, .. } = plan(&text.parse().unwrap(), &Gpu::H200).unwrap();
            (id, splits)
        };
        assert_eq!(of("B2 H12 Sq100 Sk8192 D64"), (10, 5));
        assert_eq!(of("B1 H8 Sq1000 Sk8192 D128 causal"), (10, 2));
        assert_eq!(of("B2 H12 Sq100 Sk4095 D64").0, 9, "fewer keys");
        assert_eq!(of("B1 H1 S8192 D64 window100/0").0, 12, "keys of a window are few");
        let unsplit = plan_unsplit(&"B2 H12 Sq100 Sk8192 D64".parse().unwrap(), &Features::default(), &Gpu::H200);
        assert_eq!(unsplit.unwrap().id, 9, "nobody joins the shares");
        assert_eq!(of("B2 H12 Sq64 Sk8192 D64").0, 9, "fewer queries");
        assert_eq!(of("H12 Sq100,100 Sk8192,8192 D64").1, 1, "packed sequences");
        assert_eq!(of("B16 H32 Sq1 Sk4096 D64"), (21, 1));
        assert_eq!(of("B12 H32 Sq1 Sk4096 D64").0, 22);
    }

    #[test]
    fn other_heads_go_with_the_next_wider_that_was_measured() {
        assert_eq!(planned("B4 H32 S4096 D40", &Gpu::H200), 11);
        assert_eq!(planned("B4 H32 S4096 D64/72", &Gpu::H200), 13);
        assert_eq!(planned("B4 H32 S4096 D96 causal", &Gpu::H200), 13);
    }

    #[test]
    fn wide_heads_have_kernels_of_their_own() {
        assert_eq!(planned("B4 H32 S4096 D192/128", &Gpu::H200), 18);
        assert_eq!(planned("B4 H32 S4096 D128/192 causal", &Gpu::H200), 19);
        assert_eq!(planned("B4 H32 S4096 D136", &Gpu::H200), 19);
        assert_eq!(planned("B4 H32 S4096 D192 causal documents", &Gpu::H200), 19);
        assert_eq!(planned("B4 H32 S4096 D256 window100/30", &Gpu::H200), 16);
        assert_eq!(planned("B4 H32 S4096 D256 causal documents", &Gpu::H200), 17);
        // Too few blocks, and too few queries.
        assert_eq!(planned("B1 H8 S1024 D256", &Gpu::H200), 6);
        assert_eq!(planned("B64 H32 Sq16 Sk4096 D256", &Gpu::H200), 20);
    }

    /// Blocks of 64, then of 128, then as large as they are.
    #[test]
    fn every_processor_has_a_block_before_one_has_a_large_one() {
        let by_heads = |heads: u32| planned(&format!("B1 H{heads} S512 D64"), &Gpu::H200);
        assert_eq!([8, 9, 16, 17, 33, 34].map(by_heads), [9, 12, 12, 10, 10, 11]);
        assert_eq!(planned("B1 H1000 Sq64 Sk512 D64", &Gpu::H200), 12);
        assert_eq!(planned("B1 H1000 Sq128 Sk512 D64", &Gpu::H200), 15);
        assert_eq!(planned("B1 H64 S128 D128", &Gpu::H200), 7);
    }

    /// Few queries with many keys, packed sequences each of which may be as long as all, and tensors that no tensor map describes.
    #[test]
    fn the_rest_stays_with_the_kernels_of_sm_80() {
        assert_eq!(planned("B64 H32 Sq16 Sk4096 D128", &Gpu::H200), 21);
        let problem = "B4 H32 S4096 D64".parse().unwrap();
        let planned_with = |features| plan_features(&problem, &features, &Gpu::H200).unwrap().id;
        assert_eq!(planned_with(Features { unmapped: true, ..Features::default() }), 8);
        assert_eq!(planned_with(Features { packed: true, sparse: true, ..Features::default() }), 8);
        assert_eq!(planned_with(Features { packed: true, ..Features::default() }), 13);
        for problem in ["alibi", "softcap30", "sinks", "documents", "window100/0"]
            .map(|feature| format!("B4 H32 S4096 D64 {feature}"))
            .into_iter()
            .chain(["H32 S4096,100 D64".into(), "H32 S4096,100 D256 causal".into()])
        {
            assert_eq!(plan(&problem.parse().unwrap(), &Gpu::H200).unwrap().math, Math::Warpgroup, "{problem}");
        }
    }

    /// Code for sm_90a runs on no newer GPU, either.
    #[test]
    fn no_other_gpu_gets_code_for_sm_90a() {
        for (arch, gpu) in Gpu::BY_ARCH {
            let config = plan(&"B4 H32 S4096 D64".parse().unwrap(), &gpu).unwrap();
            assert_eq!(config.math == Math::Warpgroup, arch == "sm_90", "{arch}");
        }
    }

    /// 33 heads of 1,024 rows together, in whatever sequences.
    #[test]
    fn packed_sequences_count_by_their_rows() {
        assert_eq!(planned("H33 S1000,24 D64", &PLAIN), 8);
        assert_eq!(planned("H33 S896,1 D64", &PLAIN), 8);
        assert_eq!(planned("H33 S895,1 D64", &PLAIN), 9);
        assert_eq!(splits(&format!("B64 H8 Sq{} Sk{} D128", ["1"; 64].join(","), ["4096"; 64].join(",")), &PLAIN), 1);
    }

    /// Config 8 would spill, whether or not the problem says that there are sequences in it.
    #[test]
    fn packed_sequences_leave_fewer_registers() {
        let problem = "B1 H33 S1024 D128".parse().unwrap();
        let planned_with = |features| plan_unsplit(&problem, &features, &PLAIN).unwrap().id;
        assert_eq!(planned_with(Features::default()), 8);
        assert_eq!(planned_with(Features { packed: true, ..Features::default() }), 7);
        assert_eq!(planned("H33 S1000,24 D128", &PLAIN), 7);
    }

    #[test]
    fn few_queries_go_by_the_width_of_the_heads() {
        assert_eq!(planned("B1 H8 Sq1 Sk4096 D64", &Gpu::H200), 22);
        assert_eq!(planned("B1 H8 Sq16 Sk4096 D64/72", &Gpu::H200), 21);
        assert_eq!(planned("B64 H8 Sq16 Sk4096 D128", &Gpu::H200), 21);
        assert_eq!(planned("B64 H8 Sq16 Sk4096 D136", &Gpu::H200), 20);
        assert_eq!(planned("B64 H8 Sq16 Sk4096 D128", &Gpu::L4), 20);
        assert_eq!(planned("B64 H8 Sq16 Sk4096 D256", &Gpu::L4), 6);
        assert_eq!(planned("B1 H8 Sq17 Sk4096 D128", &Gpu::H200), 7);
        assert_eq!(planned("B64 H8 Sq32 Sk4096 D64", &PLAIN), 9);
        assert_eq!(planned("B64 H8 Sq33 Sk4096 D64", &PLAIN), 8);
        assert_eq!(planned("B8 H64 S4096 D192/128", &PLAIN), 6);
    }

    /// Sixteen rows are four queries of four heads, or one of sixteen.
    #[test]
    fn heads_that_share_keys_fill_a_tile_together() {
        let by_queries = |queries: u32| planned(&format!("B1 H32/8 Sq{queries} Sk8192 D128"), &Gpu::H200);
        assert_eq!([1, 4, 5, 16, 17].map(by_queries), [21, 21, 23, 23, 7]);
        assert_eq!(planned("B1 H16/1 Sq1 Sk8192 D128", &Gpu::H200), 21);
        assert_eq!(planned("B1 H17/1 Sq1 Sk8192 D128", &Gpu::H200), 23);
        assert_eq!(planned("B1 H128/1 Sq16 Sk8192 D64", &Gpu::H200), 23);
        assert_eq!(planned("B1 H128/1 Sq1 Sk8192 D192/128", &Gpu::H200), 6);
        for row in ROWS {
            let config = Config::by_id(row.config).unwrap();
            assert_eq!(
                row.most_together.is_some(),
                config.heads == Heads::Together && config.rows == 16,
                "{}",
                config.id
            );
        }
    }

    #[test]
    fn a_gpu_with_little_shared_memory_takes_smaller_tiles() {
        let small = Gpu { shared_bytes: 64 * 1024, ..Gpu::L4 };
        assert_eq!(planned("B1 H8 S512 D128", &small), 6);
        let smaller = Gpu { shared_bytes: 48 * 1024, ..Gpu::L4 };
        assert_eq!(planned("B8 H64 S4096 D64", &smaller), 8);
        assert_eq!(planned("B1 H8 S512 D64", &smaller), 7);
    }

    fn splits(problem: &str, gpu: &Gpu) -> u32 {
        plan(&problem.parse().unwrap(), gpu).unwrap().splits
    }

    /// Three stages of 64 keys take 100 KiB, and 64 × 64 tiles 80: two blocks of an H200, one of an L4 (of two stages).
    #[test]
    fn keys_are_split_where_processors_are_idle() {
        assert_eq!(splits("B1 H66 Sq1 Sk65536 D128", &Gpu::H200), 2);
        assert_eq!(splits("B1 H67 Sq1 Sk65536 D128", &Gpu::H200), 2);
        // 83 blocks of 64 KiB under way read as fast as memory gives.
        assert_eq!(splits("B1 H82 Sq1 Sk65536 D128", &Gpu::H200), 2);
        assert_eq!(splits("B1 H83 Sq1 Sk65536 D128", &Gpu::H200), 1);
        assert_eq!(splits("B16 H32/8 Sq1 Sk8192 D128", &Gpu::H200), 1);
        // Behind 264 blocks, 36 more would read alone.
        assert_eq!(splits("B1 H300 Sq1 Sk65536 D128", &Gpu::H200), 3);
        assert_eq!(splits("B1 H264 Sq1 Sk65536 D128", &Gpu::H200), 1);
        assert_eq!(splits("B1 H12 Sq1 Sk65536 D128", &Gpu::H200), 11);
        assert_eq!(splits("B1 H12 Sq1 Sk65536 D128", &Gpu::L4), 4);
        assert_eq!(splits("B12 H1 Sq64 Sk65536 D128", &Gpu::H200), 22);
        assert_eq!(splits("B12 H1 Sq65 Sk65536 D128", &Gpu::H200), 11);
        assert_eq!(splits("B1 H1 Sq1 Sk65536 D128", &Gpu::H200), 32);
    }

    #[test]
    fn shares_have_a_tile_at_least_or_four_of_several_blocks() {
        assert_eq!(splits("B1 H8 Sq1 Sk1024 D128", &Gpu::H200), 16);
        assert_eq!(splits("B1 H8 Sq1 Sk448 D128", &Gpu::H200), 7);
        assert_eq!(splits("B1 H8 Sq1 Sk384 D128", &Gpu::H200), 1);
        assert_eq!(splits("B1 H8 Sq1 Sk0 D128", &Gpu::H200), 1);
        assert_eq!(splits("B1 H8 Sq1 Sk1024 D64", &Gpu::H200), 8);
        assert_eq!(splits("B1 H8 Sq65 Sk1024 D128", &Gpu::H200), 4);
    }

    /// Memory for the longest sequence serves all shorter ones.
    #[test]
    fn more_keys_have_no_fewer_shares() {
        for heads in [1, 8, 12, 32, 66, 67, 83, 128, 264, 300, 530] {
            let of_keys = |tiles: u32| splits(&format!("B1 H{heads} Sq1 Sk{} D128 causal", tiles * 64), &Gpu::H200);
            assert!((0..200).map(of_keys).is_sorted(), "{heads} heads");
        }
    }

    /// Keys that a mask hides are no work to split.
    #[test]
    fn only_keys_that_are_seen_count() {
        assert_eq!(splits("B1 H8 Sq1 Sk65536 D128 window511/0", &Gpu::H200), 8);
        assert_eq!(splits("B1 H8 Sq1 Sk65536 D128 causal", &Gpu::H200), 16);
        assert_eq!(splits("B1 H8 Sq1 Sk65536 D128 causal-top-left", &Gpu::H200), 1);
        assert_eq!(splits("B1 H2 Sq128 Sk1024 D128 causal-top-left", &Gpu::H200), 1);
        assert_eq!(splits("B2 H2 Sq1,1 Sk1024,64 D128", &Gpu::H200), 16);
    }

    /// Whatever a problem may be, there is a kernel for it, and it can be built.
    #[test]
    fn every_head_has_a_kernel_on_every_architecture() {
        for (arch, gpu) in Gpu::BY_ARCH {
            for (head, value) in
                HEAD_DIMS.step_by(8).flat_map(|head| HEAD_DIMS.step_by(8).map(move |value| (head, value)))
            {
                for queries in [1, 1 << 20] {
                    let problem = Problem::builder().head_dim(head).value_dim(value).queries(queries).build().unwrap();
                    let config = plan(&problem, &gpu).unwrap_or_else(|error| panic!("{arch} {problem}: {error}"));
                    assert!(config.serves(&problem), "{arch} {problem}: config {}", config.id);
                    assert!((1..=MAX_SPLITS).contains(&config.splits), "{arch} {problem}: {} splits", config.splits);
                }
            }
        }
    }

    #[test]
    fn gpus_without_the_instructions_are_refused() {
        let turing = Gpu { capability: (7, 5), ..Gpu::L4 };
        let error = plan(&Problem::builder().build().unwrap(), &turing).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no kernel computes f16 B2 H8 S512 D64 full on sm_75 with 58 processors: expected sm_80 or newer, and shared \
             memory for a block"
        );
    }
}
