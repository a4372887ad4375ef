//! What commands write on standard output, as text or JSON.
//!
//! Every JSON document begins with `schema`, `command`, `verdict` and `exit`; the command's own fields follow.

use super::{Exit, origin};
use annotate_snippets::Renderer;
use emulator::report::Reporter;
use launch::Kernel;
use launch::finding::{Event, Finding, Severity};
use serde_json::{Map, Value, json};

/// Findings of one severity that are printed in full; one missing barrier may cause dozens.
const SHOWN: usize = 5;

/// Version of the JSON's shape.
const SCHEMA: u32 = 1;

#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// How commands write that judge a pack.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PackFormat {
    #[default]
    Text,
    Json,
    /// Annotations of a pull request on GitHub, and a summary of the job
    Github,
}

/// Prints a JSON document; `own` is an object.
pub fn print_json(command: &str, verdict: &str, exit: Exit, own: Value) {
    let mut document = Map::new();
    document.insert("schema".into(), SCHEMA.into());
    document.insert("command".into(), command.into());
    document.insert("verdict".into(), verdict.into());
    document.insert("exit".into(), (exit as u8).into());
    if let Value::Object(own) = own {
        document.extend(own);
    }
    println!("{:#}", Value::Object(document));
}

/// The verdict of commands that look for findings in one kernel; warnings and lints count if they are denied.
pub fn verdict(exit: Exit) -> &'static str {
    match exit {
        Exit::Clean => "clean",
        Exit::Findings => "findings",
        Exit::BadInput | Exit::Unsupported | Exit::Undecided => "undecided",
    }
}

pub fn print_findings(kernel: &Kernel, findings: &[Finding], repeat: &str) {
    let load = |path: &str| std::fs::read_to_string(path).ok();
    let origin = |name: &str| origin::text(kernel, name);
    let source = &kernel.parsed.source;
    let reporter = Reporter { source, repeat, load: &load, origin: &origin, renderer: Renderer::styled() };
    let (full, rest) = shown(findings);
    full.iter().for_each(|finding| anstream::println!("{}\n", reporter.render(finding)));
    print_rest(&rest);
}

/// Those that are printed in full and the others, each the worst first: errors must not hide behind lints.
fn shown(findings: &[Finding]) -> (Vec<&Finding>, Vec<&Finding>) {
    let (mut full, mut rest) = (vec![], vec![]);
    for severity in [Severity::Error, Severity::Warning, Severity::Lint] {
        let mut of_severity = findings.iter().filter(|finding| finding.severity == severity);
        full.extend(of_severity.by_ref().take(SHOWN));
        rest.extend(of_severity);
    }
    (full, rest)
}

/// One line each for those that are not printed in full.
fn print_rest(findings: &[&Finding]) {
    if !findings.is_empty() {
        println!("{} more, which often have the same cause (`--format json` has all of them in full):", findings.len());
    }
    for finding in findings {
        let (first, primary) = (&finding.first, finding.primary());
        println!(
            "  {}[{}] at lines {} and {}: {}",
            finding.severity.word(),
            finding.check,
            first.line,
            primary.line,
            finding.message
        );
    }
}

/// What happened, what is missing and what to do, as text without a place.
pub fn message(finding: &Finding) -> String {
    let missing = finding.missing.iter().map(|missing| format!("\nMissing: {missing}."));
    let help = finding.help.iter().map(|help| format!("\nHelp: {help}."));
    std::iter::once(finding.message.clone()).chain(missing).chain(help).collect()
}

/// The field `findings` of every checking command.
pub fn findings_json(findings: &[Finding]) -> Value {
    findings.iter().map(finding_json).collect()
}

pub fn finding_json(finding: &Finding) -> Value {
    json!({
        "check": finding.check,
        "severity": finding.severity.word(),
        "message": finding.message,
        "first": event_json(&finding.first),
        "second": finding.second.as_ref().map(event_json),
        "missing": finding.missing,
        "help": finding.help,
        "count": finding.count,
        "seed": finding.seed,
        "policy": finding.policy.name(),
    })
}

fn event_json(event: &Event) -> Value {
    json!({
        "file": event.file,
        "line": event.line,
        "column": event.column,
        "source": event.source,
        "cta": event.cta,
        "warp": event.warp,
        "lanes": event.lanes,
        "label": event.label,
    })
}

#[cfg(test)]
mod tests {
    use super::super::severity::tests::finding;
    use super::*;

    #[test]
    fn errors_come_before_what_is_less_and_hide_nothing_else() {
        let findings: Vec<Finding> = [(Severity::Lint, 8), (Severity::Error, 7), (Severity::Warning, 1)]
            .into_iter()
            .flat_map(|(severity, count)| (0..count).map(move |_| finding(severity)))
            .collect();
        let counts = |of: Vec<&Finding>| {
            let order: Vec<Severity> = of.iter().map(|finding| finding.severity).collect();
            assert!(order.is_sorted_by(|one, next| one >= next), "{order:?}");
            [Severity::Error, Severity::Warning, Severity::Lint]
                .map(|severity| order.iter().filter(|one| **one == severity).count())
        };
        let (full, rest) = shown(&findings);
        assert_eq!((counts(full), counts(rest)), ([5, 1, 5], [2, 0, 3]));
    }
}
