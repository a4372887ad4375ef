//! NVIDIA's compute-sanitizer, all four tools, over the same kernels on a GPU.
//!
//! That a tool found nothing says something only if it would have found something: before the kernels each tool is given one with a
//! planted fault, and must report it. And the process under the tool must have launched the kernel and left the right result, as
//! it says itself.

use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::half::GpuLog;
use super::super::{Stage, counted};
use crate::case::Case;
use crate::figures::{Launched, Subject};
use crate::guard::{Guard, Objection};
use crate::hardware::{Hardware, write_case};
use crate::harness;
use crate::tools::Tool;

/// A tool, what it is asked for beyond its defaults, and a kernel with a fault that it must report.
struct Checker {
    name: &'static str,
    options: &'static [&'static str],
    planted: &'static str,
}

#[rustfmt::skip] // One row per tool.
const CHECKERS: [Checker; 4] = [
    Checker { name: "memcheck", options: &[], planted: include_str!("../../../../../filetests/fail/misaligned/vector_from_an_odd_row.ptx") },
    Checker { name: "racecheck", options: &["--racecheck-detect-level", "info"], planted: include_str!("../../../../../filetests/fail/race-shared/barrier_before_the_store.ptx") },
    Checker { name: "synccheck", options: &[], planted: include_str!("../../../../../filetests/fail/barrier/in_divergent_code.ptx") },
    Checker { name: "initcheck", options: &["--check-api-memory-access", "no"], planted: include_str!("../../../../../filetests/fail/uninitialised-memory/accumulator_never_cleared.ptx") },
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub version: String,
    /// What each tool said of the fault that was planted for it.
    pub planted: Vec<Checked>,
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    /// The launches that must be seen under every tool, in the words of [`Checked::launched`]. Packs that are older than the question have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    pub checked: Vec<Checked>,
}

/// One run under one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    pub tool: String,
    /// Its log, line by line, without the numbers of processes.
    pub said: Vec<String>,
    /// Launches that the process under it saw through: entry, blocks, threads, and how often, as [`Launched`] writes them. Older packs have
    /// entry and blocks.
    pub launched: Vec<String>,
    /// The process left the right result, out of poison.
    pub right: bool,
}

/// All tools over all cases, several at a time.
pub(crate) fn run(hardware: &Hardware, cases: &[Case], step: &(dyn Fn() + Sync)) -> Result<Report, String> {
    let tool =
        hardware.compute_sanitizer.as_ref().ok_or("compute-sanitizer was not found: it comes with the CUDA toolkit")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let planted = |checker: &Checker| {
        let file = folder.path().join(format!("{}.ptx", checker.name));
        std::fs::write(&file, checker.planted).map_err(|error| format!("{}: {error}", file.display()))?;
        let said = checked(hardware, tool, checker, &file, folder.path(), "planted");
        step();
        said
    };
    let planted = CHECKERS.par_iter().map(planted).collect::<Result<Vec<_>, String>>()?;
    let files = cases.iter().map(|case| write_case(folder.path(), case)).collect::<Result<Vec<_>, _>>()?;
    let jobs: Vec<_> =
        cases.iter().zip(&files).flat_map(|job| CHECKERS.iter().map(move |checker| (job, checker))).collect();
    let one = |((case, file), checker): &((&Case, &std::path::PathBuf), &Checker)| {
        let said = checked(hardware, tool, checker, file, folder.path(), &case.name);
        step();
        said
    };
    let mut all = jobs.par_iter().map(one).collect::<Result<Vec<_>, String>>()?.into_iter();
    let entry = |case: &Case| Entry {
        subject: case.subject(),
        asked: asked(case),
        checked: all.by_ref().take(CHECKERS.len()).collect(),
    };
    Ok(Report { version: tool.version.clone(), planted, kernels: cases.iter().map(entry).collect() })
}

pub(crate) fn steps(cases: usize) -> usize {
    CHECKERS.len() * (cases + 1)
}

fn checked(
    hardware: &Hardware,
    tool: &Tool,
    checker: &Checker,
    kernel: &Path,
    folder: &Path,
    name: &str,
) -> Result<Checked, String> {
    let log = folder.join(format!("{name}.{}.txt", checker.name));
    let written = log.display().to_string();
    let mut options = vec!["--tool", checker.name, "--log-file", &written, "--report-api-errors", "no"];
    options.extend(checker.options);
    // Initcheck must see who reads what nobody wrote: our own poison would hide it.
    let more: &[&str] = if checker.name == "initcheck" { &["--leave-poison"] } else { &[] };
    let process = hardware.watched(tool, &options, kernel, more).map_err(|error| format!("{name}: {error}"))?;
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let result: Value = serde_json::from_str(&process.output).unwrap_or_default();
    Ok(Checked {
        tool: checker.name.into(),
        said: shortened(&said),
        launched: launched(&result["launches"]),
        right: process.code == Some(0) && result["verdict"] == "pass" && result["changed"] != Value::Array(vec![]),
    })
}

/// What the recipe asks for.
pub(crate) fn asked(case: &Case) -> Vec<String> {
    harness::asked(&case.kernel, &case.resolved.launches).iter().map(ToString::to_string).collect()
}

/// The launches that `run --format json` tells of; nothing of what is told otherwise.
fn launched(told: &Value) -> Vec<String> {
    let three = |value: &Value| serde_json::from_value::<[u32; 3]>(value.clone()).ok();
    let one = |told: &Value| {
        let (entry, count) = (told["entry"].as_str()?.to_string(), told["count"].as_u64()?.try_into().ok()?);
        Some(Launched { entry, grid: three(&told["grid"])?, block: three(&told["block"])?, count }.to_string())
    };
    told.as_array().map_or(vec![], |all| all.iter().filter_map(one).collect())
}

/// Of a tool's log: reports of many errors are all alike.
const MOST_LINES: usize = 60;

/// The first lines of a log, and its summary, which is the last.
fn shortened(log: &str) -> Vec<String> {
    let lines = log.lines().map(|line| line.trim_start_matches('=').trim().to_string()).filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.collect();
    let summary = lines.iter().rposition(|line| line.contains(SUMMARY)).filter(|place| *place >= MOST_LINES);
    let summary = summary.map(|place| lines[place].clone());
    lines.truncate(MOST_LINES);
    lines.extend(summary);
    lines
}

const SUMMARY: &str = "SUMMARY:";

impl Checked {
    /// The number of errors or hazards in the summary; nothing if it has none.
    pub(crate) fn errors(&self) -> Option<u64> {
        let summary = self.said.iter().rev().find(|line| line.contains(SUMMARY))?;
        let (_, counts) = summary.split_once(SUMMARY)?;
        counts.split_whitespace().next()?.parse().ok()
    }

    /// Did the tool report something, and end in order? A log that was cut before its summary has reported more than enough.
    pub(crate) fn reports(&self) -> bool {
        self.errors().map_or(self.said.len() >= MOST_LINES, |errors| errors > 0)
    }

    pub(crate) fn objections(&self, place: &str) -> Vec<Objection> {
        let tool = &self.tool;
        let silent = self.errors().is_none().then(|| format!("{place}: {tool} gave no summary"));
        let idle = self.launched.is_empty().then(|| format!("{place}: nothing was launched under {tool}"));
        let unseen = silent.or(idle).map(|why| Objection::not_run(Guard::Witness, why));
        let found = self.errors().filter(|errors| *errors > 0).map(|errors| {
            let first = self.said.get(1).map_or("", String::as_str);
            Objection::fail(Guard::ComputeSanitizer, format!("{place}: {tool} reports {errors}: {first}"))
        });
        let wrong = (!self.right)
            .then(|| Objection::fail(Guard::ErrorRule, format!("{place}: the result under {tool} is wrong")));
        found.into_iter().chain(unseen).chain(wrong).collect()
    }
}

impl Entry {
    /// Tools that saw other launches than those that were asked for.
    fn others(&self, place: &str) -> Vec<Objection> {
        let is_other = |checked: &&Checked| !self.asked.is_empty() && checked.launched != self.asked;
        let words = |checked: &Checked| {
            let [saw, expected] = [&checked.launched, &self.asked].map(|launches| launches.join(", "));
            format!("{place}: under {} ran {saw}: expected {expected}", checked.tool)
        };
        let others = self.checked.iter().filter(is_other);
        others.map(|checked| Objection::fail(Guard::Executed, words(checked))).collect()
    }
}

impl Report {
    /// Tools that would have found nothing whatever was there.
    fn blind(&self) -> Vec<Objection> {
        let missed =
            |checker: &&Checker| !self.planted.iter().any(|checked| checked.tool == checker.name && checked.reports());
        let words = |checker: &Checker| format!("{} does not report the fault that was planted for it", checker.name);
        CHECKERS.iter().filter(missed).map(|checker| Objection::not_run(Guard::PlantedFault, words(checker))).collect()
    }
}

impl GpuLog for Report {
    const STAGE: Stage = Stage::Sanitize;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Vec<Vec<Objection>> {
        let of_entry = |entry: &Entry| {
            let place = format!("{}, on the GPU", entry.subject.kernel);
            let tools = entry.checked.iter().map(|checked| checked.tool.as_str());
            let lacks = !tools.eq(CHECKERS.iter().map(|checker| checker.name));
            let lacks = lacks.then(|| Objection::not_run(Guard::Witness, format!("{place}: not every tool was run")));
            let of_tools = entry.checked.iter().flat_map(|checked| checked.objections(&place));
            lacks.into_iter().chain(of_tools).chain(entry.others(&place)).collect()
        };
        std::iter::once(self.blind()).chain(self.kernels.iter().map(of_entry)).collect()
    }

    fn figures(&self) -> String {
        let runs: Vec<&Checked> = self.kernels.iter().flat_map(|entry| &entry.checked).collect();
        let errors: u64 = runs.iter().filter_map(|run| run.errors()).sum();
        let seen = self.planted.iter().filter(|checked| checked.reports()).count();
        format!(
            "compute-sanitizer {}: {errors} errors in {} of {}, {seen} of {} planted faults reported",
            self.version,
            counted(runs.len(), "run"),
            counted(CHECKERS.len(), "tool"),
            CHECKERS.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Objections;
    use crate::outcome::State;

    fn checked(tool: &str, said: &[&str]) -> Checked {
        let said = said.iter().map(ToString::to_string).collect();
        Checked { tool: tool.into(), said, launched: vec![LAUNCH.into()], right: true }
    }

    const LAUNCH: &str = "`attention_forward` with 2×2×1 blocks of 128 threads, 1 times";

    const NONE: [&str; 2] = ["COMPUTE-SANITIZER", "ERROR SUMMARY: 0 errors"];
    const NO_HAZARD: [&str; 2] = ["COMPUTE-SANITIZER", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"];
    const ONE: [&str; 3] = ["COMPUTE-SANITIZER", "Invalid __global__ read of size 16 bytes", "ERROR SUMMARY: 1 error"];

    fn report() -> Report {
        let subject = Subject { kernel: "k".into(), module: "m".into(), recipe: "r".into() };
        let clean =
            |checker: &Checker| checked(checker.name, if checker.name == "racecheck" { &NO_HAZARD } else { &NONE });
        let kernels =
            vec![Entry { subject, asked: vec![LAUNCH.into()], checked: CHECKERS.iter().map(clean).collect() }];
        let planted = CHECKERS.iter().map(|checker| checked(checker.name, &ONE)).collect();
        Report { version: "2025.3.1.0".into(), planted, kernels }
    }

    fn judge(report: &Report) -> State {
        Objections::of_parts(report.objections()).judge()
    }

    #[test]
    fn silence_counts_only_from_tools_that_report_what_is_planted() {
        let mut report = report();
        assert_eq!(judge(&report), State::Pass);
        report.planted[1] = checked("racecheck", &NO_HAZARD);
        assert!(matches!(judge(&report), State::NotRun { why } if why.contains("racecheck does not report")));
    }

    #[test]
    fn a_tool_that_saw_another_launch_shows_nothing() {
        let mut other = report();
        other.kernels[0].checked[1].launched = vec![LAUNCH.replace("2×2×1", "1×1×1")];
        assert!(
            matches!(judge(&other), State::Fail { why } if why.contains("under racecheck ran `attention_forward` with 1×1×1"))
        );
        other.kernels[0].checked[1].launched = vec![LAUNCH.into(); 2];
        assert!(matches!(judge(&other), State::Fail { .. }), "once more than was asked for");
    }

    #[test]
    fn launches_are_read_as_the_process_tells_them() {
        let told =
            r#"[{"entry": "attention_forward", "grid": [2, 2, 1], "block": [128, 1, 1], "count": 1, "seconds": 0.1}]"#;
        assert_eq!(launched(&serde_json::from_str(told).unwrap()), [LAUNCH]);
        assert_eq!(launched(&Value::Null), [""; 0]);
    }

    #[test]
    fn of_a_long_log_the_summary_is_kept() {
        let log = format!("{}========= ERROR SUMMARY: 300 errors\n", "========= Invalid read\n".repeat(300));
        let long = Checked { said: shortened(&log), ..checked("memcheck", &[]) };
        assert_eq!((long.said.len(), long.errors()), (MOST_LINES + 1, Some(300)));
    }

    #[test]
    fn an_error_a_missing_summary_a_run_without_a_launch_and_a_wrong_result_all_show() {
        let mut wrong = report();
        wrong.kernels[0].checked[0] = checked("memcheck", &ONE);
        assert!(
            matches!(judge(&wrong), State::Fail { why } if why.contains("memcheck reports 1: Invalid __global__ read"))
        );
        let mut idle = report();
        idle.kernels[0].checked[2].launched.clear();
        assert!(matches!(judge(&idle), State::NotRun { why } if why.contains("nothing was launched under synccheck")));
        let mut cut = report();
        cut.kernels[0].checked[3] = checked("initcheck", &NONE[..1]);
        assert!(matches!(judge(&cut), State::NotRun { why } if why.contains("no summary")));
        let mut died = report();
        died.planted[0] = checked("memcheck", &ONE[..2]);
        assert!(matches!(judge(&died), State::NotRun { why } if why.contains("memcheck does not report")));
        let mut off = report();
        off.kernels[0].checked[0].right = false;
        assert!(matches!(judge(&off), State::Fail { .. }));
        let mut fewer = report();
        fewer.kernels[0].checked.pop();
        assert!(matches!(judge(&fewer), State::NotRun { .. }));
    }
}
