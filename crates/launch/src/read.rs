//! TOML to [`Recipe`].

use ptx::{Target, nearest};
use toml::de::DeTable;

use crate::assertion::Assertions;
use crate::buffer::{Float, Init, split_call, within};
use crate::contract::{AttentionContract, Factor, Layout, Lengths, Mask, Pair, Scale, Score, Strides};
use crate::element::Element;
use crate::error::{Error, Fault};
use crate::expectation::{Expect, Tolerance};
use crate::expr::Expr;
use crate::packed::Packed;
use crate::product::Product;
use crate::recipe::{Argument, ArgumentValue, Buffer, Launch, Number, Patch, Recipe};
use crate::source::{Source, Spot};
use crate::tensor_map::TensorMap;
use crate::toml_table::{Item, Table};
use crate::words;

/// Reads a recipe from `toml`, whose offsets are those of the source.
pub(crate) fn recipe(toml: &str, source: Source) -> Result<Recipe, Error> {
    let document = DeTable::parse(toml).map_err(|error| {
        let spot = Spot(error.span().map(|span| span.start));
        source.error(Fault::new(spot, format!("not valid TOML: {}", error.message())))
    })?;
    let mut recipe = read(&Table::root(&document, toml)).map_err(|fault| source.error(fault))?;
    recipe.source = source;
    Ok(recipe)
}

fn read(root: &Table) -> Result<Recipe, Fault> {
    root.allow(&["ptx", "target", "gpu", "let", "buffer", "launch", "attention", "assertions"])?;
    let recipe = Recipe {
        ptx: root.optional("ptx", |item| Ok(item.string()?.to_string()))?,
        target: root.optional("target", target)?,
        gpu: root.optional("gpu", target)?,
        lets: root.optional("let", lets)?.unwrap_or_default(),
        buffers: root.optional("buffer", buffers)?.unwrap_or_default(),
        launches: root.optional("launch", launches)?.unwrap_or_default(),
        attention: root.optional("attention", attention)?,
        assertions: root.optional("assertions", Assertions::read)?,
        source: Source::default(),
    };
    check_buffer_names(&recipe)?;
    root.optional("attention", |item| check_attention_names(&recipe, item.spot()))?;
    recipe.assertions.iter().try_for_each(|assertions| assertions.check(&recipe, root.need("assertions")?.spot()))?;
    Ok(recipe)
}

fn target(item: Item) -> Result<Target, Fault> {
    let name = item.string()?;
    name.parse().map_err(|()| item.fault(format!("unknown target `{name}`: expected one such as `sm_80`")))
}

fn lets(item: Item) -> Result<Vec<(String, Expr)>, Fault> {
    let mut lets = Vec::new();
    for (name, spot, item) in item.table("[let]")?.entries() {
        if !is_name(name) {
            let expected = "letters, digits and `_`, not starting with a digit";
            return Err(Fault::new(spot, format!("`{name}` cannot be used in expressions: expected {expected}")));
        }
        lets.push((name.to_string(), item.expr()?));
    }
    Ok(lets)
}

/// Whether expressions can refer to the word.
pub(crate) fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && word.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

fn buffers(item: Item) -> Result<Vec<Buffer>, Fault> {
    item.table("[buffer]")?.entries().into_iter().map(|(name, spot, item)| buffer(name, spot, item)).collect()
}

fn buffer(name: &str, spot: Spot, item: Item) -> Result<Buffer, Fault> {
    let table = item.table(format!("[buffer.{name}]"))?;
    table.allow(&["type", "shape", "init", "file", "expect", "expect_type", "tolerance"])?;
    let element: Element = table.need("type")?.word()?;
    let expect_type = table.optional("expect_type", |item| item.word())?;
    let buffer = Buffer {
        element,
        shape: table.need("shape")?.exprs()?,
        init: init(&table, element)?,
        expect: table.optional("expect", |item| expect(item, &table, expect_type.unwrap_or(element)))?,
        expect_type,
        tolerance: table.word("tolerance")?,
        name: name.to_string(),
        spot,
    };
    check_expectation(&table, &buffer)?;
    Ok(buffer)
}

fn init(table: &Table, element: Element) -> Result<Init, Fault> {
    match (table.get("init"), table.get("file")) {
        (Some(_), Some(file)) => Err(file.fault(format!("{} has both `init` and `file`: remove one", table.name))),
        (Some(init), None) if init.is_list() => Ok(Init::Values(numbers(init)?)),
        (Some(init), None) if init.is_table() => Ok(match bits(init, "init", table, element)? {
            Bits::Words(words) => Init::Words(words),
            Bits::Packed(packed) => Init::Packed(packed),
        }),
        (Some(init), None) => Init::parse_at(init.string()?, init.content_spot()),
        (None, Some(file)) => Ok(Init::File(file.string()?.to_string())),
        (None, None) => Ok(Init::default()),
    }
}

/// A table `{ hex = "…" }` or `{ packed = "…" }`.
enum Bits {
    Words(Vec<u64>),
    Packed(Packed),
}

fn bits(item: Item, key: &str, buffer: &Table, element: Element) -> Result<Bits, Fault> {
    let table = item.table(format!("`{key}` of {}", buffer.name))?;
    table.allow(&["hex", "packed"])?;
    match (table.get("hex"), table.get("packed")) {
        (Some(_), Some(packed)) => Err(packed.fault(format!("{} has both `hex` and `packed`: remove one", table.name))),
        (None, Some(packed)) => Ok(Bits::Packed(Packed::read(packed, &table.name)?)),
        _ => Ok(Bits::Words(words::read(table.need("hex")?, &table.name, element)?)),
    }
}

fn numbers(item: Item) -> Result<Vec<Number>, Fault> {
    item.list()?.into_iter().map(Item::number).collect()
}

fn expect(item: Item, table: &Table, element: Element) -> Result<Expect, Fault> {
    if item.is_list() {
        return Ok(Expect::Values(numbers(item)?));
    }
    if item.is_table() {
        return Ok(match bits(item, "expect", table, element)? {
            Bits::Words(words) => Expect::Words(words),
            Bits::Packed(packed) => Expect::Packed(packed),
        });
    }
    let text = item.string()?;
    if let ("product", Some(factors)) = split_call(text) {
        let product = Product::parse(factors).ok_or_else(|| {
            item.fault(format!(
                "cannot read `{text}`: expected product(a, b) or product(a, transposed(b)), of two buffers"
            ))
        })?;
        return Ok(Expect::Product(product));
    }
    if let (call, Some(_)) = split_call(text) {
        let expected = "a file, a list, `sha256:…`, product(a, b) or product(a, transposed(b))";
        return Err(item.fault(format!("unknown `{call}(…)`: expected {expected}")));
    }
    let Some(digits) = text.strip_prefix("sha256:") else { return Ok(Expect::File(text.to_string())) };
    if digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(Expect::Hash(digits.to_string()));
    }
    Err(item.fault(format!("`{text}` is no SHA-256: expected 64 hexadecimal digits in lower case after `sha256:`")))
}

fn check_expectation(table: &Table, buffer: &Buffer) -> Result<(), Fault> {
    let alone = |key: &str| table.get(key).filter(|_| buffer.expect.is_none());
    if let Some((key, item)) = ["expect_type", "tolerance"].iter().find_map(|key| Some((key, alone(key)?))) {
        return Err(item.fault(format!("{} has `{key}` but no `expect`: add `expect` or remove it", table.name)));
    }
    if let (Some(Expect::Product(_)), Some(item)) = (&buffer.expect, table.get("expect_type")) {
        return Err(item.fault(format!("{} expects a product, which is float64: remove `expect_type`", table.name)));
    }
    let hashed = matches!(buffer.expect, Some(Expect::Hash(_)));
    if hashed && (buffer.expect_type.is_some() || buffer.tolerance != Tolerance::Exact) {
        let message =
            format!("{} expects a hash, which is always exact: remove `expect_type` and `tolerance`", table.name);
        return Err(Fault::new(table.spot, message));
    }
    Ok(())
}

fn launches(item: Item) -> Result<Vec<Launch>, Fault> {
    item.list()?.into_iter().enumerate().map(|(index, item)| launch(index, item)).collect()
}

fn launch(index: usize, item: Item) -> Result<Launch, Fault> {
    let table = item.table(format!("[[launch]] number {index}"))?;
    table.allow(&["entry", "grid", "block", "cluster", "shared", "repeat", "overlap", "args"])?;
    let exprs = |item: Item| item.list()?.into_iter().map(argument).collect::<Result<Vec<_>, Fault>>();
    Ok(Launch {
        entry: table.optional("entry", |item| Ok(item.string()?.to_string()))?,
        grid: table.need("grid")?.exprs_of()?,
        block: table.need("block")?.exprs_of()?,
        cluster: table.optional("cluster", |item| item.exprs_of())?,
        shared: table.optional("shared", |item| item.expr())?.unwrap_or_else(|| Expr::from(0u32)),
        repeat: table.optional("repeat", |item| item.expr())?.unwrap_or_else(|| Expr::from(1u32)),
        overlap: table.optional("overlap", |item| item.truth())?.unwrap_or_default(),
        args: table.optional("args", exprs)?.unwrap_or_default(),
        spot: table.spot,
    })
}

fn argument(item: Item) -> Result<Argument, Fault> {
    let table = item.table("the argument")?;
    let name = table.optional("name", |item| Ok(item.string()?.to_string()))?;
    Ok(Argument { name, value: argument_value(&table, "name")?, spot: table.spot })
}

/// What an argument or a patch passes; `extra` is the one key that says something else.
fn argument_value(table: &Table, extra: &str) -> Result<ArgumentValue, Fault> {
    let kinds: Vec<&str> = table.entries().into_iter().map(|entry| entry.0).filter(|key| is_kind(key)).collect();
    let [kind] = kinds[..] else { return Err(wrong_kinds(table, &kinds, extra)) };
    let item = table.need(kind)?;
    match kind {
        "buffer" => {
            table.allow(&["buffer", "offset", extra])?;
            let offset = table.optional("offset", |item| item.expr())?.unwrap_or_else(|| Expr::from(0u32));
            Ok(ArgumentValue::Buffer { buffer: item.string()?.to_string(), offset })
        }
        "null" => {
            table.allow(&["null", extra])?;
            if item.is_true() { Ok(ArgumentValue::Null) } else { Err(item.fault("expected `null = true`")) }
        }
        "map" => Ok(ArgumentValue::Map(map(table, item, extra)?)),
        "bytes" => {
            table.allow(&["bytes", "patch", extra])?;
            Ok(ArgumentValue::Bytes {
                file: item.string()?.to_string(),
                patches: table.optional("patch", patches)?.unwrap_or_default(),
            })
        }
        _ => {
            table.allow(&[kind, extra])?;
            let element: Element = kind.parse().map_err(|message: String| item.fault(message))?;
            Ok(ArgumentValue::Scalar(element, item.number()?))
        }
    }
}

fn is_kind(key: &str) -> bool {
    matches!(key, "buffer" | "null" | "map" | "bytes") || key.parse::<Element>().is_ok()
}

fn wrong_kinds(table: &Table, kinds: &[&str], extra: &str) -> Fault {
    if let [first, second, ..] = kinds {
        return Fault::new(table.spot, format!("{} is both `{first}` and `{second}`: keep one", table.name));
    }
    let words: Vec<&str> =
        ["buffer", "null", "map", "bytes"].into_iter().chain(Element::all().map(Element::name)).collect();
    let slip = table.entries().into_iter().filter(|entry| entry.0 != extra);
    let near = slip.filter_map(|(key, spot, _)| Some((key, spot, nearest(key, words.iter().copied())?))).next();
    match near {
        Some((key, spot, near)) => {
            Fault::new(spot, format!("unknown key `{key}` in {}: did you mean `{near}`?", table.name))
        }
        None => Fault::new(table.spot, format!("{} says nothing: expected one of {}", table.name, words.join(", "))),
    }
}

fn patches(item: Item) -> Result<Vec<Patch>, Fault> {
    item.list()?.into_iter().map(patch).collect()
}

fn patch(item: Item) -> Result<Patch, Fault> {
    let table = item.table("the patch")?;
    let value = argument_value(&table, "at")?;
    if matches!(value, ArgumentValue::Bytes { .. }) {
        return Err(item.fault("a patch cannot hold `bytes`: put them into the file"));
    }
    Ok(Patch { at: table.need("at")?.expr()?, value })
}

fn map(table: &Table, buffer: Item, extra: &str) -> Result<TensorMap, Fault> {
    let known = ["map", "dims", "strides", "box", "element_strides", "swizzle", "interleave", "l2", "oob", extra];
    table.allow(&known)?;
    Ok(TensorMap {
        buffer: buffer.string()?.to_string(),
        dims: table.need("dims")?.exprs()?,
        strides: table.optional("strides", |item| item.exprs())?.unwrap_or_default(),
        box_dims: table.need("box")?.exprs()?,
        element_strides: table.optional("element_strides", |item| item.exprs())?.unwrap_or_default(),
        swizzle: table.word("swizzle")?,
        interleave: table.word("interleave")?,
        l2: table.word("l2")?,
        oob: table.word("oob")?,
        spot: table.spot,
    })
}

fn attention(item: Item) -> Result<AttentionContract, Fault> {
    let table = item.table("[attention]")?;
    let layout_and_more = ["layout", "strides", "mask", "score", "sinks", "documents", "cumulative", "lengths"];
    table.allow(&[&["q", "k", "v", "o", "lse", "scale"], &layout_and_more[..]].concat())?;
    let name = |key: &str| Ok(table.need(key)?.string()?.to_string());
    Ok(AttentionContract {
        q: name("q")?,
        k: name("k")?,
        v: name("v")?,
        o: name("o")?,
        lse: table.optional("lse", |item| Ok(item.string()?.to_string()))?,
        scale: table.optional("scale", scale)?,
        layout: layout(&table)?,
        mask: table.optional("mask", mask)?.unwrap_or_default(),
        score: table.optional("score", score)?.unwrap_or_default(),
        sinks: table.optional("sinks", |item| Ok(item.string()?.to_string()))?,
        documents: table.optional("documents", |item| pair(item, "`documents`"))?,
        cumulative: table.optional("cumulative", |item| pair(item, "`cumulative`"))?,
        lengths: lengths(table.need("lengths")?)?,
    })
}

fn scale(item: Item) -> Result<Scale, Fault> {
    let table = item.table("`scale`")?;
    table.allow(&["arg", "factor"])?;
    let factor = table.optional("factor", |item| match item.number()? {
        Number::Float(value) => Ok(Factor::Value(value)),
        Number::Integer(expr) => match (expr.to_string().as_str(), expr.literal()) {
            ("log2e", _) => Ok(Factor::Log2E),
            (_, Some(value)) => Ok(Factor::Value(Float(value as f64))),
            (text, None) => Err(item.fault(format!("unknown factor `{text}`: expected \"log2e\" or a number"))),
        },
    })?;
    let arg = table.need("arg")?.string()?.to_string();
    Ok(Scale { arg, factor: factor.unwrap_or(Factor::Value(Float(1.0))) })
}

fn layout(table: &Table) -> Result<Layout, Fault> {
    match (table.get("layout"), table.get("strides")) {
        (Some(_), Some(strides)) => Err(strides.fault("[attention] has both `layout` and `strides`: remove one")),
        (None, None) => {
            Err(Fault::new(table.spot, "[attention] has no `layout`: add layout = \"bhsd\" or \"bshd\", or strides"))
        }
        (None, Some(item)) => strides(item),
        (Some(item), None) => match item.string()? {
            "bhsd" => Ok(Layout::Bhsd),
            "bshd" => Ok(Layout::Bshd),
            other => Err(item.fault(format!("unknown layout `{other}`: expected bhsd or bshd, or use strides"))),
        },
    }
}

fn strides(item: Item) -> Result<Layout, Fault> {
    let table = item.table("`strides`")?;
    table.allow(&["q", "k", "v", "o"])?;
    let of = |key: &str| table.need(key)?.exprs_of();
    Ok(Layout::Strides(Box::new(Strides { q: of("q")?, k: of("k")?, v: of("v")?, o: of("o")? })))
}

fn mask(item: Item) -> Result<Mask, Fault> {
    let text = item.string()?;
    let expected = "none, causal-top-left, causal-bottom-right or window(l,r)";
    let unknown = || item.fault(format!("unknown mask `{text}`: expected {expected}"));
    match split_call(text) {
        ("none", None) => Ok(Mask::None),
        ("causal-top-left", None) => Ok(Mask::CausalTopLeft),
        ("causal-bottom-right", None) => Ok(Mask::CausalBottomRight),
        ("window", Some(arguments)) => {
            let (left, right) = arguments.split_once(',').ok_or_else(unknown)?;
            let expr = |part: &str| Expr::parse_at(part, within(item.content_spot(), text, part));
            Ok(Mask::Window(expr(left)?, expr(right)?))
        }
        _ => Err(unknown()),
    }
}

fn score(item: Item) -> Result<Score, Fault> {
    let text = item.string()?;
    let unknown = || item.fault(format!("unknown score `{text}`: expected plain, softcap(c) or alibi(slopes)"));
    match split_call(text) {
        ("plain", None) => Ok(Score::Plain),
        ("softcap", Some(cap)) => Ok(Score::SoftCap(Float(cap.trim().parse().map_err(|_| unknown())?))),
        ("alibi", Some(slopes)) => Ok(Score::Alibi(slopes.trim().into())),
        _ => Err(unknown()),
    }
}

fn pair(item: Item, what: &str) -> Result<Pair, Fault> {
    let table = item.table(what)?;
    table.allow(&["q", "k"])?;
    let name = |key: &str| Ok(table.need(key)?.string()?.to_string());
    Ok(Pair { q: name("q")?, k: name("k")? })
}

fn lengths(item: Item) -> Result<Lengths, Fault> {
    let table = item.table("`lengths`")?;
    table.allow(&["q", "k", "batch", "heads", "kv_heads", "dim", "value_dim"])?;
    let need = |key: &str| table.need(key)?.expr();
    Ok(Lengths {
        q: need("q")?,
        k: need("k")?,
        batch: need("batch")?,
        heads: need("heads")?,
        kv_heads: table.optional("kv_heads", |item| item.expr())?,
        dim: need("dim")?,
        value_dim: table.optional("value_dim", |item| item.expr())?,
    })
}

/// A misspelt buffer is best reported before anything is evaluated.
fn check_buffer_names(recipe: &Recipe) -> Result<(), Fault> {
    let known = |name: &str, spot: Spot| match recipe.buffer(name) {
        Some(_) => Ok(()),
        None => Err(unknown_buffer(recipe, name, spot)),
    };
    for argument in recipe.launches.iter().flat_map(|launch| &launch.args) {
        for value in values(&argument.value) {
            match value {
                ArgumentValue::Buffer { buffer, .. } => known(buffer, argument.spot)?,
                ArgumentValue::Map(map) => known(&map.buffer, argument.spot)?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn check_attention_names(recipe: &Recipe, spot: Spot) -> Result<(), Fault> {
    let Some(attention) = &recipe.attention else { return Ok(()) };
    let buffers = [&attention.q, &attention.k, &attention.v, &attention.o];
    if let Some(name) =
        buffers.into_iter().chain(&attention.lse).chain(attention.numbers()).find(|name| recipe.buffer(name).is_none())
    {
        return Err(unknown_buffer(recipe, name, spot));
    }
    let Some(scale) = &attention.scale else { return Ok(()) };
    let args = || recipe.launches.iter().flat_map(|launch| &launch.args).filter_map(|arg| arg.name.as_deref());
    if args().any(|name| name == scale.arg) {
        return Ok(());
    }
    let help =
        nearest(&scale.arg, args()).map_or("give one that name".into(), |near| format!("did you mean `{near}`?"));
    Err(Fault::new(spot, format!("no argument has the name `{}`: {help}", scale.arg)))
}

/// The value itself and those patched into it.
fn values(value: &ArgumentValue) -> Vec<&ArgumentValue> {
    match value {
        ArgumentValue::Bytes { patches, .. } => patches.iter().map(|patch| &patch.value).collect(),
        _ => vec![value],
    }
}

pub(crate) fn unknown_buffer(recipe: &Recipe, name: &str, spot: Spot) -> Fault {
    let help = match nearest(name, recipe.buffers.iter().map(|buffer| buffer.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add [buffer.{name}]"),
    };
    Fault::new(spot, format!("unknown buffer `{name}`: {help}"))
}
