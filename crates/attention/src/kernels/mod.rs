//! Attention forward as kernels. `parts` are the lines of the paper; a family is a schedule around them.

mod ampere;
mod contract;
pub mod parts;
mod recipe;
mod scalar;

pub use ampere::{ENTRY, Parts};
pub use recipe::{kernel, kernel_with};

use crate::configs::{Config, MAX_FRAGMENT_REGISTERS, MAX_SHARED_BYTES, Math};
use crate::problem::{DType, Dims};
use crate::visibility::MaskKind;
use crate::{Error, Problem};
use parts::masks::Mask;
use parts::scores::Score;
use tile::Built;
use tile::prelude::{BF16, F16};

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

/// All that the text of a kernel depends on: lengths, heads and scale are parameters.
pub fn build_parts(dtype: DType, dims: Dims, config: &Config, parts: &Parts) -> Result<Built, Error> {
    let forward = match (config.math, dtype) {
        (Math::Tensor, DType::F16) => ampere::forward::<F16>,
        (Math::Tensor, DType::Bf16) => ampere::forward::<BF16>,
        (Math::Scalar, DType::F16) => scalar::forward::<F16>,
        (Math::Scalar, DType::Bf16) => scalar::forward::<BF16>,
    };
    forward(config, dims, parts).map_err(|error| Error::Generation { id: config.id, message: error.to_string() })
}

/// Whether the configuration computes the problem.
pub fn check(problem: &Problem, config: &Config) -> Result<(), Error> {
    let refuse = |found: String, expected: String| {
        Err(Error::Unsupported { id: config.id, problem: problem.to_string(), found, expected })
    };
    let dims = problem.dims();
    if !config.fits(dims) {
        let others = Config::all().filter(|other| other.math == config.math && other.fits(dims));
        let others = others.map(|other| other.id.to_string()).collect::<Vec<_>>().join(" or ");
        let (found, most) = match config.shared_bytes(dims) {
            bytes if bytes > MAX_SHARED_BYTES => {
                (format!("{bytes} bytes of shared memory for a block"), MAX_SHARED_BYTES)
            }
            _ => (format!("{} registers for fragments", config.fragment_registers(dims)), MAX_FRAGMENT_REGISTERS),
        };
        return refuse(found, format!("at most {most}: use config {others}"));
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
    if let MaskKind::Window { left, right } = problem.mask() {
        let sum = [problem.queries(), problem.keys(), left.max(right), config.rows].map(u64::from).iter().sum::<u64>();
        if sum > u64::from(u32::MAX) {
            return refuse(
                format!("a window of {left} and {right} keys"),
                "one that is shorter than the lengths".into(),
            );
        }
    }
    Ok(())
}
