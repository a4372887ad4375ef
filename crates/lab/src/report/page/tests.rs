//! The page of evidence that nobody had to run for.

use std::collections::BTreeMap;

use launch::{Kernel, hash};

use super::*;
use crate::Cost;
use crate::case::Case;
use crate::figures::{Figure, Found, Seen, Spot, Subject};
use crate::measure::Refused;
use crate::pack::{code_path, squeezed};
use crate::report::chart::tests::{point, points, unclocked};
use crate::sass::census;
use crate::stages::half::Half;
use crate::stages::{Record, Subjects, assemble, code, parity, resources, sanitize, stress};
use crate::timeline::{Timeline, Track};

const SASS: &str = "\t.section\t.text.attention_forward,\"ax\",@progbits
.L_x_0:
        /*0000*/                   LDGSTS.E.BYPASS.128 [R23], [R12.64], !P0 ;
        /*0010*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;
        /*0020*/                   FADD R1, R2, R3 ;
        /*0030*/              @!P0 BRA `(.L_x_0) ;
        /*0040*/                   EXIT ;
";

/// What somebody writes who wants to be more than text.
const HOSTILE: &str = "<script>alert('x')</script>";

mod on_gpu;

/// Evidence on some kernels, made up.
struct Made {
    cases: Vec<Case>,
    evidence: Evidence,
    files: Files,
    command: String,
}

impl Made {
    /// Kernels that are the same but for their names, each with as many targets as are named.
    fn new(names: &[&str], targets: &[&str], sass: &str) -> Made {
        let problem = "f16 B1 H2 Sq33 Sk65 D64 full".parse().unwrap();
        let kernel = attention::kernels::kernel(&problem, &attention::configs::CONFIGS[0]).unwrap();
        // A comment in the kernel's line, which a snippet shows.
        let text = kernel.parsed.source.text.replace("bar.sync 0;", &format!("bar.sync 0; // {HOSTILE}"));
        let case = |name: &&str| Case::new(Kernel::parse("case.ptx", &text).unwrap()).unwrap().named(name);
        let cases: Vec<Case> = names.iter().map(case).collect();
        let why = || "ptxas was not found: get it with `pip install` <b>".to_string();
        let mut files = Files::new();
        for (case, target) in cases.iter().flat_map(|case| targets.iter().map(move |target| (case, target))) {
            let own = sass.replace("R16", &format!("R{}{}", case.name.len(), &target[3..]));
            files.insert(code_path(&case.name, target, "sass"), squeezed::squeeze(own.as_bytes()));
        }
        let evidence = Evidence {
            assemble: Record::Ran(assemble::run(&cases, &[], None)),
            parity: Record::<parity::Report>::NotRun { why: why() },
            parity_gpu: Half::NoGpu,
            sanitize_gpu: Half::NoGpu,
            stress_gpu: Half::NoGpu,
            resources_gpu: Half::NoGpu,
            code_gpu: Half::NoGpu,
            sanitize: Record::Ran(sanitize::Report {
                kernels: cases.iter().map(|case| sanitized(case.subject())).collect(),
                timeline: Some(drawn_timeline()),
            }),
            stress: Record::<stress::Report>::NotRun { why: why() },
            resources: Record::Ran(resources::Report {
                ptxas: "13.0".into(),
                kernels: cases
                    .iter()
                    .enumerate()
                    .map(|(place, case)| used(case.subject(), place as u32, targets))
                    .collect(),
            }),
            code: Record::Ran(code::Report {
                nvdisasm: "13.0".into(),
                kernels: cases.iter().map(|case| coded(case.subject(), targets, sass)).collect(),
            }),
            bench: Record::without_gpu("peers to compare with", "no GPU was asked for"),
            profile: Record::without_gpu("Nsight Compute", "no GPU was asked for"),
        };
        Made { cases, evidence, files, command: "veriflash prove".into() }
    }

    fn small() -> Made {
        Made::new(&["one", "three"], &["sm_80", "sm_90"], SASS)
    }

    fn page(&self, points: &[Point]) -> String {
        let outcomes = self.evidence.outcomes(&Subjects::of(&self.cases, &[]));
        let (cost, Made { cases, evidence, .. }) = (Cost::default(), self);
        let facts =
            Facts { version: "0.1.0", command: &self.command, cases, evidence, outcomes: &outcomes, cost: &cost };
        render(&facts, &self.files, points).unwrap()
    }
}

/// A race between the first barrier and the line behind it.
fn sanitized(subject: Subject) -> sanitize::Entry {
    let spot = |label: &str, line| Spot {
        label: label.into(),
        line,
        column: 5,
        source: Some("kernels/ampere.rs:28:5".into()),
        cta: [0; 3],
        warp: 0,
        lanes: 1,
    };
    let text = attention_text();
    let line = text.lines().position(|line| line.contains("bar.sync 0;")).unwrap() as u32 + 1;
    let found = Found {
        check: "race-shared".into(),
        severity: "error".into(),
        message: format!("warp 0 reads what warp 1 wrote {HOSTILE}"),
        first: spot("(1) writes them", line),
        second: Some(spot("(2) reads them", line + 2)),
        missing: Some("a barrier".into()),
        help: None,
        count: 3,
    };
    let seen = Seen { asked: vec![], launches: vec![], inputs: vec![], outputs: vec![] };
    let run = |seed| sanitize::Run {
        seed,
        findings: vec![found.clone()],
        seen: seen.clone(),
        unobserved: None,
        error: Figure::new(0.5),
    };
    sanitize::Entry { subject, runs: vec![run(0), run(1)] }
}

fn drawn_timeline() -> Timeline {
    let spans = |text: &str| text.to_string().try_into().unwrap();
    let track = |name: &str, busy, waits| Track { name: name.into(), busy: spans(busy), waits: spans(waits) };
    let tracks = vec![track("warp 0", "0-40 60-100", "40-60"), track("copies", "10-50 20-60", "")];
    Timeline { kernel: "one".into(), seed: 4, end: 100, cut: false, tracks }
}

fn attention_text() -> String {
    let problem = "f16 B1 H2 Sq33 Sk65 D64 full".parse().unwrap();
    attention::kernels::kernel(&problem, &attention::configs::CONFIGS[0]).unwrap().parsed.source.text
}

fn used(subject: Subject, more: u32, targets: &[&str]) -> resources::Entry {
    let one = |(place, target): (usize, &&str)| resources::Used {
        entry: "attention_forward".into(),
        target: target.to_string(),
        registers: 96 + 46 * more + place as u32,
        stack_bytes: 0,
        spill_store_bytes: 0,
        spill_load_bytes: 0,
        shared_bytes: 1024,
        threads: 128,
        blocks_per_processor: Some(4),
        occupancy_percent: Some(25 - more.min(1)),
    };
    resources::Entry { subject, traps: 0, used: targets.iter().enumerate().map(one).collect() }
}

fn coded(subject: Subject, targets: &[&str], sass: &str) -> code::Entry {
    let one = |target: &&str| code::Cubin {
        target: target.to_string(),
        cubin: String::new(),
        sass: hash::hex(sass.as_bytes()),
        census: census(sass).unwrap(),
        serialised: None,
    };
    code::Entry { subject, cubins: targets.iter().map(one).collect() }
}

fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let start = page.find(&format!("<section id=\"{id}\">")).unwrap_or_else(|| panic!("no section {id}"));
    &page[start..start + page[start..].find("</section>").unwrap()]
}

#[test]
fn sections() {
    let made = Made::small();
    // It changes with every line of ours that moves.
    let page = made.page(&[]).replace(&made.cases[0].kernel.hash()[..16], "0123456789abcdef");
    let first = &page[page.find("<header").unwrap()..page.find("</header>").unwrap()];
    insta::assert_snapshot!("verdict", format!("{first}{}", section(&page, "verdict")));
    insta::assert_snapshot!("matrix", section(&page, "evidence"));
    insta::assert_snapshot!("findings", section(&page, "findings"));
    insta::assert_snapshot!("machine_code", section(&page, "code"));
    insta::assert_snapshot!("resources", section(&page, "resources"));
    insta::assert_snapshot!("pipeline", section(&page, "pipeline"));
    let without: String =
        ["speed", "throughput", "shapes", "samples"].map(|id| section(&page, id).to_string()).concat();
    assert_eq!(without.matches("Bench was not run: needs a GPU").count(), 4, "{without}");
}

#[test]
fn what_was_measured_is_shown() {
    let page = Made::small().page(&points()[..2]);
    insta::assert_snapshot!("speed", section(&page, "speed"));
    assert!(!page.contains("was not run: the stage needs a GPU and peers to compare with, and does not measure yet</"));
    assert_eq!(section(&page, "throughput").matches("<svg").count(), 1);
    assert_eq!(section(&page, "shapes").matches("<svg").count(), 2);
    assert_eq!(section(&page, "samples").matches("<details").count(), 2);
    let page = Made::small().page(&[points()[0].clone(), unclocked(points()[1].clone())]);
    assert_eq!(section(&page, "samples").matches("The clock was not read").count(), 1);
    assert!(!page.contains("taken again"));
    let mut retaken = points()[0].clone();
    let reading = retaken.rounds.0[0].readings[2];
    retaken.rounds.0[0].refused = Some(vec![Refused { contender: 2, reading }]);
    let page = Made::small().page(&[retaken]);
    assert!(section(&page, "samples").contains("dropped, 1 of the samples taken again</span>"));
}

/// Sections stand in the order in which somebody with five minutes wants them.
#[test]
fn the_verdict_comes_first() {
    let page = Made::small().page(&[]);
    let order = [
        "<h1>",
        "evidence",
        "speed",
        "throughput",
        "findings",
        "gpu",
        "code",
        "resources",
        "profile",
        "shapes",
        "samples",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|id| {
            if id.starts_with('<') { page.find(id) } else { page.find(&format!("<section id=\"{id}\">")) }.unwrap()
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn nothing_that_is_given_becomes_markup() {
    let mut made = Made::small();
    made.command = format!("veriflash prove --kernel '{HOSTILE}'");
    made.evidence.code = Record::NotRun { why: HOSTILE.into() };
    let mut points = points();
    points[0].problem = HOSTILE.into();
    points[1].contenders[2].name = HOSTILE.into();
    points[1].missing.push(crate::bench::Missing { name: HOSTILE.into(), why: HOSTILE.into() });
    let page = made.page(&points);
    assert!(page.matches("&lt;script&gt;").count() >= 8, "{}", page.matches("&lt;script&gt;").count());
    assert!(!page.contains("<script") && !page.contains("<b>."), "markup");
    let mut sass = Made::new(&["one"], &["sm_80"], &SASS.replace("FADD R1", &format!("FADD{HOSTILE} R1")));
    sass.evidence.profile = Record::without_gpu("Nsight Compute", "no GPU was asked for");
    assert!(!sass.page(&[]).contains("<script"));
}

/// A log may say what it likes: lines that are not there are shown as words.
#[test]
fn places_that_are_not_in_the_kernel_are_no_snippets() {
    for (line, column) in [(0, 1), (1, 0), (1_000_000, 1), (1, 1_000_000), (u32::MAX, u32::MAX)] {
        let mut made = Made::small();
        let Record::Ran(log) = &mut made.evidence.sanitize else { panic!() };
        for found in log.kernels.iter_mut().flat_map(|entry| &mut entry.runs).flat_map(|run| &mut run.findings) {
            (found.first.line, found.first.column) = (line, column);
        }
        let page = made.page(&[]);
        let place = if line == 0 { "in the recipe".into() } else { format!("at line {line}") };
        assert!(section(&page, "findings").contains(&format!("<pre tabindex=\"0\">error[race-shared] {place}")));
    }
}

#[test]
fn the_same_evidence_gives_the_same_bytes() {
    assert_eq!(Made::small().page(&points()), Made::small().page(&points()));
}

#[test]
fn sentences_have_a_capital_and_a_full_stop() {
    let of = |text: &str| sentence(text).to_string();
    assert_eq!(of("get it with `pip install`"), "Get it with <code>pip install</code>.");
    assert_eq!(of("racy: it is wrong"), "racy: it is wrong.");
    assert_eq!(of("a ` alone & more."), "A ` alone &amp; more.");
    assert_eq!(of(""), ".");
}

/// As many kernels and points as a pack with everything has.
fn large() -> String {
    let body: String = (0..420)
        .map(|place| match place % 6 {
            0 => format!("        /*{:04x}*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;\n", place * 16),
            1 => format!("        /*{:04x}*/                   LDSM.16.M88.4 R120, [R7+0x{place:x}] ;\n", place * 16),
            _ => format!(
                "        /*{:04x}*/                   FFMA.FTZ R{place}, R16.reuse, c[0x0][0x1a0], -R12 ;\n",
                place * 16
            ),
        })
        .collect();
    let sass = SASS.replace(".L_x_0:\n", &format!(".L_x_0:\n{body}"));
    let names: Vec<String> = (1..=8).map(|length| "attention-".to_string() + &"x".repeat(length * 4)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut made = Made::new(&names, &["sm_80", "sm_90", "sm_100", "sm_120"], &sass);
    on_gpu::add(&mut made);
    made.page(&grid())
}

/// The problems of every grid, thirty of them, with times that scatter by one percent.
fn grid() -> Vec<Point> {
    let problems = crate::bench::Grid::ALL.into_iter().flat_map(|grid| grid.problems().unwrap()).take(30);
    let mut random = fastrand::Rng::with_seed(0);
    let mut peers: BTreeMap<&str, f64> = [("cudnn", 11.0), ("fa2", 13.0), ("fa4", 10.1), ("triton", 12.2)].into();
    let one = |problem: attention::Problem| {
        peers.values_mut().for_each(|time| *time *= 0.98 + 0.03 * random.f64());
        let times: Vec<(&str, f64)> = peers.iter().map(|(name, time)| (*name, *time)).collect();
        let mut point = point(&problem.to_string(), &times);
        point.floor.operations = Figure::new(4e9 + 1e7 * f64::from(problem.keys()).sqrt());
        while point.rounds.0.len() < 90 {
            point.rounds.0.extend_from_within(..1);
        }
        for reading in point.rounds.0.iter_mut().flat_map(|round| &mut round.readings) {
            *reading = reading.taking(reading.seconds.value() * (0.99 + 0.02 * random.f64()));
            reading.megahertz = Some(Figure::new(1960.0 + 30.0 * random.f64()));
        }
        point
    };
    problems.map(one).collect()
}

#[test]
fn a_page_with_everything_stays_small() {
    let page = large();
    assert!(page.len() < 700_000, "{} bytes", page.len());
    assert!(page.contains("The main loop is left out"), "there is a limit to listings");
}

/// For those who want to look at it: `.ci/report` opens what this writes.
#[test]
#[ignore = "writes a page into the file that VERIFLASH_PAGE names"]
fn write_a_page_with_everything() {
    let path = std::env::var_os("VERIFLASH_PAGE").expect("VERIFLASH_PAGE names a file");
    std::fs::write(path, large()).unwrap();
}

/// WCAG 2.2, "Contrast (Minimum)": 4.5 for text.
#[test]
fn cells_of_maps_can_be_read() {
    let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
    for scheme in [light, dark] {
        let cell = luminance(scheme, "cell");
        for name in ["even", "up1", "up2", "up3", "up4", "down1", "down2", "down3", "down4"] {
            let other = luminance(scheme, name);
            let ratio = (cell.max(other) + 0.05) / (cell.min(other) + 0.05);
            assert!(ratio >= 4.5, "{name}: {ratio:.2}");
        }
    }
}

/// WCAG 2.2, "relative luminance".
fn luminance(scheme: &str, name: &str) -> f64 {
    let digits = scheme.split(&format!("--{name}: #")).nth(1).unwrap_or_else(|| panic!("{name} has no colour"));
    let channel = |place: usize| {
        let value = f64::from(u8::from_str_radix(&digits[place * 2..place * 2 + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
}
