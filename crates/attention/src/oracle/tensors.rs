//! What goes into attention and what comes out, unpacked from dtype and layout: (batch, heads, rows, columns), contiguous.

use half::{bf16, f16};
use rayon::prelude::*;

use crate::problem::{DType, Shape};
use crate::{Error, Problem};

/// Q, K and V.
pub struct Inputs {
    pub(super) q: Vec<f32>,
    pub(super) k: Vec<f32>,
    pub(super) v: Vec<f32>,
}

impl Inputs {
    /// From bits of the problem's dtype, in its layout.
    pub fn from_bits(problem: &Problem, q: &[u16], k: &[u16], v: &[u16]) -> Result<Inputs, Error> {
        let decode = |tensor, bits, shape| unpack(problem, tensor, bits, shape, |bits| decode(problem.dtype(), bits));
        Ok(Inputs {
            q: decode("q", q, problem.q_shape())?,
            k: decode("k", k, problem.k_shape())?,
            v: decode("v", v, problem.v_shape())?,
        })
    }

    /// From values in the problem's layout, rounded to its dtype first.
    pub fn from_values(problem: &Problem, q: &[f32], k: &[f32], v: &[f32]) -> Result<Inputs, Error> {
        let round =
            |tensor, values, shape| unpack(problem, tensor, values, shape, |value| round(problem.dtype(), value));
        Ok(Inputs {
            q: round("q", q, problem.q_shape())?,
            k: round("k", k, problem.k_shape())?,
            v: round("v", v, problem.v_shape())?,
        })
    }

    /// Whether these are inputs of `problem`, and not of another one.
    pub(super) fn check(&self, problem: &Problem) -> Result<(), Error> {
        check_length(problem, "q", self.q.len(), problem.q_shape().elements())?;
        check_length(problem, "k", self.k.len(), problem.k_shape().elements())?;
        check_length(problem, "v", self.v.len(), problem.v_shape().elements())
    }
}

/// O and the log-sum-exp. In float64, which holds what any dtype holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    pub(super) output: Vec<f64>,
    pub(super) log_sum_exp: Vec<f64>,
}

impl Outputs {
    /// From what a kernel wrote: O in the problem's dtype and layout, the log-sum-exp as (batch, heads, queries).
    pub fn from_bits(problem: &Problem, output: &[u16], log_sum_exp: &[f32]) -> Result<Outputs, Error> {
        let decode = |bits| f64::from(decode(problem.dtype(), bits));
        let outputs = Outputs {
            output: unpack(problem, "o", output, problem.o_shape(), decode)?,
            log_sum_exp: log_sum_exp.iter().copied().map(f64::from).collect(),
        };
        outputs.check(problem)?;
        Ok(outputs)
    }

    /// O as (batch, heads, queries, columns).
    pub fn output(&self) -> &[f64] {
        &self.output
    }

    /// The log-sum-exp as (batch, heads, queries); −∞ where a query sees no key.
    pub fn log_sum_exp(&self) -> &[f64] {
        &self.log_sum_exp
    }

    pub(super) fn check(&self, problem: &Problem) -> Result<(), Error> {
        let shape = problem.o_shape();
        check_length(problem, "o", self.output.len(), shape.elements())?;
        check_length(problem, "lse", self.log_sum_exp.len(), shape.elements() / shape.columns as usize)
    }

    pub(super) fn same_bits(&self, other: &Outputs) -> bool {
        let same = |left: &[f64], right: &[f64]| left.iter().map(|x| x.to_bits()).eq(right.iter().map(|x| x.to_bits()));
        same(&self.output, &other.output) && same(&self.log_sum_exp, &other.log_sum_exp)
    }
}

/// One query of one head, with the keys and values of that head.
pub(super) struct Row<'a> {
    pub query_index: u32,
    pub query: &'a [f32],
    pub keys: &'a [f32],
    pub values: &'a [f32],
}

/// The outcome for one query: its row of O and its log-sum-exp.
pub(super) type Attended = (Vec<f64>, f64);

/// Computes each query on its own: the result does not depend on how many threads share the work.
pub(super) fn for_each_query(problem: &Problem, inputs: &Inputs, compute: impl Fn(Row) -> Attended + Sync) -> Outputs {
    let rows = problem.batch() as usize * problem.heads() as usize * problem.queries() as usize;
    let attended: Vec<Attended> = (0..rows).into_par_iter().map(|row| compute(row_of(problem, inputs, row))).collect();
    let log_sum_exp = attended.iter().map(|(_, log_sum_exp)| *log_sum_exp).collect();
    Outputs { output: attended.into_iter().flat_map(|(output, _)| output).collect(), log_sum_exp }
}

fn row_of<'a>(problem: &Problem, inputs: &'a Inputs, row: usize) -> Row<'a> {
    let [heads, kv_heads, queries, keys] =
        [problem.heads(), problem.kv_heads(), problem.queries(), problem.keys()].map(|count| count as usize);
    let [head_dim, value_dim] = [problem.head_dim(), problem.value_dim()].map(|count| count as usize);
    let (batch, head) = (row / queries / heads, row / queries % heads);
    let kv = batch * kv_heads + problem.kv_head(head as u32) as usize;
    Row {
        query_index: (row % queries) as u32,
        query: &inputs.q[row * head_dim..][..head_dim],
        keys: &inputs.k[kv * keys * head_dim..][..keys * head_dim],
        values: &inputs.v[kv * keys * value_dim..][..keys * value_dim],
    }
}

/// The nearest value of the dtype, ties to even.
pub(super) fn round(dtype: DType, value: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(value).to_f32(),
        DType::Bf16 => bf16::from_f32(value).to_f32(),
    }
}

fn decode(dtype: DType, bits: u16) -> f32 {
    match dtype {
        DType::F16 => f16::from_bits(bits).to_f32(),
        DType::Bf16 => bf16::from_bits(bits).to_f32(),
    }
}

fn check_length(problem: &Problem, tensor: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found != expected {
        return Err(Error::Length { tensor, found, expected, problem: problem.to_string() });
    }
    Ok(())
}

/// Gathers rows in canonical order out of whatever layout they are stored in.
fn unpack<T: Copy, U>(
    problem: &Problem,
    tensor: &'static str,
    elements: &[T],
    shape: Shape,
    convert: impl Fn(T) -> U,
) -> Result<Vec<U>, Error> {
    check_length(problem, tensor, elements.len(), shape.elements())?;
    let [batch_stride, head_stride, row_stride] = shape.strides();
    let mut unpacked = Vec::with_capacity(elements.len());
    for batch in 0..shape.batch as usize {
        for head in 0..shape.heads as usize {
            for row in 0..shape.rows as usize {
                let start = batch * batch_stride + head * head_stride + row * row_stride;
                unpacked.extend(elements[start..][..shape.columns as usize].iter().map(|&element| convert(element)));
            }
        }
    }
    Ok(unpacked)
}
