//! Findings on standard output, as text or JSON.

use annotate_snippets::Renderer;
use emulator::report::Reporter;
use launch::Kernel;
use launch::finding::{Event, Finding};
use serde_json::{Value, json};

/// Findings printed in full; one missing barrier may cause dozens.
const SHOWN: usize = 5;

/// Version of the JSON's shape.
const SCHEMA: u32 = 1;

#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Json,
}

pub fn print_findings(command: &str, kernel: &Kernel, findings: &[Finding], repeat: &str, format: Format) {
    match format {
        Format::Json => println!("{:#}", findings_json(command, findings)),
        Format::Text => {
            let load = |path: &str| std::fs::read_to_string(path).ok();
            let renderer = Renderer::styled();
            let reporter = Reporter { source: &kernel.parsed.source, repeat, load: &load, renderer };
            findings.iter().take(SHOWN).for_each(|finding| anstream::println!("{}\n", reporter.render(finding)));
            print_rest(&findings[findings.len().min(SHOWN)..]);
        }
    }
}

/// One line each for those that are not printed in full.
fn print_rest(findings: &[Finding]) {
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

/// The JSON of every checking command.
pub fn findings_json(command: &str, findings: &[Finding]) -> Value {
    let failed = !findings.is_empty();
    json!({
        "schema": SCHEMA,
        "command": command,
        "verdict": if failed { "findings" } else { "clean" },
        "exit": super::Exit::of_findings(failed) as u8,
        "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
    })
}

fn finding_json(finding: &Finding) -> Value {
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
