//! The recipe as written: names and expressions, nothing evaluated.

use std::fmt;

use crate::assertion::Assertions;
use crate::buffer::{Float, Init};
use crate::contract::AttentionContract;
use crate::element::{Element, Value};
use crate::error::{Error, Fault};
use crate::expectation::{Expect, Tolerance};
use crate::expr::{Expr, Names};
use crate::source::{Source, Spot};
use crate::tensor_map::TensorMap;

/// Buffers and launches: everything a kernel needs beside its PTX.
///
/// Two recipes are equal when they say the same, wherever they were written.
///
/// ```
/// use launch::Recipe;
///
/// let text = r#"
///     [buffer.out]
///     type = "f32"
///     shape = [256]
///     [[launch]]
///     grid = [1, 1, 1]
///     block = [256, 1, 1]
///     args = [{ buffer = "out" }]
/// "#;
/// let recipe = Recipe::parse("kernel.toml", text)?;
/// assert_eq!(Recipe::parse("again", &recipe.to_toml())?, recipe);
/// # Ok::<(), launch::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recipe {
    /// The PTX file, where the recipe is a `kernel.toml` that names it.
    pub ptx: Option<String>,
    /// `target`: the architecture that the module is loaded for in place of the one in its text.
    pub target: Option<ptx::Target>,
    /// `gpu`: the architecture that it is launched on, where that is later than what the module is compiled for.
    pub gpu: Option<ptx::Target>,
    /// `[let]`: named integers in order; each may use those before it.
    pub lets: Vec<(String, Expr)>,
    /// `[buffer.NAME]` in order.
    pub buffers: Vec<Buffer>,
    /// `[[launch]]` in order.
    pub launches: Vec<Launch>,
    /// `[attention]`, where the kernel computes attention.
    pub attention: Option<AttentionContract>,
    /// `[assertions]`, where the kernel makes some about itself.
    pub assertions: Option<Assertions>,
    /// The text it was read from, for errors and for the folder of its files.
    pub source: Source,
}

/// Memory that exists once, whoever points to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    /// The name that arguments use.
    pub name: String,
    /// `type`.
    pub element: Element,
    /// `shape`, slowest dimension first.
    pub shape: Vec<Expr>,
    /// `init` or `file`.
    pub init: Init,
    /// `expect`: what it must hold after the last launch.
    pub expect: Option<Expect>,
    /// `expect_type`: the type of the reference where it is not the buffer's.
    pub expect_type: Option<Element>,
    /// `tolerance`.
    pub tolerance: Tolerance,
    /// Where it was written.
    pub spot: Spot,
}

impl Buffer {
    /// A buffer that nothing has written and from which nothing is expected.
    pub fn new(name: impl Into<String>, element: Element, shape: Vec<Expr>) -> Buffer {
        Buffer {
            name: name.into(),
            element,
            shape,
            init: Init::default(),
            expect: None,
            expect_type: None,
            tolerance: Tolerance::default(),
            spot: Spot::default(),
        }
    }

    /// The type of what `expect` lists.
    pub(crate) fn reference(&self) -> Element {
        match self.expect {
            Some(Expect::Product(_)) => Element::F64,
            _ => self.expect_type.unwrap_or(self.element),
        }
    }
}

/// One launch of one entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// `entry`; not needed when the module has one.
    pub entry: Option<String>,
    /// Blocks in x, y and z.
    pub grid: [Expr; 3],
    /// Threads in x, y and z.
    pub block: [Expr; 3],
    /// Blocks per cluster in x, y and z.
    pub cluster: Option<[Expr; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared: Expr,
    /// How many times the launch runs.
    pub repeat: Expr,
    /// May it start before the launch before it is complete? Programmatic dependent launch.
    pub overlap: bool,
    /// Arguments in the order of the parameters.
    pub args: Vec<Argument>,
    /// Where it was written.
    pub spot: Spot,
}

impl Launch {
    /// One launch of the module's only entry, without arguments.
    pub fn new(grid: [Expr; 3], block: [Expr; 3]) -> Launch {
        Launch {
            entry: None,
            grid,
            block,
            cluster: None,
            shared: Expr::from(0u32),
            repeat: Expr::from(1u32),
            overlap: false,
            args: Vec::new(),
            spot: Spot::default(),
        }
    }
}

/// One argument of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// `name`: optional, for errors and for `[attention]`.
    pub name: Option<String>,
    /// What is passed.
    pub value: ArgumentValue,
    /// Where it was written.
    pub spot: Spot,
}

impl Argument {
    /// An argument without a name.
    pub fn new(value: ArgumentValue) -> Argument {
        Argument { name: None, value, spot: Spot::default() }
    }

    /// A pointer to the start of a buffer.
    pub fn buffer(name: impl Into<String>) -> Argument {
        Argument::new(ArgumentValue::Buffer { buffer: name.into(), offset: Expr::from(0u32) })
    }
}

/// What an argument passes.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentValue {
    /// `{ buffer = "x", offset = 0 }`: a pointer, the offset in bytes.
    Buffer {
        /// The buffer's name.
        buffer: String,
        /// Bytes from its start.
        offset: Expr,
    },
    /// `{ u32 = "n" }`: a number of a type.
    Scalar(Element, Number),
    /// `{ null = true }`.
    Null,
    /// `{ map = "k", … }`: a tensor map over a buffer.
    Map(TensorMap),
    /// `{ bytes = "params.bin", patch = […] }`: a struct by value.
    Bytes {
        /// The file that holds it.
        file: String,
        /// What is put into it afterwards.
        patches: Vec<Patch>,
    },
}

/// `{ at = 16, buffer = "x" }`: bytes of a struct that are only known at the launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Bytes from the start of the struct.
    pub at: Expr,
    /// What is written there; never [`ArgumentValue::Bytes`].
    pub value: ArgumentValue,
}

/// An integer expression, or a float.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// An integer expression.
    Integer(Expr),
    /// A float.
    Float(Float),
}

impl Number {
    /// Reads a float literal, or else an expression.
    pub(crate) fn parse_at(text: &str, spot: Spot) -> Result<Number, Fault> {
        let literal = text.trim();
        match literal.parse::<f64>() {
            Ok(value) if literal.parse::<i128>().is_err() => Ok(Number::Float(Float(value))),
            _ => Ok(Number::Integer(Expr::parse_at(text, spot)?)),
        }
    }

    /// The value with the given names.
    pub fn evaluate(&self, names: &Names) -> Result<Value, Fault> {
        match self {
            Number::Integer(expr) => Ok(Value::Integer(expr.evaluate(names)?)),
            Number::Float(value) => Ok(Value::Float(value.0)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(expr) => write!(formatter, "{expr}"),
            Number::Float(value) => write!(formatter, "{value}"),
        }
    }
}

impl Recipe {
    /// Reads a `kernel.toml`; `name` is its path, which errors show and to which file names in it are relative.
    pub fn parse(name: &str, text: &str) -> Result<Recipe, Error> {
        crate::read::recipe(text, Source::new(name, text))
    }

    /// The buffer of that name.
    pub fn buffer(&self, name: &str) -> Option<&Buffer> {
        self.buffers.iter().find(|buffer| buffer.name == name)
    }
}
