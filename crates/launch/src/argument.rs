//! Recipes from the command line: `--arg x=bf16[1024,128]:normal(1.0) --arg n=u32:1024`.
//!
//! Each flag is one argument in order; a buffer is also declared, and an integer is also a name for expressions in the
//! flags after it. The result is the same value that a `kernel.toml` gives.

use crate::buffer::{Init, within};
use crate::element::Element;
use crate::error::{Error, Fault};
use crate::expr::Expr;
use crate::read::is_name;
use crate::recipe::{Argument, ArgumentValue, Buffer, Launch, Number, Recipe};
use crate::source::{Source, Spot};

/// The flags of one launch.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--entry`.
    pub entry: Option<String>,
    /// `--grid 8,1,1`; trailing ones may be left out.
    pub grid: String,
    /// `--block 128`.
    pub block: String,
    /// `--cluster 2`, blocks per cluster.
    pub cluster: Option<String>,
    /// `--shared BYTES`.
    pub shared: Option<String>,
    /// `--arg`, in order.
    pub args: Vec<String>,
}

impl Flags {
    /// The recipe that the flags describe.
    ///
    /// ```
    /// use launch::argument::Flags;
    ///
    /// let flags = Flags {
    ///     grid: "ceil_div(n,128)".into(),
    ///     block: "128".into(),
    ///     args: vec!["n=u32:1024".into(), "x=f32[n]:normal(1.0)".into(), "out=f32[n]".into()],
    ///     ..Flags::default()
    /// };
    /// let resolved = flags.recipe()?.resolve(&launch::Limits::default())?;
    /// assert_eq!(resolved.launches[0].grid, [8, 1, 1]);
    /// assert_eq!(resolved.buffers[1].bytes, 4096);
    /// # Ok::<(), launch::Error>(())
    /// ```
    pub fn recipe(&self) -> Result<Recipe, Error> {
        let mut launch = Launch::new(dimensions("--grid", &self.grid)?, dimensions("--block", &self.block)?);
        launch.entry = self.entry.clone();
        launch.cluster = self.cluster.as_ref().map(|cluster| dimensions("--cluster", cluster)).transpose()?;
        if let Some(shared) = &self.shared {
            launch.shared = flag("--shared", shared, Expr::parse(shared))?.at(Spot::default());
        }
        let mut recipe = Recipe::default();
        for text in &self.args {
            let argument = flag("--arg", text, add(&mut recipe, text))?;
            launch.args.push(argument);
        }
        recipe.launches.push(launch);
        Ok(recipe)
    }
}

/// Names the flag as the file of an error; its column then counts in the flag's value.
fn flag<T>(name: &str, text: &str, result: Result<T, Fault>) -> Result<T, Error> {
    result.map_err(|fault| Source::new(name, text).error(fault))
}

fn dimensions(name: &str, text: &str) -> Result<[Expr; 3], Error> {
    let parts = split_list(text);
    if parts.len() > 3 {
        let message = format!("`{text}` has {} entries: expected at most 3", parts.len());
        return flag(name, text, Err(Fault::new(Spot::at(0), message)));
    }
    let mut dimensions = [1u32, 1, 1].map(Expr::from);
    for (dimension, part) in dimensions.iter_mut().zip(parts) {
        let expr = flag(name, text, Expr::parse_at(part, within(Spot::at(0), text, part)))?;
        *dimension = expr;
    }
    Ok(dimensions)
}

/// Splits at commas outside parentheses.
fn split_list(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Adds what one `--arg` declares and returns the argument.
fn add(recipe: &mut Recipe, text: &str) -> Result<Argument, Fault> {
    let form = "expected NAME=TYPE[SHAPE]:INIT, NAME=TYPE:VALUE or NAME=null";
    let start = Spot::at(0);
    let (name, value) =
        text.split_once('=').ok_or_else(|| Fault::new(start, format!("`{text}` has no `=`: {form}")))?;
    if !is_name(name) {
        return Err(Fault::new(start, format!("`{name}` is no name: {form}")));
    }
    let (kind, content) = split_kind(value);
    let argument = match kind.strip_suffix(']').and_then(|kind| kind.split_once('[')) {
        _ if value == "null" => ArgumentValue::Null,
        Some((element, shape)) => {
            recipe.buffers.push(buffer(text, name, element, shape, content)?);
            ArgumentValue::Buffer { buffer: name.to_string(), offset: Expr::from(0u32) }
        }
        None => {
            let content = content.ok_or_else(|| Fault::new(start, format!("`{text}` has no value: {form}")))?;
            scalar(recipe, text, name, kind, content)?
        }
    };
    Ok(Argument { name: Some(name.to_string()), value: argument, spot: Spot::default() })
}

fn split_kind(value: &str) -> (&str, Option<&str>) {
    value.split_once(':').map_or((value, None), |(kind, content)| (kind, Some(content)))
}

fn element(text: &str, word: &str) -> Result<Element, Fault> {
    word.parse().map_err(|message: String| Fault::new(within(Spot::at(0), text, word), message))
}

fn buffer(text: &str, name: &str, kind: &str, shape: &str, init: Option<&str>) -> Result<Buffer, Fault> {
    let spot = |part| within(Spot::at(0), text, part);
    let shape = split_list(shape).into_iter().map(|part| Expr::parse_at(part, spot(part)));
    let mut buffer = Buffer::new(name, element(text, kind)?, shape.collect::<Result<_, _>>()?);
    if let Some(init) = init {
        buffer.init = Init::parse_at(init, spot(init))?;
    }
    Ok(buffer)
}

fn scalar(recipe: &mut Recipe, text: &str, name: &str, kind: &str, value: &str) -> Result<ArgumentValue, Fault> {
    let element = element(text, kind)?;
    let number = Number::parse_at(value, within(Spot::at(0), text, value))?;
    Ok(match number {
        Number::Integer(expr) if !element.is_float() => {
            recipe.lets.push((name.to_string(), expr));
            ArgumentValue::Scalar(element, Number::Integer(Expr::name(name)))
        }
        number => ArgumentValue::Scalar(element, number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(args: &[&str]) -> Result<Recipe, Error> {
        let args = args.iter().map(|text| text.to_string()).collect();
        Flags { grid: "min(n,4),2".into(), block: "32".into(), args, ..Flags::default() }.recipe()
    }

    #[test]
    fn flags_and_text_are_the_same_recipe() {
        let flags = recipe(&["n=u32:1024", "x=bf16[n,128]:normal(1.0)", "scale=f32:0.125", "p=null"]).unwrap();
        let text = r#"
            [let]
            n = 1024
            [buffer.x]
            type = "bf16"
            shape = ["n", 128]
            init = "normal(1.0)"
            [[launch]]
            grid = ["min(n,4)", 2, 1]
            block = [32, 1, 1]
            args = [
                { u32 = "n", name = "n" }, { buffer = "x", name = "x" },
                { f32 = 0.125, name = "scale" }, { null = true, name = "p" },
            ]
        "#;
        assert_eq!(flags, Recipe::parse("kernel.toml", text).unwrap());
    }

    #[test]
    fn failures_show_the_flag() {
        let failure = |text: &str| recipe(&[text]).unwrap_err();
        insta::assert_snapshot!(failure("x"), @"--arg:1:1: `x` has no `=`: expected NAME=TYPE[SHAPE]:INIT, NAME=TYPE:VALUE or NAME=null");
        insta::assert_snapshot!(failure("x=f33[4]"), @"--arg:1:3: unknown type `f33`: expected one of u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64 e4m3 e5m2");
        insta::assert_snapshot!(failure("x=f32[4+]"), @"--arg:1:9: expected a number, a name or `(`, found the end of the expression");
        insta::assert_snapshot!(failure("x=f32"), @"--arg:1:1: `x=f32` has no value: expected NAME=TYPE[SHAPE]:INIT, NAME=TYPE:VALUE or NAME=null");
        insta::assert_snapshot!(failure("x=f32[4]:random"), @"--arg:1:10: unknown init `random`: expected normal(sigma), normal(sigma, seed), zeros, ramp, steps(n), const(v) or poison");
    }
}
