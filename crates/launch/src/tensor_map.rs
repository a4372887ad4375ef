//! Tensor maps: how a bulk tensor copy sees a buffer (CUDA driver API, cuTensorMapEncodeTiled).

use std::fmt;
use std::str::FromStr;

use crate::error::Fault;
use crate::expr::{Expr, Names};
use crate::resolve::bounded;
use crate::source::Spot;

/// `{ map = "k", dims = [64, "n"], strides = [128], box = [64, 64], … }`.
///
/// Dimensions run from the fastest to the slowest, as the driver counts them.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorMap {
    /// The buffer that the map describes.
    pub buffer: String,
    /// Elements in each dimension.
    pub dims: Vec<Expr>,
    /// Bytes from one index to the next, for every dimension but the first.
    pub strides: Vec<Expr>,
    /// `box`: elements that one copy moves in each dimension.
    pub box_dims: Vec<Expr>,
    /// Steps between the elements that are taken; all 1 when empty.
    pub element_strides: Vec<Expr>,
    /// How the copy permutes 16-byte chunks in shared memory.
    pub swizzle: Swizzle,
    /// Interleaved layout of the buffer.
    pub interleave: Interleave,
    /// How much the second-level cache fetches.
    pub l2: Promotion,
    /// What is read outside of the tensor.
    pub oob: OutOfBounds,
    /// Where it was written.
    pub spot: Spot,
}

/// A word list that reads and prints itself, the first word being the default.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $first:ident $first_text:literal, $($variant:ident $text:literal),* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name { #[default] $first, $($variant),* }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<$name, String> {
                match text {
                    $first_text => Ok($name::$first),
                    $($text => Ok($name::$variant),)*
                    _ => {
                        let expected = [$first_text, $($text),*].join(", ");
                        Err(format!(concat!("unknown ", $what, " `{}`: expected one of {}"), text, expected))
                    }
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(match self { $name::$first => $first_text, $($name::$variant => $text),* })
            }
        }
    };
}

words!(
    /// `swizzle`.
    Swizzle, "swizzle" { None "none", B32 "32B", B64 "64B", B128 "128B" }
);
words!(
    /// `interleave`.
    Interleave, "interleave" { None "none", B16 "16B", B32 "32B" }
);
words!(
    /// `l2`.
    Promotion, "l2 promotion" { None "none", B64 "64B", B128 "128B", B256 "256B" }
);
words!(
    /// `oob`.
    OutOfBounds, "out-of-bounds fill" { Zero "zero", Nan "nan" }
);

/// A tensor map with its expressions evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedMap {
    /// Index of the buffer in the recipe.
    pub buffer: usize,
    /// Elements in each dimension, fastest first.
    pub dims: Vec<u64>,
    /// Bytes from one index to the next, for every dimension but the first.
    pub strides: Vec<u64>,
    /// Elements that one copy moves in each dimension.
    pub box_dims: Vec<u32>,
    /// Steps between the elements that are taken.
    pub element_strides: Vec<u32>,
    /// How the copy permutes 16-byte chunks in shared memory.
    pub swizzle: Swizzle,
    /// Interleaved layout of the buffer.
    pub interleave: Interleave,
    /// How much the second-level cache fetches.
    pub l2: Promotion,
    /// What is read outside of the tensor.
    pub oob: OutOfBounds,
}

impl TensorMap {
    /// Evaluates the map; the bounds are those of cuTensorMapEncodeTiled.
    pub(crate) fn resolve(&self, buffer: usize, names: &Names) -> Result<ResolvedMap, Fault> {
        let rank = self.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(Fault::new(self.spot, format!("tensor map has {rank} dimensions: expected 1 to 5")));
        }
        self.same_count("strides", self.strides.len(), rank - 1)?;
        self.same_count("box", self.box_dims.len(), rank)?;
        let ones = vec![Expr::from(1u32); rank];
        let element_strides = if self.element_strides.is_empty() { &ones } else { &self.element_strides };
        self.same_count("element_strides", element_strides.len(), rank)?;
        let narrow = |value: u64| value as u32;
        Ok(ResolvedMap {
            buffer,
            dims: list("dims", &self.dims, names, 1, 1 << 32)?,
            strides: list("strides", &self.strides, names, 16, (1 << 40) - 1)?,
            box_dims: list("box", &self.box_dims, names, 1, 256)?.into_iter().map(narrow).collect(),
            element_strides: list("element_strides", element_strides, names, 1, 8)?.into_iter().map(narrow).collect(),
            swizzle: self.swizzle,
            interleave: self.interleave,
            l2: self.l2,
            oob: self.oob,
        })
    }

    fn same_count(&self, what: &str, found: usize, expected: usize) -> Result<(), Fault> {
        if found == expected {
            return Ok(());
        }
        let message = format!("tensor map of `{}` has {found} {what}: expected {expected}", self.buffer);
        Err(Fault::new(self.spot, message))
    }
}

fn list(what: &str, exprs: &[Expr], names: &Names, least: u64, most: u64) -> Result<Vec<u64>, Fault> {
    exprs.iter().map(|expr| bounded(what, expr, names, least, most)).collect()
}
