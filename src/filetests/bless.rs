//! Writing down what happened as what is expected.

use super::case::{Case, Kind};
use super::expectation::{Happening, MARK};
use super::verdict::Judge;

/// The text of a `fail` or `lint` case with its `//~` lines written anew; none for other kinds.
pub fn blessed(case: &Case, judge: &Judge) -> Result<Option<String>, String> {
    if !matches!(case.kind, Kind::Fail | Kind::Lint) || case.is_about_results() {
        return Ok(None);
    }
    let happened = judge.happenings(&case.name, &case.text)?;
    let mut text = String::new();
    for (line, number) in case.text.lines().zip(1..) {
        let plain = line.split(MARK).next().unwrap_or(line).trim_end();
        text.push_str(plain);
        for one in worth_saying(&happened, number) {
            text.push_str(&format!("  {MARK}{}: {}", one.what, one.text));
        }
        text.push('\n');
    }
    Ok(Some(text))
}

/// The findings of a line; where there are none, the first note.
fn worth_saying(happened: &[Happening], line: u32) -> Vec<&Happening> {
    let (notes, findings): (Vec<_>, Vec<_>) =
        happened.iter().filter(|one| one.line == line).partition(|one| one.what == "note");
    if findings.is_empty() { notes.into_iter().take(1).collect() } else { findings }
}
