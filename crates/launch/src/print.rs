//! [`Recipe`] to TOML text that reads back to an equal recipe.

use std::fmt::Write;

use crate::assertion::{Assertion, Assertions};
use crate::buffer::Init;
use crate::contract::{AttentionContract, Factor, Layout, Lengths, Pair, Score};
use crate::expectation::{Expect, Tolerance};
use crate::expr::Expr;
use crate::recipe::{Argument, ArgumentValue, Buffer, Launch, Number, Patch, Recipe};
use crate::tensor_map::TensorMap;
use crate::words;

impl Recipe {
    /// The recipe as the text of a `kernel.toml`.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        if let Some(ptx) = &self.ptx {
            line(&mut text, "ptx", quote(ptx));
        }
        if let Some(target) = &self.target {
            line(&mut text, "target", quote(&target.to_string()));
        }
        if let Some(gpu) = &self.gpu {
            line(&mut text, "gpu", quote(&gpu.to_string()));
        }
        if !self.lets.is_empty() {
            text.push_str("[let]\n");
            self.lets.iter().for_each(|(name, value)| line(&mut text, &key(name), integer(value)));
        }
        self.buffers.iter().for_each(|buffer| print_buffer(&mut text, buffer));
        self.launches.iter().for_each(|launch| print_launch(&mut text, launch));
        if let Some(attention) = &self.attention {
            print_attention(&mut text, attention);
        }
        if let Some(assertions) = &self.assertions {
            print_assertions(&mut text, assertions);
        }
        text
    }

    /// The recipe as leading lines of a `.ptx`.
    pub fn to_header(&self) -> String {
        self.to_toml().lines().map(|line| format!("//@ {line}\n")).collect()
    }
}

fn line(text: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn print_buffer(text: &mut String, buffer: &Buffer) {
    let _ = writeln!(text, "[buffer.{}]", key(&buffer.name));
    line(text, "type", quote(buffer.element.name()));
    line(text, "shape", integers(&buffer.shape));
    match &buffer.init {
        Init::File(path) => line(text, "file", quote(path)),
        Init::Values(values) => line(text, "init", list(values.iter().map(number))),
        Init::Words(words) => line(text, "init.hex", words::print(words, buffer.element)),
        Init::Packed(packed) => line(text, "init.packed", packed),
        init => line(text, "init", quote(&init.to_string())),
    }
    match &buffer.expect {
        None => {}
        Some(Expect::File(path)) => line(text, "expect", quote(path)),
        Some(Expect::Hash(digits)) => line(text, "expect", quote(&format!("sha256:{digits}"))),
        Some(Expect::Values(values)) => line(text, "expect", list(values.iter().map(number))),
        Some(Expect::Words(words)) => line(text, "expect.hex", words::print(words, buffer.reference())),
        Some(Expect::Packed(packed)) => line(text, "expect.packed", packed),
        Some(Expect::Product(product)) => line(text, "expect", quote(&product.to_string())),
    }
    if let Some(element) = buffer.expect_type {
        line(text, "expect_type", quote(element.name()));
    }
    if buffer.tolerance != Tolerance::Exact {
        line(text, "tolerance", quote(&buffer.tolerance.to_string()));
    }
}

fn print_launch(text: &mut String, launch: &Launch) {
    text.push_str("[[launch]]\n");
    if let Some(entry) = &launch.entry {
        line(text, "entry", quote(entry));
    }
    line(text, "grid", integers(&launch.grid));
    line(text, "block", integers(&launch.block));
    if let Some(cluster) = &launch.cluster {
        line(text, "cluster", integers(cluster));
    }
    if launch.shared.literal() != Some(0) {
        line(text, "shared", integer(&launch.shared));
    }
    if launch.repeat.literal() != Some(1) {
        line(text, "repeat", integer(&launch.repeat));
    }
    if launch.overlap {
        line(text, "overlap", "true");
    }
    if !launch.args.is_empty() {
        text.push_str("args = [\n");
        launch.args.iter().for_each(|argument| print_argument(text, argument));
        text.push_str("]\n");
    }
}

fn print_argument(text: &mut String, argument: &Argument) {
    let mut fields = value_fields(&argument.value);
    if let Some(name) = &argument.name {
        fields.push(("name", quote(name)));
    }
    let _ = writeln!(text, "  {},", table(fields));
}

type Fields = Vec<(&'static str, String)>;

fn table(fields: Fields) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn value_fields(value: &ArgumentValue) -> Fields {
    match value {
        ArgumentValue::Buffer { buffer, offset } if offset.literal() == Some(0) => vec![("buffer", quote(buffer))],
        ArgumentValue::Buffer { buffer, offset } => vec![("buffer", quote(buffer)), ("offset", integer(offset))],
        ArgumentValue::Scalar(element, value) => vec![(element.name(), number(value))],
        ArgumentValue::Null => vec![("null", "true".into())],
        ArgumentValue::Map(map) => map_fields(map),
        ArgumentValue::Bytes { file, patches } if patches.is_empty() => vec![("bytes", quote(file))],
        ArgumentValue::Bytes { file, patches } => {
            vec![("bytes", quote(file)), ("patch", list(patches.iter().map(patch)))]
        }
    }
}

fn patch(patch: &Patch) -> String {
    let mut fields = vec![("at", integer(&patch.at))];
    fields.extend(value_fields(&patch.value));
    table(fields)
}

fn map_fields(map: &TensorMap) -> Fields {
    let mut fields = vec![("map", quote(&map.buffer)), ("dims", integers(&map.dims))];
    fields.push(("strides", integers(&map.strides)));
    fields.push(("box", integers(&map.box_dims)));
    if !map.element_strides.is_empty() {
        fields.push(("element_strides", integers(&map.element_strides)));
    }
    fields.push(("swizzle", quote(&map.swizzle.to_string())));
    fields.push(("interleave", quote(&map.interleave.to_string())));
    fields.push(("l2", quote(&map.l2.to_string())));
    fields.push(("oob", quote(&map.oob.to_string())));
    fields
}

fn print_attention(text: &mut String, attention: &AttentionContract) {
    text.push_str("[attention]\n");
    for (key, name) in [("q", &attention.q), ("k", &attention.k), ("v", &attention.v), ("o", &attention.o)] {
        line(text, key, quote(name));
    }
    if let Some(lse) = &attention.lse {
        line(text, "lse", quote(lse));
    }
    if let Some(scale) = &attention.scale {
        let factor = match scale.factor {
            Factor::Log2E => quote("log2e"),
            Factor::Value(value) => value.to_string(),
        };
        line(text, "scale", table(vec![("arg", quote(&scale.arg)), ("factor", factor)]));
    }
    print_layout(text, &attention.layout);
    line(text, "mask", quote(&attention.mask.to_string()));
    if attention.score != Score::Plain {
        line(text, "score", quote(&attention.score.to_string()));
    }
    if let Some(sinks) = &attention.sinks {
        line(text, "sinks", quote(sinks));
    }
    if let Some(documents) = &attention.documents {
        line(text, "documents", pair(documents));
    }
    if let Some(cumulative) = &attention.cumulative {
        line(text, "cumulative", pair(cumulative));
    }
    line(text, "lengths", lengths(&attention.lengths));
}

fn print_assertions(text: &mut String, assertions: &Assertions) {
    text.push_str("[assertions]\n");
    line(text, "report", quote(&assertions.report));
    text.push_str("list = [\n");
    for Assertion { message, at } in &assertions.list {
        let mut fields = vec![("message", quote(message))];
        fields.extend(at.as_ref().map(|at| ("at", quote(at))));
        let _ = writeln!(text, "  {},", table(fields));
    }
    text.push_str("]\n");
}

fn print_layout(text: &mut String, layout: &Layout) {
    match layout {
        Layout::Bhsd => line(text, "layout", quote("bhsd")),
        Layout::Bshd => line(text, "layout", quote("bshd")),
        Layout::Strides(strides) => {
            let of = [("q", &strides.q), ("k", &strides.k), ("v", &strides.v), ("o", &strides.o)];
            line(text, "strides", table(of.map(|(key, strides)| (key, integers(strides))).to_vec()));
        }
    }
}

fn pair(Pair { q, k }: &Pair) -> String {
    table(vec![("q", quote(q)), ("k", quote(k))])
}

fn lengths(lengths: &Lengths) -> String {
    let mut fields = vec![("q", integer(&lengths.q)), ("k", integer(&lengths.k))];
    fields.push(("batch", integer(&lengths.batch)));
    fields.push(("heads", integer(&lengths.heads)));
    fields.extend(lengths.kv_heads.as_ref().map(|heads| ("kv_heads", integer(heads))));
    fields.push(("dim", integer(&lengths.dim)));
    fields.extend(lengths.value_dim.as_ref().map(|dim| ("value_dim", integer(dim))));
    table(fields)
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn integers(exprs: &[Expr]) -> String {
    list(exprs.iter().map(integer))
}

/// A plain integer where TOML has it, else a string.
fn integer(expr: &Expr) -> String {
    match expr.literal() {
        Some(value) if i64::try_from(value).is_ok() => value.to_string(),
        _ => quote(&expr.to_string()),
    }
}

fn number(number: &Number) -> String {
    match number {
        Number::Integer(expr) => integer(expr),
        Number::Float(value) => value.to_string(),
    }
}

/// A key, bare where TOML allows it. `fix` would read as a cure at the start of a header line.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name != "fix" && !name.is_empty() && name.chars().all(bare) { name.to_string() } else { quote(name) }
}

/// A TOML basic string. `//~` is escaped, because in a header it starts an expectation.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '~' if quoted.ends_with("//") => quoted.push_str("\\u007E"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
