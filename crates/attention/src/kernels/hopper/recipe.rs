//! How the kernel is launched: tensor maps of Q, K and V, and a block for every processor.

use super::super::ENTRY;
use super::super::parts::masks::Mask;
use super::super::parts::scores::Score;
use super::super::recipe::{Sizes, integer, lengths, log_sum_exp, named, numbers, result, scale, scratch, tensors};
use super::consumer::WARP_ROWS;
use super::{VALUE_ROWS, counts, stores_tiles};
use crate::Problem;
use crate::configs::Config;
use crate::problem::Layout;
use crate::visibility::MaskKind;
use launch::buffer::Init;
use launch::recipe::ArgumentValue;
use launch::tensor_map::{Promotion, Swizzle};
use launch::{Argument, Buffer, Element, Expr, Fault, Launch, TensorMap};

/// Columns of a box: 128 bytes, as wide as the swizzle.
pub const BOX_COLUMNS: u32 = 64;

/// `processors`: blocks of the grid where there are enough tiles, one for each processor of an H200.
pub const PROCESSORS: u32 = 132;

pub fn forward(
    problem: &Problem,
    config: &Config,
    (mask, score): (&dyn Mask, &dyn Score),
    shared_bytes: u32,
) -> Result<Launch, Fault> {
    let [q, k, v, o] = tensors(problem);
    let (packed, split) = (problem.packed().is_some(), config.splits > 1);
    let mut args = vec![];
    let keys = config.key_rows_of_copy();
    for (sizes, rows) in [(&q, config.query_tiles().1), (&k, keys), (&v, keys)] {
        args.push(map(problem, sizes, rows)?);
    }
    if packed {
        args.push(named(VALUE_ROWS, map(problem, &v, 1)?));
    }
    if stores_tiles(config, problem.dims(), packed) {
        args.push(map(problem, &o, WARP_ROWS)?);
        args.extend(log_sum_exp(problem)?);
    } else {
        args.extend(if split { scratch()? } else { result(problem, &o)? });
    }
    args.extend(lengths(problem)?);
    args.push(integer("heads_per_kv_head", Element::U32, "h / hk")?);
    args.push(scale(problem, score));
    args.extend(numbers(problem, score, split));
    if packed {
        args.push(integer("longest", Element::U32, "sq")?);
    }
    args.push(integer("heads", Element::U32, "h")?);
    args.push(integer("batch", Element::U32, "b")?);
    args.push(integer("section", Element::U32, &section(problem, packed.then(|| problem.batch())).to_string())?);
    args.extend(counts(mask, packed).then(|| named("counter", Argument::buffer("counter"))));
    let shares = if split { " * splits" } else { "" };
    let (rows, together) = (config.rows * config.cluster, config.cluster);
    let blocks = match together {
        1 => format!("min(processors, ceil_div(sq, {rows}){shares} * h * b)"),
        _ => format!("min(max(processors / {together}, 1), ceil_div(sq, {rows}){shares} * h * b) * {together}"),
    };
    let grid = [Expr::parse(&blocks)?, Expr::from(1u32), Expr::from(1u32)];
    let block = [config.threads(), 1, 1].map(Expr::from);
    let cluster = (together > 1).then(|| [together, 1, 1].map(Expr::from));
    Ok(Launch { entry: Some(ENTRY.into()), cluster, shared: shared_bytes.into(), args, ..Launch::new(grid, block) })
}

/// What keys and values of a section may take, so that the cache holds them while their queries go by, and the most heads that it has: of narrow
/// heads, and of wide ones. Measured.
const SECTION_BYTES: u64 = 64 << 20;
const SECTION_HEADS: [u64; 2] = [256, 32];

/// Heads of a section. Without a mask all tiles are as long, and heads follow each other. Of packed sequences, so many, they are as long as
/// they are in the mean: how long each is, a GPU may be the only one to know.
pub fn section(problem: &Problem, sequences: Option<u32>) -> u64 {
    if problem.mask() == MaskKind::None {
        return 1;
    }
    let (entries, keys) = match sequences {
        Some(count) => (count, problem.k_shape().rows.div_ceil(count.max(1))),
        None => (problem.batch(), problem.keys()),
    };
    let columns = u64::from(problem.head_dim() + problem.value_dim());
    let bytes = u64::from(keys.max(1)) * columns * problem.dtype().bytes() as u64;
    let (heads, group) = (u64::from(problem.heads()), u64::from(problem.heads() / problem.kv_heads()));
    let [narrow, wide] = SECTION_HEADS;
    let most = if columns > 128 { wide } else { narrow };
    (SECTION_BYTES / bytes * group).clamp(1, most).min(heads * u64::from(entries))
}

/// What blocks count their tiles with, if they do.
pub fn counter(mask: &dyn Mask, packed: bool) -> Result<Option<Buffer>, Fault> {
    let buffer = || Ok(Buffer { init: Init::Zeros, ..Buffer::new("counter", Element::U32, vec![1u32.into()]) });
    counts(mask, packed).then(buffer).transpose()
}

/// (column, row, head, batch) of a tensor, in boxes of so many rows.
fn map(problem: &Problem, sizes: &Sizes, box_rows: u32) -> Result<Argument, Fault> {
    let Sizes { tensor, heads, rows, columns } = sizes;
    // A map has at least one row, a problem may have no key.
    let rows = &if *heads == "hk" { format!("max({rows}, 1)") } else { rows.to_string() };
    let (row, head) = match problem.layout() {
        Layout::Bhsd => (columns.to_string(), format!("{rows} * {columns}")),
        Layout::Bshd => (format!("{heads} * {columns}"), columns.to_string()),
    };
    let batch = format!("{heads} * {rows} * {columns}");
    let entries = if problem.packed().is_some() { "1" } else { "b" };
    let bytes = |elements: &str| Expr::parse(&format!("2 * {elements}"));
    let map = TensorMap {
        buffer: tensor.to_string(),
        dims: [columns, rows.as_str(), heads, entries].into_iter().map(Expr::parse).collect::<Result<_, _>>()?,
        strides: vec![bytes(&row)?, bytes(&head)?, bytes(&batch)?],
        box_dims: vec![BOX_COLUMNS.into(), box_rows.into(), 1u32.into(), 1u32.into()],
        element_strides: vec![],
        swizzle: Swizzle::B128,
        l2: Promotion::B256,
        interleave: Default::default(),
        oob: Default::default(),
        spot: Default::default(),
    };
    Ok(named(tensor, Argument::new(ArgumentValue::Map(map))))
}
