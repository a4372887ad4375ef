//! Among how many blocks the keys of each block of queries are split.

use super::{Gpu, blocks};
use crate::Problem;
use crate::configs::{Config, Heads, Math};
use crate::kernels::MAX_SPLITS;
use crate::kernels::parts::block::Block;
use crate::kernels::parts::row_order::RowOrder;

/// Blocks of split keys that a processor is to hold, where its shared memory has room for them: while one waits for its keys,
/// another multiplies.
const SPLIT_BLOCKS: u64 = 2;

/// Tiles of keys that take about as long as the kernel that joins parts (measured: three of 64 keys, of two stages). Fewer than one more are
/// not split.
const LEAST_TILES: u32 = 4;

/// Bytes under way at which a processor has its share of the memory's rate: 4.4 TB/s for 132 of them (measured on an H200), at 1.2 µs from
/// asking to having (a model). Others ask their memory for less.
const BYTES_UNDER_WAY: u64 = 40 << 10;

/// How many, for a configuration that splits keys at all.
pub fn splits(config: &Config, problem: &Problem, gpu: &Gpu) -> u32 {
    let work = Work::new(config, problem, gpu);
    match config.heads {
        Heads::Apart => work.splits_of_idle(),
        Heads::Together => work.splits_of_readers(),
    }
}

/// What there is to do, and who does it.
struct Work {
    blocks: u64,
    /// Key tiles of the block that sees the most.
    tiles: u32,
    /// Whether all rows of a head, or of those that share keys, are in one block.
    one_block: bool,
    processors: u64,
    /// Blocks that run at once, and those of them that have enough under way for all of the memory's rate.
    places: u64,
    enough: u64,
    /// Blocks that ask for keys as fast as memory gives them.
    readers: u64,
    /// Tiles that are under way while a block takes one.
    ahead: u64,
}

impl Work {
    fn new(config: &Config, problem: &Problem, gpu: &Gpu) -> Work {
        let (dims, processors, ahead) =
            (problem.dims(), u64::from(gpu.processors), u64::from(config.stages - 1).max(1));
        let room = match config.math {
            // A block stays on its processor.
            Math::Warpgroup => 1,
            Math::Tensor | Math::Scalar => {
                u64::from(gpu.shared_bytes / config.shared_bytes(dims)).clamp(1, SPLIT_BLOCKS)
            }
        };
        let bytes = ahead * u64::from(config.keys * (dims.head + dims.value) * 2);
        Work {
            blocks: blocks(config, problem),
            tiles: most_tiles(config, problem),
            one_block: config.heads.rows(problem.queries(), problem) <= config.rows,
            processors,
            places: processors * room,
            enough: processors * BYTES_UNDER_WAY.div_ceil(bytes).min(room),
            readers: (processors * BYTES_UNDER_WAY).div_ceil(bytes),
            ahead,
        }
    }

    /// Keys are split where at least half of the processors would have no block at all. Then there are as many shares as fill every
    /// processor with [`SPLIT_BLOCKS`], down to a tile each, counted in the block that sees the most keys. Measured on an H200 with
    /// one query of 8 and of 32 heads. A model, not measured: the same on other GPUs, and [`LEAST_TILES`] for each share where heads
    /// have several blocks of queries, since parts grow with the queries.
    fn splits_of_idle(&self) -> u32 {
        if self.blocks > self.processors / 2 {
            return 1;
        }
        let shares = if self.one_block && self.tiles >= LEAST_TILES { self.tiles } else { self.tiles / LEAST_TILES };
        let filling = u32::try_from(self.places / self.blocks).unwrap_or(MAX_SPLITS);
        filling.min(shares).clamp(1, MAX_SPLITS)
    }

    /// What bounds few queries is memory. As long as [`Work::readers`] read, their keys come at its full rate and more blocks gain nothing; fewer
    /// take as long as if they were as many. Keys are split where that loses more than joining the parts costs, into no more parts than that.
    /// Measured on an H200 with one query and columns of 128, of 8 to 512 heads: twice as many parts take 1 to 10 % longer.
    fn splits_of_readers(&self) -> u32 {
        let lost = u64::from(self.tiles) * (self.time(1) - self.blocks);
        if lost <= self.readers * self.ahead * u64::from(LEAST_TILES - 1) {
            return 1;
        }
        let even = |splits: &u32| self.time((*splits).into()) == self.blocks * u64::from(*splits);
        let filling = u32::try_from(self.enough / self.blocks).unwrap_or(MAX_SPLITS);
        let shares = if filling > 1 { filling } else { (2..MAX_SPLITS).find(even).unwrap_or(1) };
        shares.min(self.tiles).clamp(1, MAX_SPLITS)
    }

    /// How long one tile of every block takes, if each is so many blocks: in tiles that memory gives meanwhile. All places are taken as often as
    /// there are blocks for them, and some of them once more.
    fn time(&self, splits: u64) -> u64 {
        let (rounds, rest) = (self.blocks * splits / self.places, self.blocks * splits % self.places);
        let last = if rest == 0 { 0 } else { rest.max(self.readers) };
        rounds * self.places.max(self.readers) + last
    }
}

/// Key tiles of the block that sees the most.
fn most_tiles(config: &Config, problem: &Problem) -> u32 {
    let (mask, group) = (problem.mask().mask(), problem.heads() / problem.kv_heads());
    let order = RowOrder::new(config.heads, group.into());
    let tiles = |number: u32| {
        let sizes = [config.rows, config.keys];
        let seen = Block::ordered(&*mask, problem.lengths().into(), order, number.into(), sizes).tiles;
        let [start, end] = [seen.start, seen.end].map(|tile| tile.known().unwrap_or(0));
        end.saturating_sub(start)
    };
    (0..config.heads.rows(problem.queries(), problem).div_ceil(config.rows)).map(tiles).max().unwrap_or(0)
}
