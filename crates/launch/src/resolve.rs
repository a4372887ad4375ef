//! [`Recipe`] to [`Resolved`]: every expression evaluated, every size within its bound.

use std::path::Path;

use crate::contract;
use crate::error::{Error, Fault};
use crate::expectation::Expect;
use crate::expr::{Expr, Names};
use crate::files;
use crate::read::unknown_buffer;
use crate::recipe::{Argument, ArgumentValue, Buffer, Launch, Recipe};
use crate::resolved::{self, Resolved};
use crate::source::Spot;

/// What a recipe may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All buffers together.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes: 1 << 30 }
    }
}

// CUDA C++ Programming Guide, "Features and technical specifications per compute capability".
const MAX_GRID: [u64; 3] = [(1 << 31) - 1, 65535, 65535];
const MAX_BLOCK: [u64; 3] = [1024, 1024, 64];
const MAX_BLOCK_THREADS: u64 = 1024;
/// The largest cluster, with cudaFuncAttributeNonPortableClusterSizeAllowed on sm_90.
const MAX_CLUSTER_BLOCKS: u64 = 16;
/// PTX ISA, "Kernel function parameters": 32764 bytes from PTX 8.1 on.
const MAX_PARAMETER_BYTES: u64 = 32764;

enum Failure {
    Fault(Fault),
    Error(Error),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Fault(fault)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl Recipe {
    /// Evaluates and checks the whole recipe; files of struct arguments are read here, buffers are not yet made.
    pub fn resolve(&self, limits: &Limits) -> Result<Resolved, Error> {
        self.try_resolve(limits).map_err(|failure| match failure {
            Failure::Fault(fault) => self.source.error(fault),
            Failure::Error(error) => error,
        })
    }

    fn try_resolve(&self, limits: &Limits) -> Result<Resolved, Failure> {
        let names = self.names()?;
        let buffers = self.resolve_buffers(&names, limits)?;
        let mut launches = Vec::new();
        for launch in &self.launches {
            launches.push(Scope { recipe: self, names: &names, buffers: &buffers }.launch(launch)?);
        }
        let lengths = self.attention.as_ref().map(|attention| lengths(&attention.lengths, &names)).transpose()?;
        Ok(Resolved { names, buffers, launches, lengths, folder: self.source.folder() })
    }

    /// The values of `[let]`.
    pub(crate) fn names(&self) -> Result<Names, Fault> {
        let mut names = Names::new();
        for (name, expr) in &self.lets {
            let value = expr.evaluate(&names)?;
            if names.insert(name.clone(), value).is_some() {
                return Err(Fault::new(expr.spot(), format!("`{name}` is defined twice: remove one")));
            }
        }
        Ok(names)
    }

    fn resolve_buffers(&self, names: &Names, limits: &Limits) -> Result<Vec<resolved::Buffer>, Fault> {
        let mut buffers: Vec<resolved::Buffer> = Vec::new();
        let mut left = limits.memory_bytes;
        for buffer in &self.buffers {
            if buffers.iter().any(|earlier| earlier.name == buffer.name) {
                return Err(Fault::new(buffer.spot, format!("buffer `{}` is declared twice: remove one", buffer.name)));
            }
            let resolved = resolve_buffer(buffer, names, left, limits, &buffers)?;
            left -= resolved.bytes;
            buffers.push(resolved);
        }
        Ok(buffers)
    }
}

fn resolve_buffer(
    buffer: &Buffer,
    names: &Names,
    left: u64,
    limits: &Limits,
    before: &[resolved::Buffer],
) -> Result<resolved::Buffer, Fault> {
    let shape: Vec<u64> =
        buffer.shape.iter().map(|expr| bounded("shape", expr, names, 1, u64::MAX)).collect::<Result<_, _>>()?;
    let count = shape.iter().try_fold(1u64, |product, length| product.checked_mul(*length));
    let bytes = count.and_then(|count| count.checked_mul(buffer.element.bytes() as u64));
    let bytes = bytes.filter(|bytes| *bytes <= left).ok_or_else(|| too_large(buffer, bytes, left, limits))?;
    let count = bytes / buffer.element.bytes() as u64;
    check_counts(buffer, count)?;
    Ok(resolved::Buffer {
        name: buffer.name.clone(),
        element: buffer.element,
        init: buffer.init.resolve(buffer, count, names)?,
        expectation: expectation(buffer, &shape, names, before)?,
        shape,
        bytes,
    })
}

fn too_large(buffer: &Buffer, bytes: Option<u64>, left: u64, limits: &Limits) -> Fault {
    let needed = bytes.map_or_else(|| "more than 2^64".to_string(), |bytes| bytes.to_string());
    let limit = limits.memory_bytes;
    let rest = if left < limit { format!(", of which {left} are left") } else { String::new() };
    let message = format!("buffer `{}` needs {needed} bytes, more than the limit of {limit}{rest}", buffer.name);
    Fault::new(buffer.spot, message)
}

fn expectation(
    buffer: &Buffer,
    shape: &[u64],
    names: &Names,
    before: &[resolved::Buffer],
) -> Result<Option<resolved::Expectation>, Fault> {
    let Some(expect) = &buffer.expect else { return Ok(None) };
    let element = buffer.reference();
    let expected = match expect {
        Expect::File(path) => resolved::Expected::File(path.into()),
        Expect::Hash(digits) => resolved::Expected::Hash(digits.clone()),
        Expect::Words(words) => resolved::Expected::Values(words.clone()),
        Expect::Product(product) => {
            resolved::Expected::Product(Box::new(product.resolve(&buffer.name, shape, buffer.spot, before)?))
        }
        Expect::Packed(packed) => {
            let what = format!("`expect` of buffer `{}`", buffer.name);
            resolved::Expected::Bytes(packed.unpack(&what, element, shape.iter().product())?)
        }
        Expect::Values(values) => {
            let encode = |number: &crate::recipe::Number| {
                element.encode(number.evaluate(names)?).map_err(|message| Fault::new(buffer.spot, message))
            };
            resolved::Expected::Values(values.iter().map(encode).collect::<Result<_, Fault>>()?)
        }
    };
    Ok(Some(resolved::Expectation { expected, element, tolerance: buffer.tolerance }))
}

/// A list has a value for every element.
fn check_counts(buffer: &Buffer, count: u64) -> Result<(), Fault> {
    let expected = buffer.expect.as_ref().and_then(Expect::listed);
    for (key, listed) in [("init", buffer.init.listed()), ("expect", expected)] {
        if let Some(listed) = listed.filter(|listed| *listed as u64 != count) {
            let message = format!("`{key}` of buffer `{}` lists {listed} values: it has {count} elements", buffer.name);
            return Err(Fault::new(buffer.spot, message));
        }
    }
    Ok(())
}

/// The value of an expression between two bounds.
pub(crate) fn bounded(what: &str, expr: &Expr, names: &Names, least: u64, most: u64) -> Result<u64, Fault> {
    let value = expr.evaluate(names)?;
    let fits = u64::try_from(value).ok().filter(|value| (least..=most).contains(value));
    fits.ok_or_else(|| {
        let shown = if expr.literal().is_some() { value.to_string() } else { format!("`{expr}` = {value}") };
        let expected = if most == u64::MAX { format!("at least {least}") } else { format!("{least} to {most}") };
        Fault::new(expr.spot(), format!("{what} is {shown}: expected {expected}"))
    })
}

fn lengths(lengths: &contract::Lengths, names: &Names) -> Result<resolved::Lengths, Fault> {
    let length = |what: &str, expr: &Expr| bounded(what, expr, names, 0, u64::MAX);
    Ok(resolved::Lengths {
        q: length("lengths.q", &lengths.q)?,
        k: length("lengths.k", &lengths.k)?,
        batch: length("lengths.batch", &lengths.batch)?,
        heads: length("lengths.heads", &lengths.heads)?,
        kv_heads: length("lengths.kv_heads", lengths.kv_heads.as_ref().unwrap_or(&lengths.heads))?,
        dim: length("lengths.dim", &lengths.dim)?,
        value_dim: length("lengths.value_dim", lengths.value_dim.as_ref().unwrap_or(&lengths.dim))?,
    })
}

/// What an argument may refer to.
struct Scope<'a> {
    recipe: &'a Recipe,
    names: &'a Names,
    buffers: &'a [resolved::Buffer],
}

impl Scope<'_> {
    fn launch(&self, launch: &Launch) -> Result<resolved::Launch, Failure> {
        let grid = self.dimensions("grid", &launch.grid, MAX_GRID)?;
        let block = self.dimensions("block", &launch.block, MAX_BLOCK)?;
        self.product("block", "threads", &launch.block, block, MAX_BLOCK_THREADS)?;
        let cluster = launch.cluster.as_ref().map(|cluster| self.cluster(cluster, grid)).transpose()?;
        let mut args = Vec::new();
        for argument in &launch.args {
            args.push(self.argument(argument)?);
        }
        Ok(resolved::Launch {
            entry: launch.entry.clone(),
            grid,
            block,
            cluster,
            shared: bounded("shared", &launch.shared, self.names, 0, u32::MAX.into())? as u32,
            repeat: bounded("repeat", &launch.repeat, self.names, 1, u32::MAX.into())? as u32,
            overlap: launch.overlap,
            args,
        })
    }

    fn dimensions(&self, what: &str, exprs: &[Expr; 3], most: [u64; 3]) -> Result<[u32; 3], Fault> {
        let mut values = [0; 3];
        for axis in 0..3 {
            let name = format!("{what}.{}", ["x", "y", "z"][axis]);
            values[axis] = bounded(&name, &exprs[axis], self.names, 1, most[axis])? as u32;
        }
        Ok(values)
    }

    fn product(&self, what: &str, unit: &str, exprs: &[Expr; 3], values: [u32; 3], most: u64) -> Result<(), Fault> {
        let product = values.iter().map(|value| u64::from(*value)).product::<u64>();
        if product <= most {
            return Ok(());
        }
        Err(Fault::new(exprs[0].spot(), format!("{what} has {product} {unit}: expected at most {most}")))
    }

    fn cluster(&self, exprs: &[Expr; 3], grid: [u32; 3]) -> Result<[u32; 3], Fault> {
        let cluster = self.dimensions("cluster", exprs, [MAX_CLUSTER_BLOCKS; 3])?;
        self.product("cluster", "blocks", exprs, cluster, MAX_CLUSTER_BLOCKS)?;
        if let Some(axis) = (0..3).find(|axis| !grid[*axis].is_multiple_of(cluster[*axis])) {
            let (axis_name, blocks, size) = (["x", "y", "z"][axis], grid[axis], cluster[axis]);
            let message = format!("grid.{axis_name} is {blocks}: expected a multiple of the cluster's {size}");
            return Err(Fault::new(exprs[axis].spot(), message));
        }
        Ok(cluster)
    }

    fn argument(&self, argument: &Argument) -> Result<resolved::Argument, Failure> {
        Ok(resolved::Argument { name: argument.name.clone(), value: self.value(&argument.value, argument.spot)? })
    }

    fn value(&self, value: &ArgumentValue, spot: Spot) -> Result<resolved::ArgumentValue, Failure> {
        Ok(match value {
            ArgumentValue::Buffer { buffer, offset } => {
                let index = self.buffer(buffer, spot)?;
                let offset = bounded("offset", offset, self.names, 0, self.buffers[index].bytes)?;
                resolved::ArgumentValue::Pointer { buffer: index, offset }
            }
            ArgumentValue::Scalar(element, number) => {
                let bits = element.encode(number.evaluate(self.names)?).map_err(|message| Fault::new(spot, message))?;
                resolved::ArgumentValue::Scalar(*element, bits)
            }
            ArgumentValue::Null => resolved::ArgumentValue::Null,
            ArgumentValue::Map(map) => {
                resolved::ArgumentValue::Map(map.resolve(self.buffer(&map.buffer, spot)?, self.names)?)
            }
            ArgumentValue::Bytes { file, patches } => {
                let bytes = files::read(&self.recipe.source.folder().join(Path::new(file)), MAX_PARAMETER_BYTES)?;
                let mut resolved = Vec::new();
                for patch in patches {
                    let value = self.value(&patch.value, spot)?;
                    let last = (bytes.len() as u64).checked_sub(value.size() as u64).ok_or_else(|| {
                        Fault::new(spot, format!("patch has {} bytes: `{file}` has {}", value.size(), bytes.len()))
                    })?;
                    resolved.push((bounded("at", &patch.at, self.names, 0, last)? as usize, value));
                }
                resolved::ArgumentValue::Bytes { bytes, patches: resolved }
            }
        })
    }

    fn buffer(&self, name: &str, spot: Spot) -> Result<usize, Fault> {
        let index = self.buffers.iter().position(|buffer| buffer.name == name);
        index.ok_or_else(|| unknown_buffer(self.recipe, name, spot))
    }
}
