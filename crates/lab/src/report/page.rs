//! `report.html`: the pack as a page that one can read in five minutes. One file, nothing is loaded from anywhere.
//!
//! It follows from the logs, the kernels and the manifest's command alone, so that `verify` can render it again and
//! compare. Each section is a file here, which says what it shows, and a template, which says how.

mod findings;
mod gpu;
mod machine_code;
mod matrix;
mod profile;
mod resources;
mod speed;
mod verdict;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use super::Facts;
use super::chart::escape;
use super::chart::pipeline::{Pipeline, pipeline};
use crate::bench::Point;
use crate::pack::Files;
use crate::stages::{Evidence, Record};

/// Templates by name; what they are given is escaped, because their names end in `.html`.
const TEMPLATES: [(&str, &str); 11] = [
    ("page.html", include_str!("page/templates/page.html")),
    ("verdict.html", include_str!("page/templates/verdict.html")),
    ("matrix.html", include_str!("page/templates/matrix.html")),
    ("speed.html", include_str!("page/templates/speed.html")),
    ("findings.html", include_str!("page/templates/findings.html")),
    ("gpu.html", include_str!("page/templates/gpu.html")),
    ("machine_code.html", include_str!("page/templates/machine_code.html")),
    ("resources.html", include_str!("page/templates/resources.html")),
    ("profile.html", include_str!("page/templates/profile.html")),
    ("samples.html", include_str!("page/templates/samples.html")),
    ("pipeline.html", include_str!("page/templates/pipeline.html")),
];
const STYLE: &str = include_str!("page/templates/style.css");

/// The page; `files` has the disassemblies.
pub(crate) fn html(facts: &Facts, files: &Files) -> String {
    // Templates and what they are given are both ours, so that tests see what goes wrong; nobody else could mend it.
    render(facts, files, points(facts.evidence))
        .unwrap_or_else(|error| format!("<!doctype html>\n<p>the report could not be made: {error}\n"))
}

fn render(facts: &Facts, files: &Files, points: &[Point]) -> Result<String, minijinja::Error> {
    let page = Page {
        style: STYLE,
        version: facts.version,
        command: facts.command,
        verdict: verdict::view(facts.outcomes),
        matrix: matrix::view(facts),
        speed: speed::view(points, facts.outcomes),
        findings: findings::view(facts),
        gpu: gpu::view(facts),
        machine_code: machine_code::view(facts, files),
        resources: resources::view(facts),
        profile: profile::view(facts),
        pipeline: drawn(facts.evidence),
    };
    environment()?.get_template("page.html")?.render(Serde(page))
}

/// What the templates are given.
#[derive(Serialize)]
struct Page<'a> {
    style: &'static str,
    version: &'a str,
    command: &'a str,
    verdict: verdict::View,
    matrix: matrix::View,
    speed: speed::View,
    findings: findings::View,
    gpu: gpu::View,
    machine_code: machine_code::View,
    resources: resources::View,
    profile: profile::View,
    pipeline: Option<Pipeline>,
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    // A name that nobody gave is a mistake of ours.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("sentence", sentence);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// What a log or an outcome says, as a sentence: with a capital, a full stop, and what stands in backticks as code. A word
/// before a colon is a name, and stays as it is.
fn sentence(text: &str) -> Value {
    let names = text.split(' ').next().is_some_and(|word| word.ends_with(':'));
    let mut letters = text.trim_end_matches('.').chars();
    let first: String = match letters.next() {
        Some(first) if !names => first.to_uppercase().collect(),
        first => first.into_iter().collect(),
    };
    let text = escape(&format!("{first}{}.", letters.as_str()));
    let parts: Vec<&str> = text.split('`').collect();
    // Of a backtick without its second nothing is made.
    let paired = parts.len() % 2 == 1;
    let tag = |place: usize| if place % 2 == 1 { "<code>" } else { "</code>" };
    let marked = parts.iter().enumerate().map(|(place, part)| match place {
        0 => part.to_string(),
        _ => format!("{}{part}", if paired { tag(place) } else { "`" }),
    });
    Value::from_safe_string(marked.collect())
}

/// The timeline that the stage `sanitize` leaves.
fn drawn(evidence: &Evidence) -> Option<Pipeline> {
    match &evidence.sanitize {
        Record::Ran(log) => log.timeline.as_ref().map(pipeline),
        Record::NotRun { .. } => None,
    }
}

/// What the stage `bench` measured.
fn points(evidence: &Evidence) -> &[Point] {
    if let Record::Ran(log) = &evidence.bench { &log.points } else { &[] }
}

#[cfg(test)]
mod tests;
