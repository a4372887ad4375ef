//! What the halves of stages showed that ran on a GPU: results, compute-sanitizer, launches again and again.

use serde::Serialize;

use crate::report::Facts;
use crate::stages::half::{GpuLog, Half};
use crate::stages::{Evidence, code, parity, resources, sanitize, stress};

/// Of what a tool said about one kernel; the log has the rest.
const LINES: usize = 24;
/// Runs whose words are shown.
const SHOWN: usize = 6;
/// Of the hash of a code.
const CODE_DIGITS: usize = 12;

#[derive(Serialize)]
pub(super) struct View {
    nothing: String,
    /// Halves without a result, and why.
    died: Vec<(String, String)>,
    parity: Vec<Right>,
    sanitizer: Option<Sanitizer>,
    stress: Vec<Launched>,
    loaded: Vec<Loaded>,
}

/// What the driver made of a kernel and launched.
#[derive(Serialize)]
struct Loaded {
    kernel: String,
    /// The beginning of the code's hash.
    code: String,
    /// Each number with whether it speaks against the kernel.
    cells: Vec<(String, bool)>,
}

/// A problem that was computed.
#[derive(Serialize)]
struct Right {
    problem: String,
    /// In units of what is allowed.
    error: String,
    wrong: bool,
    rows: String,
    bits: &'static str,
    other_bits: bool,
}

/// What compute-sanitizer's tools said.
#[derive(Serialize)]
struct Sanitizer {
    version: String,
    tools: Vec<String>,
    planted: Vec<Said>,
    rows: Vec<(String, Vec<Said>)>,
    reports: Vec<Reported>,
    /// Runs with reports that are not shown.
    more: usize,
}

#[derive(Serialize)]
struct Said {
    text: String,
    bad: bool,
}

/// The words of a tool that found something.
#[derive(Serialize)]
struct Reported {
    tool: String,
    kernel: String,
    text: String,
}

/// Launches of one kernel.
#[derive(Serialize)]
struct Launched {
    kernel: String,
    /// Each number with whether it speaks against the kernel.
    cells: Vec<(String, bool)>,
}

pub(super) fn view(facts: &Facts) -> View {
    let Evidence { parity_gpu, sanitize_gpu, stress_gpu, resources_gpu, code_gpu, .. } = facts.evidence;
    let died = [death(parity_gpu), death(sanitize_gpu), death(stress_gpu), death(resources_gpu), death(code_gpu)];
    let none = (parity_gpu, sanitize_gpu, stress_gpu) == (&Half::NoGpu, &Half::NoGpu, &Half::NoGpu);
    View {
        nothing: if none { NO_GPU } else { "" }.into(),
        died: died.into_iter().flatten().collect(),
        parity: log(parity_gpu).map_or(vec![], |log| log.kernels.iter().map(right).collect()),
        sanitizer: log(sanitize_gpu).map(sanitizer),
        stress: log(stress_gpu).map_or(vec![], |log| log.kernels.iter().map(launched).collect()),
        loaded: log(resources_gpu).zip(log(code_gpu)).map_or(vec![], |(resources, code)| loaded(resources, code)),
    }
}

const NO_GPU: &str = "nothing ran on a GPU: what parity, sanitize and stress say above is what the emulator showed, and stands for itself";

fn death<L: GpuLog>(half: &Half<L>) -> Option<(String, String)> {
    let Half::Died { why } = half else { return None };
    Some((L::STAGE.name().into(), why.clone()))
}

fn log<L>(half: &Half<L>) -> Option<&L> {
    if let Half::Ran(log) = half { Some(log) } else { None }
}

fn right(entry: &parity::gpu::Entry) -> Right {
    let [computed, all] = entry.rows;
    Right {
        problem: entry.problem.clone(),
        error: entry.error.to_string(),
        wrong: entry.error.value() > 1.0,
        rows: format!("{computed} of {all}"),
        bits: entry.as_emulated.map_or("not emulated", |same| if same { "the same" } else { "OTHERS" }),
        other_bits: entry.as_emulated == Some(false),
    }
}

fn sanitizer(log: &sanitize::gpu::Report) -> Sanitizer {
    let cell = |checked: &sanitize::gpu::Checked| {
        let told = !checked.objections("").is_empty();
        let errors = checked.errors().map_or("no summary".into(), |errors| errors.to_string());
        let text = match () {
            () if checked.launched.is_empty() => "nothing launched".into(),
            () if !checked.right => format!("{errors}, wrong result"),
            () => errors,
        };
        Said { text, bad: told }
    };
    let planted = |checked: &sanitize::gpu::Checked| Said {
        text: if checked.reports() { "reported" } else { "NOT REPORTED" }.into(),
        bad: !checked.reports(),
    };
    let runs = log.kernels.iter().flat_map(|entry| entry.checked.iter().map(move |checked| (entry, checked)));
    let found: Vec<_> = runs.filter(|(_, checked)| checked.errors() != Some(0)).collect();
    let reported = |(entry, checked): &(&sanitize::gpu::Entry, &sanitize::gpu::Checked)| Reported {
        tool: checked.tool.clone(),
        kernel: entry.subject.kernel.clone(),
        text: checked.said.iter().take(LINES).map(|line| format!("{line}\n")).collect(),
    };
    Sanitizer {
        version: log.version.clone(),
        tools: log.planted.iter().map(|checked| checked.tool.clone()).collect(),
        planted: log.planted.iter().map(planted).collect(),
        rows: log
            .kernels
            .iter()
            .map(|entry| (entry.subject.kernel.clone(), entry.checked.iter().map(cell).collect()))
            .collect(),
        more: found.len().saturating_sub(SHOWN),
        reports: found.iter().take(SHOWN).map(reported).collect(),
    }
}

fn launched(entry: &stress::gpu::Entry) -> Launched {
    let of_run = |run: &stress::gpu::Launches| {
        [run.launches.to_string(), run.different.to_string(), run.touched.to_string()].into_iter().zip([
            run.launches == 0,
            run.different > 0,
            run.touched > 0,
        ])
    };
    let delays = &entry.delays;
    let delays =
        [(delays.kernels.to_string(), delays.kernels == 0), (delays.different.to_string(), delays.different > 0)];
    Launched { kernel: entry.subject.kernel.clone(), cells: entry.runs.iter().flat_map(of_run).chain(delays).collect() }
}

/// Each code once, with the most that a kernel of it takes.
fn loaded(resources: &resources::gpu::Report, code: &code::gpu::Report) -> Vec<Loaded> {
    let row = |listing: &code::gpu::Listing| {
        let kernels = code.kernels.iter().zip(&resources.kernels).filter(|(entry, _)| entry.code == listing.code);
        let used: Vec<_> = kernels.flat_map(|(_, taken)| &taken.used).collect();
        let [registers, local] = [
            used.iter().map(|used| used.registers).max().unwrap_or(0),
            used.iter().map(|used| used.local_bytes).max().unwrap_or(0),
        ];
        let blocks = used.iter().filter_map(|used| used.blocks_per_processor).min();
        let census = &listing.census;
        let cells = vec![
            (registers.to_string(), false),
            (local.to_string(), local > 0),
            (blocks.map_or("unknown".into(), |blocks| blocks.to_string()), blocks == Some(0)),
            (census.tensor_in_loop.to_string(), census.tensor_in_loop == 0),
            (census.async_copies.to_string(), census.async_copies == 0),
            (census.local.to_string(), census.local > 0),
        ];
        Loaded { kernel: listing.kernel.clone(), code: listing.code.chars().take(CODE_DIGITS).collect(), cells }
    };
    code.listings.iter().map(row).collect()
}
