//! Cures: the `//@ fix` lines that turn a failing filetest into a passing one.
//!
//! `//@ fix: X` alone on a line inserts X, at the end of an instruction replaces it;
//! `//@ fix launch.0.block = [64, 1, 1]` changes the recipe. Every line keeps its number, unless a value that spans
//! several lines is replaced or a key is added.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Fault};
use crate::header::blank_out;
use crate::source::{Source, Spot};

const MARK: &str = "//@ fix";

/// The text with all its cures applied, or nothing if it has none.
///
/// ```
/// let sick = "//@ [let]\n//@ n = 4\n//@ fix let.n = 8\nadd.s32 a, b, c; //@ fix: sub.s32 a, b, c;\n";
/// let cured = launch::cure::cured("case.ptx", sick)?.unwrap();
/// assert!(cured.contains("//@ n = 8"));
/// assert!(cured.ends_with("\nsub.s32 a, b, c;\n"));
/// # Ok::<(), launch::Error>(())
/// ```
pub fn cured(name: &str, text: &str) -> Result<Option<String>, Error> {
    if !text.contains(MARK) {
        return Ok(None);
    }
    let source = Source::new(name, text);
    let edits = edits(text).map_err(|fault| source.error(fault))?;
    let mut cured = text.to_string();
    for (range, replacement) in edits.into_iter().rev() {
        cured.replace_range(range, &replacement);
    }
    Ok(Some(cured))
}

type Edit = (Range<usize>, String);

/// Every edit, in the order of the text.
fn edits(text: &str) -> Result<Vec<Edit>, Fault> {
    let mut edits = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if let Some(at) = line.find(MARK) {
            edits.extend(line_edits(text, line, offset, at)?);
        }
        offset += line.len();
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    match edits.windows(2).find(|pair| pair[1].0.start < pair[0].0.end) {
        Some(pair) => Err(Fault::new(Spot::at(pair[1].0.start), "two cures change the same place: keep one")),
        None => Ok(edits),
    }
}

/// What the cure at byte `at` of a line changes.
fn line_edits(text: &str, line: &str, offset: usize, at: usize) -> Result<Vec<Edit>, Fault> {
    let body = &line[at + MARK.len()..];
    let body = body[..body.find("//~").unwrap_or(body.len())].trim();
    let end = line.trim_end_matches(['\n', '\r']).len();
    let indent = line.len() - line.trim_start().len();
    if let Some(code) = body.strip_prefix(':') {
        return Ok(vec![(offset + indent..offset + end, code.trim().to_string())]);
    }
    let spot = Spot::at(offset + at);
    let (path, value) = body.split_once('=').ok_or_else(|| {
        Fault::new(spot, format!("cannot read the cure `{body}`: expected `fix: CODE` or `fix PATH = VALUE`"))
    })?;
    let change = recipe_edit(text, path.trim(), value.trim(), spot)?;
    Ok(vec![(offset + at..offset + end, "//".into()), change])
}

fn recipe_edit(text: &str, path: &str, value: &str, spot: Spot) -> Result<Edit, Fault> {
    let toml = blank_out(text)?;
    let document =
        DeTable::parse(&toml).map_err(|error| Fault::new(spot, format!("not valid TOML: {}", error.message())))?;
    let keys: Vec<&str> = path.split('.').collect();
    let missing = || Fault::new(spot, format!("the recipe has no `{path}` to change: correct the path"));
    if let Some(found) = find(document.get_ref(), &keys) {
        return Ok((found.span(), value.to_string()));
    }
    // A key that is not there yet goes below the head of its table.
    let (last, parents) = keys.split_last().ok_or_else(missing)?;
    let table =
        find(document.get_ref(), parents).filter(|found| toml[found.span()].starts_with('[')).ok_or_else(missing)?;
    let end = table.span().start + toml[table.span().start..].find('\n').ok_or_else(missing)? + 1;
    Ok((end..end, format!("//@ {last} = {value}\n")))
}

/// The value at a path of keys and indices.
fn find<'a, 'i>(root: &'a DeTable<'i>, path: &[&str]) -> Option<&'a Spanned<DeValue<'i>>> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(root.get(*first)?, |value, key| match value.get_ref() {
        DeValue::Table(table) => table.get(*key),
        DeValue::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = r#"//@ [buffer.x]
//@ type = "f32"
//@ shape = [4]
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [32, 1, 1]   //~ error[launch]: too few
//@ args = [
//@   { buffer = "x" }, { u32 = 4 },
//@ ]
//@ fix launch.0.block = [64, 1, 1]
//@ fix launch.0.args.1.u32 = 5
//@ fix launch.0.shared = 128
.version 7.0
    //@ fix: bar.sync 0;
    ld.shared.b32 %r3, [%r2];    //@ fix: ld.shared.b32 %r3, [%r4];  //~ error[race]: bytes
"#;

    #[test]
    fn cures_change_code_and_recipe() {
        let cured = cured("case.ptx", CASE).unwrap().unwrap();
        let recipe = crate::header::read("case.ptx", &cured).unwrap().unwrap();
        let resolved = recipe.resolve(&Default::default()).unwrap();
        assert_eq!(resolved.launches[0].block, [64, 1, 1]);
        assert_eq!(resolved.launches[0].shared, 128);
        assert_eq!(resolved.launches[0].args[1].value.size(), 4);
        assert!(cured.contains("{ u32 = 5 }"));
        assert!(cured.ends_with(".version 7.0\n    bar.sync 0;\n    ld.shared.b32 %r3, [%r4];\n"), "{cured}");
    }

    #[test]
    fn wrong_paths_are_named() {
        let failure = |from: &str, to: &str| cured("case.ptx", &CASE.replace(from, to)).unwrap_err();
        insta::assert_snapshot!(failure("launch.0.block =", "launch.1.block ="), @"case.ptx:10:1: the recipe has no `launch.1.block` to change: correct the path");
        insta::assert_snapshot!(failure("launch.0.shared = 128", "launch.0.shared"), @"case.ptx:12:1: cannot read the cure `launch.0.shared`: expected `fix: CODE` or `fix PATH = VALUE`");
        insta::assert_snapshot!(failure("launch.0.args.1.u32", "launch.0.block"), @"case.ptx:6:13: two cures change the same place: keep one");
    }

    #[test]
    fn nothing_to_cure() {
        assert!(cured("case.ptx", ".version 7.0\n").unwrap().is_none());
    }
}
