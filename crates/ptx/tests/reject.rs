//! Every file of `filetests/reject` is refused where it says so, with what it says, and nowhere else.

use ptx::{Diagnostic, Source};
use std::path::PathBuf;

fn cases() -> Vec<Source> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../filetests/reject"));
    let files = std::fs::read_dir(&folder).expect("the folder of cases is there");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a readable folder").path()).collect();
    paths.sort();
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a readable case");
    paths.iter().map(|path| Source::new(path.file_name().unwrap_or_default().to_string_lossy(), read(path))).collect()
}

fn errors(source: &Source) -> Vec<Diagnostic> {
    match ptx::parse(source) {
        Ok(parsed) => ptx::verify(&parsed),
        Err(errors) => errors.all,
    }
}

/// Lines, counted from one, with the text that their error must contain.
fn expected(source: &Source) -> Vec<(u32, &str)> {
    let lines = (1..).zip(source.text.lines());
    lines.filter_map(|(number, line)| Some((number, line.split_once("//~ error: ")?.1.trim()))).collect()
}

#[test]
fn mistakes_are_told_where_they_stand() {
    let cases = cases();
    assert!(cases.len() >= 25, "only {} cases", cases.len());
    let mut wrong = String::new();
    for source in &cases {
        let expected = expected(source);
        assert!(!expected.is_empty(), "{} expects no error", source.name);
        let found = errors(source);
        let told = |error: &Diagnostic| {
            let line = source.position(error.span.start).line;
            expected.iter().any(|(at, text)| *at == line && error.message.contains(text))
        };
        if found.len() != expected.len() || !found.iter().all(told) {
            let all = ptx::Diagnostics { source: source.clone(), all: found };
            wrong += &format!("{}: expected {expected:?}, found\n{all}\n\n", source.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn no_two_cases_expect_the_same() {
    let cases = cases();
    let mut texts: Vec<(&str, &str)> = vec![];
    for source in &cases {
        let (_, text) = expected(source)[0];
        let same = texts.iter().find(|(_, known)| *known == text);
        assert!(same.is_none(), "{} and {same:?}", source.name);
        texts.push((&source.name, text));
    }
}
