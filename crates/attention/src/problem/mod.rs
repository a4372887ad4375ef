//! What to compute, and nothing about how.
//!
//! A [`Problem`] is always valid: it comes out of [`ProblemBuilder::build`] or out of its own text (`text.rs`).

mod packed;
mod text;

pub use packed::{Located, Packed, lengths};

use std::ops::RangeInclusive;

use crate::Error;
use crate::scoring::{ScoreKind, Scoring};
use crate::visibility::{Lengths, MaskKind, Visibility};

/// The most elements one tensor may have: offsets in bytes stay far inside 64 bits, and in elements inside a `usize`.
const MAX_ELEMENTS: u128 = 1 << 40;

/// The largest scale: a power of two whose product with log2 e, which the softmax multiplies with, is finite.
const MOST_SCALE: f32 = f32::from_bits((127 + 127) << 23);

/// Columns that a head may have at most.
pub const MOST_COLUMNS: u32 = 1024;

/// Columns that heads of kernels may have, in eights.
pub const HEAD_DIMS: RangeInclusive<u32> = 16..=256;

/// Columns of one head: `head` of Q and K, `value` of V and O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    pub head: u32,
    pub value: u32,
}

/// The type of Q, K, V and O. Scores, softmax and log-sum-exp are f32 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DType {
    #[default]
    F16,
    Bf16,
    /// On the CPU backend alone.
    F32,
}

impl DType {
    /// Of one element.
    pub fn bytes(self) -> usize {
        match self {
            DType::F16 | DType::Bf16 => 2,
            DType::F32 => 4,
        }
    }
}

/// The order of the dimensions of Q, K, V and O. The log-sum-exp is (batch, heads, queries) in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// (batch, heads, rows, columns)
    #[default]
    Bhsd,
    /// (batch, rows, heads, columns)
    Bshd,
}

/// One attention problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    batch: u32,
    heads: u32,
    kv_heads: u32,
    /// The longest of packed sequences.
    lengths: Lengths,
    packed: Option<Packed>,
    dims: Dims,
    dtype: DType,
    mask: MaskKind,
    score: ScoreKind,
    sinks: bool,
    documents: bool,
    scale: f32,
    layout: Layout,
}

impl Problem {
    /// Starts from the standard problem, B2 H8 S512 D64 in f16 without a mask.
    pub fn builder() -> ProblemBuilder {
        ProblemBuilder::default()
    }

    pub fn batch(&self) -> u32 {
        self.batch
    }

    pub fn heads(&self) -> u32 {
        self.heads
    }

    pub fn kv_heads(&self) -> u32 {
        self.kv_heads
    }

    /// Which K and V a head of Q reads.
    pub fn kv_head(&self, head: u32) -> u32 {
        head / (self.heads / self.kv_heads)
    }

    /// Those of every sequence, or the longest ones where they are packed.
    pub fn lengths(&self) -> Lengths {
        self.lengths
    }

    pub fn queries(&self) -> u32 {
        self.lengths.queries
    }

    pub fn keys(&self) -> u32 {
        self.lengths.keys
    }

    /// Where sequences begin, if they have lengths of their own and lie one behind the other. Q, K, V and O are then (rows,
    /// heads, columns), and the log-sum-exp is (heads, queries).
    pub fn packed(&self) -> Option<&Packed> {
        self.packed.as_ref()
    }

    pub fn dims(&self) -> Dims {
        self.dims
    }

    /// Columns of Q and K.
    pub fn head_dim(&self) -> u32 {
        self.dims.head
    }

    /// Columns of V and O.
    pub fn value_dim(&self) -> u32 {
        self.dims.value
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn mask(&self) -> MaskKind {
        self.mask
    }

    /// Which key a query sees.
    pub fn visibility(&self) -> &dyn Visibility {
        &self.mask
    }

    pub fn score(&self) -> ScoreKind {
        self.score
    }

    /// What becomes of a scaled score.
    pub fn scoring(&self) -> &dyn Scoring {
        &self.score
    }

    /// Whether each head has a logit that only the sum of the softmax counts.
    pub fn sinks(&self) -> bool {
        self.sinks
    }

    /// Whether queries and keys have documents, and a query sees only keys of its own.
    pub fn documents(&self) -> bool {
        self.documents
    }

    /// What Q·K is multiplied with before anything else.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    pub fn q_shape(&self) -> Shape {
        self.shape(self.heads, self.rows().queries, self.dims.head)
    }

    pub fn k_shape(&self) -> Shape {
        self.shape(self.kv_heads, self.rows().keys, self.dims.head)
    }

    pub fn v_shape(&self) -> Shape {
        self.shape(self.kv_heads, self.rows().keys, self.dims.value)
    }

    pub fn o_shape(&self) -> Shape {
        self.shape(self.heads, self.rows().queries, self.dims.value)
    }

    /// Rows of one head and batch entry, or of all together where they are packed.
    fn rows(&self) -> Lengths {
        self.packed.as_ref().map_or(self.lengths, Packed::totals)
    }

    fn shape(&self, heads: u32, rows: u32, columns: u32) -> Shape {
        Shape { batch: if self.packed.is_some() { 1 } else { self.batch }, heads, rows, columns, layout: self.layout }
    }
}

/// The shape of one of Q, K, V and O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub batch: u32,
    pub heads: u32,
    pub rows: u32,
    pub columns: u32,
    pub layout: Layout,
}

impl Shape {
    /// How many elements there are.
    pub fn elements(&self) -> usize {
        [self.batch, self.heads, self.rows, self.columns].iter().map(|&extent| extent as usize).product()
    }

    /// Elements from one batch entry, head and row to the next; columns are contiguous. They saturate where no memory holds the
    /// shape.
    pub fn strides(&self) -> [usize; 3] {
        let [heads, rows, columns] = [self.heads, self.rows, self.columns].map(|extent| extent as usize);
        let product =
            |extents: &[usize]| extents.iter().fold(1, |product: usize, extent| product.saturating_mul(*extent));
        match self.layout {
            Layout::Bhsd => [product(&[heads, rows, columns]), product(&[rows, columns]), columns],
            Layout::Bshd => [product(&[rows, heads, columns]), columns, product(&[heads, columns])],
        }
    }
}

/// Collects a problem; what is not said follows from the rest.
#[derive(Clone, Debug, Default)]
pub struct ProblemBuilder {
    batch: Option<u32>,
    heads: Option<u32>,
    kv_heads: Option<u32>,
    queries: Option<u32>,
    keys: Option<u32>,
    cumulative_queries: Option<Vec<u32>>,
    cumulative_keys: Option<Vec<u32>>,
    head_dim: Option<u32>,
    value_dim: Option<u32>,
    dtype: DType,
    mask: MaskKind,
    score: ScoreKind,
    sinks: bool,
    documents: bool,
    scale: Option<f32>,
    layout: Layout,
}

impl ProblemBuilder {
    pub fn batch(mut self, batch: u32) -> Self {
        self.batch = Some(batch);
        self
    }

    pub fn heads(mut self, heads: u32) -> Self {
        self.heads = Some(heads);
        self
    }

    /// Default: as many as heads.
    pub fn kv_heads(mut self, kv_heads: u32) -> Self {
        self.kv_heads = Some(kv_heads);
        self
    }

    pub fn queries(mut self, queries: u32) -> Self {
        self.queries = Some(queries);
        self
    }

    /// Default: as many as queries.
    pub fn keys(mut self, keys: u32) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sequences of different lengths, one behind the other: where each begins, and where the last one ends.
    pub fn cumulative_queries(mut self, places: Vec<u32>) -> Self {
        self.cumulative_queries = Some(places);
        self
    }

    /// Default: as those of the queries.
    pub fn cumulative_keys(mut self, places: Vec<u32>) -> Self {
        self.cumulative_keys = Some(places);
        self
    }

    pub fn head_dim(mut self, head_dim: u32) -> Self {
        self.head_dim = Some(head_dim);
        self
    }

    /// Default: the head dimension.
    pub fn value_dim(mut self, value_dim: u32) -> Self {
        self.value_dim = Some(value_dim);
        self
    }

    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    pub fn mask(mut self, mask: MaskKind) -> Self {
        self.mask = mask;
        self
    }

    pub fn score(mut self, score: ScoreKind) -> Self {
        self.score = score;
        self
    }

    /// Each head has a logit that only the sum of the softmax counts.
    pub fn sinks(mut self, sinks: bool) -> Self {
        self.sinks = sinks;
        self
    }

    /// Queries and keys have documents, and a query sees only keys of its own that the mask shows, too.
    pub fn documents(mut self, documents: bool) -> Self {
        self.documents = documents;
        self
    }

    /// Default: one over the square root of the head dimension.
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    pub fn build(self) -> Result<Problem, Error> {
        let heads = self.heads.unwrap_or(8);
        let packed = self.packed()?;
        let queries = self.queries.unwrap_or(512);
        let even = Lengths { queries, keys: self.keys.unwrap_or(queries) };
        let head_dim = self.head_dim.unwrap_or(64);
        let problem = Problem {
            batch: self.batch.unwrap_or(packed.as_ref().map_or(2, Packed::batch)),
            heads,
            kv_heads: self.kv_heads.unwrap_or(heads),
            lengths: packed.as_ref().map_or(even, Packed::longest),
            dims: Dims { head: head_dim, value: self.value_dim.unwrap_or(head_dim) },
            dtype: self.dtype,
            mask: self.mask,
            score: self.score,
            sinks: self.sinks,
            documents: self.documents,
            scale: self.scale.unwrap_or(default_scale(head_dim)),
            layout: if packed.is_some() { Layout::Bshd } else { self.layout },
            packed,
        };
        check(&problem)?;
        Ok(problem)
    }

    fn packed(&self) -> Result<Option<Packed>, Error> {
        let (queries, keys) = match (&self.cumulative_queries, &self.cumulative_keys) {
            (None, None) => return Ok(None),
            (Some(queries), keys) => (queries.clone(), keys.as_ref().unwrap_or(queries).clone()),
            (None, Some(_)) => return Err(Error::Cumulative { argument: "cu_q", found: "is missing".into() }),
        };
        let packed = Packed::new(queries, keys)?;
        match self.batch {
            Some(batch) if batch != packed.batch() => {
                let found = format!("has {} sequences, and the batch {batch}", packed.batch());
                Err(Error::Cumulative { argument: "cu_q", found })
            }
            _ => Ok(Some(packed)),
        }
    }
}

fn default_scale(head_dim: u32) -> f32 {
    (1.0 / f64::from(head_dim).sqrt()) as f32
}

fn check(problem: &Problem) -> Result<(), Error> {
    let Problem { batch, heads, kv_heads, lengths, dims, scale, .. } = *problem;
    for (what, count) in [("batch", batch), ("heads", heads), ("kv heads", kv_heads), ("queries", lengths.queries)] {
        if count == 0 {
            return Err(Error::Zero { what });
        }
    }
    if heads % kv_heads != 0 {
        return Err(Error::Heads { heads, kv_heads });
    }
    for found in [dims.head, dims.value] {
        if !(1..=MOST_COLUMNS).contains(&found) {
            return Err(Error::HeadDimension { found });
        }
    }
    if !(scale > 0.0 && scale <= MOST_SCALE) {
        return Err(Error::Scale { found: scale });
    }
    if let ScoreKind::SoftCap { cap } = problem.score
        && !(cap.is_finite() && cap > 0.0)
    {
        return Err(Error::SoftCap { found: cap });
    }
    check_sizes(problem)
}

fn check_sizes(problem: &Problem) -> Result<(), Error> {
    let shapes =
        [("q", problem.q_shape()), ("k", problem.k_shape()), ("v", problem.v_shape()), ("o", problem.o_shape())];
    for (tensor, shape) in shapes {
        let extents = [shape.batch, shape.heads, shape.rows, shape.columns];
        let found = extents.iter().map(|&extent| u128::from(extent)).product();
        if found > MAX_ELEMENTS {
            return Err(Error::TooLarge { tensor, found, limit: MAX_ELEMENTS });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_follows_from_the_rest() {
        let problem = Problem::builder().heads(6).queries(33).head_dim(128).build().unwrap();
        assert_eq!((problem.batch(), problem.kv_heads(), problem.keys(), problem.value_dim()), (2, 6, 33, 128));
        assert_eq!(problem.scale(), (1.0 / 128f64.sqrt()) as f32);
        assert_eq!(Problem::builder().build().unwrap().scale(), 0.125);
    }

    #[test]
    fn grouped_heads_read_their_own_group() {
        let problem = Problem::builder().heads(6).kv_heads(2).build().unwrap();
        assert_eq!((0..6).map(|head| problem.kv_head(head)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn impossible_problems_are_refused_with_the_cure() {
        let refused = |builder: ProblemBuilder| builder.build().unwrap_err().to_string();
        let problem = Problem::builder;
        assert_eq!(refused(problem().head_dim(0)), "head dimension 0 is not supported: expected 1 to 1024");
        assert_eq!(refused(problem().value_dim(1025)), Error::HeadDimension { found: 1025 }.to_string());
        assert_eq!(refused(problem().batch(0)), "batch is 0: expected at least 1");
        assert_eq!(refused(problem().kv_heads(0)), "kv heads is 0: expected at least 1");
        assert_eq!(
            refused(problem().heads(6).kv_heads(4)),
            "6 heads cannot share 4 kv heads: expected a multiple of the kv heads"
        );
        assert_eq!(
            refused(problem().scale(-1.0)),
            "scale -1 is not supported: expected a number above 0, and at most 2^127"
        );
        problem().scale(MOST_SCALE).build().unwrap();
        assert!((MOST_SCALE * std::f32::consts::LOG2_E).is_finite());
        for scale in [MOST_SCALE.next_up(), f32::INFINITY, f32::NAN] {
            assert!(refused(problem().scale(scale)).ends_with("at most 2^127"), "{scale}");
        }
        assert_eq!(refused(problem().scale(f32::NAN)), Error::Scale { found: f32::NAN }.to_string());
        assert_eq!(
            refused(problem().score(ScoreKind::SoftCap { cap: 0.0 })),
            "soft-cap 0 is not supported: expected a finite number above 0"
        );
        assert!(refused(problem().batch(u32::MAX).heads(u32::MAX)).starts_with("tensor q would hold"));
    }

    #[test]
    fn no_keys_at_all_is_a_problem() {
        assert_eq!(Problem::builder().keys(0).build().unwrap().k_shape().elements(), 0);
    }

    #[test]
    fn strides_follow_the_layout() {
        let builder = Problem::builder().batch(2).heads(3).queries(5).head_dim(16);
        assert_eq!(builder.clone().build().unwrap().q_shape().strides(), [240, 80, 16]);
        assert_eq!(builder.layout(Layout::Bshd).build().unwrap().q_shape().strides(), [240, 16, 48]);
    }
}
