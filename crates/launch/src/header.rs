//! Recipes in a `.ptx`: leading lines that begin with `//@ ` are the text of a `kernel.toml`.
//!
//! A `//~` at the end of such a line is an expectation of a filetest and not part of the recipe, nor are lines that
//! begin with `//@ fix`, the cures of filetests, which may stand anywhere. Other comments and blank lines may stand
//! between; the first statement ends the header.

use crate::error::{Error, Fault};
use crate::read;
use crate::recipe::Recipe;
use crate::source::{Source, Spot};

/// Reads the recipe at the head of a `.ptx`, or nothing if there is none.
///
/// ```
/// let text = "//@ [let]\n//@ n = 4\n.version 8.0\n";
/// let recipe = launch::header::read("case.ptx", text)?.unwrap();
/// assert_eq!(recipe.lets[0].0, "n");
/// assert!(launch::header::read("plain.ptx", ".version 8.0\n")?.is_none());
/// # Ok::<(), launch::Error>(())
/// ```
pub fn read(name: &str, text: &str) -> Result<Option<Recipe>, Error> {
    let source = Source::new(name, text);
    let toml = blank_out(text).map_err(|fault| source.error(fault))?;
    if toml.trim().is_empty() {
        return Ok(None);
    }
    read::recipe(&toml, source).map(Some)
}

/// The header with everything but TOML replaced by spaces, so that offsets in it are offsets in the file.
pub(crate) fn blank_out(text: &str) -> Result<String, Fault> {
    let mut toml = String::new();
    let mut offset = 0;
    let mut leading = true;
    for line in text.split_inclusive('\n') {
        let body = recipe_text(line);
        leading &= is_comment(line);
        match body {
            Some(_) if !leading => return Err(too_late(offset, line)),
            Some(body) => push_part(&mut toml, line, body),
            None if leading => push_part(&mut toml, line, ""),
            None => {}
        }
        offset += line.len();
    }
    Ok(toml)
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("//")
}

/// The TOML in a line, if the line belongs to the recipe.
fn recipe_text(line: &str) -> Option<&str> {
    let body = line.trim_start().strip_prefix("//@")?;
    if is_cure(body) {
        return None;
    }
    let end = body.find("//~").unwrap_or(body.len());
    Some(body[..end].trim_end())
}

fn is_cure(body: &str) -> bool {
    body.trim_start().strip_prefix("fix").is_some_and(|rest| rest.starts_with([':', ' ', '\t']))
}

/// Appends as many bytes as the line has, with only `part` of it kept.
fn push_part(toml: &mut String, line: &str, part: &str) {
    let start = if part.is_empty() { 0 } else { part.as_ptr() as usize - line.as_ptr() as usize };
    toml.push_str(&" ".repeat(start));
    toml.push_str(part);
    let rest = &line[start + part.len()..];
    let newline = usize::from(rest.ends_with('\n'));
    toml.push_str(&" ".repeat(rest.len() - newline));
    toml.push_str(&rest[rest.len() - newline..]);
}

fn too_late(offset: usize, line: &str) -> Fault {
    let indent = line.len() - line.trim_start().len();
    Fault::new(Spot::at(offset + indent), "recipe line after the first statement: move it to the head of the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = "// A copy.\n//@ [let]\n//@ n = 4   //~ error[launch]: too few\n//@ fix launch.0.block = [64, 1, 1]\n\n//@ [buffer.x]\n//@ type = \"f32\"\n//@ shape = [\"n\"]\n.version 8.0\n    //@ fix: bar.sync 0;\n";

    #[test]
    fn reads_only_the_recipe() {
        let recipe = read("case.ptx", CASE).unwrap().unwrap();
        assert_eq!(recipe.lets.len(), 1);
        assert_eq!(recipe.lets[0].1.literal(), Some(4));
        assert_eq!(recipe.buffers[0].name, "x");
    }

    #[test]
    fn offsets_are_those_of_the_file() {
        let toml = blank_out(CASE).unwrap();
        let end = CASE.find(".version").unwrap();
        assert_eq!(toml.len(), end);
        assert_eq!(toml.find("n = 4"), CASE.find("n = 4"));
    }

    #[test]
    fn errors_point_into_the_ptx() {
        let failure = |text: &str| {
            read("case.ptx", text).and_then(|recipe| recipe.unwrap().resolve(&Default::default())).unwrap_err()
        };
        insta::assert_snapshot!(failure("// é\n//@ [lett]\n"), @"case.ptx:2:6: unknown key `lett` in the recipe: did you mean `let`?");
        insta::assert_snapshot!(failure("//@ [let]\n//@ n = \n"), @"case.ptx:2:9: not valid TOML: string values must be quoted, expected literal string");
        insta::assert_snapshot!(failure(&CASE.replace("\"n\"", "\"n * m\"")), @"case.ptx:8:19: unknown name `m`: did you mean `n`?");
        insta::assert_snapshot!(failure(".version 8.0\n  //@ [let]\n"), @"case.ptx:2:3: recipe line after the first statement: move it to the head of the file");
    }
}
