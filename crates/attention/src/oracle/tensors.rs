//! What goes into attention and what comes out, unpacked from dtype and layout: (batch, heads, rows, columns), contiguous.

use half::{bf16, f16};
use rayon::prelude::*;

use crate::problem::{DType, Located, Shape};
use crate::scoring::{At, ScoreKind};
use crate::visibility::{Lengths, Visibility};
use crate::{Error, Problem};

/// Q, K and V, and what else the problem reads.
pub struct Inputs {
    pub(super) q: Vec<f32>,
    pub(super) k: Vec<f32>,
    pub(super) v: Vec<f32>,
    /// What the score reads, one for each head.
    numbers: Vec<f32>,
    /// A logit for each head, which only the sum counts.
    pub(super) sinks: Vec<f32>,
    /// The documents of queries and of keys, as (batch, rows).
    documents: Option<[Vec<u32>; 2]>,
}

impl Inputs {
    /// From bits of the problem's dtype, in its layout.
    pub fn from_bits(problem: &Problem, q: &[u16], k: &[u16], v: &[u16]) -> Result<Inputs, Error> {
        let decode = |tensor, bits, shape| unpack(problem, tensor, bits, shape, |bits| decode(problem.dtype(), bits));
        Ok(Inputs {
            q: decode("q", q, problem.q_shape())?,
            k: decode("k", k, problem.k_shape())?,
            v: decode("v", v, problem.v_shape())?,
            numbers: vec![],
            sinks: vec![],
            documents: None,
        })
    }

    /// From values in the problem's layout, rounded to its dtype first.
    pub fn from_values(problem: &Problem, q: &[f32], k: &[f32], v: &[f32]) -> Result<Inputs, Error> {
        let round =
            |tensor, values, shape| unpack(problem, tensor, values, shape, |value| Ok(round(problem.dtype(), value)));
        Ok(Inputs {
            q: round("q", q, problem.q_shape())?,
            k: round("k", k, problem.k_shape())?,
            v: round("v", v, problem.v_shape())?,
            numbers: vec![],
            sinks: vec![],
            documents: None,
        })
    }

    /// With a number for each head, which the score reads: ALiBi its slopes.
    pub fn with_numbers(self, numbers: Vec<f32>) -> Inputs {
        Inputs { numbers, ..self }
    }

    /// With a logit for each head, which only the sum of the softmax counts.
    pub fn with_sinks(self, sinks: Vec<f32>) -> Inputs {
        Inputs { sinks, ..self }
    }

    /// With the document of each query and of each key, as (batch, rows).
    pub fn with_documents(self, queries: Vec<u32>, keys: Vec<u32>) -> Inputs {
        Inputs { documents: Some([queries, keys]), ..self }
    }

    /// Whether these are inputs of `problem`, and not of another one.
    pub(super) fn check(&self, problem: &Problem) -> Result<(), Error> {
        check_length(problem, "q", self.q.len(), problem.q_shape().elements())?;
        check_length(problem, "k", self.k.len(), problem.k_shape().elements())?;
        check_length(problem, "v", self.v.len(), problem.v_shape().elements())?;
        let heads = problem.heads() as usize;
        if problem.score() == ScoreKind::Alibi || !self.numbers.is_empty() {
            check_length(problem, "slopes", self.numbers.len(), heads)?;
        }
        check_length(problem, "sinks", self.sinks.len(), if problem.sinks() { heads } else { 0 })?;
        if !problem.documents() && self.documents.is_none() {
            return Ok(());
        }
        let [queries, keys] = self.documents.as_ref().map_or([0, 0], |documents| documents.each_ref().map(Vec::len));
        check_length(problem, "q_ids", queries, rows(problem.q_shape()))?;
        check_length(problem, "k_ids", keys, rows(problem.k_shape()))
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
        Outputs::unpacked(problem, output, log_sum_exp, |bits| decode(problem.dtype(), bits).map(f64::from))
    }

    /// From values of O in the problem's layout, and the log-sum-exp as (batch, heads, queries).
    pub fn from_values(problem: &Problem, output: &[f32], log_sum_exp: &[f32]) -> Result<Outputs, Error> {
        Outputs::unpacked(problem, output, log_sum_exp, |value| Ok(f64::from(value)))
    }

    fn unpacked<T: Copy>(
        problem: &Problem,
        output: &[T],
        log_sum_exp: &[f32],
        convert: impl Fn(T) -> Result<f64, Error>,
    ) -> Result<Outputs, Error> {
        let outputs = Outputs {
            output: unpack(problem, "o", output, problem.o_shape(), convert)?,
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
    /// How many queries and keys its sequence has.
    pub of: Lengths,
    pub head: u32,
    /// What the score reads for the head.
    pub number: f32,
    /// The logit that only the sum counts.
    pub sink: Option<f32>,
    /// The query's document, and those of the keys.
    documents: Option<(u32, &'a [u32])>,
    pub query_index: u32,
    pub query: &'a [f32],
    pub keys: &'a [f32],
    pub values: &'a [f32],
}

impl Row<'_> {
    /// The keys that the query sees.
    pub fn seen(&self, visibility: &dyn Visibility) -> Vec<usize> {
        let of = self.of;
        let same = |key: usize| self.documents.is_none_or(|(document, of_keys)| of_keys[key] == document);
        (0..of.keys as usize).filter(|&key| same(key) && visibility.sees(self.query_index, key as u32, of)).collect()
    }

    /// Without documents, or without its sink: what a negative control forgets.
    pub fn forgetting(self, forgotten: Forgotten) -> Self {
        match forgotten {
            Forgotten::Nothing => self,
            Forgotten::Sink => Row { sink: None, ..self },
            Forgotten::Documents => Row { documents: None, ..self },
        }
    }

    /// Whose score it is.
    pub fn at(&self, key: usize) -> At {
        At { head: self.head, number: self.number, query: self.query_index, key: key as u32, of: self.of }
    }
}

/// What a wrong computation may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    Nothing,
    Sink,
    Documents,
}

/// The outcome for one query: its row of O and its log-sum-exp.
pub(super) type Attended = (Vec<f64>, f64);

/// Computes each query on its own: the result does not depend on how many threads share the work.
pub(super) fn for_each_query(problem: &Problem, inputs: &Inputs, compute: impl Fn(Row) -> Attended + Sync) -> Outputs {
    let rows = problem.o_shape().elements() / problem.value_dim() as usize;
    let attended: Vec<Attended> = (0..rows).into_par_iter().map(|row| compute(row_of(problem, inputs, row))).collect();
    let log_sum_exp = attended.iter().map(|(_, log_sum_exp)| *log_sum_exp).collect();
    Outputs { output: attended.into_iter().flat_map(|(output, _)| output).collect(), log_sum_exp }
}

fn row_of<'a>(problem: &Problem, inputs: &'a Inputs, row: usize) -> Row<'a> {
    let Located { batch, head, query, of, queries_before, keys_before } = problem.locate(row);
    let [head_dim, value_dim, keys] = [problem.head_dim(), problem.value_dim(), of.keys].map(|count| count as usize);
    let kv_head = problem.kv_head(head as u32) as usize;
    let first_key = match problem.packed() {
        Some(_) => kv_head * problem.k_shape().rows as usize + keys_before,
        None => (batch * problem.kv_heads() as usize + kv_head) * keys,
    };
    Row {
        of,
        head: head as u32,
        number: inputs.numbers.get(head).copied().unwrap_or_default(),
        sink: inputs.sinks.get(head).copied(),
        documents: inputs
            .documents
            .as_ref()
            .map(|[of_queries, of_keys]| (of_queries[queries_before + query], &of_keys[keys_before..][..keys])),
        query_index: query as u32,
        query: &inputs.q[row * head_dim..][..head_dim],
        keys: &inputs.k[first_key * head_dim..][..keys * head_dim],
        values: &inputs.v[first_key * value_dim..][..keys * value_dim],
    }
}

fn rows(shape: Shape) -> usize {
    shape.batch as usize * shape.rows as usize
}

/// The nearest value of the dtype, ties to even.
pub(super) fn round(dtype: DType, value: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(value).to_f32(),
        DType::Bf16 => bf16::from_f32(value).to_f32(),
        DType::F32 => value,
    }
}

/// The bits of a kernel's type.
fn decode(dtype: DType, bits: u16) -> Result<f32, Error> {
    match dtype {
        DType::F16 => Ok(f16::from_bits(bits).to_f32()),
        DType::Bf16 => Ok(bf16::from_bits(bits).to_f32()),
        DType::F32 => Err(Error::KernelType { found: dtype }),
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
    convert: impl Fn(T) -> Result<U, Error>,
) -> Result<Vec<U>, Error> {
    check_length(problem, tensor, elements.len(), shape.elements())?;
    let [batch_stride, head_stride, row_stride] = shape.strides();
    let mut unpacked = Vec::with_capacity(elements.len());
    for batch in 0..shape.batch as usize {
        for head in 0..shape.heads as usize {
            for row in 0..shape.rows as usize {
                let start = batch * batch_stride + head * head_stride + row * row_stride;
                for element in &elements[start..][..shape.columns as usize] {
                    unpacked.push(convert(*element)?);
                }
            }
        }
    }
    Ok(unpacked)
}
