//! `[attention]`: which buffers and arguments of a kernel mean what, so that it can be judged as attention.

use std::fmt;

use crate::buffer::Float;
use crate::expr::Expr;

/// The `[attention]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionContract {
    /// The buffer of the queries.
    pub q: String,
    /// The buffer of the keys.
    pub k: String,
    /// The buffer of the values.
    pub v: String,
    /// The buffer of the output.
    pub o: String,
    /// The buffer of the logarithms of the sums, if the kernel writes them.
    pub lse: Option<String>,
    /// Which argument carries the scale of the scores.
    pub scale: Option<Scale>,
    /// How the tensors lie in memory.
    pub layout: Layout,
    /// Which scores count.
    pub mask: Mask,
    /// What becomes of scores.
    pub score: Score,
    /// The buffer of one logit for each head, which only the sum of the softmax counts.
    pub sinks: Option<String>,
    /// The buffers of the documents' numbers: a query sees keys of its own.
    pub documents: Option<Pair>,
    /// The buffers that say where sequences begin and the last one ends, if they have lengths of their own and lie one
    /// behind the other.
    pub cumulative: Option<Pair>,
    /// The sizes of the problem.
    pub lengths: Lengths,
}

/// `scale = { arg = "scale_log2", factor = "log2e" }`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// The argument's name.
    pub arg: String,
    /// What the scale is multiplied with before it is passed.
    pub factor: Factor,
}

/// The factor in an argument that carries the scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Factor {
    /// `"log2e"`: the kernel computes powers of two.
    Log2E,
    /// A number; 1 when not given.
    Value(Float),
}

impl AttentionContract {
    /// Buffers of numbers that the kernel reads besides queries, keys and values.
    pub fn numbers(&self) -> Vec<&String> {
        let slopes = match &self.score {
            Score::Alibi(slopes) => Some(slopes),
            Score::Plain | Score::SoftCap(_) => None,
        };
        let documents = self.documents.iter().chain(&self.cumulative).flat_map(|Pair { q, k }| [q, k]);
        slopes.into_iter().chain(&self.sinks).chain(documents).collect()
    }
}

impl Factor {
    /// The factor as a number.
    pub fn value(self) -> f64 {
        match self {
            Factor::Log2E => std::f64::consts::LOG2_E,
            Factor::Value(value) => value.0,
        }
    }
}

/// How queries, keys, values and output lie in memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Layout {
    /// Batch, heads, sequence, dimension; the last is contiguous.
    Bhsd,
    /// Batch, sequence, heads, dimension; the last is contiguous.
    Bshd,
    /// `strides = { q = [..], .. }`: strides in elements of batch, heads, sequence and dimension.
    Strides(Box<Strides>),
}

/// Strides in elements of batch, heads, sequence and dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Strides {
    /// Of the queries.
    pub q: [Expr; 4],
    /// Of the keys.
    pub k: [Expr; 4],
    /// Of the values.
    pub v: [Expr; 4],
    /// Of the output.
    pub o: [Expr; 4],
}

/// Which scores count.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Mask {
    /// `none`: all.
    #[default]
    None,
    /// `causal-top-left`: query i sees keys up to i.
    CausalTopLeft,
    /// `causal-bottom-right`: the last query sees all keys.
    CausalBottomRight,
    /// `window(l,r)`: l keys to the left and r to the right of the diagonal.
    Window(Expr, Expr),
}

impl fmt::Display for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mask::None => formatter.write_str("none"),
            Mask::CausalTopLeft => formatter.write_str("causal-top-left"),
            Mask::CausalBottomRight => formatter.write_str("causal-bottom-right"),
            Mask::Window(left, right) => write!(formatter, "window({left},{right})"),
        }
    }
}

/// `{ q = "q_ids", k = "k_ids" }`: a buffer for the queries, and one for the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// For the queries.
    pub q: String,
    /// For the keys.
    pub k: String,
}

/// What becomes of a scaled score.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Score {
    /// `plain`: nothing.
    #[default]
    Plain,
    /// `softcap(c)`: it becomes `c · tanh(score / c)`.
    SoftCap(Float),
    /// `alibi(slopes)`: a buffer has a slope for each head, and the distance times the slope is subtracted.
    Alibi(String),
}

impl fmt::Display for Score {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Score::Plain => formatter.write_str("plain"),
            Score::SoftCap(cap) => write!(formatter, "softcap({cap})"),
            Score::Alibi(slopes) => write!(formatter, "alibi({slopes})"),
        }
    }
}

/// The sizes of the problem: names from `[let]`, or expressions.
#[derive(Debug, Clone, PartialEq)]
pub struct Lengths {
    /// Queries per sequence.
    pub q: Expr,
    /// Keys per sequence.
    pub k: Expr,
    /// Sequences.
    pub batch: Expr,
    /// Query heads.
    pub heads: Expr,
    /// Key and value heads; as many as query heads when not given.
    pub kv_heads: Option<Expr>,
    /// Elements per head, of queries and keys.
    pub dim: Expr,
    /// Elements per head, of values and output; as many as `dim` when not given.
    pub value_dim: Option<Expr>,
}
