//! Evidence of a GPU, made up, and what the page makes of it.

use super::*;
use crate::sass::Census;
use crate::stages::code::gpu as code_gpu;
use crate::stages::half::Half;
use crate::stages::parity::gpu as parity_gpu;
use crate::stages::profile::{self, Profiled, Stall};
use crate::stages::resources::gpu as resources_gpu;
use crate::stages::sanitize::gpu as sanitize_gpu;
use crate::stages::stress::gpu as stress_gpu;

const TOOLS: [&str; 4] = ["memcheck", "racecheck", "synccheck", "initcheck"];

/// Everything that a GPU adds, on the same kernels: one tool reports an error, one launch of three left other bits.
pub fn add(made: &mut Made) {
    let subjects: Vec<Subject> = made.cases.iter().map(Case::subject).collect();
    let evidence = &mut made.evidence;
    evidence.parity_gpu = Half::Ran(parity_gpu::Report { kernels: subjects.iter().map(computed).collect() });
    let planted = TOOLS.map(|tool| checked(tool, 1)).into();
    let mut kernels: Vec<sanitize_gpu::Entry> = subjects.iter().map(watched).collect();
    kernels[0].checked[0] = checked("memcheck", 1);
    evidence.sanitize_gpu = Half::Ran(sanitize_gpu::Report { version: "2025.3".into(), planted, kernels });
    let mut kernels: Vec<stress_gpu::Entry> = subjects.iter().map(launched).collect();
    kernels[0].runs[1].different = 7;
    evidence.stress_gpu = Half::Ran(stress_gpu::Report { kernels });
    evidence.resources_gpu =
        Half::Ran(resources_gpu::Report { target: "sm_90".into(), kernels: subjects.iter().map(taken).collect() });
    evidence.code_gpu = Half::Ran(code_gpu::Report {
        nvdisasm: "13.0".into(),
        kernels: subjects.iter().map(coded).collect(),
        listings: vec![listing(&subjects[0])],
    });
    let profiled = |(number, subject): (usize, &Subject)| profiled(subject, number == 1);
    let kernels = subjects.iter().take(2).enumerate().map(profiled).collect();
    evidence.profile = Record::Ran(profile::Report { ncu: "2025.3.1.0".into(), kernels });
}

fn computed(subject: &Subject) -> parity_gpu::Entry {
    parity_gpu::Entry {
        subject: subject.clone(),
        problem: "f16 B1 H2 Sq33 Sk65 D64 full".into(),
        data_seed: 0,
        cubin: String::new(),
        seen: Seen { asked: vec![], launches: vec![], inputs: vec![], outputs: vec![] },
        error: Figure::new(0.25),
        rows: [66, 66],
        as_emulated: Some(true),
    }
}

fn taken(subject: &Subject) -> resources_gpu::Entry {
    let used = resources_gpu::Used {
        entry: "attention_forward".into(),
        registers: 128,
        local_bytes: 0,
        shared_bytes: 24_576,
        threads: 128,
        blocks_per_processor: Some(4),
        occupancy_percent: Some(25),
    };
    resources_gpu::Entry { subject: subject.clone(), cubin: String::new(), used: vec![used] }
}

fn coded(subject: &Subject) -> code_gpu::Entry {
    code_gpu::Entry { subject: subject.clone(), cubin: String::new(), code: "0123456789abcdef".into() }
}

/// Local memory is touched once.
fn listing(subject: &Subject) -> code_gpu::Listing {
    code_gpu::Listing {
        kernel: subject.kernel.clone(),
        cubin: String::new(),
        code: "0123456789abcdef".into(),
        sass: String::new(),
        census: Census { tensor_in_loop: 32, async_copies: 18, local: 1, ..Census::default() },
    }
}

fn checked(tool: &str, errors: u64) -> sanitize_gpu::Checked {
    let found = (errors > 0).then(|| format!("Invalid __global__ read of size 16 bytes {HOSTILE}"));
    let summary = format!("ERROR SUMMARY: {errors} errors");
    let said = ["COMPUTE-SANITIZER".to_string()].into_iter().chain(found).chain([summary]).collect();
    sanitize_gpu::Checked { tool: tool.into(), said, launched: vec!["attention_forward [2,2,1]".into()], right: true }
}

fn watched(subject: &Subject) -> sanitize_gpu::Entry {
    sanitize_gpu::Entry { subject: subject.clone(), asked: vec![], checked: TOOLS.map(|tool| checked(tool, 0)).into() }
}

fn launched(subject: &Subject) -> stress_gpu::Entry {
    let run = |streams| stress_gpu::Launches { streams, launches: 1000, different: 0, touched: 0 };
    stress_gpu::Entry {
        subject: subject.clone(),
        problem: "f16 B1 H2 Sq33 Sk65 D64 full".into(),
        cubin: String::new(),
        error: Figure::new(0.25),
        runs: vec![run(1), run(8)],
        delays: stress_gpu::Delays { kernels: 6, sites: 12, different: 0 },
    }
}

fn profiled(subject: &Subject, largest: bool) -> profile::Entry {
    let stall = |(reason, cycles): (&str, f64)| Stall { reason: reason.into(), cycles: Figure::new(cycles) };
    let launch = Profiled {
        entry: "attention_forward".into(),
        grid: "(16, 8, 2)".into(),
        block: "(128, 1, 1)".into(),
        microseconds: Figure::new(8.832),
        active: Figure::new(96.81),
        busy: Figure::new(60.36),
        tensor: Figure::new(24.65),
        memory: Figure::new(1.1),
        cache: Figure::new(23.65),
        stalls: [("wait", 2.0), ("long scoreboard", 0.5)].map(stall).into(),
    };
    let problem = "f16 B1 H16 S16384 D128 full".into();
    profile::Entry { subject: subject.clone(), problem, largest, asked: vec![], launches: vec![launch] }
}

fn on_gpu() -> Made {
    let mut made = Made::small();
    add(&mut made);
    made
}

#[test]
fn what_a_gpu_showed_and_counted_has_sections() {
    let page = on_gpu().page(&[]);
    insta::assert_snapshot!("gpu", section(&page, "gpu"));
    insta::assert_snapshot!("profile", section(&page, "profile"));
    assert!(!page.contains("<script"), "what a tool says is text");
}

#[test]
fn without_a_gpu_both_say_why_they_are_empty() {
    let page = Made::small().page(&[]);
    assert!(section(&page, "gpu").contains("Nothing ran on a GPU"));
    assert!(section(&page, "profile").contains("Profile was not run: needs a GPU"));
}

/// Only the kernel with the most work is asked to keep the GPU busy; tensor cores must be in use in all.
#[test]
fn counters_are_held_against_the_gates_thresholds() {
    let words = |change: &dyn Fn(&mut Profiled)| {
        let mut made = on_gpu();
        let Record::Ran(log) = &mut made.evidence.profile else { panic!() };
        log.kernels.iter_mut().flat_map(|entry| &mut entry.launches).for_each(change);
        let page = made.page(&[]);
        let bars = section(&page, "profile").to_string();
        ["too little", "enough", "in use", "idle"].map(|word| bars.matches(&format!(">{word}<")).count())
    };
    assert_eq!(words(&|_| {}), [1, 0, 2, 0]);
    assert_eq!(words(&|launch| launch.busy = Figure::new(70.0)), [0, 1, 2, 0]);
    assert_eq!(words(&|launch| launch.tensor = Figure::new(0.0)), [1, 0, 0, 2]);
}

#[test]
fn a_half_that_died_a_blind_tool_and_other_bits_are_marked() {
    let mut made = on_gpu();
    made.evidence.parity_gpu = Half::Died { why: "CUDA_ERROR_LAUNCH_FAILED".into() };
    let Half::Ran(log) = &mut made.evidence.sanitize_gpu else { panic!() };
    log.planted[1] = checked("racecheck", 0);
    log.kernels[1].checked[2].launched.clear();
    log.kernels[1].checked[3].said.pop();
    let page = made.page(&[]);
    let gpu = section(&page, "gpu");
    for told in [
        "<pre tabindex=\"0\">CUDA_ERROR_LAUNCH_FAILED</pre>",
        "<td class=\"bad\">NOT REPORTED</td>",
        "<td class=\"bad\">nothing launched</td>",
        "<td class=\"bad\">no summary</td>",
        "<td>1000</td><td class=\"bad\">7</td>",
    ] {
        assert!(gpu.contains(told), "{told}\n{gpu}");
    }
}
