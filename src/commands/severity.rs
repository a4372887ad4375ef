//! How many findings of each severity there are, and which of them fail a command.

use super::Exit;
use launch::Finding;
use launch::finding::Severity;
use serde_json::{Value, json};
use std::fmt;

/// Errors fail a command; warnings and lints only if they are denied.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Denied {
    /// Warnings count as findings: exit 1
    #[arg(long)]
    deny_warnings: bool,

    /// Lints, which tell of costs, count as findings: exit 1
    #[arg(long)]
    deny_lints: bool,
}

impl Denied {
    pub fn exit(self, findings: &[Finding]) -> Exit {
        let denied = |finding: &Finding| match finding.severity {
            Severity::Error => true,
            Severity::Warning => self.deny_warnings,
            Severity::Lint => self.deny_lints,
        };
        Exit::of_findings(findings.iter().any(denied))
    }
}

/// `1 error, 2 warnings, 0 lints`.
pub struct Tally([(Severity, usize); 3]);

impl Tally {
    pub fn of(findings: &[Finding]) -> Tally {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Tally([Severity::Error, Severity::Warning, Severity::Lint].map(|severity| (severity, count(severity))))
    }

    /// The field `counts` of commands that list findings.
    pub fn json(&self) -> Value {
        let [errors, warnings, lints] = self.0.map(|(_, count)| count);
        json!({ "errors": errors, "warnings": warnings, "lints": lints })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let words = self.0.map(|(severity, count)| counted(count as u64, severity.word(), "s"));
        out.write_str(&words.join(", "))
    }
}

/// `1 launch`, `2 launches`.
pub fn counted(count: u64, one: &str, ending: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { ending })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use launch::Policy;
    use launch::finding::Event;

    pub fn finding(severity: Severity) -> Finding {
        let first = Event {
            label: String::new(),
            file: "one.ptx".into(),
            in_recipe: false,
            line: 1,
            column: 1,
            source: None,
            cta: [0; 3],
            warp: 0,
            lanes: 1,
        };
        let (message, second, missing, help) = (String::new(), None, None, None);
        Finding {
            check: "trap",
            severity,
            message,
            first,
            second,
            missing,
            help,
            count: 1,
            seed: 0,
            policy: Policy::Lazy,
        }
    }

    #[test]
    fn only_errors_fail_unless_more_is_denied() {
        let [plain, warnings, lints] =
            [(false, false), (true, false), (false, true)].map(|(deny_warnings, deny_lints)| {
                move |severity| Denied { deny_warnings, deny_lints }.exit(&[finding(severity)]) as u8
            });
        let all = [Severity::Error, Severity::Warning, Severity::Lint];
        assert_eq!(all.map(plain), [1, 0, 0]);
        assert_eq!(all.map(warnings), [1, 1, 0]);
        assert_eq!(all.map(lints), [1, 0, 1]);
    }

    #[test]
    fn a_summary_counts_each_severity() {
        let all = [Severity::Lint, Severity::Error, Severity::Lint].map(finding);
        assert_eq!(Tally::of(&all).to_string(), "1 error, 0 warnings, 2 lints");
    }
}
