//! Attention forward as kernels. `parts` are the lines of the paper; a family is a schedule around them.

mod ampere;
mod combine;
mod contract;
mod hopper;
pub mod parts;
mod recipe;
mod scalar;

pub use combine::{ENTRY as COMBINE_ENTRY, MAX_SPLITS, threads as combine_threads};
pub use recipe::{assertions, kernel, kernel_with};

use crate::configs::{Config, Heads, Math};
use crate::features::Features;
use crate::problem::{DType, Dims, HEAD_DIMS};
use crate::visibility::MaskKind;
use crate::{Error, Problem};
use parts::masks::Mask;
use parts::scores::Score;
use tile::Built;
use tile::prelude::{BF16, BuildError, Element, F16, Options, Warps};

/// What a launch of a kernel for sm_90a is made of, for those who launch one without its recipe.
pub mod warpgroup {
    pub use super::hopper::{BOX_COLUMNS, WARP_ROWS, counts, section, stores_tiles};
}

pub const ENTRY: &str = "attention_forward";

/// What a kernel is built with.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    pub mask: &'a dyn Mask,
    pub score: &'a dyn Score,
    /// Whether each head has a logit that only the sum counts.
    pub sinks: bool,
    /// Whether queries see only keys of their own document.
    pub documents: bool,
    /// Whether sequences have lengths of their own and lie one behind the other.
    pub packed: bool,
}

/// Lengths are compared as signed numbers.
const MAX_LENGTH: u32 = i32::MAX.cast_unsigned();
/// What a grid may have along y and z. CUDA C++ Programming Guide, "Compute Capabilities".
const MAX_GRID: u32 = 65535;

/// The module of one configuration, with the mask and the score that the problem names.
pub fn build(problem: &Problem, config: &Config) -> Result<Built, Error> {
    let (mask, score) = (problem.mask().mask(), problem.score().score());
    build_with(problem, config, &*mask, &*score)
}

/// With a mask and a score of the caller's own, instead of those that the problem names.
pub fn build_with(problem: &Problem, config: &Config, mask: &dyn Mask, score: &dyn Score) -> Result<Built, Error> {
    check(problem, config)?;
    let (sinks, documents, packed) = (problem.sinks(), problem.documents(), problem.packed().is_some());
    build_parts(problem.dtype(), problem.dims(), config, &Parts { mask, score, sinks, documents, packed })
}

/// All that the text of a kernel depends on: lengths, heads, scale and the number of splits are parameters.
pub fn build_parts(dtype: DType, dims: Dims, config: &Config, parts: &Parts) -> Result<Built, Error> {
    check_kind(dtype, dims)?;
    if config.cluster > 1 && hopper::counts(parts.mask, parts.packed) {
        let message = "its blocks read the keys of a head together: expected no mask, and no packed sequences".into();
        return Err(Error::Generation { id: config.id, message });
    }
    let built = match dtype {
        DType::F16 => module::<F16>(config, dims, parts),
        DType::Bf16 => module::<BF16>(config, dims, parts),
        DType::F32 => return Err(Error::KernelType { found: dtype }),
    };
    built.map_err(|error| Error::Generation { id: config.id, message: error.to_string() })
}

/// The kernel, and where it splits keys the one that joins what its blocks find. That one counts the sinks, too: a row has one.
fn module<E: Element>(config: &Config, dims: Dims, parts: &Parts) -> Result<Built, BuildError> {
    if config.splits == 1 {
        return forward::<E>(config, dims, parts);
    }
    let built = forward::<E>(config, dims, &Parts { sinks: false, ..*parts })?;
    Ok(built.with(combine::combine::<E>(dims.value, parts.sinks, parts.packed)?))
}

/// For matrices of `E` with as many columns as `dims` says.
fn forward<E: Element>(config: &Config, dims: Dims, parts: &Parts) -> Result<Built, BuildError> {
    let body = match config.math {
        Math::Tensor => ampere::body::<E>,
        Math::Scalar => scalar::body::<E>,
        Math::Warpgroup => hopper::body::<E>,
    };
    let blocks_per_processor = Some(config.blocks_per_processor(dims));
    let target = if config.math == Math::Warpgroup { ptx::Target::SM_90A } else { ptx::Target::SM_80 };
    let (threads, cluster, checks) = (config.threads(), config.cluster, config.debug);
    let options = Options { target, threads, cluster, blocks_per_processor, checks };
    tile::build(ENTRY, options, || body(config, dims, parts))
}

/// Who computes, and who copies: every warp does both, or the last ones copy for the others.
fn roles(config: &Config) -> [Warps; 2] {
    if config.copy_warps == 0 {
        return [Warps::all(); 2];
    }
    let computing = config.computing_warps();
    [Warps::numbered(0..computing), Warps::numbered(computing..config.warps)]
}

/// Whether the configuration computes the problem.
pub fn check(problem: &Problem, config: &Config) -> Result<(), Error> {
    check_features(problem, &Features::of(problem), config)
}

/// Whether there are kernels for such heads at all.
pub fn check_kind(dtype: DType, dims: Dims) -> Result<(), Error> {
    if dtype == DType::F32 {
        return Err(Error::KernelType { found: dtype });
    }
    match [dims.head, dims.value].into_iter().find(|found| !HEAD_DIMS.contains(found) || found % 8 != 0) {
        Some(found) => Err(Error::KernelColumns { found }),
        None => Ok(()),
    }
}

/// Those that compute such heads in the same way, whatever the mask: `6 or 7`.
fn others(math: Math, heads: Heads, dims: Dims, crowded: bool) -> String {
    let serving = |(math, heads): (Math, Heads)| {
        let is_such = |config: &Config| (config.math, config.heads, config.cluster) == (math, heads, 1);
        let all = Config::all().filter(|config| is_such(config) && config.has_room(dims, crowded));
        all.map(|config| config.id.to_string()).collect::<Vec<_>>().join(" or ")
    };
    // Heads that are too wide for one family are not for the other.
    Some(serving((math, heads))).filter(|ids| !ids.is_empty()).unwrap_or_else(|| serving((Math::Tensor, Heads::Apart)))
}

/// Whether the configuration computes the problem, where more is asked for than it says.
pub fn check_features(problem: &Problem, features: &Features, config: &Config) -> Result<(), Error> {
    check_kind(problem.dtype(), problem.dims())?;
    let (dims, crowded) = (problem.dims(), features.is_crowded());
    let refuse = |found: String, expected: String| {
        Err(Error::Unsupported { id: config.id, problem: problem.to_string(), found, expected })
    };
    if !config.divides() {
        let Config { rows, keys, warps, warp_rows, .. } = config;
        let found = format!("{rows}×{keys} tiles for {warps} warps of {warp_rows} rows");
        return refuse(found, "tiles that the warps share out in sixteens".into());
    }
    if !config.has_room(dims, crowded) {
        let (found, most) = match config.shared_bytes(dims) {
            bytes if bytes > config.max_shared_bytes() => {
                (format!("{bytes} bytes of shared memory for a block"), config.max_shared_bytes())
            }
            _ => (
                format!("{} registers for fragments", config.fragment_registers(dims)),
                config.max_fragment_registers(crowded),
            ),
        };
        let others = others(config.math, config.heads, dims, crowded);
        return refuse(found, format!("at most {most}: use config {others}"));
    }
    if !config.has_even_keys(problem, features) {
        let found = if features.packed { "packed sequences".into() } else { format!("mask `{}`", problem.mask()) };
        return refuse(found, "none: its blocks read the keys of a head together".into());
    }
    if !config.has_room_for_mask(problem) {
        return refuse("a window".into(), "registers for it: use a config with fewer warpgroups".into());
    }
    for (what, found, limit) in [
        ("queries", problem.queries(), MAX_LENGTH),
        ("keys", problem.keys(), MAX_LENGTH),
        ("heads", problem.heads(), MAX_GRID),
        ("batch entries", problem.batch(), MAX_GRID),
    ] {
        if found > limit {
            return refuse(format!("{found} {what}"), format!("at most {limit}"));
        }
    }
    if !(1..=MAX_SPLITS).contains(&config.splits) {
        return refuse(format!("{} splits", config.splits), format!("1 to {MAX_SPLITS}"));
    }
    let rows = config.heads.rows(problem.queries(), problem);
    if rows > MAX_LENGTH {
        return refuse(format!("{rows} queries of heads that share keys"), format!("at most {MAX_LENGTH}"));
    }
    let blocks = u64::from(rows.div_ceil(config.rows)) * u64::from(config.splits);
    if blocks > MAX_LENGTH.into() {
        return refuse(format!("{blocks} blocks of queries"), format!("at most {MAX_LENGTH}: use fewer splits"));
    }
    let tiles = u128::from(blocks) * u128::from(problem.heads()) * u128::from(problem.batch());
    if config.math == Math::Warpgroup && tiles > MAX_LENGTH.into() {
        return refuse(format!("{tiles} blocks of queries of all heads"), format!("at most {MAX_LENGTH}"));
    }
    if let MaskKind::Window { left, right } = problem.mask() {
        let sum = [problem.queries(), problem.keys(), left.max(right), config.rows].map(u64::from).iter().sum::<u64>();
        if sum > u64::from(u32::MAX) {
            return refuse(
                format!("a window of {left} and {right} keys"),
                "one that makes less than 2^32 with queries and keys".into(),
            );
        }
    }
    Ok(())
}
