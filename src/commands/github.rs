//! `--format github`: annotations, which GitHub shows on the lines of a pull request, and a summary of the job.
//!
//! GitHub Docs, "Workflow commands for GitHub Actions": "Setting an error message", "Adding a job summary".

use super::gate::Judged;
use super::origin;
use super::output::message;
use lab::{Check, CheckResult, GateResult, Outcome, State};
use launch::Finding;
use launch::finding::Severity;
use std::env;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// Rows of the summary's table of findings; GitHub drops a summary of more than 1 MiB.
const ROWS: usize = 50;

/// What a command tells GitHub.
pub struct Job {
    annotations: Vec<Annotation>,
    /// Markdown.
    summary: String,
}

struct Annotation {
    level: &'static str,
    /// File, line and column.
    place: Option<(String, u32, u32)>,
    title: String,
    message: String,
}

impl Job {
    pub fn new(command: &str) -> Job {
        Job { annotations: Vec::new(), summary: format!("## veriflash {command}\n\n") }
    }

    pub fn findings(mut self, findings: &[Finding]) -> Job {
        self.annotations.extend(findings.iter().map(Annotation::of_finding));
        if findings.is_empty() {
            return self;
        }
        self.summary.push_str("| finding | at | what |\n|---|---|---|\n");
        for finding in findings.iter().take(ROWS) {
            let (word, event) = (finding.severity.word(), finding.primary());
            let place = cell(&format!("{}:{}", event.file, event.line));
            let _ = writeln!(self.summary, "| {word}[{}] | {place} | {} |", finding.check, cell(&finding.message));
        }
        if let Some(more @ 1..) = findings.len().checked_sub(ROWS) {
            let _ = writeln!(self.summary, "\n{more} more are in the log.");
        }
        self.summary.push('\n');
        self
    }

    /// The stages of a pack: those that failed are annotated.
    pub fn stages(mut self, outcomes: &[Outcome]) -> Job {
        self.summary.push_str("| stage | result | what it shows |\n|---|---|---|\n");
        for outcome in outcomes {
            let (stage, state) = (outcome.stage(), outcome.state());
            let _ = writeln!(self.summary, "| {stage} | {} | {} |", state.word(), cell(outcome.sentence()));
            if let State::Fail { why } = state {
                self.annotations.push(Annotation::error(format!("stage {stage} failed"), why));
            }
        }
        self.summary.push('\n');
        self
    }

    /// Gates: the one that was asked for is annotated.
    pub fn gates(mut self, judged: &Judged) -> Job {
        for (name, result) in &judged.results {
            let _ = writeln!(self.summary, "Gate `{name}`: **{}**\n", cell(&result.to_string()));
        }
        if let Some((name, result)) = judged.asked_for() {
            let mut annotation = Annotation::error(format!("gate {name}"), &result.to_string());
            annotation.level = if *result == GateResult::Held { "notice" } else { "error" };
            self.annotations.push(annotation);
        }
        self
    }

    /// What `verify` looked at: what is broken is annotated.
    pub fn checks(mut self, checks: &[Check]) -> Job {
        self.summary.push_str("| check | result |\n|---|---|\n");
        for check in checks {
            let result = match &check.result {
                CheckResult::Holds => "holds".into(),
                CheckResult::NotChecked { why } => format!("not checked: {why}"),
                CheckResult::Broken { why } => {
                    self.annotations.push(Annotation::error(format!("the pack is broken: {}", check.what), why));
                    format!("BROKEN: {why}")
                }
            };
            let _ = writeln!(self.summary, "| {} | {} |", check.what, cell(&result));
        }
        self.summary.push('\n');
        self
    }

    /// Prints the annotations and a last line, and appends the summary to the file that GitHub names.
    pub fn finish(mut self, last: &str) {
        self.annotations.iter().for_each(|annotation| println!("{annotation}"));
        println!("{last}");
        let _ = writeln!(self.summary, "{}\n", cell(last));
        let Some(path) = env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
        let file = File::options().append(true).create(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(self.summary.as_bytes())) {
            // The verdict is worth more than its summary: the exit code stays what it is.
            eprintln!("warning: no summary in {}: {error}", Path::new(&path).display());
        }
    }
}

/// Input that cannot be used: an annotation, on its line where one is known.
pub fn refused(place: Option<(&str, u32, u32)>, message: &str) {
    let place = place.map(|(file, line, column)| (in_repository(file), line, column));
    println!("{}", Annotation { place, ..Annotation::error("veriflash cannot go on".into(), message) });
}

impl Annotation {
    fn error(title: String, message: &str) -> Annotation {
        Annotation { level: "error", place: None, title, message: message.into() }
    }

    /// On the line of the source that wrote the PTX, where it is here; else on the PTX.
    fn of_finding(finding: &Finding) -> Annotation {
        let event = finding.primary();
        let written = origin::place(event).filter(|(file, line, _)| *line > 0 && Path::new(file).is_file());
        let (file, line, column) = written.unwrap_or((&event.file, event.line, event.column));
        let ptx = written.map(|_| format!("\nPTX: {}:{}.", event.file, event.line)).unwrap_or_default();
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Lint => "notice",
        };
        let (title, message) = (format!("{}[{}]", finding.severity.word(), finding.check), message(finding) + &ptx);
        Annotation { level, place: Some((in_repository(file), line.max(1), column.max(1))), title, message }
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "::{} ", self.level)?;
        if let Some((file, line, column)) = &self.place {
            write!(f, "file={},line={line},col={column},", property(file))?;
        }
        write!(f, "title={}::{}", property(&self.title), data(&self.message))
    }
}

/// A path as GitHub wants it: relative to the repository.
fn in_repository(path: &str) -> String {
    let root = env::var("GITHUB_WORKSPACE").ok().filter(|root| !root.is_empty());
    let inner = root.and_then(|root| Path::new(path).strip_prefix(root).ok().map(Path::to_path_buf));
    inner.map_or(path.into(), |inner| inner.display().to_string())
}

/// What follows `::`: on one line.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A value before `::`, where commas and colons have a meaning, too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Text within one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_a_command_or_begins_another() {
        let place = Some(("a,b:c%.ptx".into(), 3, 4));
        let (title, message) = ("one: two".into(), "100 %, as\r\n::error::it says".into());
        let annotation = Annotation { level: "error", place, title, message };
        assert_eq!(
            annotation.to_string(),
            "::error file=a%2Cb%3Ac%25.ptx,line=3,col=4,title=one%3A two::100 %25, as%0D%0A::error::it says"
        );
        assert_eq!(Annotation::error("stage".into(), "a").to_string(), "::error title=stage::a");
    }
}
