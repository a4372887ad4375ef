//! A kernel with its recipe: what it is given, how it is launched, and what its buffers mean.
//!
//! Sizes are names (`sq`, `sk`, …) and everything else is an expression of them, so that a reader of the printed case
//! sees where a number comes from and may try another.

use super::parts::masks::Mask;
use super::parts::scores::{Score, scale_parameter};
use super::{COMBINE_ENTRY, ENTRY, build_with, combine, contract, hopper};
use crate::configs::{Config, Heads, Math};
use crate::problem::{DType, Layout, Packed};
use crate::scoring::ScoreKind;
use crate::{Error, Problem};
use launch::assertion::{Assertion, Assertions};
use launch::buffer::{Float, Init};
use launch::contract::{AttentionContract, Factor};
use launch::recipe::{ArgumentValue, Number};
use launch::{Argument, Buffer, Element, Expr, Kernel, Launch, Recipe};
use tile::Built;

/// The buffer of a debug kernel's report.
const REPORT: &str = "report";

/// Documents in a sequence, roughly.
const DOCUMENTS: u32 = 3;

/// The most letters of one word of a problem in a kernel's name.
const MAX_WORD: usize = 40;

/// The kernel of one configuration for one problem, complete: inputs are random, outputs poisoned.
pub fn kernel(problem: &Problem, config: &Config) -> Result<Kernel, Error> {
    let contract = contract::of(problem).map_err(|fault| failed(config, &fault))?;
    let (mask, score) = (problem.mask().mask(), problem.score().score());
    assemble(problem, config, &*mask, &*score, name(problem, config), Some(contract))
}

/// With a mask and a score of the caller's own, instead of those that the problem names. Its recipe does not say what it
/// computes: there are no words for it.
pub fn kernel_with(problem: &Problem, config: &Config, mask: &dyn Mask, score: &dyn Score) -> Result<Kernel, Error> {
    assemble(problem, config, mask, score, format!("{}{}", base_name(config), suffix(config)), None)
}

fn assemble(
    problem: &Problem,
    config: &Config,
    mask: &dyn Mask,
    score: &dyn Score,
    name: String,
    contract: Option<AttentionContract>,
) -> Result<Kernel, Error> {
    let built = build_with(problem, config, mask, score)?;
    let recipe = recipe(problem, config, (mask, score), built.shared_bytes);
    let recipe = recipe.and_then(|recipe| asserting(recipe, config, &built)).map_err(|fault| failed(config, &fault))?;
    let recipe = Recipe { attention: contract, ..recipe };
    Kernel::generated(name, &built.module, recipe).map_err(|error| failed(config, &error))
}

/// A debug kernel's first parameter points to a report: which of its assertions failed, and where.
fn asserting(mut recipe: Recipe, config: &Config, built: &Built) -> Result<Recipe, launch::Fault> {
    if config.debug {
        let buffer = Buffer::new(REPORT, Element::U64, expressions(&["1"])?);
        recipe.buffers.push(Buffer { init: Init::Zeros, ..buffer });
        // The kernel that joins parts asserts nothing.
        let asserting = recipe.launches.iter_mut().take(1);
        asserting.for_each(|launch| launch.args.insert(0, named(REPORT, Argument::buffer(REPORT))));
        recipe.assertions = Some(assertions(built));
    }
    Ok(recipe)
}

/// What a debug kernel asserts, and what its report is called.
pub fn assertions(built: &Built) -> Assertions {
    let listed = |one: &tile::Assertion| Assertion { message: one.message.clone(), at: Some(one.place()) };
    Assertions { report: REPORT.into(), list: built.assertions.iter().map(listed).collect() }
}

fn failed(config: &Config, why: &impl ToString) -> Error {
    Error::Generation { id: config.id, message: why.to_string() }
}

/// `attention_config1`, `attention_config1_scalar`
fn base_name(config: &Config) -> String {
    let math = match config.math {
        Math::Tensor | Math::Warpgroup => "",
        Math::Scalar => "_scalar",
    };
    format!("attention_config{}{math}", config.id)
}

/// `attention_config1_f16_B2_H8_S512_D64_causal_softcap30`: a name of its own for each problem, so that kernels may share a
/// folder.
fn name(problem: &Problem, config: &Config) -> String {
    // Sequences may be many; what a file may be called is 255 letters.
    let word = |word: &str| word.chars().take(MAX_WORD).collect::<String>();
    let words: Vec<String> = problem.to_string().split(' ').map(word).collect();
    let mut name = format!("{}_{}", base_name(config), words.join("_"));
    name += if problem.packed().is_some() { "_packed" } else { "" };
    if config.splits > 1 {
        name += &format!("_splits{}", config.splits);
    }
    name += suffix(config);
    name.replace(['-', '/', '.', ','], "_")
}

fn suffix(config: &Config) -> &'static str {
    if config.debug { "_debug" } else { "" }
}

fn recipe(
    problem: &Problem,
    config: &Config,
    (mask, score): (&dyn Mask, &dyn Score),
    shared_bytes: u32,
) -> Result<Recipe, launch::Fault> {
    let mut buffers = buffers(problem, score, config.splits > 1)?;
    if config.math == Math::Warpgroup {
        buffers.extend(hopper::counter(mask, problem.packed().is_some())?);
    }
    let mut sizes = vec![
        ("b", problem.batch()),
        ("h", problem.heads()),
        ("hk", problem.kv_heads()),
        ("sq", problem.queries()),
        ("sk", problem.keys()),
        ("d", problem.head_dim()),
    ];
    let totals = problem.packed().map(Packed::totals);
    sizes.extend(totals.into_iter().flat_map(|totals| [("tq", totals.queries), ("tk", totals.keys)]));
    sizes.extend(value_dim(problem).map(|name| (name, problem.value_dim())));
    let split = config.splits > 1;
    sizes.extend(split.then_some(("splits", config.splits)));
    sizes.extend((config.math == Math::Warpgroup).then_some(("processors", hopper::PROCESSORS)));
    Ok(Recipe {
        lets: sizes.into_iter().map(|(name, size)| (name.into(), Expr::from(size))).collect(),
        buffers,
        launches: launches(problem, config, (mask, score), shared_bytes)?,
        ..Recipe::default()
    })
}

/// The name of the columns of V and O, where Q and K have others.
pub(super) fn value_dim(problem: &Problem) -> Option<&'static str> {
    (problem.value_dim() != problem.head_dim()).then_some("dv")
}

/// Q, K, V or O: the names of its sizes.
pub(super) struct Sizes {
    pub tensor: &'static str,
    pub heads: &'static str,
    pub rows: &'static str,
    pub columns: &'static str,
}

pub(super) fn tensors(problem: &Problem) -> [Sizes; 4] {
    let value_dim = value_dim(problem).unwrap_or("d");
    let [queries, keys] = if problem.packed().is_some() { ["tq", "tk"] } else { ["sq", "sk"] };
    [
        Sizes { tensor: "q", heads: "h", rows: queries, columns: "d" },
        Sizes { tensor: "k", heads: "hk", rows: keys, columns: "d" },
        Sizes { tensor: "v", heads: "hk", rows: keys, columns: value_dim },
        Sizes { tensor: "o", heads: "h", rows: queries, columns: value_dim },
    ]
}

fn buffers(problem: &Problem, score: &dyn Score, split: bool) -> Result<Vec<Buffer>, launch::Fault> {
    let element = match problem.dtype() {
        DType::F16 => Element::F16,
        DType::Bf16 => Element::Bf16,
        DType::F32 => Element::F32,
    };
    let mut buffers = vec![];
    for Sizes { tensor, heads, rows, columns } in tensors(problem) {
        // A buffer has at least one element, a problem may have no key.
        let rows = &if heads == "hk" { format!("max({rows}, 1)") } else { rows.to_string() };
        let shape = match problem.layout() {
            _ if problem.packed().is_some() => vec![rows, heads, columns],
            Layout::Bhsd => vec!["b", heads, rows, columns],
            Layout::Bshd => vec!["b", rows, heads, columns],
        };
        let mut buffer = Buffer::new(tensor, element, expressions(&shape)?);
        if tensor != "o" {
            buffer.init = Init::Normal { sigma: Float(1.0), seed: None };
        }
        buffers.push(buffer);
    }
    let rows: &[&str] = if problem.packed().is_some() { &["h", "tq"] } else { &["b", "h", "sq"] };
    buffers.push(Buffer::new("lse", Element::F32, expressions(rows)?));
    if split {
        let rows: &[&str] = if problem.packed().is_some() { &["tq", "h"] } else { &["b", "sq", "h"] };
        for (name, columns) in [("part_outputs", value_dim(problem).unwrap_or("d")), ("part_statistics", "2")] {
            buffers.push(Buffer::new(name, Element::F32, expressions(&[rows, &["splits", columns]].concat())?));
        }
    }
    for (name, places) in
        problem.packed().into_iter().flat_map(|packed| [("cu_q", packed.queries()), ("cu_k", packed.keys())])
    {
        let init = Init::Values(places.iter().map(|&place| Number::Integer(place.into())).collect());
        buffers.push(Buffer { init, ..Buffer::new(name, Element::U32, expressions(&["b + 1"])?) });
    }
    if let Some(numbers) = score.numbers() {
        let init = match problem.score() {
            ScoreKind::Alibi => slopes(problem.heads()),
            _ => Init::Normal { sigma: Float(1.0), seed: None },
        };
        buffers.push(Buffer { init, ..Buffer::new(numbers, Element::F32, expressions(&["h"])?) });
    }
    if problem.sinks() {
        let init = Init::Normal { sigma: Float(1.0), seed: None };
        buffers.push(Buffer { init, ..Buffer::new("sinks", Element::F32, expressions(&["h"])?) });
    }
    if problem.documents() {
        let [q_rows, k_rows] = match problem.packed() {
            Some(_) => [vec!["tq"], vec!["max(tk, 1)"]],
            None => [vec!["b", "sq"], vec!["b", "max(sk, 1)"]],
        };
        for (ids, length, rows) in [("q_ids", "sq", q_rows), ("k_ids", "max(sk, 1)", k_rows)] {
            let init = Init::Steps(Expr::parse(&format!("ceil_div({length}, {DOCUMENTS})"))?);
            buffers.push(Buffer { init, ..Buffer::new(ids, Element::U32, expressions(&rows)?) });
        }
    }
    Ok(buffers)
}

/// Press et al., "Train short, test long": a geometric sequence that ends at 2⁻⁸.
fn slopes(heads: u32) -> Init {
    let slope = |head: u32| f64::from((-8.0 * f64::from(head) / f64::from(heads)).exp2() as f32);
    Init::Values((1..=heads).map(|head| Number::Float(Float(slope(head)))).collect())
}

/// The kernel, and behind it the one that joins its parts if it leaves any.
fn launches(
    problem: &Problem,
    config: &Config,
    (mask, score): (&dyn Mask, &dyn Score),
    shared_bytes: u32,
) -> Result<Vec<Launch>, launch::Fault> {
    let forward = match config.math {
        Math::Warpgroup => hopper::forward(problem, config, (mask, score), shared_bytes)?,
        Math::Tensor | Math::Scalar => forward(problem, config, score, shared_bytes)?,
    };
    if config.splits == 1 {
        return Ok(vec![forward]);
    }
    let [_, _, _, o] = tensors(problem);
    let mut args = result(problem, &o)?;
    args.extend(scratch()?);
    args.extend(lengths(problem)?);
    args.extend(problem.sinks().then(|| named("sinks", Argument::buffer("sinks"))));
    let grid = [Expr::parse("sq")?, Expr::parse("h")?, Expr::parse("b")?];
    let block = [combine::threads(problem.value_dim()), 1, 1].map(Expr::from);
    Ok(vec![forward, Launch { entry: Some(COMBINE_ENTRY.into()), args, ..Launch::new(grid, block) }])
}

/// Of families whose grid is the blocks of queries of each head and batch entry.
fn forward(problem: &Problem, config: &Config, score: &dyn Score, shared_bytes: u32) -> Result<Launch, launch::Fault> {
    let split = config.splits > 1;
    let [q, k, v, o] = tensors(problem);
    let mut args = vec![];
    for sizes in [q, k, v] {
        args.extend(tensor(problem, &sizes)?);
    }
    args.extend(if split { scratch()? } else { result(problem, &o)? });
    args.extend(lengths(problem)?);
    args.push(integer("heads_per_kv_head", Element::U32, "h / hk")?);
    args.push(scale(problem, score));
    args.extend(numbers(problem, score, split));
    let (rows, heads) = match config.heads {
        Heads::Apart => ("sq", "h"),
        Heads::Together => ("sq * (h / hk)", "hk"),
    };
    let blocks = format!("ceil_div({rows}, {}){}", config.rows, if split { " * splits" } else { "" });
    let grid = [Expr::parse(&blocks)?, Expr::parse(heads)?, Expr::parse("b")?];
    let block = [config.threads(), 1, 1].map(Expr::from);
    Ok(Launch { entry: Some(ENTRY.into()), shared: shared_bytes.into(), args, ..Launch::new(grid, block) })
}

/// What a score has for each head, the heads' sinks, and documents. Where keys are split, sinks are counted where shares are joined.
pub(super) fn numbers(problem: &Problem, score: &dyn Score, split: bool) -> Vec<Argument> {
    let sinks = (problem.sinks() && !split).then_some("sinks");
    let documents = problem.documents().then_some(["q_ids", "k_ids"]).into_iter().flatten();
    let numbers = score.numbers().into_iter().chain(sinks).chain(documents);
    numbers.map(|buffer| named(buffer, Argument::buffer(buffer))).collect()
}

/// A tensor and its strides.
fn tensor(problem: &Problem, sizes: &Sizes) -> Result<Vec<Argument>, launch::Fault> {
    let tensor = sizes.tensor;
    let mut args = vec![named(tensor, Argument::buffer(tensor))];
    let batch = usize::from(problem.packed().is_some());
    for (axis, element, stride) in strides(problem.layout(), sizes).into_iter().skip(batch) {
        args.push(integer(&format!("{tensor}_{axis}_stride"), element, &stride)?);
    }
    Ok(args)
}

/// The scale, as the kernel's score is given it.
pub(super) fn scale(problem: &Problem, score: &dyn Score) -> Argument {
    let scale = Float(f64::from(problem.scale()) * scale_factor(score).value());
    named(scale_parameter(score), Argument::new(ArgumentValue::Scalar(Element::F32, Number::Float(scale))))
}

/// O and the log-sum-exp.
pub(super) fn result(problem: &Problem, o: &Sizes) -> Result<Vec<Argument>, launch::Fault> {
    Ok([tensor(problem, o)?, log_sum_exp(problem)?].concat())
}

pub(super) fn log_sum_exp(problem: &Problem) -> Result<Vec<Argument>, launch::Fault> {
    let mut args = vec![named("lse", Argument::buffer("lse"))];
    if problem.packed().is_some() {
        args.push(integer("lse_head_stride", Element::U64, "tq")?);
    } else {
        args.push(integer("lse_batch_stride", Element::U64, "h * sq")?);
        args.push(integer("lse_head_stride", Element::U64, "sq")?);
    }
    Ok(args)
}

/// What blocks leave behind that share the keys of their queries.
pub(super) fn scratch() -> Result<Vec<Argument>, launch::Fault> {
    let buffers = ["part_outputs", "part_statistics"].map(|buffer| named(buffer, Argument::buffer(buffer)));
    Ok([&buffers[..], &[integer("splits", Element::U32, "splits")?]].concat())
}

pub(super) fn lengths(problem: &Problem) -> Result<Vec<Argument>, launch::Fault> {
    if problem.packed().is_none() {
        return Ok(vec![integer("queries", Element::U32, "sq")?, integer("keys", Element::U32, "sk")?]);
    }
    let totals = [integer("queries", Element::U32, "tq")?, integer("keys", Element::U32, "tk")?];
    let places = ["cu_q", "cu_k"].map(|places| named(places, Argument::buffer(places)));
    Ok(totals.into_iter().chain(places).collect())
}

/// Elements from one batch entry, head and row to the next.
fn strides(layout: Layout, sizes: &Sizes) -> [(&'static str, Element, String); 3] {
    let Sizes { heads, rows, columns, .. } = sizes;
    let (head, row) = match layout {
        Layout::Bhsd => (format!("{rows} * {columns}"), columns.to_string()),
        Layout::Bshd => (columns.to_string(), format!("{heads} * {columns}")),
    };
    let batch = format!("{heads} * {rows} * {columns}");
    [("batch", Element::U64, batch), ("head", Element::U64, head), ("row", Element::U32, row)]
}

/// What the scale is multiplied with before it is passed.
pub(super) fn scale_factor(score: &dyn Score) -> Factor {
    if score.is_plain() { Factor::Log2E } else { Factor::Value(Float(1.0)) }
}

fn expressions(texts: &[&str]) -> Result<Vec<Expr>, launch::Fault> {
    texts.iter().map(|text| Expr::parse(text)).collect()
}

pub(super) fn integer(name: &str, element: Element, text: &str) -> Result<Argument, launch::Fault> {
    let number = Number::Integer(Expr::parse(text)?);
    Ok(named(name, Argument::new(ArgumentValue::Scalar(element, number))))
}

pub(super) fn named(name: &str, argument: Argument) -> Argument {
    Argument { name: Some(name.into()), ..argument }
}
