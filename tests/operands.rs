//! The operand counter: every byte that an instruction reads or writes is looked at by the checks, in all filetests, with
//! and without their cures, and in the whole corpus, by both engines.

use emulator::{Error, PRIVATE, Sanitized, sanitize_under};
use launch::backend::{Engine, Options};
use launch::{Kernel, Operands, cure};
use std::collections::BTreeSet;
use std::path::PathBuf;
use veriflash::filetests::{Case, Kind, corpus, find};

/// Instructions that the warps of a case may execute: enough for all that end.
const BUDGET: u64 = 5_000_000;
/// The same for `pass` and `fail` cases, some of which do not end.
const SMALL_BUDGET: u64 = 50_000;
/// Whole warps at once under two schedules, of which one lets bytes land range by range; then lane by lane.
const SCHEDULES: [(Engine, u64); 3] = [(Engine::Warps, 0), (Engine::Warps, 5), (Engine::Lanes, 0)];
/// Kernels whose bytes are compared between the engines, because they have no findings; raise it whenever more are.
const COMPARED_FILETESTS: usize = 978;
const COMPARED_CORPUS: usize = 169;

/// Instructions that name memory and leave it alone: `emulator::PRIVATE` says why.
const IDLE: [&str; 7] = [
    "BulkCopy(Prefetch)",
    "BulkCopy(TensorPrefetch)",
    "Fence(TensorMapAcquire)",
    "Movement(Prefetch)",
    "Movement(PrefetchKept)",
    "Movement(PrefetchUniform)",
    "TensorMap(Prefetch)",
];

#[test]
fn every_byte_of_the_filetests_is_seen() {
    audit("filetests", COMPARED_FILETESTS);
}

#[test]
fn every_byte_of_the_corpus_is_seen() {
    audit("corpus", COMPARED_CORPUS);
}

#[test]
fn the_page_says_what_is_not_for_the_race_detector() {
    let page = include_str!("../docs/sanitizer.md");
    for (what, why) in PRIVATE {
        assert!(page.contains(&format!("\n- {what}: {why}\n")), "docs/sanitizer.md lacks `- {what}: {why}`");
    }
}

fn audit(folder: &str, least_compared: usize) {
    let cases = find(&[PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)]).expect("the folder is readable");
    let mut books = Books::default();
    for case in &cases {
        for (name, kernel) in kernels(case) {
            let sanitized = kernel.and_then(|kernel| sanitize_under(&kernel, &schedules(case.kind), 0));
            match sanitized {
                Ok(sanitized) => books.add(name, &sanitized),
                Err(error) => books.refused.push(format!("{name}: {error}")),
            }
        }
    }
    books.print(folder);
    assert!(books.refused.is_empty(), "the emulator executes all of them: {:?}", books.refused);
    assert!(books.compared >= least_compared, "{} are compared, and {least_compared} were", books.compared);
    assert!(books.all.sites.len() > cases.len(), "hardly anything was counted");
    assert!(books.wrong.is_empty(), "{} differ:\n{}", books.wrong.len(), books.wrong.join("\n"));
}

fn schedules(kind: Kind) -> [Options; 3] {
    let instruction_budget = if matches!(kind, Kind::Run | Kind::Corpus) { BUDGET } else { SMALL_BUDGET };
    SCHEDULES.map(|(engine, seed)| Options { engine, seed, instruction_budget, audit: true, ..Options::default() })
}

/// The kernel of a case, and the cured one.
fn kernels(case: &Case) -> Vec<(String, Result<Kernel, Error>)> {
    match case.kind {
        Kind::Reject => vec![],
        Kind::Corpus => vec![(case.name.clone(), corpus::kernel(case).map_err(Error::from))],
        _ => {
            let cured = cure::cured(&case.name, &case.text).expect("cures are readable");
            let parse = |text: &str| Kernel::parse(&case.name, text).expect("the case is a kernel");
            let cured = cured.map(|text| (format!("{}, cured", case.name), Ok(parse(&text))));
            [(case.name.clone(), Ok(parse(&case.text)))].into_iter().chain(cured).collect()
        }
    }
}

#[derive(Default)]
struct Books {
    all: Operands,
    wrong: Vec<String>,
    /// What the emulator does not take.
    refused: Vec<String>,
    /// What may stop anywhere, so that the engines need not move the same bytes.
    with_findings: Vec<String>,
    /// How many the engines agree on.
    compared: usize,
}

impl Books {
    fn add(&mut self, name: String, sanitized: &Sanitized) {
        let runs: Vec<&Operands> = sanitized.runs.iter().filter_map(|(_, run, _)| run.operands.as_ref()).collect();
        let all = sanitized.operands().expect("the emulator counts");
        self.wrong.extend(all.faults().into_iter().map(|fault| format!("{name}: {fault}")));
        if sanitized.findings.is_empty() {
            self.compared += 1;
            self.wrong.extend(idle(&all).map(|what| format!("{name}:{what} moves nothing")));
            self.wrong
                .extend(strangers(&runs).map(|what| format!("{name}:{what} is not in the books of both engines")));
        } else {
            self.with_findings.push(name);
        }
        // A kernel of its own: its functions get numbers of their own.
        let first = self.all.sites.keys().next_back().map_or(0, |(function, _)| function + 1);
        let apart = all.sites.into_iter().map(|((function, at), site)| ((first + function, at), site));
        self.all.absorb(Operands { sites: apart.collect(), orphans: all.orphans });
    }

    fn print(&self, folder: &str) {
        println!("{folder}: {}", self.all);
        println!("{} kernels compared between the engines", self.compared);
        println!("{} with findings: {}", self.with_findings.len(), self.with_findings.join(", "));
        println!("{} refused", self.refused.len());
        self.refused.iter().for_each(|refused| println!("  {refused}"));
    }
}

/// Instructions that name memory, were executed, and moved nothing.
fn idle(operands: &Operands) -> impl Iterator<Item = String> {
    let idle = operands.sites.values().filter(|site| site.is_idle() && !IDLE.contains(&site.form.as_str()));
    idle.map(|site| format!("{}: {}", site.line, site.mnemonic))
}

/// Instructions that moved bytes lane by lane, and none or not as many with whole warps: a fast path past the books.
fn strangers(runs: &[&Operands]) -> impl Iterator<Item = String> {
    let [warps, _, lanes] = runs else { panic!("expected {} runs, found {}", SCHEDULES.len(), runs.len()) };
    let places: BTreeSet<_> = warps.sites.keys().chain(lanes.sites.keys()).collect();
    let moved = |operands: &Operands, place: &(usize, usize)| {
        operands.sites.get(place).map_or((0, 0), |site| (site.read, site.written))
    };
    let differs = |place: &&(usize, usize)| moved(warps, place) != moved(lanes, place);
    let name = |place: &(usize, usize)| {
        let site = warps.sites.get(place).or(lanes.sites.get(place)).expect("it is one of them");
        format!("{}: {} {:?} {:?}", site.line, site.mnemonic, moved(warps, place), moved(lanes, place))
    };
    places.into_iter().filter(differs).map(name).collect::<Vec<_>>().into_iter()
}
