//! What runs kernels: the emulator, a real GPU.

use std::time::Duration;

use crate::contents::Contents;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::operands::Operands;
use crate::policy::Policy;
use crate::resolved;

/// Something that runs kernels.
///
/// ```
/// use launch::backend::{Backend, Options, Run, Witness};
/// use launch::{Error, Kernel, Limits, Memory, Resolved};
///
/// /// Launches nothing and says so.
/// struct Idle;
///
/// impl Backend for Idle {
///     type Loaded = Resolved;
///     type Error = Error;
///
///     fn name(&self) -> &str {
///         "idle"
///     }
///
///     fn load(&self, kernel: &Kernel) -> Result<Resolved, Error> {
///         kernel.resolve(&Limits::default())
///     }
///
///     fn run(&self, _: &mut Resolved, memory: &mut Memory, _: &Options) -> Result<Run, Error> {
///         let before = memory.clone();
///         Ok(Run { outputs: memory.changes_since(&before), ..Run::default() })
///     }
/// }
/// ```
pub trait Backend {
    /// A kernel made ready to run; device memory stays with it between runs.
    type Loaded;
    /// Why a kernel cannot be loaded or run; a finding is not an error.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The word for `--backend`.
    fn name(&self) -> &str;

    /// Checks and prepares a kernel.
    fn load(&self, kernel: &Kernel) -> Result<Self::Loaded, Self::Error>;

    /// Runs every launch of the recipe in order on the given memory, and leaves the results there.
    fn run(&self, loaded: &mut Self::Loaded, memory: &mut Memory, options: &Options) -> Result<Run, Self::Error>;
}

/// How a kernel is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Decides the order in which an emulator runs what no rule orders.
    pub seed: u64,
    /// What an emulator's adversary is after; none: what the seed stands for.
    pub policy: Option<Policy>,
    /// An emulator stops after so many instructions of one launch.
    pub instruction_budget: u64,
    /// An emulator looks for races and for reads of bytes that nobody wrote.
    pub checks: bool,
    /// An emulator counts what memory accesses and barriers cost.
    pub lints: bool,
    /// An emulator looks for the first NaN or infinity that a lane makes.
    pub nan_birth: bool,
    /// How an emulator computes.
    pub engine: Engine,
    /// How close an emulator's products of matrices are to those of tensor cores.
    pub precision: Precision,
    /// An emulator computes with exact numbers in place of floats, and leaves those in memory: two ways to compute one
    /// formula agree to the bit.
    pub algebra: bool,
    /// An emulator draws a timeline of so many blocks of each launch, the first ones; where the last is one of a
    /// cluster, of the whole cluster.
    pub traced_blocks: u64,
    /// An emulator runs so many clusters of each launch, the first ones.
    pub clusters: u64,
    /// An emulator stops a launch soon after a cluster has more faults than so many.
    pub fault_limit: u64,
    /// An emulator that checks compares every byte that instructions move with those that the checks look at.
    pub audit: bool,
    /// A GPU gets no bytes for buffers that nobody initialises: tools that watch it see who reads them.
    pub leaves_poison: bool,
}

/// How an emulator computes: the results are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Whole warps at once where it can.
    #[default]
    Warps,
    /// Lane by lane, as each instruction is defined: slow, and what the other engine is held against.
    Lanes,
}

/// How close products of matrices are to those of tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// To the bit.
    #[default]
    Exact,
    /// Chains of fused multiply-adds of f32: several times as fast, and mostly off in the last bits.
    Fast,
}

impl Default for Options {
    fn default() -> Options {
        // A hundred times what the largest built-in witness needs, and under a minute for an endless loop.
        Options {
            seed: 0,
            policy: None,
            instruction_budget: 100_000_000,
            checks: true,
            lints: false,
            nan_birth: false,
            engine: Engine::Warps,
            precision: Precision::Exact,
            algebra: false,
            traced_blocks: 0,
            clusters: u64::MAX,
            fault_limit: u64::MAX,
            audit: false,
            leaves_poison: false,
        }
    }
}

/// What a run showed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// The buffers that the run changed.
    pub outputs: Vec<Output>,
    /// What the checks found; a backend without checks finds nothing.
    pub findings: Vec<Finding>,
    /// How long each launch took, repeats included.
    pub times: Vec<Duration>,
    /// The launches that the backend saw happen.
    pub witness: Vec<Witness>,
    /// Bytes of shadow with which a backend watches memory, and of the memory that they watch, where a cluster needed most
    /// for its memory; none where nobody watches.
    pub shadow: Option<(u64, u64)>,
    /// Instructions that warps executed, all launches together; zero where nobody counts.
    pub instructions: u64,
    /// Arrivals at mbarriers whose phase did not end before all threads had exited, where an emulator counts them.
    pub stray_arrivals: u64,
    /// Different faults in the cluster that has most, each pair of places counted once, where an emulator counts them.
    pub faults: u64,
    /// Bytes that instructions moved and that the checks saw, where that was asked for and the backend counts.
    pub operands: Option<Operands>,
    /// The timeline, where one was asked for and the backend draws one.
    pub trace: Option<Trace>,
}

/// A timeline of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// A file of Chrome trace events, which Perfetto opens.
    pub json: String,
    /// Blocks that it shows.
    pub blocks: u64,
    /// Events that it has, names not counted.
    pub events: u64,
    /// There were more.
    pub cut: bool,
}

/// A buffer that a run changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The buffer.
    pub buffer: String,
    /// Its bytes before the run.
    pub before: Contents,
    /// Its bytes after the run.
    pub after: Contents,
}

/// A launch that happened: "no errors" means nothing unless something ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The entry.
    pub entry: String,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads in x, y and z.
    pub block: [u32; 3],
    /// How many times it was launched.
    pub count: u32,
}

impl Witness {
    /// A launch of the entry, all repeats done.
    pub fn of(entry: &str, launch: &resolved::Launch) -> Witness {
        Witness { entry: entry.to_string(), grid: launch.grid, block: launch.block, count: launch.repeat }
    }
}

impl Memory {
    /// The buffers whose bytes differ from an earlier state.
    pub fn changes_since(&self, before: &Memory) -> Vec<Output> {
        let pairs = self.buffers.iter().zip(&before.buffers);
        let changed = pairs.filter(|(after, before)| after.contents != before.contents);
        let output = |(after, before): (&crate::BufferMemory, &crate::BufferMemory)| Output {
            buffer: after.name.clone(),
            before: before.contents.clone(),
            after: after.contents.clone(),
        };
        changed.map(output).collect()
    }
}
