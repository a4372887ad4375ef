//! A kernel with its recipe: what it is given, how it is launched, and what its buffers mean.
//!
//! Sizes are names (`sq`, `sk`, …) and everything else is an expression of them, so that a reader of the printed case
//! sees where a number comes from and may try another.

use super::{ENTRY, build};
use crate::configs::Config;
use crate::problem::{DType, Layout};
use crate::visibility::MaskKind;
use crate::{Error, Problem};
use launch::buffer::{Float, Init};
use launch::contract::{self, AttentionContract, Factor, Scale};
use launch::recipe::{ArgumentValue, Number};
use launch::{Argument, Buffer, Element, Expr, Kernel, Launch, Recipe};

/// The kernel of one configuration for one problem, complete: inputs are random, outputs poisoned.
pub fn kernel(problem: &Problem, config: &Config) -> Result<Kernel, Error> {
    let failed = |message: String| Error::Generation { id: config.id, message };
    let built = build(problem, config)?;
    let recipe = recipe(problem, config, built.shared_bytes).map_err(|fault| failed(fault.to_string()))?;
    let name = format!("attention_config{}_{}", config.id, problem.mask().to_string().replace(['-', '/'], "_"));
    Kernel::generated(name, &built.module, recipe).map_err(|error| failed(error.to_string()))
}

fn recipe(problem: &Problem, config: &Config, shared_bytes: u32) -> Result<Recipe, launch::Fault> {
    let mut sizes = vec![
        ("b", problem.batch()),
        ("h", problem.heads()),
        ("hk", problem.kv_heads()),
        ("sq", problem.queries()),
        ("sk", problem.keys()),
        ("d", problem.head_dim()),
    ];
    sizes.extend(value_dim(problem).map(|name| (name, problem.value_dim())));
    Ok(Recipe {
        lets: sizes.into_iter().map(|(name, size)| (name.into(), Expr::from(size))).collect(),
        buffers: buffers(problem)?,
        launches: vec![launch(problem, config, shared_bytes)?],
        attention: Some(contract(problem)?),
        ..Recipe::default()
    })
}

/// The name of the columns of V and O, where Q and K have others.
fn value_dim(problem: &Problem) -> Option<&'static str> {
    (problem.value_dim() != problem.head_dim()).then_some("dv")
}

/// Q, K, V or O: the names of its sizes.
struct Sizes {
    tensor: &'static str,
    heads: &'static str,
    rows: &'static str,
    columns: &'static str,
}

fn tensors(problem: &Problem) -> [Sizes; 4] {
    let value_dim = value_dim(problem).unwrap_or("d");
    [
        Sizes { tensor: "q", heads: "h", rows: "sq", columns: "d" },
        Sizes { tensor: "k", heads: "hk", rows: "sk", columns: "d" },
        Sizes { tensor: "v", heads: "hk", rows: "sk", columns: value_dim },
        Sizes { tensor: "o", heads: "h", rows: "sq", columns: value_dim },
    ]
}

fn buffers(problem: &Problem) -> Result<Vec<Buffer>, launch::Fault> {
    let element = match problem.dtype() {
        DType::F16 => Element::F16,
        DType::Bf16 => Element::Bf16,
    };
    let mut buffers = vec![];
    for Sizes { tensor, heads, rows, columns } in tensors(problem) {
        // A buffer has at least one element, a problem may have no key.
        let rows = &if rows == "sk" { "max(sk, 1)".to_string() } else { rows.to_string() };
        let shape = match problem.layout() {
            Layout::Bhsd => ["b", heads, rows, columns],
            Layout::Bshd => ["b", rows, heads, columns],
        };
        let mut buffer = Buffer::new(tensor, element, expressions(&shape)?);
        if tensor != "o" {
            buffer.init = Init::Normal { sigma: Float(1.0), seed: None };
        }
        buffers.push(buffer);
    }
    buffers.push(Buffer::new("lse", Element::F32, expressions(&["b", "h", "sq"])?));
    Ok(buffers)
}

fn launch(problem: &Problem, config: &Config, shared_bytes: u32) -> Result<Launch, launch::Fault> {
    let grid = [Expr::parse(&format!("ceil_div(sq, {})", config.rows))?, Expr::parse("h")?, Expr::parse("b")?];
    let block = [config.threads(), 1, 1].map(Expr::from);
    let mut args = vec![];
    for sizes in tensors(problem) {
        let tensor = sizes.tensor;
        args.push(named(tensor, Argument::buffer(tensor)));
        for (axis, element, stride) in strides(problem.layout(), &sizes) {
            args.push(integer(&format!("{tensor}_{axis}_stride"), element, &stride)?);
        }
    }
    args.push(named("lse", Argument::buffer("lse")));
    args.push(integer("lse_batch_stride", Element::U64, "h * sq")?);
    args.push(integer("lse_head_stride", Element::U64, "sq")?);
    args.push(integer("queries", Element::U32, "sq")?);
    args.push(integer("keys", Element::U32, "sk")?);
    args.push(integer("heads_per_kv_head", Element::U32, "h / hk")?);
    let scale = Float(f64::from(problem.scale()) * Factor::Log2E.value());
    args.push(named("scale_log2", Argument::new(ArgumentValue::Scalar(Element::F32, Number::Float(scale)))));
    Ok(Launch { entry: Some(ENTRY.into()), shared: shared_bytes.into(), args, ..Launch::new(grid, block) })
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

fn contract(problem: &Problem) -> Result<AttentionContract, launch::Fault> {
    Ok(AttentionContract {
        q: "q".into(),
        k: "k".into(),
        v: "v".into(),
        o: "o".into(),
        lse: Some("lse".into()),
        scale: Some(Scale { arg: "scale_log2".into(), factor: Factor::Log2E }),
        layout: match problem.layout() {
            Layout::Bhsd => contract::Layout::Bhsd,
            Layout::Bshd => contract::Layout::Bshd,
        },
        mask: match problem.mask() {
            MaskKind::None => contract::Mask::None,
            MaskKind::CausalBottomRight => contract::Mask::CausalBottomRight,
            MaskKind::CausalTopLeft => contract::Mask::CausalTopLeft,
            MaskKind::Window { left, right } => contract::Mask::Window(left.into(), right.into()),
        },
        lengths: contract::Lengths {
            q: Expr::parse("sq")?,
            k: Expr::parse("sk")?,
            batch: Expr::parse("b")?,
            heads: Expr::parse("h")?,
            kv_heads: Some(Expr::parse("hk")?),
            dim: Expr::parse("d")?,
            value_dim: value_dim(problem).map(Expr::parse).transpose()?,
        },
    })
}

fn expressions(texts: &[&str]) -> Result<Vec<Expr>, launch::Fault> {
    texts.iter().map(|text| Expr::parse(text)).collect()
}

fn integer(name: &str, element: Element, text: &str) -> Result<Argument, launch::Fault> {
    let number = Number::Integer(Expr::parse(text)?);
    Ok(named(name, Argument::new(ArgumentValue::Scalar(element, number))))
}

fn named(name: &str, argument: Argument) -> Argument {
    Argument { name: Some(name.into()), ..argument }
}
