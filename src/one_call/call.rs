//! One call: what is computed, from shapes and options that go together.

use super::extras::{Extra, WORD_BYTES, Words};
use super::tensor::View;
use super::{Error, Options, arguments};
use attention::Problem;
use attention::configs::{Config, Math};
use attention::features::{Features, is_sparse};
use attention::problem::{Packed, ProblemBuilder, lengths as lengths_of};

/// What a grid may have along z. CUDA C++ Programming Guide, "Compute Capabilities".
const MOST_SEQUENCES: u32 = 65535;

pub struct Call {
    /// That of the shapes: packed sequences are one batch entry with all their rows.
    pub problem: Problem,
    pub sequences: Option<Sequences>,
    /// Of the problem, and what only the call knows.
    pub features: Features,
}

/// Packed sequences, as far as the host knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequences {
    pub count: u32,
    /// No sequence has more queries.
    pub longest: u32,
}

impl Call {
    pub fn new(q: &View, k: &View, v: &View, options: &Options) -> Result<Call, Error> {
        combinations(options)?;
        options.check_config()?;
        arguments::shapes(q, k, v)?;
        let problem = problem(q, k, v, options).build()?;
        lengths(&problem, options)?;
        contents(options)?;
        let sequences = sequences(&problem, options)?;
        let features = Features {
            packed: sequences.is_some(),
            sparse: sequences.is_some_and(|Sequences { count, longest }| is_sparse(count, longest, problem.queries())),
            scored: !options.is_plain(),
            unmapped: arguments::unmapped([q, k, v]).is_some(),
            ..Features::of(&problem)
        };
        Ok(Call { problem, sequences, features })
    }

    /// The same for kernels, which do not compute all types and heads.
    pub fn of_kernels(q: &View, k: &View, v: &View, options: &Options) -> Result<Call, Error> {
        let call = Call::new(q, k, v, options)?;
        arguments::kernel_columns(q, v)?;
        call.check_grid()?;
        attention::kernels::check_kind(call.problem.dtype(), call.problem.dims())?;
        Ok(call)
    }

    /// Whether a grid has a place for every packed sequence.
    pub fn check_grid(&self) -> Result<(), Error> {
        match self.sequences {
            Some(Sequences { count, .. }) if count > MOST_SEQUENCES => {
                let expected = || format!("at most {MOST_SEQUENCES}, which a grid has room for, or `Backend::Cpu`");
                Err(arguments::shape("cu_q", "sequences", count, expected))
            }
            _ => Ok(()),
        }
    }

    /// A block for each block of queries; or for each processor, in whole clusters, as long as there are so many.
    pub fn grid(&self, config: &Config, processors: u32) -> [u32; 3] {
        let (queries, entries) = match self.sequences {
            Some(Sequences { count, longest }) => (longest, count),
            None => (self.problem.queries(), self.problem.batch()),
        };
        let rows = config.heads.rows(queries, &self.problem);
        let together = config.cluster;
        let blocks = rows.div_ceil(config.rows * together) * config.splits;
        let heads = config.heads.count(&self.problem);
        match config.math {
            Math::Warpgroup => {
                let clusters = blocks.saturating_mul(heads).saturating_mul(entries);
                [(processors / together).max(1).min(clusters) * together, 1, 1]
            }
            Math::Tensor | Math::Scalar => [blocks, heads, entries],
        }
    }

    /// Of the kernel that joins the parts of split keys. Packed sequences are not split.
    pub fn joining_grid(&self) -> [u32; 3] {
        [self.problem.queries(), self.problem.heads(), self.problem.batch()]
    }
}

/// Of tensors whose shapes go together. The layout is that of Q.
pub fn problem(q: &View, k: &View, v: &View, options: &Options) -> ProblemBuilder {
    let ([batch, heads, queries, columns], [_, kv_heads, keys, _]) = (q.shape, k.shape);
    let mut builder = Problem::builder().batch(batch).heads(heads).kv_heads(kv_heads).queries(queries).keys(keys);
    builder = builder.head_dim(columns).value_dim(v.shape[3]).dtype(q.dtype).layout(q.layout());
    builder = builder.mask(options.mask).score(options.score_kind());
    let given = |extra| options.extras.get(extra).is_some();
    builder = builder.sinks(given(Extra::Sinks)).documents(given(Extra::QIds));
    options.scale.into_iter().fold(builder, |builder, scale| builder.scale(scale))
}

/// Options that would contradict each other.
fn combinations(options: &Options) -> Result<(), Error> {
    let refused = |argument, found, expected| Err(Error::Combination { argument, found, expected });
    let given = |extra| options.extras.get(extra).is_some();
    if options.custom_mask.is_some() && options.mask != Default::default() {
        return refused("mask_with", "is given beside another mask", "one mask, which may be one that does both");
    }
    let scores = [options.softcap.is_some(), given(Extra::Slopes), options.custom_score.is_some()];
    if scores.into_iter().filter(|given| *given).count() > 1 {
        let argument = if options.custom_score.is_some() { "score_with" } else { "alibi" };
        return refused(argument, "is given beside another score", "one score: `score_with` takes one that does both");
    }
    let reads_numbers = options.custom_score.is_some_and(|score| score.numbers().is_some());
    match (reads_numbers, given(Extra::ScoreNumbers)) {
        (true, false) => refused("score_numbers", "is missing", "a number for each head, which the score reads"),
        (false, true) => refused("score_numbers", "is given", "a score of your own (`score_with`) that reads it"),
        _ if options.longest.is_some() && !given(Extra::CuQ) => {
            refused("longest", "is given", "`packed` beside it: other sequences are all of one length")
        }
        _ => Ok(()),
    }
}

/// Whether arrays are as long as the shapes say.
fn lengths(problem: &Problem, options: &Options) -> Result<(), Error> {
    let rows = |of: attention::problem::Shape| u64::from(of.batch) * u64::from(of.rows);
    let places = options.extras.get(Extra::CuQ).map_or(0, |places| places.bytes() / WORD_BYTES);
    for (extra, words) in options.extras.iter() {
        let (expected, reason) = match extra {
            Extra::CuQ if places < 2 => (2, "at least, where a sequence begins and where it ends"),
            Extra::CuQ if places > u32::MAX.into() => (u32::MAX.into(), "at most"),
            Extra::CuQ => (places, "in whole numbers of four bytes"),
            Extra::CuK => (places, "as many as `cu_q` has"),
            Extra::Slopes | Extra::ScoreNumbers | Extra::Sinks => (problem.heads().into(), "one for each head"),
            Extra::QIds => (rows(problem.q_shape()), "one for each query of each sequence"),
            Extra::KIds => (rows(problem.k_shape()), "one for each key of each sequence"),
        };
        let (unit, bytes) = match words {
            Words::Device(_) => ("bytes", 1),
            _ => ("numbers", WORD_BYTES),
        };
        let expected_bytes = expected.saturating_mul(WORD_BYTES);
        if words.bytes() != expected_bytes {
            let (found, expected) = (words.bytes() / bytes, expected_bytes / bytes);
            return Err(Error::Count { argument: extra.argument(), unit, found, expected, reason });
        }
    }
    Ok(())
}

/// Whether numbers on the host are such that a softmax comes out.
fn contents(options: &Options) -> Result<(), Error> {
    for (extra, expected) in [(Extra::Slopes, "a finite number"), (Extra::Sinks, "a finite number, or −∞ for no sink")]
    {
        let Some(Words::Floats(values)) = options.extras.get(extra) else { continue };
        let is_right = |value: &f32| value.is_finite() || (extra == Extra::Sinks && *value == f32::NEG_INFINITY);
        if let Some(index) = values.iter().position(|value| !is_right(value)) {
            return Err(Error::Content { argument: extra.argument(), found: values[index], index, expected });
        }
    }
    Ok(())
}

/// How many packed sequences there are, and how long they may be. Places on the host are read and checked.
fn sequences(problem: &Problem, options: &Options) -> Result<Option<Sequences>, Error> {
    let (Some(cu_q), Some(cu_k)) = (options.extras.get(Extra::CuQ), options.extras.get(Extra::CuK)) else {
        return Ok(None);
    };
    let (q, k) = (problem.q_shape(), problem.k_shape());
    if q.batch != 1 {
        let expected = "1: packed sequences lie one behind the other in one";
        return Err(arguments::shape("q", "batch entries", q.batch, || expected.into()));
    }
    let count = (cu_q.bytes() / WORD_BYTES) as u32 - 1;
    let longest = match (cu_q, cu_k) {
        (Words::Integers(of_q), Words::Integers(of_k)) => {
            Packed::check(of_q, of_k)?;
            for (argument, tensor, places, expected) in [("cu_q", "q", of_q, q.rows), ("cu_k", "k", of_k, k.rows)] {
                let found = places.last().copied().unwrap_or_default();
                if found != expected {
                    return Err(Error::Ends { argument, found, expected, tensor });
                }
            }
            lengths_of(of_q).max().unwrap_or_default()
        }
        _ => q.rows,
    };
    let longest = match (options.longest, cu_q) {
        (None, _) => longest,
        (Some(said), Words::Integers(_)) if said < longest => {
            return Err(arguments::shape("longest", "queries", said, || format!("at least {longest}, as `cu_q` says")));
        }
        (Some(0), _) => return Err(arguments::shape("longest", "queries", 0, || "at least 1".into())),
        (Some(said), _) => said.min(longest),
    };
    Ok(Some(Sequences { count, longest }))
}
