//! Whether what a kernel left is right, for problems that are too large to compute in full: some rows, drawn at random, by the same
//! oracle and the same rule.

use attention::Problem;
use attention::oracle::{Inputs, Oracle, Outputs};
use attention::problem::Shape;
use attention::scoring::ScoreKind;
use launch::Memory;

use crate::case::Case;
use crate::figures::Figure;

/// Products of a query and a key up to which a problem is computed in full.
const SMALL: f64 = 2e8;
/// Rows of a large one.
const ROWS: usize = 24;

/// How many rows of a problem are computed, and how many it has.
pub fn count(problem: &Problem) -> [usize; 2] {
    let all = problem.o_shape().elements() / problem.value_dim() as usize;
    [if is_small(problem) { all } else { ROWS }, all]
}

fn is_small(problem: &Problem) -> bool {
    let rows = problem.o_shape().elements() as f64 / f64::from(problem.value_dim());
    rows * f64::from(problem.lengths().keys) <= SMALL
}

/// The largest error in units of what is allowed: at most one if the results are right.
pub fn error(case: &Case, memory: &Memory, seed: u64) -> Result<Figure, String> {
    let problem = &case.problem;
    let words = |error: attention::Error| error.to_string();
    if is_small(problem) {
        return case.judge(memory).map(|parity| Figure::new(parity.ratio())).map_err(words);
    }
    if problem.packed().is_some() || problem.sinks() || problem.documents() || problem.score() == ScoreKind::Alibi {
        return Err(format!("{problem} is too large to be computed in full, and its rows do not stand alone"));
    }
    let (sample, inputs, outputs) = Sample::draw(case, memory, seed).map_err(words)?;
    let oracle = Oracle::new(&sample, &inputs).map_err(words)?;
    let parity = oracle.judge(&outputs).map_err(words)?;
    Ok(Figure::new(parity.ratio()))
}

/// The rows as a problem of their own: sequences of one query, each with the keys that it sees.
struct Sample {
    q: Vec<u16>,
    k: Vec<u16>,
    v: Vec<u16>,
    o: Vec<u16>,
    lse: Vec<f32>,
    places: Vec<u32>,
}

impl Sample {
    fn draw(case: &Case, memory: &Memory, seed: u64) -> Result<(Problem, Inputs, Outputs), attention::Error> {
        let problem = &case.problem;
        let mut random = fastrand::Rng::with_seed(seed);
        let rows = problem.o_shape().elements() / problem.value_dim() as usize;
        let tensors = Tensors::of(case, memory);
        let mut sample = Sample { q: vec![], k: vec![], v: vec![], o: vec![], lse: vec![], places: vec![0] };
        for _ in 0..ROWS {
            sample.add(problem, &tensors, random.usize(..rows));
        }
        let queries = (0..=ROWS as u32).collect();
        let own = Problem::builder()
            .batch(ROWS as u32)
            .heads(1)
            .kv_heads(1)
            .head_dim(problem.head_dim())
            .value_dim(problem.value_dim())
            .dtype(problem.dtype())
            .score(problem.score())
            .scale(problem.scale())
            .cumulative_queries(queries)
            .cumulative_keys(sample.places)
            .build()?;
        let inputs = Inputs::from_bits(&own, &sample.q, &sample.k, &sample.v)?;
        let lse = match tensors.lse {
            Some(_) => sample.lse,
            // A kernel without a log-sum-exp is given the right one.
            None => Oracle::new(&own, &inputs)?.exact().log_sum_exp().iter().map(|value| *value as f32).collect(),
        };
        let outputs = Outputs::from_bits(&own, &sample.o, &lse)?;
        Ok((own, inputs, outputs))
    }

    fn add(&mut self, problem: &Problem, tensors: &Tensors, row: usize) {
        let located = problem.locate(row);
        let (head, query) = (located.head, located.query);
        let kv_head = problem.kv_head(head as u32) as usize;
        self.q.extend(tensors.q.row(located.batch, head, query));
        self.o.extend(tensors.o.row(located.batch, head, query));
        self.lse.extend(tensors.lse.as_ref().map(|lse| lse[row]));
        for key in problem.mask().interval(query as u32, located.of) {
            self.k.extend(tensors.k.row(located.batch, kv_head, key as usize));
            self.v.extend(tensors.v.row(located.batch, kv_head, key as usize));
        }
        self.places.push((self.k.len() / problem.head_dim() as usize) as u32);
    }
}

struct Tensors {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Option<Vec<f32>>,
}

impl Tensors {
    fn of(case: &Case, memory: &Memory) -> Tensors {
        let contract = &case.contract;
        let bytes = |name: &str| memory.buffer(name).map_or(vec![], |buffer| buffer.contents.to_vec());
        let tensor = |name: &str, shape| Tensor { bytes: bytes(name), shape };
        let float = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        Tensors {
            q: tensor(&contract.q, case.problem.q_shape()),
            k: tensor(&contract.k, case.problem.k_shape()),
            v: tensor(&contract.v, case.problem.v_shape()),
            o: tensor(&contract.o, case.problem.o_shape()),
            lse: contract.lse.as_ref().map(|lse| bytes(lse).chunks_exact(4).map(float).collect()),
        }
    }
}

struct Tensor {
    bytes: Vec<u8>,
    shape: Shape,
}

impl Tensor {
    fn row(&self, batch: usize, head: usize, row: usize) -> impl Iterator<Item = u16> + '_ {
        let [of_batch, of_head, of_row] = self.shape.strides();
        let first = 2 * (batch * of_batch + head * of_head + row * of_row);
        let bytes = &self.bytes[first..][..2 * self.shape.columns as usize];
        bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
    }
}
