//! `//~` lines: what a case expects of the checks.

use launch::Finding;

/// `//~ error[check]: TEXT`, `//~ error: TEXT` or `//~ note: TEXT` on a line, which may have several, and
/// `//~^ missing: TEXT` on a line of its own below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    pub line: u32,
    /// `error[missing-wait]`, `error`, `note`, `missing`.
    pub what: String,
    pub text: String,
}

impl Expectation {
    pub fn is_met_by(&self, other: &Happening) -> bool {
        self.line == other.line && self.what == other.what && other.text.contains(&self.text)
    }
}

/// What happened on a line, in the same words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    pub line: u32,
    pub what: String,
    pub text: String,
}

pub const MARK: &str = "//~ ";
/// A line that begins so speaks of the line above it, or of the one that that speaks of.
pub const MARK_ABOVE: &str = "//~^ ";
/// What a finding's two events would have been ordered by.
pub const MISSING: &str = "missing";

/// What stands below its line, if a line does nothing else.
pub fn speaks_of_above(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix(MARK_ABOVE)
}

/// The expectations of a text, or why one cannot be read.
pub fn read(text: &str) -> Result<Vec<Expectation>, String> {
    let (mut all, mut above) = (vec![], 0);
    for (line, number) in text.lines().zip(1..) {
        match speaks_of_above(line) {
            Some(rest) => all.push(read_one(rest.trim(), above)?),
            None => {
                above = number;
                for rest in line.split(MARK).skip(1) {
                    all.push(read_one(rest.trim(), number)?);
                }
            }
        }
    }
    Ok(all)
}

/// The mark in a recipe of the corpus, whose PTX stays as its compiler wrote it: `#~ LINE error[check]: TEXT`.
pub const RECIPE_MARK: &str = "#~ ";

/// The expectations that a recipe of the corpus has of the lines of its PTX.
pub fn read_recipe(text: &str) -> Result<Vec<Expectation>, String> {
    let read = |rest: &str| {
        let numbered = rest.split_once(' ').and_then(|(line, rest)| Some((line.parse().ok()?, rest)));
        let (line, rest) = numbered
            .ok_or_else(|| format!("expected `{RECIPE_MARK}LINE error[check]: TEXT`, found `{RECIPE_MARK}{rest}`"))?;
        read_one(rest.trim(), line)
    };
    text.lines().filter_map(|line| line.strip_prefix(RECIPE_MARK)).map(read).collect()
}

fn read_one(text: &str, line: u32) -> Result<Expectation, String> {
    let (what, text) = text.split_once(": ").unwrap_or((text, ""));
    let word = what.split('[').next().unwrap_or(what);
    if !["error", "warning", "lint", "note", MISSING].contains(&word) {
        return Err(format!("line {line}: expected `//~ error[check]: TEXT` or `//~ note: TEXT`, found `{what}`"));
    }
    Ok(Expectation { line, what: what.into(), text: text.trim().into() })
}

/// A finding is an error where it goes wrong, with what is missing there, and a note where its first event was.
pub fn happenings(findings: &[Finding]) -> Vec<Happening> {
    findings.iter().flat_map(happenings_of).collect()
}

pub fn happenings_of(finding: &Finding) -> Vec<Happening> {
    let what = format!("{}[{}]", finding.severity.word(), finding.check);
    let primary = Happening { line: finding.primary().line, what, text: finding.message.clone() };
    let note = finding.second.as_ref().map(|_| Happening {
        line: finding.first.line,
        what: "note".into(),
        text: finding.first.label.clone(),
    });
    let missing = finding.missing.as_ref().map(|missing| Happening {
        line: finding.primary().line,
        what: MISSING.into(),
        text: missing.clone(),
    });
    [Some(primary), missing, note].into_iter().flatten().collect()
}

/// What was expected and did not happen, and what happened and was not expected. Notes may go unmentioned.
pub fn compare(expected: &[Expectation], happened: &[Happening]) -> Vec<String> {
    let missing = expected.iter().filter(|one| !happened.iter().any(|other| one.is_met_by(other)));
    let missing =
        missing.map(|one| format!("line {}: expected {}: {}, which did not happen", one.line, one.what, one.text));
    let surprise =
        happened.iter().filter(|other| other.what != "note" && !expected.iter().any(|one| one.is_met_by(other)));
    let surprise = surprise.map(|other| format!("line {}: unexpected {}: {}", other.line, other.what, other.text));
    missing.chain(surprise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happening(line: u32, what: &str, text: &str) -> Happening {
        Happening { line, what: what.into(), text: text.into() }
    }

    #[test]
    fn lines_words_and_texts_must_agree() {
        let expected = read("a\nb //~ error[trap]: lane 3\nc //~ note: here").unwrap();
        let right = [happening(2, "error[trap]", "by lane 3"), happening(3, "note", "here it is")];
        assert!(compare(&expected, &right).is_empty());
        assert_eq!(compare(&expected, &right[..1]).len(), 1);
        assert_eq!(compare(&expected, &[happening(1, "error[trap]", "by lane 3"), right[1].clone()]).len(), 2);
        assert_eq!(compare(&expected, &[happening(2, "error[race]", "by lane 3"), right[1].clone()]).len(), 2);
        assert_eq!(compare(&[], &right).len(), 1);
        let two = read("b //~ error[trap]: x //~ error[barrier]: y").unwrap();
        assert_eq!(compare(&two, &[happening(1, "error[trap]", "x"), happening(1, "error[barrier]", "y")]), [""; 0]);
        assert_eq!(compare(&two, &[happening(1, "error[trap]", "x")]).len(), 1);
    }

    #[test]
    fn what_is_missing_stands_below() {
        let expected = read("a //~ error[trap]: x\n  //~^ missing: y\n//~^ missing: z\nb //~ note: n").unwrap();
        assert_eq!(expected.iter().map(|one| one.line).collect::<Vec<_>>(), [1, 1, 1, 4]);
        let trap = happening(1, "error[trap]", "x");
        let [y, z] = ["y", "z"].map(|text| happening(1, MISSING, text));
        assert_eq!(compare(&expected[..3], &[trap.clone(), y.clone(), z]), [""; 0]);
        assert_eq!(compare(&expected[..2], &[trap.clone(), y.clone(), happening(1, MISSING, "w")]).len(), 1);
        assert_eq!(compare(&expected[..1], &[trap, y]).len(), 1, "nothing goes unmentioned");
    }

    #[test]
    fn a_word_that_means_nothing_is_refused() {
        assert!(read("x //~ eror[trap]: text").is_err());
        assert!(read_recipe("#~ 7 eror[trap]: text").is_err());
        assert!(read_recipe("#~ error[trap]: text").is_err());
    }

    #[test]
    fn a_recipe_speaks_of_the_lines_of_its_module() {
        let expected = read_recipe("# a comment\nx = 1\n#~ 7 error[trap]: lane 3\n").unwrap();
        assert_eq!(expected, [Expectation { line: 7, what: "error[trap]".into(), text: "lane 3".into() }]);
    }
}
