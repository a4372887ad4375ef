//! Writing down what happened as what is expected.

use super::case::{Case, Kind};
use super::expectation::MARK;
use super::verdict::Judge;

/// The text of a `fail` case with its `//~` lines written anew; none for other kinds.
pub fn blessed(case: &Case, judge: &Judge) -> Result<Option<String>, String> {
    if case.kind != Kind::Fail {
        return Ok(None);
    }
    let happened = judge.happenings(&case.name, &case.text)?;
    let mut text = String::new();
    for (line, number) in case.text.lines().zip(1..) {
        let plain = line.split(MARK).next().unwrap_or(line).trim_end();
        let here = happened.iter().filter(|one| one.line == number);
        // An error says more than the note of another finding on the same line.
        let best = here.min_by_key(|one| one.what == "note");
        text.push_str(plain);
        if let Some(one) = best {
            text.push_str(&format!("  {MARK}{}: {}", one.what, one.text));
        }
        text.push('\n');
    }
    Ok(Some(text))
}
