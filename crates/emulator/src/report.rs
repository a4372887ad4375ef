//! Findings as people read them: both events in the text of the kernel, the missing edge, the fix, and how to repeat it.

use crate::checks;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Renderer, Snippet};
use launch::finding::{Event, Severity};
use launch::{Finding, Policy};
use ptx::Source;
use std::borrow::Cow;

/// What a report needs around the findings.
pub struct Reporter<'a> {
    /// The text of the kernel.
    pub source: &'a Source,
    /// The command that repeats a run, up to the seed.
    pub repeat: &'a str,
    /// The text of a recipe, if it can be read.
    pub load: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a source file that `.loc` names, if it is at hand and the right one.
    pub origin: &'a dyn Fn(&str) -> Option<String>,
    pub renderer: Renderer,
}

impl Reporter<'_> {
    pub fn render(&self, finding: &Finding) -> String {
        let level = match finding.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Lint => Level::NOTE.with_name("lint"),
        };
        let files = self.files(finding);
        let mut group = Group::with_title(level.primary_title(finding.message.as_str()).id(finding.check));
        for (path, text) in &files {
            group = group.element(snippet(finding, path, text));
        }
        for element in self.notes(finding) {
            group = group.element(element);
        }
        let origins: Vec<Origin> = origins(finding).filter_map(|(label, place)| self.origin(label, place)).collect();
        let written = origins.iter().map(Origin::group);
        let groups: Vec<Group> = std::iter::once(group).chain(written).collect();
        self.renderer.render(&groups)
    }

    fn notes<'b>(&self, finding: &Finding) -> Vec<Element<'b>> {
        let missing = finding.missing.as_ref().map(|missing| Level::NOTE.message(format!("missing: {missing}")).into());
        let help = finding.help.as_ref().map(|help| Level::HELP.message(help.clone()).into());
        let times =
            (finding.count > 1).then(|| Level::NOTE.message(format!("this happened {} times", finding.count)).into());
        let own = Policy::of_seed(finding.seed) == finding.policy;
        let policy = if own { String::new() } else { format!(" --policy {}", finding.policy) };
        // What compares schedules needs those before it too.
        let seeds = match finding.check == checks::nondeterminism::CHECK.name {
            true => format!("--seeds {}`", finding.seed.saturating_add(1)),
            false => format!("--seed {}`: {}", finding.seed, finding.policy.about()),
        };
        let repeat = format!("repeat with `{}{policy} {seeds}", self.repeat);
        let page = format!("`veriflash explain {}` says more", finding.check);
        let last = [Level::NOTE.message(repeat).into(), Level::NOTE.message(page).into()];
        missing.into_iter().chain(help).chain(times).chain(last).collect()
    }

    /// The texts in which the events stand, the judged one's first: the kernel's, and the recipe's where that is a file
    /// of its own.
    fn files<'b>(&'b self, finding: &'b Finding) -> Vec<(&'b str, Cow<'b, str>)> {
        let mut files: Vec<(&str, Cow<str>)> = vec![];
        for (event, _) in annotations(finding).into_iter().rev() {
            let path = event.file.as_str();
            if files.iter().any(|(known, _)| *known == path) {
                continue;
            }
            if path == self.source.name {
                files.push((path, Cow::Borrowed(self.source.text.as_str())));
            } else if let Some(text) = (self.load)(path) {
                files.push((path, Cow::Owned(text)));
            }
        }
        files
    }

    /// The line that wrote an event's instruction, from `file:line:column`.
    fn origin(&self, label: &str, place: &str) -> Option<Origin> {
        let mut parts = place.rsplitn(3, ':');
        let (column, line, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (line, column) = (line.parse().ok()?, column.parse().ok()?);
        let title = format!("{label} was written here");
        let text = (self.origin)(path).filter(|text| line > 0 && line as usize <= text.lines().count());
        Some(Origin { title, path: path.into(), text, line, column })
    }
}

/// The events of a finding that stand in one file.
fn snippet<'a>(finding: &'a Finding, path: &'a str, text: &'a str) -> Snippet<'a, Annotation<'a>> {
    let here = annotations(finding).into_iter().filter(|(event, _)| event.file == path);
    here.fold(Snippet::source(text).path(path), |snippet, (event, kind)| {
        snippet.annotation(kind.span(mnemonic_span(text, event)).label(event.label.as_str()))
    })
}

/// The bytes of the mnemonic at an event.
fn mnemonic_span(text: &str, event: &Event) -> std::ops::Range<usize> {
    let start = (line_span(text, event.line).start + event.column as usize - 1).min(text.len());
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.find(|letter: char| letter.is_whitespace() || ";(".contains(letter)).unwrap_or(rest.len());
    start..start + end
}

/// A line of the program that printed the kernel.
struct Origin {
    title: String,
    path: String,
    /// None: the place alone is shown.
    text: Option<String>,
    line: u32,
    column: u32,
}

impl Origin {
    fn group(&self) -> Group<'_> {
        let group = Group::with_title(Level::NOTE.secondary_title(self.title.as_str()));
        let path = self.path.as_str();
        let Some(text) = &self.text else {
            let place = annotate_snippets::Origin::path(path);
            return group.element(place.line(self.line as usize).char_column(self.column as usize));
        };
        let annotation = AnnotationKind::Primary.span(code_span(text, self.line));
        group.element(Snippet::source(text.as_str()).path(path).annotation(annotation))
    }
}

/// The event that is judged is the second, where there are two.
fn annotations(finding: &Finding) -> Vec<(&Event, AnnotationKind)> {
    match &finding.second {
        Some(second) => vec![(&finding.first, AnnotationKind::Context), (second, AnnotationKind::Primary)],
        None => vec![(&finding.first, AnnotationKind::Primary)],
    }
}

fn origins(finding: &Finding) -> impl Iterator<Item = (&'static str, &str)> {
    let first = finding
        .first
        .source
        .as_deref()
        .map(|place| if finding.second.is_some() { ("(1)", place) } else { ("it", place) });
    let second = finding.second.as_ref().and_then(|event| event.source.as_deref()).map(|place| ("(2)", place));
    first.into_iter().chain(second.filter(|(_, place)| Some(*place) != finding.first.source.as_deref()))
}

/// The bytes of a line, counted from one, without its end.
fn line_span(text: &str, line: u32) -> std::ops::Range<usize> {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum::<usize>();
    let length = text[start..].find('\n').unwrap_or(text.len() - start);
    start..start + length
}

/// The same without the blanks around it.
fn code_span(text: &str, line: u32) -> std::ops::Range<usize> {
    let span = line_span(text, line);
    let code = &text[span.clone()];
    span.start + code.len() - code.trim_start().len()..span.end - (code.len() - code.trim_end().len())
}
