//! Findings as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), which code-hosting sites show on the
//! line.

use super::output::message;
use super::{Exit, origin};
use emulator::checks::{self, Check};
use launch::finding::{Event, Finding, Severity};
use launch::{Kernel, hash};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Version of how fingerprints are made: change it, and sites take all findings for new ones.
const FINGERPRINT: &str = "checkAndCode/v1";

/// The document of a run of `sanitize`.
pub fn document(kernel: &Kernel, findings: &[Finding], exit: Exit) -> Value {
    let driver = json!({
        "name": "veriflash",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": checks::ALL.iter().map(|check| rule(check)).collect::<Vec<_>>(),
    });
    let mut known = BTreeMap::new();
    let results: Vec<Value> = findings.iter().map(|finding| result(kernel, finding, &mut known)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": true, "exitCode": exit as u8 }],
            "results": results,
        }],
    })
}

fn rule(check: &Check) -> Value {
    let page = check.page();
    json!({
        "id": check.name,
        "shortDescription": { "text": check.summary() },
        "help": { "text": page, "markdown": page },
        "defaultConfiguration": { "level": level(check.severity) },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Lint => "note",
    }
}

/// `known`: how often each fingerprint was given before.
fn result(kernel: &Kernel, finding: &Finding, known: &mut BTreeMap<String, u32>) -> Value {
    let rule = checks::ALL.iter().position(|check| check.name == finding.check);
    json!({
        "ruleId": finding.check,
        "ruleIndex": rule,
        "level": level(finding.severity),
        "message": { "text": message(finding) },
        "locations": [location(finding.primary())],
        "relatedLocations": related(finding),
        "occurrenceCount": finding.count,
        "partialFingerprints": { FINGERPRINT: fingerprint(kernel, finding, known) },
        "properties": { "seed": finding.seed, "policy": finding.policy.name() },
    })
}

/// The first of two events, and the source lines that wrote the instructions.
fn related(finding: &Finding) -> Vec<Value> {
    let first = finding.second.as_ref().map(|_| (&finding.first.label, location(&finding.first)));
    let events = finding.second.iter().chain([&finding.first]);
    let origin = |event| Some((event, origin(event)?));
    let origins = events.filter_map(origin).map(|(event, place)| (&event.label, place));
    let all = first.into_iter().chain(origins).zip(1..);
    all.map(|((label, mut place), id)| {
        place["id"] = json!(id);
        place["message"] = json!({ "text": label });
        place
    })
    .collect()
}

fn location(event: &Event) -> Value {
    place(&event.file, event.line, event.column)
}

fn origin(event: &Event) -> Option<Value> {
    origin::place(event).map(|(path, line, column)| place(path, line, column))
}

fn place(path: &str, line: u32, column: u32) -> Value {
    let region = json!({ "startLine": line.max(1), "startColumn": column.max(1) });
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri(path) }, "region": region } })
}

/// A path as a URI reference: relative ones stay relative to where the command runs.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let encoded: String = path
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    if Path::new(path).is_absolute() { format!("file://{encoded}") } else { encoded }
}

/// The same for the same code, wherever it has moved to: the check and the text of both lines; equal ones are numbered.
fn fingerprint(kernel: &Kernel, finding: &Finding, known: &mut BTreeMap<String, u32>) -> String {
    let code = |event: &Event| {
        let line = kernel.parsed.source.text.lines().nth(event.line.saturating_sub(1) as usize);
        let line = line.filter(|_| event.file == kernel.parsed.source.name).unwrap_or_default();
        line.split("//").next().unwrap_or_default().trim().to_string()
    };
    let both = [code(&finding.first), finding.second.as_ref().map(code).unwrap_or_default()];
    let base = hash::hex([finding.check, &both[0], &both[1]].join("\n").as_bytes());
    let count = known.entry(base.clone()).or_default();
    *count += 1;
    format!("{base}:{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        assert_eq!(uri("kernels/a b.ptx"), "kernels/a%20b.ptx");
        assert_eq!(uri("/tmp/ä.ptx"), "file:///tmp/%C3%A4.ptx");
    }
}
