//! A recipe with every expression evaluated and every size checked: what backends read.

use std::path::PathBuf;

use crate::element::Element;
use crate::expectation::Tolerance;
use crate::expr::Names;
use crate::product::Factors;
use crate::tensor_map::ResolvedMap;

/// A recipe in plain numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The values of `[let]`.
    pub names: Names,
    /// Buffers in order; arguments refer to them by index.
    pub buffers: Vec<Buffer>,
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// The sizes under `[attention]`.
    pub lengths: Option<Lengths>,
    /// The folder that holds the recipe's files.
    pub folder: PathBuf,
}

/// A buffer in plain numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its dimensions, slowest first.
    pub shape: Vec<u64>,
    /// Its size.
    pub bytes: u64,
    /// What it holds before the first launch.
    pub init: Init,
    /// What it must hold after the last.
    pub expectation: Option<Expectation>,
}

/// How a buffer is filled.
#[derive(Debug, Clone, PartialEq)]
pub enum Init {
    /// The same bits in every element.
    Constant(u64),
    /// The bits of every element.
    Values(Vec<u64>),
    /// The bytes of every element, little-endian.
    Bytes(Vec<u8>),
    /// Counting.
    Ramp,
    /// Counting, each number so often.
    Steps(u64),
    /// Random numbers.
    Normal {
        /// The standard deviation.
        sigma: f64,
        /// The seed, where it does not depend on the run.
        seed: Option<u64>,
    },
    /// Never written.
    Poison,
    /// From a file.
    File(PathBuf),
}

/// What a buffer must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The reference.
    pub expected: Expected,
    /// The type of the reference.
    pub element: Element,
    /// How close is close enough.
    pub tolerance: Tolerance,
}

/// Where the reference comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// A raw or `.npy` file.
    File(PathBuf),
    /// The bits of every element, in the type of the reference.
    Values(Vec<u64>),
    /// The bytes of every element of that type, little-endian.
    Bytes(Vec<u8>),
    /// SHA-256 of the buffer's bytes, in hexadecimal.
    Hash(String),
    /// The product of two other buffers' contents, as float64.
    Product(Box<Factors>),
}

/// A launch in plain numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The entry; not needed when the module has one.
    pub entry: Option<String>,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads in x, y and z.
    pub block: [u32; 3],
    /// Blocks per cluster in x, y and z.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// How many times it runs.
    pub repeat: u32,
    /// May it start before the launch before it is complete?
    pub overlap: bool,
    /// Arguments in the order of the parameters.
    pub args: Vec<Argument>,
}

/// An argument in plain numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What is passed.
    pub value: ArgumentValue,
}

/// What an argument passes.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentValue {
    /// The address of a buffer plus an offset.
    Pointer {
        /// Index of the buffer.
        buffer: usize,
        /// Bytes from its start.
        offset: u64,
    },
    /// The bits of a number.
    Scalar(Element, u64),
    /// A null pointer.
    Null,
    /// A tensor map.
    Map(ResolvedMap),
    /// A struct by value.
    Bytes {
        /// Its content before patching.
        bytes: Vec<u8>,
        /// Offsets and what is written there.
        patches: Vec<(usize, ArgumentValue)>,
    },
}

/// Bytes of a tensor map (CUDA driver API, `CUtensorMap`).
pub const MAP_BYTES: usize = 128;

/// What only a backend knows: where buffers lie and how its tensor maps look.
pub trait Placement {
    /// What the backend reports when it cannot place something.
    type Error;

    /// The address of a buffer's first byte.
    fn address(&mut self, buffer: usize) -> Result<u64, Self::Error>;

    /// The bytes of a tensor map.
    fn map(&mut self, map: &ResolvedMap) -> Result<[u8; MAP_BYTES], Self::Error>;
}

impl Launch {
    /// The block of parameters, each at its place; the arguments must fit the entry (`Kernel::resolve` checks it).
    pub fn parameters<P: Placement>(&self, entry: &ptx::Function, placement: &mut P) -> Result<Vec<u8>, P::Error> {
        let mut block = vec![0; entry.parameter_offset(entry.parameters.len()) as usize];
        for (index, argument) in self.args.iter().enumerate() {
            let start = entry.parameter_offset(index) as usize;
            let bytes = argument.value.bytes(placement)?;
            block[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(block)
    }
}

impl ArgumentValue {
    /// The size of the parameter it needs.
    pub fn size(&self) -> usize {
        match self {
            ArgumentValue::Pointer { .. } | ArgumentValue::Null => 8,
            ArgumentValue::Scalar(element, _) => element.bytes(),
            ArgumentValue::Map(_) => MAP_BYTES,
            ArgumentValue::Bytes { bytes, .. } => bytes.len(),
        }
    }

    /// The alignment a parameter needs for it, as far as it demands one.
    pub fn alignment(&self) -> usize {
        match self {
            ArgumentValue::Map(_) => 64, // CUDA driver API, cuTensorMapEncodeTiled: "must be 64B aligned".
            ArgumentValue::Bytes { .. } => 1,
            _ => self.size(),
        }
    }

    /// The bytes of the parameter.
    pub fn bytes<P: Placement>(&self, placement: &mut P) -> Result<Vec<u8>, P::Error> {
        Ok(match self {
            ArgumentValue::Pointer { buffer, offset } => {
                placement.address(*buffer)?.wrapping_add(*offset).to_le_bytes().to_vec()
            }
            ArgumentValue::Scalar(element, bits) => bits.to_le_bytes()[..element.bytes()].to_vec(),
            ArgumentValue::Null => vec![0; 8],
            ArgumentValue::Map(map) => placement.map(map)?.to_vec(),
            ArgumentValue::Bytes { bytes, patches } => {
                let mut bytes = bytes.clone();
                for (at, value) in patches {
                    let patch = value.bytes(placement)?;
                    bytes[*at..*at + patch.len()].copy_from_slice(&patch);
                }
                bytes
            }
        })
    }
}

/// The sizes under `[attention]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Queries per sequence.
    pub q: u64,
    /// Keys per sequence.
    pub k: u64,
    /// Sequences.
    pub batch: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Elements per head, of queries and keys.
    pub dim: u64,
    /// Elements per head, of values and output.
    pub value_dim: u64,
}
