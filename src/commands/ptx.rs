//! `ptx`: prints a built-in kernel, the planner's unless another is asked for, as a complete case.

use super::Exit;
use super::input::BuiltIn;
use anyhow::{Context, bail};
use attention::Problem;
use attention::problem::DType;
use attention::scoring::ScoreKind;
use attention::visibility::MaskKind;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Prints the kernel for a problem, `f16 B2 H8 S512 D64 full` unless told otherwise: PTX whose header is its recipe, ready for `sanitize`, `run` and `prove --kernel`
#[derive(Args)]
#[command(
    after_help = "Examples:\n  veriflash ptx --problem 'B2 H8 S512 D64 causal' > kernel.ptx\n  veriflash ptx --batch 4 --heads 16 --kv-heads 4 --seq 4096 --head-dim 128 --mask causal --arch sm_90\n  veriflash ptx --head-dim 192 --value-dim 128 --config 6\n  veriflash ptx --seq 4096 --mask window --window 256 --config 5 --out kernels"
)]
pub struct Arguments {
    #[command(flatten)]
    kernel: BuiltIn,

    #[command(flatten)]
    shape: Shape,

    /// Writes the kernel into this folder, in a file called after problem and configuration, and prints where
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// The problem in flags; what is not given is as in the standard problem, B2 H8 S512 D64.
#[derive(Args)]
struct Shape {
    /// 2 unless given
    #[arg(long, conflicts_with = "problem")]
    batch: Option<u32>,

    /// Heads of Q and O; 8 unless given
    #[arg(long, conflicts_with = "problem")]
    heads: Option<u32>,

    /// Heads of K and V; as many as heads unless given
    #[arg(long, conflicts_with = "problem")]
    kv_heads: Option<u32>,

    /// Queries; 512 unless given
    #[arg(long, conflicts_with = "problem")]
    seq: Option<u32>,

    /// Keys; as many as queries unless given
    #[arg(long, conflicts_with = "problem")]
    seq_kv: Option<u32>,

    /// Columns of Q and K: a multiple of 8 from 16 to 256; 64 unless given
    #[arg(long, conflicts_with = "problem")]
    head_dim: Option<u32>,

    /// Columns of V and O; as many as those of Q and K unless given
    #[arg(long, conflicts_with = "problem")]
    value_dim: Option<u32>,

    /// `f16` unless given
    #[arg(long, conflicts_with = "problem")]
    dtype: Option<Type>,

    /// `full` unless given
    #[arg(long, conflicts_with = "problem")]
    mask: Option<Mask>,

    /// With `--mask window`: how many keys before its own place a query sees, and how many behind it (none unless given)
    #[arg(long, value_name = "LEFT[,RIGHT]", value_delimiter = ',', num_args = 1..=2, conflicts_with = "problem")]
    window: Vec<u32>,

    /// Scores become `CAP * tanh(score / CAP)`
    #[arg(long, value_name = "CAP", conflicts_with_all = ["problem", "alibi"])]
    softcap: Option<f32>,

    /// Scores lose the distance between query and key times a slope of the head; the last query stands at the last key
    #[arg(long, conflicts_with = "problem")]
    alibi: bool,

    /// Each head has a logit that only the sum of the softmax counts
    #[arg(long, conflicts_with = "problem")]
    sinks: bool,

    /// A query sees only keys of its own document
    #[arg(long, conflicts_with = "problem")]
    documents: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Type {
    F16,
    Bf16,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mask {
    Full,
    /// The last query sees the last key
    Causal,
    /// The first query sees the first key
    CausalTopLeft,
    Window,
}

impl Shape {
    /// The problem; none if no flag speaks of one.
    fn problem(&self) -> anyhow::Result<Option<Problem>> {
        let Shape { batch, heads, kv_heads, seq, seq_kv, head_dim, value_dim, dtype, .. } = *self;
        let numbers = [batch, heads, kv_heads, seq, seq_kv, head_dim, value_dim];
        let (mask, score) = (self.mask()?, self.score());
        let more = score != ScoreKind::Plain || self.sinks || self.documents;
        if numbers.iter().all(Option::is_none) && dtype.is_none() && mask.is_none() && !more {
            return Ok(None);
        }
        let mut builder =
            Problem::builder().mask(mask.unwrap_or_default()).score(score).sinks(self.sinks).documents(self.documents);
        builder = batch.into_iter().fold(builder, |builder, batch| builder.batch(batch));
        builder = heads.into_iter().fold(builder, |builder, heads| builder.heads(heads));
        builder = kv_heads.into_iter().fold(builder, |builder, heads| builder.kv_heads(heads));
        builder = seq.into_iter().fold(builder, |builder, queries| builder.queries(queries));
        builder = seq_kv.into_iter().fold(builder, |builder, keys| builder.keys(keys));
        builder = head_dim.into_iter().fold(builder, |builder, columns| builder.head_dim(columns));
        builder = value_dim.into_iter().fold(builder, |builder, columns| builder.value_dim(columns));
        if let Some(Type::Bf16) = dtype {
            builder = builder.dtype(DType::Bf16);
        }
        Ok(Some(builder.build()?))
    }

    fn score(&self) -> ScoreKind {
        match self.softcap {
            Some(cap) => ScoreKind::SoftCap { cap },
            None if self.alibi => ScoreKind::Alibi,
            None => ScoreKind::Plain,
        }
    }

    fn mask(&self) -> anyhow::Result<Option<MaskKind>> {
        Ok(match (self.mask, self.window.as_slice()) {
            (None, []) => None,
            (Some(Mask::Full), []) => Some(MaskKind::None),
            (Some(Mask::Causal), []) => Some(MaskKind::CausalBottomRight),
            (Some(Mask::CausalTopLeft), []) => Some(MaskKind::CausalTopLeft),
            (Some(Mask::Window), [left]) => Some(MaskKind::Window { left: *left, right: 0 }),
            (Some(Mask::Window), [left, right]) => Some(MaskKind::Window { left: *left, right: *right }),
            (Some(Mask::Window), _) => bail!("`--mask window` needs `--window LEFT[,RIGHT]`"),
            (_, _) => bail!("`--window` needs `--mask window`"),
        })
    }
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let problem = arguments.shape.problem()?;
    let kernel = arguments.kernel.kernel_of(problem.clone())?;
    eprintln!("{}", arguments.kernel.chosen(problem)?);
    let text = &kernel.parsed.source.text;
    match &arguments.out {
        None => print!("{text}"),
        Some(folder) => write(&folder.join(kernel.file()), text)?,
    }
    Ok(Exit::Clean)
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if std::fs::read(file).is_ok_and(|old| old != text.as_bytes()) {
        eprintln!("{} was another kernel or recipe, and is replaced", file.display());
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(file, text));
    written.with_context(|| format!("{} cannot be written", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
