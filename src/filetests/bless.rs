//! Writing down what happened as what is expected.

use super::case::{Case, Kind};
use super::expectation::{self, Expectation, Happening, MARK, MARK_ABOVE, MISSING, speaks_of_above};
use super::verdict::Judge;

/// The text of a `fail` or `lint` case with its `//~` lines written anew; none for other kinds. What holds stays in its
/// author's words.
pub fn blessed(case: &Case, judge: &Judge) -> Result<Option<String>, String> {
    if !matches!(case.kind, Kind::Fail | Kind::Lint) || case.is_about_results() {
        return Ok(None);
    }
    // What is missing names lines, and a line more moves those below it.
    let mut text = case.text.clone();
    loop {
        let written = written(&text, &expectation::read(&text)?, &judge.happenings(&case.name, &text)?);
        if written == text {
            return Ok(Some(text));
        }
        text = written;
    }
}

fn written(old: &str, expected: &[Expectation], happened: &[Happening]) -> String {
    let mut text = String::new();
    for (line, number) in old.lines().zip(1..).filter(|(line, _)| speaks_of_above(line).is_none()) {
        let plain = line.split(MARK).next().unwrap_or(line).trim_end();
        let indent = &plain[..plain.len() - plain.trim_start().len()];
        let (missing, here): (Vec<_>, Vec<_>) =
            worth_saying(expected, happened, number).into_iter().partition(|one| one.what == MISSING);
        text.push_str(plain);
        here.iter().for_each(|one| text.push_str(&format!("  {MARK}{}: {}", one.what, one.text)));
        text.push('\n');
        missing.iter().for_each(|one| text.push_str(&format!("{indent}{MARK_ABOVE}{}: {}\n", one.what, one.text)));
    }
    text
}

/// What is said of a line and holds, then what is found and nobody said; where there is nothing else, the first note.
fn worth_saying(expected: &[Expectation], happened: &[Happening], line: u32) -> Vec<Expectation> {
    let here: Vec<&Happening> = happened.iter().filter(|one| one.line == line).collect();
    let holds = |one: &&Expectation| one.line == line && here.iter().any(|other| one.is_met_by(other));
    let mut all: Vec<Expectation> = expected.iter().filter(holds).cloned().collect();
    let unsaid = here.iter().filter(|one| !all.iter().any(|said| said.is_met_by(one)));
    let (notes, findings): (Vec<&Happening>, Vec<&Happening>) = unsaid.partition(|one| one.what == "note");
    let alone = all.is_empty() && findings.is_empty();
    let new = findings.into_iter().chain(notes.into_iter().take(usize::from(alone)));
    all.extend(new.map(|one| Expectation { line, what: one.what.clone(), text: one.text.clone() }));
    all
}
